-- complete: the answer is kept once and replayed byte for byte; a repeat is no error, another answer is. Covers A09 A20
-- A21 A22 A24 A26 A34 B08 B09 and invariants 1 and 3.
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
-- answer_of claims a key, completes it, repeats the completion, claims again; all three answers must be the same bytes.
CREATE FUNCTION pg_temp.answer_of(k text, arguments text,
    o text = 'complete.op') RETURNS SETOF idem_result LANGUAGE plpgsql AS $$
DECLARE c idem_result; a idem_result; b idem_result; r idem_result;
BEGIN
    c := idem_claim('complete.actor', o, k, '{}');
    EXECUTE format('SELECT * FROM idem_complete(%L, %s%s)', c.operation_id, c.token, arguments) INTO a;
    EXECUTE format('SELECT * FROM idem_complete(%L, %s%s)', c.operation_id, c.token, arguments) INTO b;
    r := idem_claim('complete.actor', o, k, '{}');
    IF a IS DISTINCT FROM b THEN RAISE 'repeat differs: % %', a, b; END IF;
    IF r.outcome <> 'replay' OR NOT r.replayed OR r.proceed THEN RAISE 'no replay: %', r; END IF;
    r.outcome := a.outcome;
    r.replayed := a.replayed;
    IF a IS DISTINCT FROM r THEN RAISE 'replay differs: % %', a, r; END IF;
    RETURN NEXT a;
END $$;

-- one call, column by column
SELECT outcome, proceed, replayed, operation_id, token, state, key, attempt, status, headers, body, body_bytes,
    body_ref, checkpoint,
       completed_at >= claimed_at AS in_order, expires_at - completed_at AS ttl, retry_after_s, reason, detail
  FROM pg_temp.answer_of('plain', '') \gx

-- bodies: none, empty, JSON null, text, JSON, bytes: all different, all the same again
SELECT k, status, headers, body, body_bytes, body_ref, detail
  FROM (VALUES (1, 'status only', ', 204'), (2, 'null', ', 200, NULL'), (3, 'empty', $$, 200, ''$$), (4, 'json null',
      $$, body_json => 'null'$$),
               (5, 'text null', $$, body => 'null'$$), (6, 'empty bytes', $$, body_bytes => ''$$), (7, 'text',
                   E', body => E''caf\\u00e9\\n \\t''' ),
               (8, 'json', $$, 201, body_json => '{"b": [1.50, true], "a": "x"}'$$), (9, 'json string',
                   $$, body_json => '"s"'$$),
               (10, 'bytes', $$, body_bytes => '\x1f8b080000000000000303000000000000000000'$$), (11, 'not utf-8',
                   $$, body_bytes => '\xfffec080'$$),
               (12, 'ref', $$, body_ref => 's3://bucket/answer', body_sha256 => sha256('x')$$), (13, 'ref alone',
                   $$, body_ref => 's3://bucket/other'$$)) AS t (n, k, a),
       pg_temp.answer_of(k, a) ORDER BY n;
SELECT octet_length(body_bytes) AS size, sha256(body_bytes) = sha256(e.every) AS same
  FROM (SELECT string_agg(set_byte('\x00', 0, b), '' ORDER BY b) AS every FROM generate_series(0, 255) b) AS e,
       pg_temp.answer_of('every byte', format(', body_bytes => %L', e.every));
SELECT length(body) AS size, md5(body) = md5(e.every) AS same
  FROM (SELECT string_agg(chr(b), '' ORDER BY b) AS every FROM generate_series(1, 600) b) AS e,
       pg_temp.answer_of('controls', format(', body => %L', e.every));
-- large, compressible or not, up to the limit
SELECT length(body) AS size, md5(body) = md5(repeat('x', 1048576)) AS same
    FROM pg_temp.answer_of('large', $$, body => repeat('x', 1048576)$$);
SELECT octet_length(body_bytes) AS size, md5(body_bytes) = md5(e.noise) AS same
  FROM (SELECT string_agg(sha256(int4send(i)), '' ORDER BY i) AS noise FROM generate_series(1, 16000) i) AS e,
       pg_temp.answer_of('noise', format(', body_bytes => %L', e.noise));

