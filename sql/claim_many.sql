-- claim_many: a batch answers in the order of its keys, claims each key once, and takes no lock for each. Covers A01
-- A15 E05 E08.
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

-- the order of the answers is the order of the keys; duplicates are claimed once
SELECT row_number() OVER () AS n, key, outcome, proceed, attempt, state, reason
    FROM idem_claim_many('many.actor', 'many.op', ARRAY['z', 'a', 'm', 'a', 'z', 'B', 'b', 'a ']);
SELECT count(DISTINCT token) AS tokens, count(DISTINCT operation_id) AS operations,
    bool_and(operation_id = (idem_lookup('many.actor', 'many.op', key)).operation_id) AS same_id
  FROM idem_claim_many('many.actor', 'many.op', ARRAY['t1', 't2', 't3']);
-- payloads by place; NULL is no payload; a duplicate with another payload is still the transaction's own
SELECT row_number() OVER () AS n, key, outcome, reason FROM idem_claim_many('many.actor', 'many.op', ARRAY['p1', 'p2',
    'p3', 'p1', 'p1'], ARRAY['{"n": 1}', '{"n": 2}', NULL, '{"n": 1.0}', '{"n": 2}']::jsonb[]);
SELECT key, outcome FROM idem_claim_many('many.actor', 'many.op', ARRAY['p1', 'p2', 'p3'], ARRAY['{"n": 1.0}',
    '{"n": 3}', NULL]::jsonb[], wait => '0');
SELECT key, (SELECT c.outcome FROM idem_claim('many.actor', 'many.op', key, payload, wait => '0') c)
    FROM (VALUES ('p1', '{"n": 1}'::jsonb), ('p2', '{"n": 2}'), ('p3', NULL)) AS t (key, payload);

-- mixed answers in one batch; what is rejected does not hinder the others
SELECT op FROM idem_set_policy('many.strict', 'default',
    '{"key_min": 2, "payload_required": true, "wait": "0", "grace": "0"}');
SELECT count(*) FROM idem_claim_many('many.actor', 'many.strict', ARRAY['done', 'failed', 'released', 'unknown',
    'running', 'conflict'], array_fill('{}'::jsonb, ARRAY[6]));
SELECT k.key, r.state FROM idem_keys k, idem_complete(k.operation_id, k.token, 201, 'done') r
    WHERE k.op = 'many.strict' AND k.key = 'done';
SELECT count(r.state) FROM idem_keys k, idem_fail(k.operation_id, k.token,
    CASE k.key WHEN 'unknown' THEN 'indeterminate' ELSE k.key END) r WHERE k.op = 'many.strict' AND k.key IN ('failed',
    'released', 'unknown');
SELECT key, outcome, proceed, state, status, body, reason
  FROM idem_claim_many('many.actor', 'many.strict', ARRAY['done', 'x', 'failed', '', 'released', 'unknown', 'running',
      'conflict', 'new', 'done', 'without'],
                       ARRAY['{}', '{}', '{}', '{}', '{}', '{}', '{}', '{"x": 1}', '{}', '{}', NULL]::jsonb[]);

-- what is shared by the batch: target, lease, ttl, attempt_id
SELECT key, outcome FROM idem_claim_many('many.actor', 'many.op', ARRAY['s1', 's2'], target => 'order-1',
    lease => '1 hour', ttl => '2 hours', attempt_id => '00000000-0000-4000-8000-000000000001',
    parent_operation_id => '00000000-0000-8000-8000-000000000009',
        traceparent => '00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01', capabilities_version => 1);
SELECT key, lease_until - created_at AS lease, ttl_s, attempt_id, parent, traceparent FROM idem_keys
    WHERE actor = 'many.actor' AND key IN ('s1', 's2') ORDER BY key;
SELECT key, outcome FROM idem_claim_many('many.actor', 'many.op', ARRAY['s1', 's2', 's1'], target => 'order-1',
    attempt_id => '00000000-0000-4000-8000-000000000001');
SELECT key, outcome FROM idem_claim_many('many.actor', 'many.op', ARRAY['s1', 's2'], target => 'order-2', wait => '0');

-- a wait bounds the call as a whole
SELECT count(*) FROM idem_claim_many('many.actor', 'many.op', ARRAY(SELECT 'wait ' || i
    FROM generate_series(1, 60) i), lease => '1 hour');
