-- http: the key out of a request header, and the response to send. Covers A21 and invariant 7 for headers.
-- Bodies are shown by encode(body, 'escape'), so that the output is ASCII in every database encoding.
SET client_min_messages = warning;
CREATE EXTENSION IF NOT EXISTS idempotency;
RESET client_min_messages;
\pset null '(null)'

-- idem_http_key: both spellings, and everything else is no key
SELECT field, idem_http_key(field)
  FROM (VALUES (1, '"8e03978e-40d5-43e8-bc93-6894a57f9324"'), (2, '8e03978e-40d5-43e8-bc93-6894a57f9324'),
               (3, '  "a b"  '), (4, '"a\"b\\c"'), (5, '"k";v=1; w="x;y"'), (6, '"Ab "'), (7, 'Order:42/retry'),
               (8, ''), (9, '   '), (10, '""'), (11, '"a'), (12, 'a"'), (13, '"a", "b"'), (14, 'a,b'), (15, 'a b'),
               (16, '"a\n"'), (17, '"k";'), (18, '"k" ;v'), (19, '"k"x')) AS f (n, field)
 ORDER BY n;
SELECT idem_http_key(NULL) AS absent, idem_http_key(E'a\x01b') AS control, idem_http_key(E'"a\nb"') AS line_break,
       idem_http_key(E'\ta\t') AS tabs, idem_http_key(U&'"caf\00e9"') AS non_ascii, idem_http_key(U&'caf\00e9') AS bare;
SELECT length(idem_http_key(repeat('x', 100000))) AS long_bare, idem_http_key('"' || repeat('x', 100000)) AS long_broken;
SELECT provolatile, proisstrict, proparallel FROM pg_proc WHERE proname = 'idem_http_key';

-- a result as the verbs return it; what is not named is NULL
CREATE FUNCTION pg_temp.result(members jsonb) RETURNS idem_result LANGUAGE sql
RETURN jsonb_populate_record(NULL::idem_result,
    '{"operation_id": "6f1c2d3e-4f50-8a61-9b72-8c93a4b5c6d7"}'::jsonb || members);
CREATE FUNCTION pg_temp.response(members jsonb) RETURNS TABLE (status int, headers jsonb, body text) LANGUAGE sql
BEGIN ATOMIC
    SELECT h.status, h.headers, encode(h.body, 'escape') FROM idem_http_response(pg_temp.result(members)) AS h;
END;
\x on

-- completed: the stored answer; 200 when no status is stored, but never for a stored failure
SELECT * FROM pg_temp.response('{"outcome": "completed", "state": "completed", "status": 201, "body": "{\"id\": 7}",
    "headers": [["Content-Type", "application/json"], ["Location", "/orders/7"]]}');
SELECT * FROM pg_temp.response('{"outcome": "completed", "state": "completed"}');
SELECT * FROM pg_temp.response('{"outcome": "completed", "state": "failed"}');
SELECT * FROM pg_temp.response('{"outcome": "replay", "state": "failed", "replayed": true, "status": 402, "body": "no"}');

-- replay: the same, marked; order, repeats and case of headers are kept
SELECT * FROM pg_temp.response('{"outcome": "replay", "replayed": true, "status": 201, "body": "",
    "headers": [["link", "<b>"], ["ETag", "\"1\""], ["Link", "<a>"], ["link", "<b>"]]}');
SELECT * FROM pg_temp.response('{"outcome": "completed", "replayed": true, "status": 204}');

-- bodies: bytes, UTF-8 text whatever the server encoding, kept elsewhere, too large to be kept
SELECT * FROM pg_temp.response('{"outcome": "replay", "body_bytes": "\\x1f8b00ff0a"}');
SELECT * FROM pg_temp.response(jsonb_build_object('outcome', 'replay', 'body', U&'caf\00e9 \00fc'));
SELECT * FROM pg_temp.response('{"outcome": "replay", "body_ref": "s3://answers/7", "body": "ignored"}');
SELECT * FROM pg_temp.response('{"outcome": "replay", "status": 201, "detail": {"body_omitted": true}}');
SELECT * FROM pg_temp.response('{"outcome": "replay", "body": "kept", "detail": {"body_omitted": false}}');
SELECT length(body) FROM idem_http_response(pg_temp.result(
    jsonb_build_object('outcome', 'replay', 'body', repeat('x', 1000000)))) AS h;

