-- execute: claim, handler and answer in one call; what a handler may be, return and raise. Covers A04 A22 A31.
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
CREATE SCHEMA execute_shop;
CREATE TABLE execute_shop.orders (n int GENERATED ALWAYS AS IDENTITY, payload jsonb, seen text);
CREATE FUNCTION execute_shop.place(payload jsonb) RETURNS jsonb LANGUAGE plpgsql AS $$
BEGIN
    INSERT INTO execute_shop.orders (payload) VALUES (payload);
    RETURN jsonb_build_object('placed', payload -> 'sku');
END $$;
CREATE FUNCTION execute_shop.place_full(payload jsonb, claim idem_result) RETURNS idem_response LANGUAGE plpgsql AS $$
BEGIN
    -- the claim is visible to the handler, and its own
    INSERT INTO execute_shop.orders (payload, seen) SELECT place_full.payload, concat_ws(' ', claim.outcome, claim.key,
        claim.attempt, k.state, k.token = claim.token) FROM idem_keys k WHERE k.operation_id = claim.operation_id;
    RETURN ROW(201, '[["Location", "/orders/1"], ["Set-Cookie", "never"]]', 'text body', NULL, NULL)::idem_response;
END $$;
CREATE FUNCTION execute_shop.fails(payload jsonb) RETURNS jsonb LANGUAGE plpgsql AS $$
BEGIN
    INSERT INTO execute_shop.orders (payload) VALUES (payload);
    RAISE 'secret: %', payload USING ERRCODE = coalesce(payload ->> 'code', 'P0001');
END $$;
SELECT op FROM idem_set_policy('execute.op', 'order',
    '{"handler": "execute_shop.place", "key_min": 1, "key_chars": ""}');
SELECT op FROM idem_set_policy('execute.any', 'default');

-- the policy's handler, the argument's; the first run answers completed, every other one replays and does not run
SELECT outcome, proceed, replayed, state, attempt, status, headers, body, token
    FROM idem_execute('execute.actor', 'execute.op', 'k1', '{"sku": "A1"}');
SELECT outcome, proceed, replayed, state, attempt, status, headers, body
    FROM idem_execute('execute.actor', 'execute.op', 'k1', '{"sku": "A1"}');
SELECT outcome, body FROM idem_execute('execute.actor', 'execute.op', 'k1', '{"sku": "B2"}');
SELECT outcome, status, headers, body FROM idem_execute('execute.actor', 'execute.any', 'k1', '{"sku": "A2"}',
    handler => 'execute_shop.place_full');
SELECT outcome, status, headers, body FROM idem_execute('execute.actor', 'execute.any', 'k1', '{"sku": "A2"}',
    handler => 'execute_shop.place_full');
SELECT outcome, status, headers, body FROM idem_claim('execute.actor', 'execute.any', 'k1', '{"sku": "A2"}');
SELECT * FROM execute_shop.orders ORDER BY n;
SELECT h.status, h.headers, convert_from(h.body, 'UTF8') AS body FROM idem_execute('execute.actor', 'execute.any', 'k1',
    '{"sku": "A2"}', handler => 'execute_shop.place_full') r, idem_http_response(r) h;
-- rejected and in_progress do not run it
SELECT outcome, reason FROM idem_execute('execute.actor', 'execute.op', 'no payload', NULL);
SELECT outcome FROM idem_claim('execute.actor', 'execute.any', 'held', '{}');
SELECT outcome FROM idem_execute('execute.actor', 'execute.any', 'held', '{}', handler => 'execute_shop.place',
    wait => '0');
SELECT count(*) FROM execute_shop.orders;