-- headers: order, repeats and case kept; an object is accepted; only what the policy replays
SELECT k, headers
  FROM (VALUES (1, 'pairs',
      '[["link", "<b>"], ["ETag", "\"1\""], ["Link", "<a>"], ["link", "<b>"], ["Content-Type", "text/plain; charset=utf-8"]]'),
               (2, 'object', '{"Location": "/orders/7", "ETag": ["a", "b"], "Last-Modified": null}'), (3, 'dropped',
                   '{"Set-Cookie": "a", "WWW-Authenticate": "b", "X-Other": "c"}'),
               (4, 'all kept', '{"content-type": "a", "CONTENT-LANGUAGE": "b", "Location": "c", "Content-Location": "d", "ETag": "e", "Last-Modified": "f", "Link": "g", "Cache-Control": "h"}'),
               (5, 'none', '[]'), (6, 'empty object', '{}')) AS t (n, k, h), pg_temp.answer_of(k,
                   format(', headers => %L', h)) ORDER BY n;
-- body_json names its type, unless the caller does
SELECT k, headers FROM (VALUES (1, 'typed', '{"Content-Type": "application/problem+json"}'), (2, 'typed otherwise',
    '[["content-type", "application/hal+json"]]'),
                               (3, 'untyped', '{"ETag": "1"}')) AS t (n, k, h), pg_temp.answer_of('json ' || k,
                                   format($$, headers => %L, body_json => '{}'$$, h)) ORDER BY n;
SELECT version FROM idem_set_policy('complete.headers', 'default', '{"replay_headers": ["X-Request-Cost"]}');
SELECT headers, body FROM pg_temp.answer_of('own list',
    $$, headers => '{"X-Request-Cost": 3, "Content-Type": "a"}', body_json => '[]'$$, 'complete.headers');

-- a body over the policy's limit is not stored, and the key stays used
SELECT version FROM idem_set_policy('complete.small', 'default', '{"body_max": 8}');
SELECT k, status, body, body_bytes, detail
  FROM (VALUES (1, 'fits', $$, 201, '12345678'$$), (2, 'over', $$, 201, '123456789'$$), (3, 'bytes over',
      $$, 201, body_bytes => '\x000000000000000000'$$),
               (4, 'json over', $$, 201, body_json => '{"a": 123456789}'$$), (5, 'characters',
                   $$, 201, U&'\00e9\00e9\00e9\00e9\00e9'$$)) AS t (n, k, a),
       pg_temp.answer_of(k, a, 'complete.small') ORDER BY n;
SELECT operation_id AS id, token FROM idem_claim('complete.actor', 'complete.small', 'repeat') \gset
SELECT outcome, detail FROM idem_complete(:'id', :token, 200, 'a body that is too long');
SELECT outcome, detail FROM idem_complete(:'id', :token, 200, 'a body that is too long');
SELECT pg_temp.error_of(format('SELECT idem_complete(%L, %s, 200, %L)', :'id', :token, 'another body, too long'));
SELECT h.* FROM idem_claim('complete.actor', 'complete.small', 'repeat') AS r, idem_http_response(r) AS h;

-- another answer for a completed token: ID002, and the first is kept
SELECT operation_id AS id, token FROM idem_claim('complete.actor', 'complete.op', 'twice', '{}') \gset
SELECT outcome, status, body FROM idem_complete(:'id', :token, 200, 'first', headers => '{"ETag": "1"}');
SELECT n, split_part(pg_temp.error_of(format('SELECT idem_%s', replace(replace(call, '$1', quote_literal(:'id')), '$2',
    :'token'))), E'\n', 1) AS error
  FROM (VALUES (1, $$complete($1, $2, 201, 'first', headers => '{"ETag": "1"}')$$), (2,
      $$complete($1, $2, 200, 'second', headers => '{"ETag": "1"}')$$),
               (3, $$complete($1, $2, 200, 'first')$$), (4,
                   $$complete($1, $2, 200, 'first', headers => '{"ETag": "2"}')$$),
               (5, $$complete($1, $2, 200, NULL, headers => '{"ETag": "1"}')$$), (6,
                   $$complete($1, $2, 200, body_bytes => 'first', headers => '{"ETag": "1"}')$$),
               (7, $$fail($1, $2, 'failed', 200, 'first', headers => '{"ETag": "1"}')$$), (8,
                   $$fail($1, $2, 'released')$$), (9, $$fail($1, $2, 'indeterminate')$$),
               (10, $$release($1, $2)$$), (11,
                   $$complete($1, $2, 200, 'first', headers => '{"ETag": "1", "Set-Cookie": "dropped anyway"}')$$)) AS t (n, call) ORDER BY n;
