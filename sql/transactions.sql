-- transactions: what a claim is worth when its transaction, or a savepoint in it, ends one way or the other. Covers A04
-- A31 E05 E10 F02 and invariant 2. Rivals are in the isolation specs.
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
CREATE TEMP TABLE work (key text);
SELECT op, options ->> 'mode' AS mode
  FROM (VALUES ('transactions.lease', 'lease'), ('transactions.tx', 'transaction'), ('transactions.any',
      'any')) AS t (o, m),
       idem_set_policy(o, 'default', jsonb_build_object('mode', m)) ORDER BY op;
-- state of what exists of an op's keys: state, its answers, its lease hints
CREATE VIEW pg_temp.keys AS
SELECT op, key, state, attempt, (SELECT count(*) FROM idem_responses r
    WHERE r.operation_id = k.operation_id) AS answers,
       (SELECT count(*) FROM idem_leases l WHERE l.operation_id = k.operation_id) AS hints
  FROM idem_keys k WHERE actor = 'transactions.actor' ORDER BY op, key;
CREATE FUNCTION pg_temp.finish(o text, k text, arguments text = '') RETURNS TABLE (outcome text, state text, status int,
    body text) LANGUAGE plpgsql AS $$
BEGIN
    -- what a client keeps in a variable is here read from the table
    RETURN QUERY EXECUTE format('SELECT r.outcome, r.state, r.status, r.body FROM idem_keys k, idem_complete(k.operation_id, k.token %s) r WHERE k.actor = %L AND k.op = %L AND k.key = %L',
                                arguments, 'transactions.actor', o, k);
END $$;

-- an abort frees the key and leaves nothing: no row, no answer, no hint, no work
BEGIN;
SELECT outcome FROM idem_claim('transactions.actor', 'transactions.any', 'aborted');
INSERT INTO work VALUES ('aborted');
SELECT * FROM pg_temp.finish('transactions.any', 'aborted', $$, 201, 'done'$$);
ROLLBACK;
BEGIN;
SELECT outcome FROM idem_claim('transactions.actor', 'transactions.lease', 'aborted');
ROLLBACK;
SELECT * FROM work;
SELECT * FROM pg_temp.keys;
SELECT count(*) AS orphans FROM idem_responses r WHERE NOT EXISTS (SELECT FROM idem_keys k
    WHERE k.operation_id = r.operation_id);

-- one transaction: claim, work, complete; in it the key is own_transaction before, replay after
BEGIN;
SELECT outcome, proceed FROM idem_claim('transactions.actor', 'transactions.tx', 'one');
SELECT outcome, proceed, reason, retry_after_s FROM idem_claim('transactions.actor', 'transactions.tx', 'one');
SELECT outcome, reason FROM idem_claim('transactions.actor', 'transactions.tx', 'one', '{"other": 1}');
INSERT INTO work VALUES ('one');
SELECT * FROM pg_temp.finish('transactions.tx', 'one', $$, 201, 'done'$$);
SELECT outcome, replayed, status, body FROM idem_claim('transactions.actor', 'transactions.tx', 'one');
SELECT outcome FROM idem_claim('transactions.actor', 'transactions.tx', 'one', '{"other": 1}');
COMMIT;
SELECT outcome, replayed, status, body FROM idem_claim('transactions.actor', 'transactions.tx', 'one');

-- the same in the stricter isolation levels
BEGIN ISOLATION LEVEL REPEATABLE READ;
SELECT outcome FROM idem_claim('transactions.actor', 'transactions.tx', 'rr');
SELECT outcome, reason FROM idem_claim('transactions.actor', 'transactions.tx', 'rr');
SELECT * FROM pg_temp.finish('transactions.tx', 'rr');
SELECT outcome FROM idem_claim('transactions.actor', 'transactions.tx', 'rr');
SELECT outcome FROM idem_claim('transactions.actor', 'transactions.tx', 'one');
COMMIT;
BEGIN ISOLATION LEVEL SERIALIZABLE;
SELECT outcome FROM idem_claim('transactions.actor', 'transactions.tx', 'ser');
SELECT * FROM pg_temp.finish('transactions.tx', 'ser');
SELECT outcome FROM idem_claim('transactions.actor', 'transactions.tx', 'ser');
SELECT outcome FROM idem_claim('transactions.actor', 'transactions.tx', 'rr');
SELECT outcome FROM idem_lookup('transactions.actor', 'transactions.tx', 'rr');
COMMIT;

