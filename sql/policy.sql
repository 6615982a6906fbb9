-- policy: what can be set, what it becomes, and what is refused. Covers A23 for the default verdicts by status.
SET client_min_messages = warning;
CREATE EXTENSION IF NOT EXISTS idempotency;
RESET client_min_messages;
\pset null '(null)'

-- every option: the table of the presets
SELECT name, type, default_value, payment, order_preset, webhook, message, ephemeral
  FROM idem_policy_options WHERE type NOT IN ('object', 'array');
SELECT name, min_value, max_value, choices FROM idem_policy_options
 WHERE min_value IS NOT NULL OR choices IS NOT NULL;
\pset format unaligned
\pset tuples_only on
SELECT name, default_value, order_preset FROM idem_policy_options WHERE type IN ('object', 'array');
\pset tuples_only off
\pset format aligned
SELECT count(*) AS options, count(DISTINCT name) AS names, bool_and(meaning <> '') AS explained FROM idem_policy_options;

-- what is shown as a preset's value is what setting the preset gives
SELECT p.name AS preset, o.name AS option, o.shown, r.options ->> o.name AS effective
  FROM (VALUES ('default'), ('payment'), ('order'), ('webhook'), ('message'), ('ephemeral')) AS p (name),
       idem_policy_resolve('op', p.name, NULL) AS r (options),
       LATERAL (SELECT name, type, CASE p.name WHEN 'default' THEN default_value WHEN 'payment' THEN payment
                                               WHEN 'order' THEN order_preset WHEN 'webhook' THEN webhook
                                               WHEN 'message' THEN message ELSE ephemeral END AS shown
                  FROM idem_policy_options) AS o
 WHERE o.type NOT IN ('object', 'array', 'document') AND coalesce(o.shown, '') IS DISTINCT FROM r.options ->> o.name;
SELECT jsonb_pretty(idem_policy_resolve('payment.capture', 'payment', '{"target": "payment intent"}'));

-- setting a policy: the row, versions, and the same again
SELECT op, preset, version, options ->> 'ttl' AS ttl, updated_by = session_user AS by_me
  FROM idem_set_policy('order.place', 'order', '{"ttl": "168 hours"}');
SELECT version, options ->> 'ttl' AS ttl FROM idem_set_policy('order.place', 'order', '{"ttl": "7 d"}');
SELECT version, options ->> 'ttl' AS ttl FROM idem_set_policy('order.place', 'order', '{"ttl": "8 days"}');
SELECT version, options ->> 'ttl' AS ttl FROM idem_set_policy('order.place', 'order');
SELECT version, preset, options ->> 'mode' AS mode FROM idem_set_policy('order.place', 'webhook', NULL);
BEGIN;
SELECT updated_at AS before FROM idem_policies WHERE op = 'order.place' \gset
SELECT version, updated_at = :'before' AS untouched FROM idem_set_policy('order.place', 'webhook');
ROLLBACK;
SELECT op, preset, version FROM idem_policies WHERE op = 'order.place';

-- one value in each of its spellings
SELECT t.lease, idem_policy_resolve('op', 'default', jsonb_build_object('lease', t.lease)) ->> 'lease' AS effective
  FROM (VALUES ('90 s'), ('90s'), ('1.5 minutes'), ('00:01:30'), ('PT1M30S'), ('@ 1 min 30 secs'), ('90000 ms')) AS t (lease);
SET intervalstyle = sql_standard;
SELECT idem_policy_resolve('op', 'default', '{"lease": "1:30:00"}') ->> 'lease' AS lease;
RESET intervalstyle;
SELECT r -> 'conflict_status' AS conflict, r -> 'in_progress_status' AS in_progress, r -> 'replay_headers' AS headers,
       r ->> 'handler' AS handler, r ->> 'key_chars' AS key_chars
  FROM idem_policy_resolve('op', 'default', '{"conflict_status": 422, "in_progress_status": "425",
       "replay_headers": ["X-Request-Id", "ETag", "x-request-id"], "handler": "shop.\"place order\"",
       "key_chars": "a-f0-9"}') AS r;
SELECT r -> 'replay_headers' AS no_headers, r -> 'on_status' AS on_status
  FROM idem_policy_resolve('op', 'default', '{"replay_headers": [], "on_status": {"503": "release", "5xx": "store"}}') AS r;
SELECT r -> 'on_status' AS unchanged FROM idem_policy_resolve('op', 'default', '{"on_status": {}}') AS r;
SELECT r -> 'on_status' AS shortest
  FROM idem_policy_resolve('op', 'default', '{"on_status": {"404": "store", "timeout": "release"}}') AS r;