SELECT outcome, status, headers, body FROM idem_claim('complete.actor', 'complete.op', 'twice', '{}');

SELECT pg_temp.error_of(format('SELECT idem_complete(%L, %s, 500)', :'id', :token));

-- a stale token is ID001 in every verb, an unknown operation ID007, and nothing changes
SELECT operation_id AS id, token FROM idem_claim('complete.actor', 'complete.op', 'fenced', '{}') \gset
SELECT md5(k::text) AS before FROM idem_keys k WHERE operation_id = :'id' \gset
SELECT pg_temp.error_of(format('SELECT idem_complete(%L, %s)', :'id', :token + 1));
SELECT pg_temp.error_of(format('SELECT idem_complete(%L, %s)', '00000000-0000-8000-8000-000000000002', :token));
SELECT call, split_part(pg_temp.error_of(format('SELECT idem_%s', replace(replace(call, '$1', quote_literal(:'id')),
    '$2', (:token + delta)::text))), E'\n', 1) AS stale,
       split_part(pg_temp.error_of(format('SELECT idem_%s', replace(replace(call, '$1',
           quote_literal('00000000-0000-8000-8000-000000000002')), '$2', :'token'))), E'\n', 1) AS unknown
  FROM (VALUES ('complete($1, $2)', -1), ('complete($1, $2, 500)', 1), ('fail($1, $2)', 1), ($$fail($1, $2, 'failed')$$,
      -1), ($$fail($1, $2, 'released')$$, -1),
               ('release($1, $2)', 1), ('extend($1, $2)', -1), ($$checkpoint($1, $2, '{}')$$, -1)) AS t (call, delta);
SELECT n, split_part(pg_temp.error_of(format('SELECT idem_%s', replace(call, '$1', quote_literal(:'id')))), E'\n',
    1) AS error
  FROM (VALUES (1, 'complete($1, NULL)'), (2, 'complete(NULL, 1)'), (3, 'fail($1, NULL)'), (4, 'fail(NULL, 1)'), (5,
      'release($1, NULL)'), (6, 'release(NULL, 1)'),
               (7, 'extend($1, NULL)'), (8, 'extend(NULL, 1)'), (9, $$checkpoint($1, NULL, '{}')$$), (10,
                   $$checkpoint(NULL, 1, '{}')$$), (11, 'complete($1, 0)'),
               (12, 'complete($1, -1)'), (13, 'complete($1, 9223372036854775807)')) AS t (n, call) ORDER BY n;
SELECT md5(k::text) = :'before' AS untouched FROM idem_keys k WHERE operation_id = :'id';

-- arguments
SELECT n, pg_temp.error_of(format('SELECT idem_complete(%L, %s, %s)', :'id', :'token', arguments))
  FROM (VALUES (1, '99'), (2, '600'), (3, '-1'), (4, '2147483647'), (5, $$200, 'a', body_json => '1'$$), (6,
      $$200, 'a', body_bytes => ''$$), (7, $$200, '', body_ref => 'x'$$),
               (8, $$body_json => '1', body_bytes => ''$$), (9, $$body_sha256 => sha256('')$$), (10,
                   $$body_ref => 'x', body_sha256 => '\x00'$$), (11, $$headers => '3'$$),
               (12, $$headers => '[["a"]]'$$), (13, $$headers => '[["a b", "c"]]'$$), (14,
                   $$headers => '{"ETag": "a\r\nSet-Cookie: b"}'$$),
               (15, $$headers => (SELECT jsonb_agg(jsonb_build_array('ETag', i)) FROM generate_series(1, 65) i)$$),
               (16, $$headers => jsonb_build_object('ETag', repeat('x', 16384))$$)) AS t (n, arguments) ORDER BY n;