-- mode transaction: a claim left open at commit is refused and leaves nothing
BEGIN;
SELECT outcome FROM idem_claim('transactions.actor', 'transactions.tx', 'left open');
COMMIT;
SELECT outcome FROM idem_claim('transactions.actor', 'transactions.tx', 'autocommit');
BEGIN;
SELECT outcome FROM idem_claim('transactions.actor', 'transactions.tx', 'left open');
PREPARE TRANSACTION 'transactions left open';
SELECT count(*) FROM pg_prepared_xacts WHERE gid LIKE 'transactions%';
-- any way of ending it will do
BEGIN;
SELECT c.outcome, r.outcome AS then FROM idem_claim('transactions.actor', 'transactions.tx', 'given back') c,
    idem_release(c.operation_id, c.token) r;
SELECT c.outcome, r.state AS then FROM idem_claim('transactions.actor', 'transactions.tx', 'failed') c,
    idem_fail(c.operation_id, c.token, 'failed') r;
SELECT c.outcome, r.state AS then FROM idem_claim('transactions.actor', 'transactions.tx', 'unknown') c,
    idem_fail(c.operation_id, c.token, 'indeterminate') r;
COMMIT;
SELECT * FROM pg_temp.keys WHERE op = 'transactions.tx';

-- a savepoint that is rolled back takes its claims with it
BEGIN;
SAVEPOINT s;
SELECT outcome FROM idem_claim('transactions.actor', 'transactions.tx', 'in savepoint');
ROLLBACK TO s;
SELECT outcome FROM idem_claim('transactions.actor', 'transactions.tx', 'in savepoint');
SELECT outcome, reason FROM idem_claim('transactions.actor', 'transactions.tx', 'in savepoint');
ROLLBACK TO s;
COMMIT;
SELECT count(*) FROM pg_temp.keys WHERE key = 'in savepoint';
-- a released savepoint hands them to its parent
BEGIN;
SAVEPOINT a;
SAVEPOINT b;
SELECT outcome FROM idem_claim('transactions.actor', 'transactions.tx', 'nested');
RELEASE b;
ROLLBACK TO a;
COMMIT;
BEGIN;
SAVEPOINT a;
SAVEPOINT b;
SELECT outcome FROM idem_claim('transactions.actor', 'transactions.tx', 'nested');
RELEASE b;
RELEASE a;
COMMIT;
SELECT count(*) FROM pg_temp.keys WHERE key = 'nested';
-- a completion that is rolled back opens the claim again
BEGIN;
SELECT outcome FROM idem_claim('transactions.actor', 'transactions.tx', 'reopened');
SAVEPOINT s;
SELECT * FROM pg_temp.finish('transactions.tx', 'reopened', ', 500');
ROLLBACK TO s;
SELECT outcome, reason FROM idem_claim('transactions.actor', 'transactions.tx', 'reopened');
SAVEPOINT t;
SELECT * FROM pg_temp.finish('transactions.tx', 'reopened', ', 201');
RELEASE t;
ROLLBACK TO s;
SELECT * FROM pg_temp.finish('transactions.tx', 'reopened', ', 202');
COMMIT;
SELECT outcome, status FROM idem_claim('transactions.actor', 'transactions.tx', 'reopened');
BEGIN;
SELECT outcome FROM idem_claim('transactions.actor', 'transactions.tx', 'reopened and left');
SAVEPOINT s;
SELECT * FROM pg_temp.finish('transactions.tx', 'reopened and left');
ROLLBACK TO s;
COMMIT;
SELECT count(*) FROM pg_temp.keys WHERE key = 'reopened and left';
-- released and claimed again in a savepoint that is rolled back: the release stands
BEGIN;
SELECT c.outcome, r.outcome AS then FROM idem_claim('transactions.actor', 'transactions.tx', 'again') c,
    idem_release(c.operation_id, c.token) r;
SAVEPOINT s;
SELECT outcome, attempt FROM idem_claim('transactions.actor', 'transactions.tx', 'again');
ROLLBACK TO s;
SELECT outcome, attempt FROM idem_claim('transactions.actor', 'transactions.tx', 'again');
SELECT * FROM pg_temp.finish('transactions.tx', 'again');
COMMIT;
SELECT outcome, attempt FROM idem_claim('transactions.actor', 'transactions.tx', 'again');

