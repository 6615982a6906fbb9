-- versions: one writer for each version of a resource; retries replay, others learn the present version. Covers B01.
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
SELECT op, preset FROM idem_set_policy('versions.set_address', 'order', '{"conflict_detail": "none"}');
CREATE FUNCTION pg_temp.set_address(version bigint, payload jsonb, OUT outcome text, OUT reason text, OUT detail jsonb, OUT body text) LANGUAGE plpgsql AS $$
DECLARE c idem_result;
BEGIN
    c := idem_version_claim('shop', 'versions.set_address', 'order-1', version, payload);
    IF c.proceed THEN
        body := (idem_complete(c.operation_id, c.token, 200, payload ->> 'street')).body;
    ELSE
        body := c.body;
    END IF;
    outcome := c.outcome; reason := c.reason; detail := c.detail;
END $$;
SELECT * FROM pg_temp.set_address(0, '{"street": "Main 1"}');
-- the answer was lost: the same again
SELECT * FROM pg_temp.set_address(0, '{"street": "Main 1"}');
-- another writer at the same version
SELECT * FROM pg_temp.set_address(0, '{"street": "Side 2"}');
-- it reads again, and sets
SELECT * FROM pg_temp.set_address(1, '{"street": "Side 2"}');
SELECT * FROM pg_temp.set_address(0, '{"street": "Main 1"}');
-- a version that is not there yet leaves nothing behind
SELECT * FROM pg_temp.set_address(7, '{"street": "X"}');
SELECT count(*) AS keys FROM idem_keys WHERE op = 'versions.set_address';
-- an abort takes the version back
BEGIN;
SELECT * FROM pg_temp.set_address(2, '{"street": "Y"}');
ROLLBACK;
SELECT version FROM idem_versions WHERE target = 'order-1';
BEGIN;
SAVEPOINT s;
SELECT * FROM pg_temp.set_address(2, '{"street": "Y"}');
ROLLBACK TO s;
SELECT * FROM pg_temp.set_address(2, '{"street": "Z"}');
COMMIT;
-- a version whose answer is forgotten is over, whoever asks
UPDATE idem_keys SET expires_at = now() - interval '1 hour' - interval '30 days' WHERE op = 'versions.set_address';
SELECT * FROM pg_temp.set_address(0, '{"street": "Main 1"}');
SELECT version FROM idem_versions WHERE target = 'order-1';
-- other resources, actors and ops are others
SELECT c.outcome, c.detail, d.outcome AS then FROM idem_version_claim('shop', 'versions.free', 'order-1', 0, '1') c, idem_complete(c.operation_id, c.token) d;
BEGIN; SELECT outcome, detail FROM idem_version_claim('shop', 'versions.free', 'order-2', 0, '1');
\set VERBOSITY terse
COMMIT;
\set VERBOSITY default
SELECT count(*) AS kept FROM idem_versions WHERE target = 'order-2';
SELECT op FROM idem_set_policy('versions.lease', 'payment');
SELECT n, pg_temp.error_of(format('SELECT * FROM idem_version_claim(%s)', a)) AS error
  FROM (VALUES (1, 'NULL, ''o'', ''t'', 0'), (2, '''a'', NULL, ''t'', 0'), (3, '''a'', ''o'', NULL, 0'), (4, '''a'', ''o'', ''t'', NULL'),
      (5, '''a'', ''o'', ''t'', -1'), (6, '''a'', ''o'', '''', 0'), (7, '''a'', ''versions.lease'', ''t'', 0, ''1''')) AS t (n, a) ORDER BY n;
SELECT outcome, reason FROM idem_version_claim('shop', 'versions.set_address', 'order-1', 3);