SELECT n, pg_temp.error_of(format('SELECT idem_fail(%L, %s, %s)', :'id', :'token', arguments))
  FROM (VALUES (1, $$'completed'$$), (2, $$''$$), (3, $$'Failed'$$), (4, $$'failed', 99$$), (5,
      $$'failed', 500, 'a', body_json => '1'$$)) AS t (n, arguments) ORDER BY n;
SELECT md5(k::text) = :'before' AS untouched FROM idem_keys k WHERE operation_id = :'id';
SELECT count(*) FROM idem_responses WHERE operation_id = :'id';
-- a status of NULL is the default; the lowest and the highest are accepted
SELECT k, outcome, state, status FROM (VALUES (1, 'null', 'NULL'), (2, 'lowest', '100'), (3, 'highest', '599')) AS t (n,
    k, s), pg_temp.answer_of('status ' || k, ', ' || s) ORDER BY n;

-- untyped parameters, as drivers send them
PREPARE claim_it AS SELECT operation_id, token FROM idem_claim($1, $2, $3, $4);
PREPARE complete_it AS SELECT outcome, status, body FROM idem_complete($1, $2, $3, $4);
EXECUTE claim_it('complete.actor', 'complete.op', 'prepared', '{"a": 1}') \gset
EXECUTE complete_it(:'operation_id', :'token', '201', 'done');
EXECUTE complete_it(:'operation_id', :'token', '201', 'done');

-- mode lease: completing in the claiming transaction is refused, savepoints or not; after a commit it is not
SELECT version FROM idem_set_policy('complete.lease', 'default', '{"mode": "lease"}');
BEGIN;
SELECT operation_id AS id, token FROM idem_claim('complete.actor', 'complete.lease', 'k',
    attempt_id => '00000000-0000-4000-8000-000000000003') \gset
SELECT pg_temp.error_of(format('SELECT idem_complete(%L, %s)', :'id', :token));
SELECT pg_temp.error_of(format('SELECT idem_fail(%L, %s, %L)', :'id', :token, 'failed'));
SAVEPOINT s;
SELECT pg_temp.error_of(format('SELECT idem_complete(%L, %s)', :'id', :token));
RELEASE s;
SELECT pg_temp.error_of(format('SELECT idem_extend(%L, %s)', :'id', :token));
SELECT pg_temp.error_of(format('SELECT idem_complete(%L, %s)', :'id', :token));
COMMIT;
BEGIN;
-- the claim is committed, so a heartbeat, a checkpoint or a resumption in this transaction does not matter
SELECT outcome FROM idem_extend(:'id', :token);
SELECT outcome, checkpoint FROM idem_checkpoint(:'id', :token, '{"step": 1}');
SELECT outcome, token FROM idem_claim('complete.actor', 'complete.lease', 'k',
    attempt_id => '00000000-0000-4000-8000-000000000003') \gset
SELECT :'outcome' AS outcome;
SELECT outcome, state, status FROM idem_complete(:'id', :token);
COMMIT;
SELECT outcome, state FROM idem_lookup_id(:'id');
-- giving back in the claiming transaction is harmless
BEGIN;
SELECT operation_id AS id, token FROM idem_claim('complete.actor', 'complete.lease', 'given back') \gset
SELECT outcome, state, token FROM idem_release(:'id', :token);
COMMIT;
SELECT outcome, attempt FROM idem_claim('complete.actor', 'complete.lease', 'given back');

-- every completed key has exactly one answer
SELECT count(*) FROM idem_keys k WHERE actor = 'complete.actor' AND state IN ('c', 'f')
   AND (SELECT count(*) FROM idem_responses r WHERE r.operation_id = k.operation_id AND r.token = k.token) <> 1;
