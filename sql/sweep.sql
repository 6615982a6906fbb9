-- sweep: what no promise needs goes, what a promise needs stays, in batches that commit; a row that cannot go holds up no
-- other. Covers E01 D10 (a bad row) A32 and invariants 4 and 5.
SET client_min_messages = warning;
CREATE EXTENSION IF NOT EXISTS idempotency;
RESET client_min_messages;
\pset null '(null)'
-- A database of its own: other tests leave keys that age.
\set home :DBNAME
CREATE DATABASE idempotency_sweep TEMPLATE template0;
\c idempotency_sweep
SET client_min_messages = warning;
CREATE EXTENSION idempotency;
RESET client_min_messages;
SELECT op FROM idem_set_policy('plain', 'default', '{"wait": "0"}');
SELECT op FROM idem_set_policy('tombstone', 'default', '{"wait": "0", "tombstone_ttl": "30 days"}');
SELECT op FROM idem_set_policy('retry', 'default', '{"wait": "0", "on_stale": "retry"}');
SELECT op FROM idem_set_policy('lease', 'default', '{"wait": "0", "mode": "lease"}');

-- One key of each kind, made to look as old as `age`: token, times and lease go back together.
CREATE FUNCTION make_old(age interval, id uuid) RETURNS integer LANGUAGE sql AS $$
    UPDATE idem_responses SET token = token - (extract(epoch FROM age) * 1000000)::bigint WHERE operation_id = id;
    UPDATE idem_keys SET token = token - (extract(epoch FROM age) * 1000000)::bigint, created_at = created_at - age,
        completed_at = completed_at - age, expires_at = expires_at - age, lease_until = lease_until - age
     WHERE operation_id = id;
    SELECT 1;
$$;
CREATE TABLE made AS
SELECT o AS op, s AS state, a AS age, c.operation_id, c.token
  FROM unnest(ARRAY['plain', 'tombstone', 'retry']) o, unnest(ARRAY['completed', 'failed', 'released', 'running', 'unknown']) s,
       unnest(ARRAY['1 minute', '2 days', '40 days']::interval[]) a,
       LATERAL (SELECT * FROM idem_claim('a', o, concat_ws('/', s, a), '{}')) c;
SELECT count(r.state) FROM made, idem_complete(operation_id, token, body => 'x') r WHERE made.state = 'completed';
SELECT count(r.state) FROM made, idem_fail(operation_id, token, made.state, 402, 'x') r WHERE made.state IN ('failed', 'released');
SELECT count(r.state) FROM made, idem_fail(operation_id, token, 'indeterminate') r WHERE made.state = 'unknown';
SELECT count(make_old(age, operation_id)) FROM made WHERE age > '1 hour';

-- inside a transaction it says no
BEGIN;
CALL idem_admin_sweep();
ROLLBACK;
CALL idem_admin_sweep(budget => '2 days');
CALL idem_admin_sweep(budget => '-1 s');

-- a pass
CALL idem_admin_sweep(budget => '1 minute');
-- what went: answered and released keys whose ttl and tombstone are over, and dead claims that may run again
SELECT made.op, made.state, string_agg(age::text, ', ' ORDER BY age) AS gone FROM made LEFT JOIN idem_keys k USING (operation_id)
    WHERE k.operation_id IS NULL GROUP BY 1, 2 ORDER BY 1, 2;
-- what lapsed is written down, and says why; what may run again is not
SELECT made.op, made.state, age, k.state AS stored, r.outcome, r.reason FROM made JOIN idem_keys k USING (operation_id),
    LATERAL (SELECT * FROM idem_lookup_id(operation_id)) r
    WHERE made.state IN ('running', 'unknown') ORDER BY 1, 2, 3;
SELECT count(*) AS answers_without_key FROM idem_responses r LEFT JOIN idem_keys k USING (operation_id, token)
    WHERE k.operation_id IS NULL;
SELECT op, state, count(*) FROM idem_unfinished GROUP BY 1, 2 ORDER BY 1, 2;
SELECT count(*) AS hints FROM idem_leases;
-- a late answer still counts, and then the hint goes
SELECT r.outcome, r.state FROM made, idem_complete(operation_id, token - 172800000000, body => 'late') r
    WHERE op = 'plain' AND made.state = 'running' AND age = '2 days';
CALL idem_admin_sweep();
CALL idem_admin_sweep();

-- small batches: the same, and nothing is lost on the way
SET idempotency.batch_size = 7;
SELECT count(*) FROM (SELECT (idem_complete(operation_id, token, body => 'y')).outcome FROM
    idem_claim_many('b', 'plain', ARRAY(SELECT 'k' || n FROM generate_series(1, 100) n))) t;
SELECT count(make_old('3 days', operation_id)) FROM idem_keys WHERE actor = 'b';
CALL idem_admin_sweep(budget => '1 minute');
SELECT count(*) FROM idem_keys WHERE actor = 'b';
-- no transaction removed more than a batch: a trigger counts. It finds its table by its full name, for the sweep has a
-- search_path of its own
CREATE TABLE deleted (xid bigint, actor text);
CREATE FUNCTION note_deleted() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    INSERT INTO public.deleted VALUES (txid_current(), OLD.actor);
    IF OLD.key = 'k50' THEN RAISE 'not this one'; END IF;
    RETURN OLD;
