-- resolve: an operation of unknown fate is decided once, with evidence. Covers A23 B06 B08.
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
SELECT op FROM idem_set_policy('resolve.op', 'default', '{"grace": "0", "wait": "0"}');
CREATE TEMP TABLE unknown AS
SELECT k AS what, c.operation_id, c.token FROM unnest(ARRAY['completed', 'failed', 'released', 'lapsed', 'late',
    'late released', 'nothing', 'running', 'done']) k, idem_claim('resolve.actor', 'resolve.op', k, '{}',
    lease => '1 hour') c;
SELECT count(r.outcome) FROM unknown, idem_fail(operation_id, token, 'indeterminate',
    evidence => '{"first": "timeout"}') r WHERE what NOT IN ('lapsed', 'running', 'done');
SELECT count(r.outcome) FROM unknown, idem_complete(operation_id, token) r WHERE what = 'done';
UPDATE idem_keys SET lease_until = now() - interval '1 s' WHERE op = 'resolve.op' AND key = 'lapsed';
SELECT key, state FROM idem_unfinished WHERE op = 'resolve.op' ORDER BY key;

-- arguments
SELECT n, pg_temp.error_of(format('SELECT idem_resolve(%s)', replace(arguments, '$1',
    quote_literal(operation_id)))) AS error
  FROM unknown, (VALUES (1, $$NULL, 'completed', '{}'$$), (2, $$$1, NULL, '{}'$$), (3, $$$1, 'completed', NULL$$), (4,
      $$$1, 'indeterminate', '{}'$$), (5, $$$1, '', '{}'$$), (6, $$$1, 'completed', '{}', 99$$),
                        (7, $$$1, 'completed', '{}', 200, 'a', '1'$$), (8,
                            $$'00000000-0000-8000-8000-000000000003', 'completed', '{}'$$)) AS t (n, arguments)
                            WHERE what = 'completed' ORDER BY n;
-- only what is of unknown fate
SELECT what, pg_temp.error_of(format('SELECT idem_resolve(%L, %L, %L)', operation_id, 'released', '{}')) AS error
    FROM unknown WHERE what IN ('running', 'done') ORDER BY what;

-- decided: replayed with its evidence, or free again
SELECT outcome, proceed, replayed, state, r.token, status, headers, body, detail
    FROM unknown, idem_resolve(operation_id, 'completed', '{"psp": "charge ch_1 found"}', 201,
    body_json => '{"id": "ch_1"}', headers => '{"Location": "/charges/ch_1"}') r WHERE unknown.what = 'completed';
SELECT outcome, state, status, headers, body, detail FROM idem_claim('resolve.actor', 'resolve.op', 'completed', '{}');
SELECT outcome, state, status, body, detail FROM unknown, idem_resolve(operation_id, 'failed', '{"psp": "declined"}')
    WHERE unknown.what = 'failed';
SELECT outcome, state, status, detail FROM idem_claim('resolve.actor', 'resolve.op', 'failed', '{}');
SELECT outcome, proceed, state, r.token, status, detail FROM unknown, idem_resolve(operation_id, 'released',
    '{"psp": "no charge"}', 500, 'not stored') r WHERE unknown.what = 'released';
SELECT outcome, state, detail FROM idem_lookup('resolve.actor', 'resolve.op', 'released');
SELECT c.outcome, c.proceed, c.attempt, c.token > unknown.token AS greater
    FROM unknown, idem_claim('resolve.actor', 'resolve.op', what, '{}') c WHERE unknown.what = 'released';
SELECT outcome, state, detail FROM unknown, idem_resolve(operation_id, 'completed', '"seen in the bank statement"')
    WHERE unknown.what = 'lapsed';
SELECT outcome, status, detail FROM idem_claim('resolve.actor', 'resolve.op', 'lapsed', '{}');
-- once
SELECT what, split_part(pg_temp.error_of(format('SELECT idem_resolve(%L, %L, %L)', operation_id, 'completed', '{}')),
    E'\n', 1) AS error FROM unknown WHERE what IN ('completed', 'failed', 'released', 'lapsed') ORDER BY what;

-- the late holder: too late, unless it says the same
SELECT outcome FROM unknown, idem_resolve(operation_id, 'completed', '{}', 201, 'decided') WHERE unknown.what = 'late';
SELECT outcome, status, body FROM unknown, idem_complete(operation_id, token, 201, 'decided')
    WHERE unknown.what = 'late';
SELECT left(pg_temp.error_of(format('SELECT idem_complete(%L, %s, 201, %L)', operation_id, token, 'otherwise')),
    5) AS error FROM unknown WHERE what = 'late';
SELECT outcome FROM unknown, idem_resolve(operation_id, 'released', '{}') WHERE unknown.what = 'late released';
SELECT left(pg_temp.error_of(format('SELECT idem_complete(%L, %s)', operation_id, token)), 5) AS error FROM unknown
    WHERE what = 'late released';
-- rolled back: as if it had not been
BEGIN;
SELECT outcome FROM unknown, idem_resolve(operation_id, 'released', '{}') WHERE unknown.what = 'nothing';
ROLLBACK;
SELECT outcome, reason FROM idem_claim('resolve.actor', 'resolve.op', 'nothing', '{}');
SELECT key, state FROM idem_unfinished WHERE op = 'resolve.op' ORDER BY key;
