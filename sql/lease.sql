-- lease: a committed claim lives by its lease and grace, judged by the server's clock alone. Covers A06 A08 A09 A11 A13
-- B06.
SET client_min_messages = warning;
CREATE EXTENSION IF NOT EXISTS idempotency;
RESET client_min_messages;
\pset null '(null)'
CREATE FUNCTION pg_temp.error_of(statement text) RETURNS text LANGUAGE plpgsql AS $$
DECLARE detail text; hint text;
BEGIN
    EXECUTE statement;
    RETURN 'no error';
EXCEPTION WHEN OTHERS THEN
    GET STACKED DIAGNOSTICS detail = PG_EXCEPTION_DETAIL, hint = PG_EXCEPTION_HINT;
    RETURN concat_ws(E'\n', SQLSTATE || ' ' || SQLERRM, nullif(detail, ''), nullif(hint, ''));
END $$;
SELECT op FROM unnest(ARRAY['indeterminate', 'retry']) s, idem_set_policy('lease.' || s, 'default',
    jsonb_build_object('mode', 'lease', 'on_stale', s, 'grace', '0', 'lease', '1 second', 'wait', '0')) ORDER BY op;
SELECT op FROM idem_set_policy('lease.grace', 'default', '{"grace": "1 hour", "wait": "0", "on_stale": "retry"}');
CREATE TEMP TABLE held AS
SELECT o AS op, k AS what, operation_id, token, claimed_at
  FROM unnest(ARRAY['lease.indeterminate', 'lease.retry', 'lease.grace']) o, unnest(ARRAY['lapsing', 'extended', 'late',
      'revived', 'resumed']) k,
       idem_claim('lease.actor', o, k, '{}', attempt_id => '00000000-0000-4000-8000-000000000001', lease => '1 hour');
SELECT op, count(r.outcome), max(r.retry_after_s) FROM held, idem_claim('lease.actor', op, what, '{}') r
    WHERE r.outcome = 'in_progress' GROUP BY op ORDER BY op;
SELECT count(r.outcome) FROM held, idem_checkpoint(operation_id, token, '{"charged": false}') r;
SELECT DISTINCT state FROM idem_unfinished WHERE actor = 'lease.actor';

-- heartbeats: the lease runs from now; the token stays, and only its holder has any
SELECT what, r.outcome, r.proceed, r.token = held.token AS same_token, r.state, r.checkpoint
    FROM held, idem_extend(operation_id, token, '2 hours') r WHERE what = 'extended' ORDER BY op;
SELECT op, lease_until - updated_at AS lease FROM idem_keys WHERE actor = 'lease.actor' AND key = 'extended'
    ORDER BY op;
SELECT n, split_part(pg_temp.error_of(format('SELECT idem_extend(%L, %s, %L)', operation_id, token, v)), E'\n',
    1) AS error
  FROM held, (VALUES (1, '0'), (2, '-1 s'), (3, '25 hours'), (4, '178000000 years')) AS t (n, v)
      WHERE op = 'lease.retry' AND what = 'extended' ORDER BY n;
SELECT pg_temp.error_of(format('SELECT idem_checkpoint(%L, %s, to_jsonb(repeat(%L, 65536)))', operation_id, token,
    'x')) AS error FROM held WHERE op = 'lease.retry' AND what = 'extended';
SELECT length(r.checkpoint #>> '{}') AS size FROM held, idem_checkpoint(operation_id, token, to_jsonb(repeat('x',
    65000))) r WHERE op = 'lease.retry' AND what = 'extended';
SELECT r.checkpoint FROM held, idem_checkpoint(operation_id, token, NULL) r
    WHERE op = 'lease.retry' AND what = 'extended';
-- resumed by its attempt: the lease starts anew, the token is greater, the first one is worth nothing, the checkpoint
-- is handed over
SELECT h.op, r.outcome, r.proceed, r.attempt, r.checkpoint, r.token > h.token AS greater,
    r.claimed_at = h.claimed_at AS first_claimed
  FROM held h, idem_claim('lease.actor', op, what, '{}', attempt_id => '00000000-0000-4000-8000-000000000001',
      lease => '1 hour') r WHERE h.what = 'resumed' ORDER BY h.op;
