-- claim: what a claim answers in one session, and every argument it refuses. Covers A02 A16 A17 A22 A23 A24 A25 A28
-- A30 A33 A34 B04 B08 B09 E07. Rivals in other sessions are in the isolation specs.
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

-- the first claim, column by column
SELECT outcome, proceed, replayed, operation_id, state, key, attempt, status, headers, body, body_bytes, body_ref,
       checkpoint, completed_at, expires_at, retry_after_s, reason, detail,
       token > 0 AND token < 2::numeric ^ 53 AS token_fits, clock_timestamp() - claimed_at < '1 min' AS just_now
  FROM idem_claim('claim.actor', 'claim.op', 'first', '{"amount": 10}') \gx

-- operation_id is what anybody can compute: SHA-256 over the length-prefixed texts, in the form of a version 8 uuid
CREATE FUNCTION pg_temp.operation_id(actor text, op text, key text) RETURNS uuid LANGUAGE sql AS $$
    WITH t AS (SELECT substr(sha256(string_agg(int4send(octet_length(b)) || b, '' ORDER BY n)), 1, 16) AS h
                 FROM unnest(ARRAY[convert_to(actor, 'UTF8'), convert_to(op, 'UTF8'), convert_to(key, 'UTF8')])
                      WITH ORDINALITY AS p (b, n))
    SELECT encode(set_byte(set_byte(h, 6, get_byte(h, 6) & 15 | 128), 8, get_byte(h, 8) & 63 | 128), 'hex')::uuid FROM t
$$;
SELECT left(k, 10) AS key, operation_id = pg_temp.operation_id('claim.actor', 'claim.identity', k) AS as_computed
  FROM unnest(ARRAY['a', 'A', repeat('x', 255), U&'\00e9', 'ab', 'b']) AS k,
       idem_claim('claim.actor', 'claim.identity', k) ORDER BY k COLLATE "C";
SELECT count(DISTINCT operation_id)
  FROM (VALUES ('claim.ab', 'c', 'd'), ('claim.a', 'bc', 'd'), ('claim.a', 'b', 'cd')) AS v (actor, op, key),
       idem_claim(v.actor, v.op, v.key);

-- while it runs: in_progress, distinct from every other answer; nothing of the holder is shown
SELECT outcome, proceed, replayed, token, state, key, attempt, retry_after_s, reason, detail
  FROM idem_claim('claim.actor', 'claim.op', 'first', '{"amount": 10}', wait => '0');
SELECT outcome, state, token, attempt, retry_after_s FROM idem_lookup('claim.actor', 'claim.op', 'first');

-- done: replay, marked and with the first completion time, for the same payload however it is spelled
SELECT operation_id AS id, token FROM idem_claim('claim.actor', 'claim.op', 'second',
    '{"amount": 10, "to": {"a": 1, "b": [1, 2]}}') \gset
SELECT outcome, proceed, replayed, state, status, headers, body, reason, completed_at AS done
  FROM idem_complete(:'id', :token, 201, body_json => '{"id": 7}') \gset r_
SELECT :'r_outcome' AS outcome, :'r_proceed' AS proceed, :'r_replayed' AS replayed, :'r_state' AS state,
       :r_status AS status, :'r_headers' AS headers, :'r_body' AS body;
SELECT outcome, proceed, replayed, token, state, status, headers, body, completed_at = :'r_done' AS first_time,
       expires_at - completed_at AS ttl
  FROM idem_claim('claim.actor', 'claim.op', 'second', '{"to":{"b":[1.0,2e0],"a":1.00},"amount":1e1}');
SELECT outcome, status, body FROM idem_lookup_id(:'id');

-- another payload: conflict; array order and types count, null is not absence
SELECT p, outcome FROM unnest(ARRAY['{"amount": 10, "to": {"a": 1, "b": [2, 1]}}',
    '{"amount": "10", "to": {"a": 1, "b": [1, 2]}}',
    '{"amount": 10, "to": {"a": 1, "b": [1, 2]}, "x": null}', 'null', '{}']::jsonb[]) WITH ORDINALITY AS t (p, n),
    idem_claim('claim.actor', 'claim.op', 'second', p) ORDER BY n;
SELECT outcome FROM idem_claim('claim.actor', 'claim.op', 'second');
SELECT outcome FROM idem_claim('claim.actor', 'claim.op', 'second', '{"amount": 10, "to": {"a": 1, "b": [1, 2]}}',
    target => 'order-1');

