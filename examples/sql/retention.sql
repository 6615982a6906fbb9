-- retention.sql: removes what no promise needs any more. Run it as the owner of the extension, in each database that has
-- it, as often as you like (hourly, say): psql -X -d app -f examples/sql/retention.sql
-- It commits in batches, waits for nobody's row lock, and may be stopped at any time.
--
-- Nothing depends on it: each claim judges expiry by the clock itself. What it keeps is the promise: everything that is
-- running or indeterminate, and everything within its ttl or tombstone. A token that is not safely behind the clock is
-- kept too, for without its row it could be issued a second time. The hour is a margin for clocks that are set back.

-- The extension's schema comes first in this session.
SELECT format('%I, pg_catalog', n.nspname) AS path
  FROM pg_extension e JOIN pg_namespace n ON n.oid = e.extnamespace
 WHERE e.extname = 'idempotency' \gset
SET search_path = :path;

DO $$
DECLARE
    batch constant integer := 10000;
    removed bigint;
    total bigint := 0;
BEGIN
    -- Keys whose ttl and tombstone are over, with their answers. And dead claims that the op's policy lets the next claim
    -- run again (on_stale retry), after another ttl: what goes with them is only the checkpoint.
    LOOP
        WITH done AS (
            SELECT k.operation_id
              FROM idem_keys k
              LEFT JOIN idem_policies p ON p.op = k.op
             CROSS JOIN LATERAL (
                   SELECT coalesce((p.options ->> 'tombstone_ttl')::interval, '0') AS tombstone_ttl,
                          coalesce((p.options ->> 'grace')::interval, '10 seconds') AS grace,
                          coalesce(make_interval(secs => k.ttl_s), (p.options ->> 'ttl')::interval, '1 day') AS ttl) o
             WHERE (k.state IN ('c', 'f', 'r') AND k.expires_at + o.tombstone_ttl < now() - interval '1 hour'
                    OR k.state = 'i' AND p.options ->> 'on_stale' = 'retry'
                       AND k.lease_until + o.grace + o.ttl < now() - interval '1 hour')
               AND k.token < (extract(epoch FROM now() - interval '1 hour') - 946684800) * 1000000
             LIMIT batch FOR UPDATE OF k SKIP LOCKED
        ), gone AS (
            DELETE FROM idem_keys k USING done WHERE k.operation_id = done.operation_id RETURNING k.operation_id
        ), answers AS (
            DELETE FROM idem_responses r USING gone WHERE r.operation_id = gone.operation_id
        )
        SELECT count(*) INTO removed FROM gone;
        total := total + removed;
        COMMIT;
        EXIT WHEN removed = 0;
    END LOOP;
    RAISE INFO 'keys removed: %', total;

    -- Answers of a former life of a key that lives again.
    DELETE FROM idem_responses r
     WHERE NOT EXISTS (SELECT FROM idem_keys k WHERE k.operation_id = r.operation_id AND k.token = r.token);
    GET DIAGNOSTICS removed = ROW_COUNT;
    COMMIT;
    RAISE INFO 'old answers removed: %', removed;

    -- Hints at claims that are finished by now.
    DELETE FROM idem_leases l
     WHERE NOT EXISTS (SELECT FROM idem_keys k WHERE k.operation_id = l.operation_id AND k.state IN ('i', 'u'));
    GET DIAGNOSTICS removed = ROW_COUNT;
    COMMIT;
    RAISE INFO 'old lease hints removed: %', removed;
END
$$;

-- Versions of payload rules that no key remembers.
SELECT op, version AS profile_removed FROM idem_admin_prune_profiles();