-- what a handler may return
CREATE FUNCTION execute_shop.returns_null(payload jsonb) RETURNS jsonb LANGUAGE sql AS 'SELECT NULL::jsonb';
CREATE FUNCTION execute_shop.returns_json_null(payload jsonb) RETURNS jsonb LANGUAGE sql AS $$SELECT 'null'::jsonb$$;
CREATE FUNCTION execute_shop.returns_no_row(payload jsonb) RETURNS jsonb LANGUAGE sql AS 'SELECT payload WHERE false';
CREATE FUNCTION execute_shop.response_null(payload jsonb) RETURNS idem_response LANGUAGE sql AS 'SELECT NULL::idem_response';
CREATE FUNCTION execute_shop.response_nulls(payload jsonb) RETURNS idem_response LANGUAGE sql AS 'SELECT ROW(NULL, NULL, NULL, NULL, NULL)::idem_response';
CREATE FUNCTION execute_shop.response_bytes(payload jsonb) RETURNS idem_response LANGUAGE sql AS $$SELECT ROW(202, '{"ETag": "1"}', NULL, NULL, '\x00ff')::idem_response$$;
CREATE FUNCTION execute_shop.response_json(payload jsonb) RETURNS idem_response LANGUAGE sql AS $$SELECT ROW(NULL, NULL, NULL, '[1]', NULL)::idem_response$$;
CREATE FUNCTION execute_shop.response_error(payload jsonb) RETURNS idem_response LANGUAGE sql AS $$SELECT ROW(503, NULL, 'busy', NULL, NULL)::idem_response$$;
CREATE FUNCTION execute_shop.response_two(payload jsonb) RETURNS idem_response LANGUAGE sql AS $$SELECT ROW(200, NULL, 'a', '1', NULL)::idem_response$$;
CREATE FUNCTION execute_shop.response_status(payload jsonb) RETURNS idem_response LANGUAGE sql AS $$SELECT ROW(42, NULL, NULL, NULL, NULL)::idem_response$$;
CREATE FUNCTION execute_shop.returns_text(payload jsonb) RETURNS text LANGUAGE sql AS $$SELECT 'x'$$;
CREATE FUNCTION execute_shop.returns_json(payload jsonb) RETURNS json LANGUAGE sql AS $$SELECT '1'::json$$;
CREATE FUNCTION execute_shop.returns_void(payload jsonb) RETURNS void LANGUAGE sql AS $$SELECT$$;
CREATE FUNCTION execute_shop.returns_set(payload jsonb) RETURNS SETOF jsonb LANGUAGE sql AS $$SELECT '1'::jsonb$$;
-- a STRICT one, in C or not, is not called without a payload
CREATE FUNCTION execute_shop.strict(payload jsonb) RETURNS jsonb STRICT LANGUAGE sql AS $$SELECT '"not null"'::jsonb$$;
CREATE FUNCTION execute_shop.text_argument(payload text) RETURNS jsonb LANGUAGE sql AS $$SELECT '1'::jsonb$$;
CREATE FUNCTION execute_shop.too_many(payload jsonb, claim idem_result,
    more int) RETURNS jsonb LANGUAGE sql AS $$SELECT '1'::jsonb$$;
CREATE PROCEDURE execute_shop.procedure(payload jsonb) LANGUAGE sql AS $$SELECT 1$$;
CREATE AGGREGATE execute_shop.aggregate(jsonb) (SFUNC = jsonb_concat, STYPE = jsonb);
CREATE FUNCTION execute_shop."odd ""Name'; --"(payload jsonb) RETURNS jsonb LANGUAGE sql AS $$SELECT '"odd"'::jsonb$$;
CREATE FUNCTION pg_temp.run(h text, o text = 'execute.any') RETURNS text LANGUAGE plpgsql AS $$
DECLARE a idem_result; b idem_result; detail text; hint text;
BEGIN
    a := idem_execute('execute.actor', o, 'run ' || h, handler => h);
    b := idem_execute('execute.actor', o, 'run ' || h, handler => h);
    RETURN concat_ws(', ', a.outcome, a.state, a.status, coalesce(a.headers::text, '-'), coalesce(a.body, '-'),
        coalesce(a.body_bytes::text, '-')) ||
        CASE WHEN b.outcome = 'replay' AND (a.status, a.headers, a.body, a.body_bytes, a.state) IS NOT DISTINCT
            FROM (b.status, b.headers, b.body, b.body_bytes, b.state) THEN '' ELSE ' BUT THEN ' || b END;
EXCEPTION WHEN OTHERS THEN
    GET STACKED DIAGNOSTICS detail = PG_EXCEPTION_DETAIL, hint = PG_EXCEPTION_HINT;
    RETURN concat_ws(E'\n', SQLSTATE || ' ' || SQLERRM, nullif(detail, ''), nullif(hint, ''));
END $$;
SELECT h AS handler, pg_temp.run('execute_shop.' || h)
  FROM unnest(ARRAY['returns_null', 'returns_json_null', 'returns_no_row', 'response_null', 'response_nulls',
      'response_bytes', 'response_json', 'response_error', 'response_two', 'response_status', 'returns_text',
                    'returns_json', 'returns_void', 'returns_set', 'strict', 'text_argument', 'too_many', 'procedure',
                        'aggregate', '"odd ""Name''; --"', 'missing']) h;