SELECT op, left(pg_temp.error_of(format('SELECT idem_complete(%L, %s)', operation_id, token)), 5) AS error FROM held
    WHERE what = 'resumed' ORDER BY op;

-- the others hold theirs for a second more
SELECT count(r.outcome) FROM held, idem_extend(operation_id, token, '1 s') r
    WHERE what IN ('lapsing', 'late', 'revived');
SELECT pg_sleep(1.1);

-- lease over, grace not: still running; both over: by on_stale. The attempt that is shown again is no better off
SELECT DISTINCT op, state FROM idem_unfinished WHERE actor = 'lease.actor' AND key = 'lapsing' ORDER BY op;
SELECT op, r.outcome, r.state, r.token, r.reason, r.retry_after_s FROM held, idem_claim('lease.actor', op, what, '{}') r
    WHERE held.what = 'lapsing' AND op <> 'lease.retry' ORDER BY op;
SELECT outcome, proceed, state, token, reason FROM idem_claim('lease.actor', 'lease.indeterminate', 'lapsing', '{}',
    attempt_id => '00000000-0000-4000-8000-000000000001');
SELECT outcome, state, checkpoint FROM idem_lookup('lease.actor', 'lease.indeterminate', 'lapsing');
SELECT h.status FROM idem_claim('lease.actor', 'lease.indeterminate', 'lapsing', '{}') r, idem_http_response(r) h;
SELECT op, r.outcome FROM held, idem_claim('lease.actor', op, what, '{}') r WHERE held.what IN ('extended', 'resumed')
    ORDER BY op, held.what;
-- taken over: one attempt more, a greater token, the last checkpoint; the old holder is refused in every verb, and the
-- row does not change
SELECT r.outcome, r.proceed, r.attempt, r.reason, r.checkpoint, r.token > held.token AS greater,
    r.claimed_at = held.claimed_at AS first_claimed, r.token AS new_token
  FROM held, idem_claim('lease.actor', op, what, '{}') r WHERE held.what = 'lapsing' AND op = 'lease.retry' \gset r_
SELECT :'r_outcome' AS outcome, :'r_proceed' AS proceed, :r_attempt AS attempt, :'r_reason' AS reason,
    :'r_checkpoint' AS checkpoint, :'r_greater' AS greater, :'r_first_claimed' AS first_claimed;
SELECT md5(k::text) AS before FROM idem_keys k WHERE op = 'lease.retry' AND key = 'lapsing' \gset
SELECT call, split_part(pg_temp.error_of(format('SELECT idem_%s', replace(replace(call, '$1',
    quote_literal(operation_id)), '$2', token::text))), E'\n', 1) AS error
  FROM held, unnest(ARRAY['complete($1, $2)', $$fail($1, $2, 'released')$$, $$fail($1, $2, 'failed')$$,
      $$fail($1, $2, 'indeterminate')$$, 'release($1, $2)', 'extend($1, $2)', $$checkpoint($1, $2, '1')$$]) call
      WHERE op = 'lease.retry' AND what = 'lapsing';
SELECT md5(k::text) = :'before' AS untouched FROM idem_keys k WHERE op = 'lease.retry' AND key = 'lapsing';
SELECT r.outcome, r.body FROM held, idem_complete(operation_id, :r_new_token, 200, 'by the new owner') r
    WHERE op = 'lease.retry' AND what = 'lapsing';
SELECT left(pg_temp.error_of(format('SELECT idem_complete(%L, %s, 200, %L)', operation_id, token, 'by the old owner')),
    5) AS error FROM held WHERE op = 'lease.retry' AND what = 'lapsing';
SELECT outcome, body FROM idem_claim('lease.actor', 'lease.retry', 'lapsing', '{}');
-- not taken over: a late completion by the last token counts; a late heartbeat revives the claim
SELECT op, r.outcome, r.state, r.status, r.detail FROM held, idem_complete(operation_id, token, 201) r
    WHERE held.what = 'late' ORDER BY op;
SELECT op, r.outcome, r.detail FROM held, idem_claim('lease.actor', op, what, '{}') r WHERE held.what = 'late'
    ORDER BY op;
