-- fail: an attempt that ends without success is stored, given back or left open, by its status or as told. Covers A23
-- A09 A11 B06 B08.
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

-- what becomes of a key by preset and status; NULL is a timeout
CREATE TEMP TABLE verdicts (preset text, status int, state text);
DO $$
DECLARE p text; s int; c idem_result; r idem_result;
BEGIN
    FOREACH p IN ARRAY ARRAY['default', 'payment', 'order', 'webhook', 'message', 'ephemeral'] LOOP
        PERFORM idem_set_policy('fail.' || p, p, '{"mode": "lease"}');
        FOREACH s IN ARRAY ARRAY[NULL, 200, 302, 400, 404, 408, 409, 422, 425, 429, 500, 503, 599, 100] LOOP
            c := idem_claim('fail.actor', 'fail.' || p, 'status-of-failure-' || coalesce(s::text, 'none'), '{}');
            COMMIT;
            r := idem_fail(c.operation_id, c.token, status => s, body => 'sorry');
            COMMIT;
            INSERT INTO verdicts VALUES (p, s, r.state);
        END LOOP;
    END LOOP;
END $$;
SELECT status, max(state) FILTER (WHERE preset = 'default') AS "default",
    max(state) FILTER (WHERE preset = 'payment') AS payment, max(state) FILTER (WHERE preset = 'order') AS "order",
       max(state) FILTER (WHERE preset = 'webhook') AS webhook, max(state) FILTER (WHERE preset = 'message') AS message,
           max(state) FILTER (WHERE preset = 'ephemeral') AS ephemeral
  FROM verdicts GROUP BY status ORDER BY status NULLS FIRST;
-- and what the next claim is answered
SELECT v.state, array_agg(DISTINCT r.outcome) AS outcome, bool_or(r.proceed) AS proceed,
    array_agg(DISTINCT r.attempt) AS attempt, array_agg(DISTINCT r.body) AS body, bool_and(v.state <> 'failed'
    OR r.status = v.status) AS same_status
  FROM verdicts v, idem_claim('fail.actor', 'fail.' || v.preset, 'status-of-failure-' || coalesce(v.status::text,
      'none'), '{}') r GROUP BY v.state ORDER BY v.state;
-- a policy may say otherwise
SELECT op FROM idem_set_policy('fail.own', 'default',
    '{"on_status": {"4xx": "release", "404": "store", "5xx": "release", "timeout": "release"}}');
SELECT s AS status, r.state FROM unnest(ARRAY[400, 404, 500, NULL]) s, idem_claim('fail.actor', 'fail.own',
    'k' || coalesce(s, 0)) c, idem_fail(c.operation_id, c.token, status => s) r ORDER BY s;

-- failed: replayed like completed; repeating it is no error, another answer is
SELECT operation_id AS id, token FROM idem_claim('fail.actor', 'fail.op', 'final', '{}') \gset
SELECT outcome, proceed, replayed, state, status, headers, body, detail
    FROM idem_fail(:'id', :token, 'failed', 402, body_json => '{"error": "no funds"}', headers => '{"ETag": "x"}',
    evidence => '{"psp": "declined"}');
SELECT outcome, state, status FROM idem_fail(:'id', :token, 'failed', 402, body_json => '{"error": "no funds"}',
    headers => '{"ETag": "x"}');
SELECT outcome, state, status FROM idem_fail(:'id', :token, NULL, 402, body_json => '{"error": "no funds"}',
    headers => '{"ETag": "x"}');
SELECT n, split_part(pg_temp.error_of(format('SELECT idem_%s', replace(replace(call, '$1', quote_literal(:'id')), '$2',
    :'token'))), E'\n', 1) AS error
  FROM (VALUES (1, $$fail($1, $2, 'failed', 403, body_json => '{"error": "no funds"}', headers => '{"ETag": "x"}')$$),
      (2, $$fail($1, $2, 'released')$$), (3,
      $$complete($1, $2, 402, body_json => '{"error": "no funds"}', headers => '{"ETag": "x"}')$$),
               (4, 'extend($1, $2)'), (5, $$checkpoint($1, $2, '1')$$)) AS t (n, call) ORDER BY n;