-- no header of the stored answer can contradict or extend what the response says itself
SELECT * FROM pg_temp.response('{"outcome": "completed", "headers": [["set-cookie", "s=1"], ["WWW-AUTHENTICATE", "Basic"],
    ["idempotent-replayed", "true"], ["Idempotency-Operation-Id", "x"], ["Idempotent-Body-Omitted", "true"], ["A", "b"]]}');
SELECT * FROM pg_temp.response('{"outcome": "completed", "headers": {"A": ["x", 1, null, true], "B": 1.50, "C": null}}');
SELECT * FROM pg_temp.response('{"outcome": "completed", "headers": [], "operation_id": null}');

-- in_progress and conflict
SELECT * FROM pg_temp.response('{"outcome": "in_progress", "retry_after_s": 2}');
SELECT * FROM pg_temp.response('{"outcome": "in_progress", "reason": "own_transaction", "detail": {"http_status": 425}}');
SELECT * FROM pg_temp.response('{"outcome": "in_progress", "retry_after_s": -5, "detail": {"http_status": 200}}');
SELECT * FROM pg_temp.response('{"outcome": "conflict"}');
SELECT * FROM pg_temp.response('{"outcome": "conflict", "detail": {"http_status": 422, "winner": {"hash": "00ff", "status": 201}}}');
SELECT * FROM pg_temp.response('{"outcome": "conflict", "detail": {"http_status": 1e400, "winner": null}}');
SELECT * FROM pg_temp.response('{"outcome": "conflict", "detail": {"http_status": "409", "winner": "a\"b"}}');
SELECT * FROM pg_temp.response('{"outcome": "conflict", "detail": ["winner"]}');
SELECT * FROM pg_temp.response(jsonb_build_object('outcome', 'conflict', 'detail',
    jsonb_build_object('winner', jsonb_build_object('name', U&'Ren\00e9e'))));

-- indeterminate and expired
SELECT * FROM pg_temp.response('{"outcome": "indeterminate"}');
SELECT * FROM pg_temp.response('{"outcome": "expired"}');

-- rejected: by reason; a hostile reason stays inside its string
SELECT r.reason, h.status, h.headers, encode(h.body, 'escape') AS body
  FROM (VALUES (1, NULL), (2, 'payload_required'), (3, 'key_format'), (4, 'unknown_op'), (5, 'malformed'),
               (6, 'actor_not_allowed'), (7, 'actor_format'), (8, 'permission_denied'), (9, 'payload_too_large'),
               (10, 'quota'), (11, 'quota_exceeded'), (12, E'x","code":"completed"}\r\n\\')) AS r (n, reason),
       idem_http_response(pg_temp.result(jsonb_build_object('outcome', 'rejected', 'reason', r.reason,
           'retry_after_s', CASE WHEN r.reason LIKE 'quota%' THEN 30 END))) AS h
 ORDER BY r.n;

-- every problem document is JSON with the members that clients read
SELECT convert_from(h.body, 'UTF8')::jsonb - 'detail' AS problem
  FROM idem_http_response(pg_temp.result('{"outcome": "in_progress", "reason": "a\"\\\t/", "retry_after_s": 1}')) AS h;
\x off

-- no response: NULL, and what is no answer
SELECT idem_http_response(NULL) AS nothing;
SELECT idem_http_response(pg_temp.result('{"outcome": "claimed", "proceed": true}'));
SELECT idem_http_response(pg_temp.result('{"outcome": "resumed", "proceed": true}'));
SELECT idem_http_response(pg_temp.result('{"outcome": "released"}'));
SELECT idem_http_response(pg_temp.result('{"outcome": null}'));
SELECT idem_http_response(pg_temp.result('{"outcome": ""}'));
SELECT idem_http_response(pg_temp.result('{"outcome": "Replay"}'));