END $$;
CREATE TRIGGER note BEFORE DELETE ON idem_keys FOR EACH ROW EXECUTE FUNCTION note_deleted();
SELECT count(*) FROM (SELECT (idem_complete(operation_id, token, body => 'y')).outcome FROM
    idem_claim_many('c', 'plain', ARRAY(SELECT 'k' || n FROM generate_series(1, 100) n))) t;
SELECT count(make_old('3 days', operation_id)) FROM idem_keys WHERE actor = 'c';
CALL idem_admin_sweep(budget => '1 minute');
SELECT key FROM idem_keys WHERE actor = 'c';
SELECT max(n) <= 7 AS small, sum(n) FROM (SELECT count(*) AS n FROM deleted WHERE actor = 'c' GROUP BY xid) t;
DROP TRIGGER note ON idem_keys;
CALL idem_admin_sweep(budget => '1 minute');
RESET idempotency.batch_size;

-- an answer of a former life goes
SELECT count(r.outcome) FROM idem_claim('d', 'plain', 'twice', '{}') c, idem_complete(c.operation_id, c.token, body => 'one') r;
UPDATE idem_keys SET expires_at = clock_timestamp() - interval '1 s' WHERE actor = 'd';
SELECT r.outcome FROM idem_claim('d', 'plain', 'twice', '{}') c, idem_complete(c.operation_id, c.token, body => 'two') r;
SELECT count(*) FROM idem_responses r JOIN idem_keys k USING (operation_id) WHERE k.actor = 'd';
CALL idem_admin_sweep();
SELECT r.body FROM idem_responses r JOIN idem_keys k USING (operation_id) WHERE k.actor = 'd';

-- another ttl reaches the answers that are there, but for those that asked for their own
SELECT op FROM idem_set_policy('ttl', 'default', '{"ttl": "10 days", "wait": "0"}');
SELECT count(r.outcome) FROM unnest(ARRAY['plain', 'own']) k, idem_claim('f', 'ttl', k, '{}', ttl => CASE k WHEN 'own' THEN interval '5 days' END) c,
    idem_complete(c.operation_id, c.token, body => 'x') r;
SELECT op FROM idem_set_policy('ttl', 'default', '{"ttl": "90 days", "wait": "0"}');
CALL idem_admin_sweep();
SELECT r.key, r.outcome, r.expires_at - r.completed_at AS ttl FROM unnest(ARRAY['plain', 'own']) k, idem_lookup('f', 'ttl', k) r;
SELECT count(make_old('2 days', operation_id)) FROM idem_keys WHERE actor = 'f';
SELECT op FROM idem_set_policy('ttl', 'default', '{"ttl": "1 minute", "wait": "0"}');
CALL idem_admin_sweep();
CALL idem_admin_sweep();
SELECT key, expires_at - completed_at AS ttl FROM idem_keys WHERE actor = 'f';

-- settings of the session change nothing
SET default_transaction_isolation = 'serializable';
SET search_path = pg_temp;
CALL public.idem_admin_sweep();
RESET search_path;
RESET default_transaction_isolation;
SET default_transaction_read_only = on;
CALL idem_admin_sweep();
RESET default_transaction_read_only;

-- forget an actor: what is finished and not of the last hour
SELECT count(*) FROM (SELECT (idem_complete(operation_id, token, body => 'y')).outcome FROM
    idem_claim_many('e', 'plain', ARRAY(SELECT 'k' || n FROM generate_series(1, 10) n))) t;
SELECT count(make_old('2 hours', operation_id)) FROM idem_keys WHERE actor = 'e' AND key <> 'k10';
SELECT outcome FROM idem_claim('e', 'lease', 'running', '{}');
SELECT * FROM idem_admin_forget('e');
SELECT key, state FROM idem_keys WHERE actor = 'e' ORDER BY key;
SELECT count(*) FROM idem_responses r LEFT JOIN idem_keys k USING (operation_id) WHERE k.operation_id IS NULL;
SELECT * FROM idem_admin_forget('nobody');
SELECT * FROM idem_admin_forget(NULL);

-- rights: admin may sweep, client may not
CREATE ROLE sweep_admin;
CREATE ROLE sweep_client;
SELECT count(*) > 0 FROM idem_admin_grant('sweep_admin', 'admin');
SELECT count(*) > 0 FROM idem_admin_grant('sweep_client', 'client');
SET ROLE sweep_admin;
CALL idem_admin_sweep();
RESET ROLE;
SET ROLE sweep_client;
CALL idem_admin_sweep();
RESET ROLE;
DROP OWNED BY sweep_admin, sweep_client;
DROP ROLE sweep_admin, sweep_client;
\c :home
DROP DATABASE idempotency_sweep;