SELECT h AS handler, pg_temp.run(h) FROM unnest(ARRAY['', 'no_such_schema.f', 'a.b.c', 'a.b.c.d', 'execute_shop.',
    '"unterminated', 'place(jsonb)', 'upper', 'jsonb_typeof', 'pg_catalog.now']) h;
SELECT pg_temp.error_of($$SELECT idem_execute('execute.actor', 'execute.any', 'none')$$);
SELECT count(*) FROM idem_keys WHERE op = 'execute.any' AND state <> 'c' AND key <> 'held';
-- unqualified names follow the caller's search_path; a policy's handler is qualified
SET search_path = public, execute_shop;
SELECT outcome, body FROM idem_execute('execute.actor', 'execute.any', 'by path', '{"sku": "P"}', handler => 'place');
RESET search_path;
SELECT pg_temp.error_of($$SELECT idem_execute('execute.actor', 'execute.any', 'by path 2', '{"sku": "P"}', handler => 'place')$$);

-- an error propagates, and frees the key with everything the handler did
SELECT count(*) AS orders FROM execute_shop.orders \gset
SELECT outcome FROM idem_execute('execute.actor', 'execute.op', 'fails', '{"n": 1}', handler => 'execute_shop.fails');
SELECT outcome FROM idem_execute('execute.actor', 'execute.op', 'fails', '{"n": 2}', handler => 'execute_shop.place');
SELECT count(*) - :orders AS more FROM execute_shop.orders;
-- unless the policy stores it: then the handler's work is undone, the answer is kept, and says nothing that is secret
SELECT op FROM idem_set_policy('execute.store', 'order',
    '{"handler": "execute_shop.fails", "handler_error": "store", "key_min": 1, "key_chars": ""}');
SELECT outcome, proceed, state, status, headers, body FROM idem_execute('execute.actor', 'execute.store', 'stored',
    '{"n": 1}');
SELECT outcome, proceed, state, status, headers, body FROM idem_execute('execute.actor', 'execute.store', 'stored',
    '{"n": 1}');
SELECT outcome FROM idem_execute('execute.actor', 'execute.store', 'stored', '{"n": 2}');
SELECT count(*) - :orders AS more FROM execute_shop.orders;
SELECT outcome, status, headers, body FROM idem_execute('execute.actor', 'execute.store', 'good', '{"sku": "S"}',
    handler => 'execute_shop.place');
SELECT outcome, status, headers, body FROM idem_execute('execute.actor', 'execute.store', 'full', '{"sku": "S"}',
    handler => 'execute_shop.place_full');
SELECT h AS handler, pg_temp.run('execute_shop.' || h, 'execute.any') FROM unnest(ARRAY['response_null',
    'response_json']) h;
SELECT op FROM idem_set_policy('execute.store any', 'default', '{"handler_error": "store"}');
SELECT h AS handler, pg_temp.run('execute_shop.' || h, 'execute.store any')
  FROM unnest(ARRAY['returns_null', 'returns_json_null', 'returns_no_row', 'response_null', 'response_nulls',
      'response_bytes', 'response_json', 'response_error', 'response_two', 'response_status', 'returns_text', 'strict',
      'procedure', '"odd ""Name''; --"', 'missing']) h;
-- what a retry may cure is never an answer
SELECT c AS code, split_part(pg_temp.error_of(format('SELECT idem_execute(%L, %L, %L, %L)', 'execute.actor',
    'execute.store', 'code ' || c, jsonb_build_object('code', c))), E'\n', 1) AS error
  FROM unnest(ARRAY['40001', '40P01', '53200', '55P03', '57P01', '23505', '22012', 'ID001']) c;
SELECT key, state FROM idem_keys WHERE op = 'execute.store' AND key LIKE 'code %' ORDER BY key;

-- a handler may claim other keys, not its own
CREATE FUNCTION execute_shop.nested(payload jsonb, claim idem_result) RETURNS jsonb LANGUAGE plpgsql AS $$
DECLARE own idem_result; inner_one idem_result;
BEGIN
    own := idem_claim('execute.actor', 'execute.any', claim.key, payload);
    inner_one := idem_execute('execute.actor', 'execute.op', claim.key || '/inner', payload,
        parent_operation_id => claim.operation_id);
    RETURN jsonb_build_object('own', own.outcome, 'reason', own.reason, 'inner', inner_one.outcome);