-- no payload is a payload of its own, and so are bytes
SELECT outcome FROM idem_claim('claim.actor', 'claim.op', 'bare');
SELECT outcome FROM idem_claim('claim.actor', 'claim.op', 'bare', wait => '0');
SELECT outcome FROM idem_claim('claim.actor', 'claim.op', 'bare', '{}', wait => '0');
SELECT outcome FROM idem_claim('claim.actor', 'claim.op', 'bytes', payload_bytes => '\x00ff00');
SELECT outcome FROM idem_claim('claim.actor', 'claim.op', 'bytes', payload_bytes => '\x00ff00', wait => '0');
SELECT outcome FROM idem_claim('claim.actor', 'claim.op', 'bytes', payload_bytes => '\x00ff01', wait => '0');
SELECT outcome FROM idem_claim('claim.actor', 'claim.op', 'target', '{}', target => 'order-1');
SELECT outcome FROM idem_claim('claim.actor', 'claim.op', 'target', '{}', target => 'order-1', wait => '0');
SELECT outcome FROM idem_claim('claim.actor', 'claim.op', 'target', '{}', target => 'order-2', wait => '0');

-- one key, other actor or op: other operations; the first is untouched
SELECT md5(k::text) AS before FROM idem_keys k WHERE actor = 'claim.actor' AND op = 'claim.op' AND key = 'second' \gset
SELECT a, o, outcome, proceed, body FROM (VALUES ('claim.actor', 'claim.op2'), ('claim.other', 'claim.op'),
    ('CLAIM.ACTOR', 'claim.op')) AS v (a, o),
    idem_claim(v.a, v.o, 'second', '{"amount": 10, "to": {"a": 1, "b": [1, 2]}}') ORDER BY a, o;
SELECT md5(k::text) = :'before' AS untouched FROM idem_keys k WHERE actor = 'claim.actor' AND op = 'claim.op'
    AND key = 'second';

-- attempt_id: shown again while the claim lives, it resumes with a greater token; another one waits
SELECT operation_id AS id, token FROM idem_claim('claim.actor', 'claim.op', 'ack', '{}',
    attempt_id => '00000000-0000-4000-8000-000000000001') \gset
SELECT outcome, proceed, attempt, token > :token AS greater, state, token AS resumed
  FROM idem_claim('claim.actor', 'claim.op', 'ack', '{}', attempt_id => '00000000-0000-4000-8000-000000000001') \gset r_
SELECT :'r_outcome' AS outcome, :'r_proceed' AS proceed, :r_attempt AS attempt, :'r_greater' AS greater,
    :'r_state' AS state;
SELECT outcome FROM idem_claim('claim.actor', 'claim.op', 'ack', '{}', wait => '0',
    attempt_id => '00000000-0000-4000-8000-000000000002');
SELECT outcome FROM idem_claim('claim.actor', 'claim.op', 'ack', '{}', wait => '0');
SELECT outcome FROM idem_claim('claim.actor', 'claim.op', 'ack', '{"x": 1}', wait => '0',
    attempt_id => '00000000-0000-4000-8000-000000000001');
SELECT pg_temp.error_of(format('SELECT idem_complete(%L, %s)', :'id', :token));
SELECT outcome FROM idem_complete(:'id', :r_resumed);

-- what is stored of a claim
SELECT outcome FROM idem_claim('claim.actor', 'claim.op', 'stored', '{}',
    parent_operation_id => '00000000-0000-8000-8000-000000000009',
    traceparent => '00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01', lease => '90 s', ttl => '2 days',
        capabilities_version => 1);
SELECT outcome FROM idem_claim('claim.actor', 'claim.op', 'untraced', '{}', traceparent => E'not a trace\nparent');
SELECT key, state, parent, traceparent, ttl_s, lease_until - created_at AS lease, attempt, profile,
    octet_length(payload_hash) AS hash,
       payload, claimed_by ~ '/[0-9]+$' AS by_process
  FROM idem_keys WHERE actor = 'claim.actor' AND key IN ('stored', 'untraced') ORDER BY key;

-- what the client sent wrong is data, and writes nothing
SELECT version FROM idem_set_policy('claim.strict', 'payment');
SELECT n, outcome, proceed, operation_id, left(r.key, 20) AS key, reason, detail
  FROM (VALUES (1, 'sixteen-letters-', '{}'::jsonb), (2, 'short', '{}'), (3, '', '{}'), (4, repeat('k', 256), '{}'),
               (5, 'sixteen letters!', '{}'), (6, U&'sixteen-lettres\00e9', '{}'), (7, E'sixteen-letters\n', '{}'),
               (8, 'sixteen-letters-2', NULL), (9, 'sixteen-letters-3', to_jsonb(repeat('p', 1048577)))) AS t (n, k, p),
       idem_claim('claim.actor', 'claim.strict', k, p) AS r ORDER BY n;
SELECT outcome, reason FROM idem_claim('claim.actor', 'claim.op', '', '{}');
SELECT outcome, reason FROM idem_claim('claim.actor', 'claim.op', repeat('k', 256), '{}');
SELECT outcome, reason FROM idem_claim('claim.actor', 'claim.op', 'big', payload_bytes => convert_to(repeat('p',
    1048577), 'UTF8'));
