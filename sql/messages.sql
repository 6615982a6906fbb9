-- messages: sent once, told of the first send, never resent by itself, forced only with a trace. Covers C08 C10 C11.
SET client_min_messages = warning;
CREATE EXTENSION IF NOT EXISTS idempotency;
RESET client_min_messages;
\pset null '(null)'
CREATE FUNCTION pg_temp.error_of(statement text) RETURNS text LANGUAGE plpgsql AS $$
BEGIN
    EXECUTE statement;
    RETURN 'no error';
EXCEPTION WHEN OTHERS THEN
    RETURN SQLSTATE || ' ' || SQLERRM;
END $$;
SELECT outcome, operation_id AS id, token FROM idem_message_claim('shop', 'email', 'welcome-7', 'ann@example.com', '{"t": 1}') \gset
\echo :outcome
SELECT outcome, retry_after_s FROM idem_message_claim('shop', 'email', 'welcome-7', 'ann@example.com', '{"t": 1}');
SELECT outcome FROM idem_message_complete(:'id', :token, '<17@mx>');
-- the first send's id and time
SELECT outcome, proceed, body_ref, completed_at < now() + interval '1 s' AS timed, expires_at - completed_at AS runs FROM idem_message_claim('shop', 'email', 'welcome-7', 'ann@example.com', '{"t": 1}');
SELECT outcome, body_ref FROM idem_message_complete(:'id', :token, '<17@mx>');
SELECT pg_temp.error_of(format('SELECT idem_message_complete(%L, %s, %L)', :'id', :'token', '<18@mx>'));
-- another recipient or content under the same id; the same id elsewhere
SELECT outcome, reason FROM idem_message_claim('shop', 'email', 'welcome-7', 'bob@example.com', '{"t": 1}');
SELECT outcome, reason FROM idem_message_claim('shop', 'email', 'welcome-7', 'ann@example.com', '{"t": 2}');
SELECT outcome FROM idem_message_claim('shop', 'sms', 'welcome-7', 'ann@example.com', '{"t": 1}');
SELECT outcome FROM idem_message_claim('other', 'email', 'welcome-7', 'ann@example.com', '{"t": 1}');
SELECT outcome, reason FROM idem_message_claim('shop', 'email', 'empty', 'ann@example.com');
-- sending and confirming belong in two transactions
BEGIN;
SELECT operation_id AS id2, token AS token2 FROM idem_message_claim('shop', 'email', 'm-2', 'ann@example.com', '1') \gset
SELECT pg_temp.error_of(format('SELECT idem_message_complete(%L, %s, %L)', :'id2', :'token2', 'x'));
COMMIT;
-- timeout after DATA: nobody knows, and nobody sends again by itself
SELECT outcome, state FROM idem_fail(:'id2', :token2);
SELECT outcome, proceed, reason FROM idem_message_claim('shop', 'email', 'm-2', 'ann@example.com', '1');
UPDATE idem_keys SET lease_until = now() - interval '30 days', updated_at = now() - interval '30 days' WHERE operation_id = :'id2';
SELECT outcome, proceed FROM idem_message_claim('shop', 'email', 'm-2', 'ann@example.com', '1');
-- a sender that died is the same
SELECT operation_id AS id3 FROM idem_message_claim('shop', 'email', 'm-3', 'ann@example.com', '1') \gset
UPDATE idem_keys SET lease_until = now() - interval '1 day' WHERE operation_id = :'id3';
SELECT outcome, proceed, reason FROM idem_message_claim('shop', 'email', 'm-3', 'ann@example.com', '1');
SELECT state FROM idem_unfinished WHERE operation_id = :'id3';
-- force: audited, once
SELECT outcome, state FROM idem_message_force('shop', 'email', 'm-2', '{"ticket": 812}');
SELECT outcome, proceed, attempt FROM idem_message_claim('shop', 'email', 'm-2', 'ann@example.com', '1');
SELECT outcome, proceed FROM idem_message_claim('shop', 'email', 'm-2', 'ann@example.com', '1');
SELECT outcome FROM idem_message_force('shop', 'email', 'welcome-7', '{"ticket": 813}');
SELECT outcome, operation_id AS id, token FROM idem_message_claim('shop', 'email', 'welcome-7', 'ann@example.com', '{"t": 1}') \gset
SELECT outcome FROM idem_message_complete(:'id', :token, '<19@mx>');
SELECT outcome, body_ref FROM idem_message_claim('shop', 'email', 'welcome-7', 'ann@example.com', '{"t": 1}');
SELECT who = session_user AS by_me, what, operation_id IS NOT NULL AS of_operation, detail FROM idem_audit WHERE what = 'idem_message_force' ORDER BY id;
SELECT n, pg_temp.error_of(format('SELECT * FROM %s', a)) AS error
  FROM (VALUES (1, 'idem_message_force(''shop'', ''email'', ''nope'', ''1'')'), (2, 'idem_message_force(''shop'', ''email'', ''welcome-7'', NULL)'),
      (3, 'idem_message_force(NULL, ''email'', ''m'', ''1'')'), (4, 'idem_message_force(''shop'', ''email'', ''m-2'', ''1'')'),
      (5, 'idem_message_claim(NULL, ''c'', ''m'', ''r'')'), (6, 'idem_message_claim(''a'', NULL, ''m'', ''r'')'), (7, 'idem_message_claim(''a'', ''c'', NULL, ''r'')'),
      (8, 'idem_message_claim(''a'', ''c'', ''m'', NULL)'), (9, 'idem_message_claim(''a'', repeat(''c'', 121), ''m'', ''r'')'),
      (10, 'idem_message_claim(''a'', ''c'', ''m'', ''r'', ''1'', ''91 days'')'), (11, 'idem_message_claim(''a'', ''c'', ''m'', ''r'', ''1'', ''0'')'),
      (12, 'idem_message_complete(gen_random_uuid(), 1, NULL)')) AS t (n, a) ORDER BY n;
SELECT count(*) AS audited FROM idem_audit;
-- the window runs from the first send
SELECT operation_id AS id4, token AS token4 FROM idem_message_claim('shop', 'email', 'm-4', 'ann@example.com', '1', '1 h') \gset
SELECT expires_at - completed_at AS window FROM idem_message_complete(:'id4', :token4, 'x');
SELECT outcome, expires_at - completed_at AS window FROM idem_message_claim('shop', 'email', 'm-4', 'ann@example.com', '1', '5 days');
UPDATE idem_keys SET expires_at = now() WHERE operation_id = :'id4';
SELECT outcome FROM idem_message_claim('shop', 'email', 'm-4', 'ann@example.com', '1', '1 h');
UPDATE idem_audit SET at = at - interval '2 years' WHERE id = (SELECT min(id) FROM idem_audit);
SELECT idem_sweep_audit(100), idem_sweep_audit(100);