-- headers that are none, or that would split the response
SELECT idem_http_response(pg_temp.result('{"outcome": "replay", "headers": "A: b"}'));
SELECT idem_http_response(pg_temp.result('{"outcome": "replay", "headers": ["A", "b"]}'));
SELECT idem_http_response(pg_temp.result('{"outcome": "replay", "headers": [["A"]]}'));
SELECT idem_http_response(pg_temp.result('{"outcome": "replay", "headers": [["A", "b", "c"]]}'));
SELECT idem_http_response(pg_temp.result('{"outcome": "replay", "headers": [[1, "b"]]}'));
SELECT idem_http_response(pg_temp.result('{"outcome": "replay", "headers": [[["A"], "b"]]}'));
SELECT idem_http_response(pg_temp.result('{"outcome": "replay", "headers": [["A", ["b"]]]}'));
SELECT idem_http_response(pg_temp.result('{"outcome": "replay", "headers": [{"A": "b"}]}'));
SELECT idem_http_response(pg_temp.result('{"outcome": "replay", "headers": {"A": {"b": "c"}}}'));
SELECT idem_http_response(pg_temp.result('{"outcome": "replay", "headers": {"A": [["b"]]}}'));
SELECT idem_http_response(pg_temp.result('{"outcome": "replay", "headers": [["A", "b"], ["A", "b\r\nSet-Cookie: x"]]}'));
SELECT idem_http_response(pg_temp.result('{"outcome": "replay", "headers": [["A", "b\n c"]]}'));
SELECT idem_http_response(pg_temp.result('{"outcome": "replay", "headers": [["A: b\r\nC", "d"]]}'));
SELECT idem_http_response(pg_temp.result('{"outcome": "replay", "headers": [["", "d"]]}'));
SELECT idem_http_response(pg_temp.result('{"outcome": "replay", "headers": {"A B": null}}'));
SELECT idem_http_response(pg_temp.result(jsonb_build_object('outcome', 'replay', 'headers', jsonb_build_object(U&'caf\00e9', 'x'))));

-- limits: 64 pairs and 16 KiB pass, one more does not
SELECT jsonb_array_length(headers) FROM idem_http_response(pg_temp.result(jsonb_build_object('outcome', 'replay', 'headers',
    (SELECT jsonb_agg(jsonb_build_array('A', n)) FROM generate_series(1, 64) AS n))));
SELECT idem_http_response(pg_temp.result(jsonb_build_object('outcome', 'replay', 'headers',
    (SELECT jsonb_agg(jsonb_build_array('A', n)) FROM generate_series(1, 65) AS n))));
\echo :LAST_ERROR_SQLSTATE
SELECT length(headers #>> '{0,1}') FROM idem_http_response(pg_temp.result(jsonb_build_object('outcome', 'replay', 'headers',
    jsonb_build_object('A', repeat('x', 16383)))));
SELECT idem_http_response(pg_temp.result(jsonb_build_object('outcome', 'replay', 'headers',
    jsonb_build_object('A', repeat('x', 16384)))));
\echo :LAST_ERROR_SQLSTATE

-- the response keeps its type under a prepared statement and for many rows of one call site
PREPARE answer (jsonb) AS SELECT (idem_http_response(pg_temp.result($1))).status;
EXECUTE answer ('{"outcome": "replay", "status": 201}');
EXECUTE answer ('{"outcome": "expired"}');
DEALLOCATE answer;
SELECT count(*), min((h).status), max((h).status)
  FROM (SELECT idem_http_response(pg_temp.result(jsonb_build_object('outcome', 'replay', 'status', 200 + n % 5))) AS h
          FROM generate_series(1, 1000) AS n) AS s;
SELECT provolatile, proisstrict, proparallel FROM pg_proc WHERE proname = 'idem_http_response';