-- what the programmer wrote wrong
CREATE FUNCTION pg_temp.refused(op text, preset text, options jsonb) RETURNS TABLE (code text, says text)
LANGUAGE plpgsql AS $$
DECLARE
    failure text;
    detail text;
    hint text;
BEGIN
    PERFORM idem_set_policy(op, preset, options);
    RETURN QUERY SELECT '00000', 'accepted';
EXCEPTION WHEN OTHERS THEN
    GET STACKED DIAGNOSTICS failure = RETURNED_SQLSTATE, detail = PG_EXCEPTION_DETAIL, hint = PG_EXCEPTION_HINT;
    RETURN QUERY SELECT failure, concat_ws(' | ', sqlerrm, nullif(detail, ''), nullif(hint, ''));
END $$;
\pset format unaligned
\pset tuples_only on
SELECT r.* FROM (VALUES (1, NULL, 'order', '{}'::jsonb), (2, 'op', NULL, '{}'), (3, '', 'order', '{}'), (4, 'op', '', '{}'),
    (5, repeat('x', 129), 'order', '{}'), (6, E'a\tb', 'order', '{}'), (7, 'op', 'Order', '{}'),
    (8, 'op', E'or\nder' || repeat('x', 100), '{}'), (9, 'op', 'order', '[]'), (10, 'op', 'order', '"ttl"'),
    (11, 'op', 'order', 'null')) AS t (n, op, preset, options),
    pg_temp.refused(t.op, t.preset, t.options) AS r ORDER BY t.n;
SELECT o.options, r.* FROM (VALUES
    (1, '{"tll": "1 day"}'), (2, '{"TTL": "1 day"}'), (3, '{"ttl": 86400}'), (4, '{"ttl": null}'), (5, '{"ttl": "86400"}'),
    (6, '{"ttl": "soon"}'), (7, '{"ttl": ""}'), (8, '{"ttl": "3 months"}'), (9, '{"ttl": "91 days"}'), (10, '{"ttl": "0"}'),
    (11, '{"lease": "25:00:00"}'), (12, '{"wait": "2 minutes"}'), (13, '{"wait": "-1 s"}'), (14, '{"mode": "Lease"}'),
    (15, '{"mode": true}'), (16, '{"mode": 1}'), (17, '{"conflict_status": 425}'), (18, '{"key_min": 0}'),
    (19, '{"key_min": "16"}'), (20, '{"key_min": 1.5}'), (21, '{"key_max": 1e30}'), (22, '{"key_min": 20, "key_max": 10}'),
    (23, '{"key_chars": "[a-z]"}'), (24, '{"key_chars": "z-a"}'), (25, '{"payload_required": "yes"}'),
    (26, '{"on_status": "5xx"}'), (27, '{"on_status": {"5xx": "drop"}}'), (28, '{"on_status": {"600": "store"}}'),
    (29, '{"on_status": {"5xx": {"a": 1}}}'), (30, '{"on_status": {"5xx=store,4xx": "store"}}'), (31, '{"handler": "f"}'),
    (32, '{"handler": "pg_temp.f; DROP TABLE x"}'), (33, '{"replay_headers": ["Set-Cookie"]}'),
    (34, '{"replay_headers": ["ETag", 1]}'), (35, '{"replay_headers": ["a,b"]}'), (36, '{"replay_headers": {"a": "b"}}'),
    (37, '{"body_max": 16777217}'), (38, '{"max_waiters": -1}'), (39, '{"intent": ["a"]}')) AS o (n, options),
    pg_temp.refused('op', 'order', o.options::jsonb) AS r ORDER BY o.n;
SELECT r.* FROM pg_temp.refused('op', 'order', jsonb_build_object('intent', repeat('x', 1001))) AS r;
SELECT r.* FROM pg_temp.refused('op', 'order', jsonb_build_object('replay_headers', ARRAY[repeat('x', 600)])) AS r;
\pset tuples_only off
\pset format aligned
SELECT op, preset, version FROM idem_policies WHERE op = 'order.place';

-- a statement that fails, or is rolled back, leaves the policy as it was
BEGIN;
SAVEPOINT a;
SELECT version FROM idem_set_policy('order.place', 'ephemeral');
ROLLBACK TO a;
COMMIT;
SELECT op, preset, version FROM idem_policies WHERE op = 'order.place';

-- not for everybody
SELECT proname FROM pg_proc WHERE proname ~ '^idem_(set_policy|polic)' AND has_function_privilege('public', oid, 'EXECUTE');
DELETE FROM idem_policies WHERE op = 'order.place';