SELECT op, r.outcome, r.state FROM held, idem_extend(operation_id, token, '1 hour') r WHERE held.what = 'revived'
    ORDER BY op;
SELECT op, r.outcome, r.retry_after_s FROM held, idem_claim('lease.actor', op, what, '{}') r WHERE held.what = 'revived'
    ORDER BY op;

-- every acquisition of a key gets a greater token, whatever ended the one before
DO $$
DECLARE c idem_result; last bigint := 0;
BEGIN
    FOR i IN 1..60 LOOP
        c := idem_claim('lease.actor', 'lease.retry', 'tokens', '{}',
            attempt_id => '00000000-0000-4000-8000-000000000002');
        COMMIT;
        ASSERT c.proceed, c::text;
        ASSERT c.token > last AND c.token < 9007199254740992, format('%s after %s', c.token, last);
        last := c.token;
        CASE i % 5
        WHEN 0 THEN PERFORM idem_release(c.operation_id, c.token);
        WHEN 1 THEN UPDATE idem_keys SET lease_until = now() - interval '1 min' WHERE operation_id = c.operation_id;
        WHEN 2 THEN PERFORM idem_complete(c.operation_id,
            c.token); UPDATE idem_keys SET expires_at = now() - interval '1 min' WHERE operation_id = c.operation_id;
        WHEN 3 THEN UPDATE idem_keys SET token = token + 3600000000
            WHERE operation_id = c.operation_id; -- as if the clock had been an hour ahead
                    last := last + 3600000000; PERFORM idem_fail(c.operation_id, last, 'released');
        ELSE NULL; -- resumed
        END CASE;
        COMMIT;
    END LOOP;
END $$;

-- hours do not count: the same under any time zone, and a lease a year ahead asks nobody to come back next year
SELECT outcome FROM idem_claim('lease.actor', 'lease.indeterminate', 'zones', '{}', lease => '1 hour');
SET TimeZone = 'Pacific/Kiritimati';
SELECT outcome FROM idem_claim('lease.actor', 'lease.indeterminate', 'zones', '{}');
SET TimeZone = 'Etc/GMT+12';
SELECT outcome FROM idem_claim('lease.actor', 'lease.indeterminate', 'zones', '{}');
SELECT outcome FROM idem_claim('lease.actor', 'lease.indeterminate', 'lapsing', '{}');
RESET TimeZone;
UPDATE idem_keys SET lease_until = now() + interval '1 year' WHERE op = 'lease.indeterminate' AND key = 'zones';
SELECT outcome, retry_after_s BETWEEN 1 AND 5 AS soon FROM idem_claim('lease.actor', 'lease.indeterminate', 'zones',
    '{}');
SELECT h.headers FROM idem_claim('lease.actor', 'lease.indeterminate', 'zones', '{}') r, idem_http_response(r) h;
-- a bounded wait for a running claim takes as long as it says, and ends early when the lease does
SELECT clock_timestamp() AS began \gset
SELECT outcome FROM idem_claim('lease.actor', 'lease.indeterminate', 'zones', '{}', wait => '100 ms');
SELECT clock_timestamp() - :'began'::timestamptz BETWEEN '100 ms' AND '10 s' AS waited;
SELECT outcome FROM idem_claim('lease.actor', 'lease.retry', 'waited for', '{}');
UPDATE idem_keys SET lease_until = clock_timestamp() + interval '200 ms'
    WHERE op = 'lease.retry' AND key = 'waited for';
SELECT outcome, reason, attempt FROM idem_claim('lease.actor', 'lease.retry', 'waited for', '{}', wait => '30 s');
SELECT clock_timestamp() - :'began'::timestamptz < '20 s' AS early;
SET lock_timeout = '50 ms';
SELECT outcome FROM idem_claim('lease.actor', 'lease.indeterminate', 'zones', '{}', wait => '60 s');
RESET lock_timeout;
SET statement_timeout = '100 ms';
SELECT outcome FROM idem_claim('lease.actor', 'lease.indeterminate', 'zones', '{}', wait => '60 s');
RESET statement_timeout;
SELECT outcome FROM idem_claim('lease.actor', 'lease.indeterminate', 'zones', '{}', wait => '0');