-- committed unfinished: one hint at least, whatever was rolled back and claimed again before
BEGIN;
SAVEPOINT s;
SELECT outcome FROM idem_claim('transactions.actor', 'transactions.any', 'hinted');
ROLLBACK TO s;
SELECT outcome FROM idem_claim('transactions.actor', 'transactions.any', 'hinted');
SELECT outcome FROM idem_claim('transactions.actor', 'transactions.lease', 'hinted');
COMMIT;
SELECT * FROM pg_temp.keys WHERE key = 'hinted';
SELECT key, state, attempt FROM idem_unfinished WHERE actor = 'transactions.actor' ORDER BY op, key;
-- finished in time: mode any needs none
BEGIN;
SELECT outcome FROM idem_claim('transactions.actor', 'transactions.any', 'finished');
SELECT * FROM pg_temp.finish('transactions.any', 'finished');
COMMIT;
SELECT * FROM pg_temp.keys WHERE key = 'finished';

-- a prepared transaction holds its claim: rivals are told at once, or wait as long as they wish
BEGIN;
SELECT outcome FROM idem_claim('transactions.actor', 'transactions.any', 'prepared');
SELECT outcome FROM idem_claim('transactions.actor', 'transactions.lease', 'prepared');
PREPARE TRANSACTION 'transactions 1';
SELECT outcome, reason, token FROM idem_claim('transactions.actor', 'transactions.any', 'prepared', wait => '0');
SELECT outcome, reason FROM idem_claim('transactions.actor', 'transactions.any', 'prepared', '{"other": 1}',
    wait => '20 ms');
SELECT outcome FROM idem_lookup('transactions.actor', 'transactions.any', 'prepared');
BEGIN ISOLATION LEVEL SERIALIZABLE;
SELECT outcome FROM idem_claim('transactions.actor', 'transactions.any', 'prepared', wait => '0');
COMMIT;
COMMIT PREPARED 'transactions 1';
SELECT outcome, reason FROM idem_claim('transactions.actor', 'transactions.any', 'prepared', wait => '0');
SELECT * FROM pg_temp.keys WHERE key = 'prepared';
BEGIN;
SELECT outcome, attempt FROM idem_claim('transactions.actor', 'transactions.any', 'prepared away');
SELECT * FROM pg_temp.finish('transactions.any', 'prepared away');
SELECT r.outcome FROM idem_lookup('transactions.actor', 'transactions.any', 'prepared away') AS r;
PREPARE TRANSACTION 'transactions 2';
SELECT outcome FROM idem_claim('transactions.actor', 'transactions.any', 'prepared away', wait => '0');
ROLLBACK PREPARED 'transactions 2';
SELECT outcome, attempt FROM idem_claim('transactions.actor', 'transactions.any', 'prepared away', wait => '0');

-- read only: every verb that writes says so, lookups work
BEGIN READ ONLY;
SELECT call, pg_temp.error_of('SELECT idem_' || call) AS error
  FROM unnest(ARRAY[$$claim('transactions.actor', 'transactions.any', 'ro')$$,
      $$claim_many('transactions.actor', 'transactions.any', ARRAY['ro'])$$,
                    $$execute('transactions.actor', 'transactions.any', 'ro', handler => 'to_jsonb')$$,
                        $$complete('00000000-0000-8000-8000-000000000001', 1)$$,
                    $$fail('00000000-0000-8000-8000-000000000001', 1)$$,
                        $$release('00000000-0000-8000-8000-000000000001', 1)$$,
                    $$extend('00000000-0000-8000-8000-000000000001', 1)$$,
                        $$checkpoint('00000000-0000-8000-8000-000000000001', 1, '{}')$$,
                    $$resolve('00000000-0000-8000-8000-000000000001', 'released', '{}')$$,
                        $$set_policy('transactions.ro', 'order')$$]) AS call;
SELECT outcome, status FROM idem_lookup('transactions.actor', 'transactions.tx', 'reopened');
SELECT (idem_http_response(r)).status FROM idem_lookup('transactions.actor', 'transactions.tx', 'reopened') AS r;
COMMIT;

-- failing and good claims in turn, each failure caught: a thousand times
DO $$
DECLARE r idem_result;
BEGIN
    FOR i IN 1..1000 LOOP
        BEGIN
            r := idem_claim('transactions.actor', 'transactions.any', 'caught ' || i);
            CASE i % 5
            WHEN 0 THEN PERFORM idem_claim('transactions.actor', '', 'x');
            WHEN 1 THEN PERFORM idem_complete(r.operation_id, r.token + 1);
            WHEN 2 THEN PERFORM (idem_claim('transactions.actor', 'transactions.any', 'twice')).*;
            WHEN 3 THEN PERFORM idem_complete(r.operation_id, r.token, 200, 'a'); PERFORM idem_complete(r.operation_id,
                r.token, 200, 'b');
            ELSE PERFORM 1 / 0;
            END CASE;
            RAISE 'not reached';
        EXCEPTION WHEN invalid_parameter_value OR SQLSTATE 'ID001' OR SQLSTATE 'ID002' OR feature_not_supported
            OR division_by_zero THEN
            NULL;
        END;
        r := idem_claim('transactions.actor', 'transactions.any', 'good ' || i % 10);
        IF i <= 10 THEN
            ASSERT r.outcome = 'claimed', r.outcome;
        ELSE
            ASSERT r.outcome = 'in_progress' AND r.reason = 'own_transaction', r::text;
        END IF;
    END LOOP;