SELECT outcome FROM idem_claim('claim.actor', 'claim.op', 'just under', payload_bytes => convert_to(repeat('p',
    1048576), 'UTF8'));
SELECT outcome FROM idem_claim('claim.actor', 'claim.op', repeat('k', 255), '{}');
SELECT key FROM idem_keys WHERE op = 'claim.strict';
SELECT op FROM idem_set_policy('claim.capable', 'default', '{"capabilities_min": 2}');
SELECT v AS shown, outcome, reason, detail FROM unnest(ARRAY[NULL, -1, 0, 1, 2, 3]) WITH ORDINALITY AS t (v, n),
    idem_claim('claim.actor', 'claim.capable', 'k' || n, capabilities_version => v) ORDER BY n;

-- what the programmer wrote wrong raises, and writes nothing
SELECT n, pg_temp.error_of('SELECT idem_claim(' || arguments || ')') AS error
  FROM (VALUES (1, $$NULL, 'o', 'k'$$), (2, $$'a', NULL, 'k'$$), (3, $$'a', 'o', NULL$$), (4, $$'', 'o', 'k'$$), (5,
      $$'a', '', 'k'$$),
               (6, $$repeat('a', 256), 'o', 'k'$$), (7, $$'a', repeat('o', 129), 'k'$$),
               (8, $$repeat(U&'\00e9', 128), 'o', 'k'$$), (9, $$'a', 'o', 'k', '{}', payload_bytes => 'x'$$)) AS t (n,
                   arguments)
 ORDER BY n;
SELECT n, pg_temp.error_of(format('SELECT idem_claim(%L, %L, %L, %s => %L)', 'claim.actor', 'claim.interval', 'k', a,
    v)) AS error
  FROM (VALUES (1, 'wait', '-1 s'), (2, 'wait', '61 s'), (3, 'wait', '1 month'), (4, 'wait', '178000000 years'), (5,
      'wait', '-178000000 years'),
               (6, 'wait', '2147483647 days'), (7, 'wait', '2562047788:00:54'), (8, 'wait', '60 s'), (9, 'wait', '0'),
               (10, 'lease', '0'), (11, 'lease', '999 ms'), (12, 'lease', '24:00:01'), (13, 'lease', '1 day'), (14,
                   'lease', '178000000 years'),
               (15, 'ttl', '0'), (16, 'ttl', '0.999 s'), (17, 'ttl', '-1 s'), (18, 'ttl', '91 days'), (19, 'ttl',
                   '3 months'),
               (20, 'ttl', '-2147483648 months')) AS t (n, a, v)
 WHERE v NOT IN ('60 s', '0') OR a <> 'wait' ORDER BY n;
SELECT a, k, outcome FROM (VALUES ('lease', '1 s'), ('ttl', '1 s')) AS t (a, k), idem_claim('claim.actor',
    'claim.interval', a || k, lease => '1 s', ttl => '90 days', wait => '60 s');
-- without a unit an interval counts seconds, as everywhere in SQL; JSON that cannot be stored is jsonb's own error
SELECT pg_temp.error_of($$SELECT idem_claim('claim.actor', 'claim.interval', 'k', wait => '30000')$$);
SELECT left(pg_temp.error_of($$SELECT idem_claim('claim.actor', 'claim.json', 'k', '"\u0000"')$$), 5);
SELECT left(pg_temp.error_of($$SELECT idem_claim('claim.actor', 'claim.json', 'k', '"\ud800"')$$), 5);
SELECT outcome FROM idem_claim('claim.actor', 'claim.json', 'k', payload_bytes => convert_to('"\u0000\ud800"', 'UTF8'));
SELECT pg_temp.error_of($$SELECT idem_claim('claim.actor', 'claim.json', convert_from('\xff', 'UTF8'))$$);
SELECT actor, op, key FROM idem_keys WHERE actor = 'a' OR op IN ('claim.interval', 'claim.json') ORDER BY op, key;

-- neither session locks nor advisory locks stay behind
SELECT count(*) FROM pg_locks WHERE pid = pg_backend_pid() AND locktype = 'advisory';

-- a lookup of what nobody claimed; lookups raise for what no key can be
SELECT outcome, proceed, operation_id, state FROM idem_lookup('claim.actor', 'claim.op', 'unknown');
SELECT outcome FROM idem_lookup_id('00000000-0000-8000-8000-000000000001');
SELECT pg_temp.error_of($$SELECT idem_lookup(NULL, 'o', 'k')$$);
SELECT pg_temp.error_of($$SELECT idem_lookup('a', NULL, 'k')$$);
SELECT pg_temp.error_of($$SELECT idem_lookup('a', 'o', NULL)$$);
SELECT pg_temp.error_of($$SELECT idem_lookup_id(NULL)$$);