END $$;
SELECT outcome, body FROM idem_execute('execute.actor', 'execute.any', 'nested', '{"sku": "N"}',
    handler => 'execute_shop.nested');
SELECT outcome, body FROM idem_execute('execute.actor', 'execute.any', 'nested', '{"sku": "N"}',
    handler => 'execute_shop.nested');
SELECT c.parent = p.operation_id AS is_child FROM idem_keys c, idem_keys p
    WHERE c.key = 'nested/inner' AND p.key = 'nested' AND p.op = 'execute.any';
-- a handler that finishes its own claim
CREATE FUNCTION execute_shop.completes(payload jsonb,
    claim idem_result) RETURNS jsonb LANGUAGE plpgsql AS $$ BEGIN PERFORM idem_complete(claim.operation_id, claim.token, 200, body_json => '"mine"'); RETURN payload; END $$;
SELECT split_part(pg_temp.error_of($$SELECT idem_execute('execute.actor', 'execute.any', 'completes', '"mine"', handler => 'execute_shop.completes')$$), E'\n', 1) AS same;
SELECT split_part(pg_temp.error_of($$SELECT idem_execute('execute.actor', 'execute.any', 'completes 2', '"other"', handler => 'execute_shop.completes')$$), E'\n', 1) AS other;

-- an op in lease mode cannot be executed
SELECT op FROM idem_set_policy('execute.lease', 'payment',
    '{"handler": "execute_shop.place", "key_min": 1, "key_chars": ""}');
SELECT pg_temp.error_of($$SELECT idem_execute('execute.actor', 'execute.lease', 'k', '{}')$$);
SELECT count(*) FROM idem_keys WHERE op = 'execute.lease';

-- rights: the handler runs as the caller, and the caller needs EXECUTE on it
CREATE ROLE regress_execute_client;
SELECT count(*) > 0 AS granted FROM idem_admin_grant('regress_execute_client', 'client');
CREATE FUNCTION execute_shop.whoami(payload jsonb) RETURNS jsonb LANGUAGE sql AS $$SELECT to_jsonb(current_user::text)$$;
CREATE FUNCTION execute_shop.whoami_definer(payload jsonb) RETURNS jsonb SECURITY DEFINER LANGUAGE sql AS $$SELECT to_jsonb(current_user <> session_user)$$;
CREATE FUNCTION execute_shop.private(payload jsonb) RETURNS jsonb LANGUAGE sql AS $$SELECT '"private"'::jsonb$$;
REVOKE EXECUTE ON FUNCTION execute_shop.private FROM PUBLIC;
SELECT op FROM idem_set_policy('execute.private', 'default', '{"handler": "execute_shop.private"}');
SELECT op FROM idem_set_policy('execute.private store', 'default',
    '{"handler": "execute_shop.private", "handler_error": "store"}');
SET ROLE regress_execute_client;
SELECT left(pg_temp.error_of($$SELECT idem_execute('execute.actor', 'execute.any', 'who 0', handler => 'execute_shop.whoami')$$), 5) AS no_usage;
RESET ROLE;
GRANT USAGE ON SCHEMA execute_shop TO regress_execute_client;
SET ROLE regress_execute_client;
SELECT outcome, body FROM idem_execute('execute.actor', 'execute.any', 'who 1', handler => 'execute_shop.whoami');
SELECT outcome, body FROM idem_execute('execute.actor', 'execute.store any', 'who 2', handler => 'execute_shop.whoami');
SELECT outcome, body FROM idem_execute('execute.actor', 'execute.any', 'who 3',
    handler => 'execute_shop.whoami_definer');
SELECT split_part(pg_temp.error_of(format('SELECT idem_execute(%L, %L, %L)', 'execute.actor', o, 'who 4')), E'\n',
    1) AS error FROM unnest(ARRAY['execute.private', 'execute.private store']) o;
SELECT split_part(pg_temp.error_of($$SELECT idem_execute('execute.actor', 'execute.any', 'who 5', '{"sku": "X"}', handler => 'execute_shop.place')$$), E'\n', 1) AS error;
SELECT split_part(pg_temp.error_of($$SELECT idem_call_handler('execute_shop.private', '{}', NULL, false, false)$$),
    E'\n', 1) AS error;
RESET ROLE;
SELECT count(*) FROM idem_keys WHERE key IN ('who 0', 'who 4', 'who 5');
SET client_min_messages = warning;
DROP OWNED BY regress_execute_client;
DROP ROLE regress_execute_client;
DROP SCHEMA execute_shop CASCADE;