END $$;
SELECT count(*) FROM pg_temp.keys WHERE key ~ '^(caught|good|twice)';
SELECT * FROM pg_temp.keys WHERE key ~ '^(caught|good|twice)' AND (state <> 'i' OR hints <> 1 OR answers <> 0);

-- transaction control inside a DO block
DO $$
DECLARE r idem_result;
BEGIN
    FOR i IN 1..3 LOOP
        r := idem_claim('transactions.actor', 'transactions.lease', 'do ' || i);
        COMMIT;
        r := idem_complete(r.operation_id, r.token, 200 + i);
        IF i = 2 THEN ROLLBACK; ELSE COMMIT; END IF;
    END LOOP;
END $$;
SELECT key, state, answers FROM pg_temp.keys WHERE key LIKE 'do %';

-- claims made late: by a held cursor, which is run at commit, and by a deferred trigger
BEGIN;
DECLARE c CURSOR WITH HOLD FOR SELECT outcome FROM idem_claim('transactions.actor', 'transactions.any', 'cursor');
COMMIT;
FETCH c;
CLOSE c;
CREATE FUNCTION pg_temp.claim_late() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    PERFORM idem_claim('transactions.actor', TG_ARGV[0], NEW.key);
    RETURN NULL;
END $$;
CREATE TEMP TABLE late (key text);
CREATE CONSTRAINT TRIGGER late AFTER INSERT
    ON late DEFERRABLE INITIALLY DEFERRED FOR EACH ROW EXECUTE FUNCTION pg_temp.claim_late('transactions.any');
INSERT INTO late VALUES ('trigger');
SELECT key, state, hints FROM pg_temp.keys WHERE key IN ('cursor', 'trigger');
DROP TRIGGER late ON late;
CREATE CONSTRAINT TRIGGER late AFTER INSERT
    ON late DEFERRABLE INITIALLY DEFERRED FOR EACH ROW EXECUTE FUNCTION pg_temp.claim_late('transactions.tx');
INSERT INTO late VALUES ('too late');
SELECT count(*) FROM pg_temp.keys WHERE key = 'too late';

-- no subtransaction is hidden in any of it: all rows carry the transaction's own id
BEGIN;
SELECT count(*) FROM generate_series(1, 250) i, idem_claim('transactions.actor', 'transactions.any', 'flat ' || i) c,
    idem_complete(c.operation_id, c.token, 200, 'x') r;
SELECT DISTINCT outcome FROM generate_series(1, 250) i, idem_claim('transactions.actor', 'transactions.any',
    'flat ' || i);
SELECT DISTINCT outcome FROM generate_series(1, 250) i, idem_claim('transactions.actor', 'transactions.any',
    'flat ' || i, '{}');
SELECT count(*), bool_and(k.xmin = pg_current_xact_id()::xid AND r.xmin = k.xmin) AS own
    FROM idem_keys k JOIN idem_responses r USING (operation_id) WHERE key LIKE 'flat %';
ROLLBACK;

-- 100,000 claims in one transaction: no lock for each, one transaction id, and all their hints
BEGIN;
SELECT count(*), min(outcome), max(outcome)
  FROM generate_series(1, 10) batch, idem_claim_many('transactions.actor', 'transactions.any',
      ARRAY(SELECT format('many %s %s', batch, i) FROM generate_series(1, 10000) i));
SELECT count(*) < 30 AS few_locks FROM pg_locks WHERE pid = pg_backend_pid();
SELECT count(*), bool_and(xmin = pg_current_xact_id()::xid) AS own FROM idem_keys WHERE key LIKE 'many %';
COMMIT;
SELECT count(*), min(state), max(state) FROM idem_unfinished WHERE key LIKE 'many %';
DELETE FROM idem_leases l USING idem_keys k WHERE k.operation_id = l.operation_id AND k.key LIKE 'many %';
DELETE FROM idem_keys WHERE key LIKE 'many %';

-- the connection is fit for whoever uses it next
SELECT count(*) FROM pg_locks WHERE pid = pg_backend_pid() AND locktype = 'advisory';
SELECT name, setting FROM pg_settings WHERE source = 'session' AND name LIKE 'idempotency.%';