SELECT clock_timestamp() AS began \gset
SELECT outcome, count(*) FROM idem_claim_many('many.actor', 'many.op', ARRAY(SELECT 'wait ' || i
    FROM generate_series(1, 60) i), wait => '200 ms') GROUP BY outcome;
SELECT clock_timestamp() - :'began'::timestamptz BETWEEN '200 ms' AND '8 s' AS waited_once;

-- shapes
SELECT count(*) FROM idem_claim_many('many.actor', 'many.op', '{}');
SELECT count(*) FROM idem_claim_many('many.actor', 'many.op', '{}', '{}');
SELECT key, outcome FROM idem_claim_many('many.actor', 'many.op', '[5:6]={five,six}', '[1:2]={1,2}');
SELECT n, pg_temp.error_of('SELECT * FROM idem_claim_many(' || arguments || ')') AS error
  FROM (VALUES (1, $$'a', 'o', NULL$$), (2, $$'a', 'o', ARRAY['k', NULL]$$), (3,
      $$'a', 'o', ARRAY['k'], ARRAY['1', '2']::jsonb[]$$), (4, $$'a', 'o', ARRAY['k'], '{}'$$),
               (5, $$'a', 'o', ARRAY[['k', 'l'], ['m', 'n']]$$), (6,
                   $$'a', 'o', ARRAY['k', 'l'], ARRAY[['1', '2']]::jsonb[]$$), (7, $$NULL, 'o', ARRAY['k']$$), (8,
                   $$'a', '', ARRAY['k']$$),
               (9, $$'a', 'o', ARRAY['k'], wait => '-1 s'$$), (10, $$'a', 'o', ARRAY['k'], lease => '25 hours'$$),
               (11, $$'a', 'o', (SELECT array_agg(i::text) FROM generate_series(1, 10001) i)$$), (12,
                   $$'a', 'o', array_fill('same'::text, ARRAY[100000])$$)) AS t (n, arguments) ORDER BY n;
SELECT count(*) FROM idem_keys WHERE actor = 'a';

-- 10,000 keys in one call, then again, then completed, then again
BEGIN;
SELECT count(*), count(DISTINCT operation_id) AS operations, min(outcome), max(outcome), bool_and(key = n::text) AS in_order
  FROM (SELECT row_number() OVER () AS n, * FROM idem_claim_many('many.actor', 'many.bulk', ARRAY(SELECT i::text
      FROM generate_series(1, 10000) i), ARRAY(SELECT to_jsonb(i) FROM generate_series(1, 10000) i))) AS r;
SELECT count(*) < 30 AS few_locks FROM pg_locks WHERE pid = pg_backend_pid();
SELECT outcome, reason, count(*) FROM idem_claim_many('many.actor', 'many.bulk', ARRAY(SELECT i::text
    FROM generate_series(1, 10000) i)) GROUP BY 1, 2;
SELECT r.outcome, count(*) FROM idem_keys k, idem_complete(k.operation_id, k.token, 200, k.key) r
    WHERE k.op = 'many.bulk' GROUP BY 1;
SELECT outcome, count(*), bool_and(body = key) AS own_answers FROM idem_claim_many('many.actor', 'many.bulk',
    ARRAY(SELECT i::text FROM generate_series(1, 10000) i), ARRAY(SELECT to_jsonb(i) FROM generate_series(1, 10000) i))
    GROUP BY 1;
ROLLBACK;
SELECT count(*) FROM idem_keys WHERE op = 'many.bulk';
-- in mode transaction the batch must be finished like any claim
SELECT op FROM idem_set_policy('many.tx', 'default', '{"mode": "transaction"}');
SELECT count(*) FROM idem_claim_many('many.actor', 'many.tx', ARRAY['a', 'b']);
SELECT count(r.outcome) FROM idem_claim_many('many.actor', 'many.tx', ARRAY['a', 'b']) c, idem_complete(c.operation_id,
    c.token) r;
SELECT key, outcome FROM idem_claim_many('many.actor', 'many.tx', ARRAY['b', 'a']);
-- in a SELECT list, twice in one statement
SELECT (idem_claim_many('many.actor', 'many.op', ARRAY['l1', 'l2'])).outcome;
SELECT count(*) FROM idem_claim_many('many.actor', 'many.op', ARRAY['u1', 'u2']) a, idem_claim_many('many.actor',
    'many.op', ARRAY['u2', 'u3']) b;
SELECT count(*) FROM idem_keys WHERE actor = 'many.actor' AND key LIKE 'u_';