SELECT outcome, proceed, replayed, state, status, body, detail FROM idem_claim('fail.actor', 'fail.op', 'final', '{}');
SELECT h.status, convert_from(h.body, 'UTF8') AS body FROM idem_claim('fail.actor', 'fail.op', 'final', '{}') r,
    idem_http_response(r) h;
-- without a status it is 500
SELECT r.state, r.status FROM idem_claim('fail.actor', 'fail.op', 'no status') c, idem_fail(c.operation_id, c.token,
    'failed') r;

-- released: the next claim gets the key at once, with a greater token, the checkpoint and one attempt more
SELECT operation_id AS id, token AS t1 FROM idem_claim('fail.actor', 'fail.op', 'transient', '{}') \gset
SELECT outcome FROM idem_checkpoint(:'id', :t1, '{"step": 2}');
SELECT outcome, proceed, state, token, checkpoint, detail FROM idem_fail(:'id', :t1, 'released', 503, 'not stored',
    evidence => '{"why": "busy"}');
SELECT outcome, state, attempt, status, body, detail FROM idem_lookup_id(:'id');
-- whoever gave it back holds nothing any more
SELECT call, left(pg_temp.error_of(format('SELECT idem_%s', replace(replace(call, '$1', quote_literal(:'id')), '$2',
    :'t1'))), 5) AS error
  FROM unnest(ARRAY['complete($1, $2)', $$fail($1, $2, 'released')$$, $$fail($1, $2, 'failed')$$, 'release($1, $2)',
      'extend($1, $2)', $$checkpoint($1, $2, '1')$$]) call;
SELECT outcome, proceed, attempt, checkpoint, token > :t1 AS greater, token AS t2
    FROM idem_claim('fail.actor', 'fail.op', 'transient', '{}') \gset r_
SELECT :'r_outcome' AS outcome, :'r_proceed' AS proceed, :r_attempt AS attempt, :'r_checkpoint' AS checkpoint,
    :'r_greater' AS greater;
SELECT outcome, state FROM idem_release(:'id', :r_t2);
SELECT outcome, attempt, token > :r_t2 AS greater, token AS t3 FROM idem_claim('fail.actor', 'fail.op', 'transient',
    '{}') \gset r_
SELECT :'r_outcome' AS outcome, :r_attempt AS attempt, :'r_greater' AS greater;
SELECT outcome, status FROM idem_complete(:'id', :r_t3, 200);
SELECT token, r.attempt FROM idem_claim('fail.actor', 'fail.op', 'transient', '{}') r;

-- indeterminate: nobody runs it again; its holder may still say what happened, once
SELECT operation_id AS id, token FROM idem_claim('fail.actor', 'fail.op', 'unknown', '{}') \gset
SELECT outcome, proceed, state, token, detail FROM idem_fail(:'id', :token, 'indeterminate',
    evidence => '{"psp": "timeout"}');
SELECT outcome FROM idem_fail(:'id', :token, 'indeterminate');
SELECT outcome, proceed, state, attempt, reason, retry_after_s, status, body
    FROM idem_claim('fail.actor', 'fail.op', 'unknown', '{}');
SELECT outcome, state, detail FROM idem_lookup('fail.actor', 'fail.op', 'unknown');
SELECT h.status FROM idem_claim('fail.actor', 'fail.op', 'unknown', '{}') r, idem_http_response(r) h;
SELECT state, evidence FROM idem_unfinished WHERE operation_id = :'id';
SELECT pg_temp.error_of(format('SELECT idem_extend(%L, %s)', :'id', :token));
SELECT pg_temp.error_of(format('SELECT idem_checkpoint(%L, %s, %L)', :'id', :token, '1'));
SELECT left(pg_temp.error_of(format('SELECT idem_complete(%L, %s)', :'id', :token - 1)), 5);
SELECT outcome, state, status, detail FROM idem_complete(:'id', :token, 201, 'it did happen');
SELECT outcome, body, detail FROM idem_claim('fail.actor', 'fail.op', 'unknown', '{}');
SELECT count(*) FROM idem_unfinished WHERE operation_id = :'id';
