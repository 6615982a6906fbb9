-- ddl: what a database administrator may do online, between two calls and within one transaction, keeps every answer
-- right; what cannot work says so. Covers E09 F01 G04 and the rules on indexes, triggers and dropped installations.
SET client_min_messages = warning;
CREATE EXTENSION IF NOT EXISTS idempotency;
RESET client_min_messages;
\pset null '(null)'
-- A database of its own, because the extension is dropped and moved here.
\set home :DBNAME
CREATE DATABASE idempotency_ddl TEMPLATE template0;
\c idempotency_ddl
SET client_min_messages = error;
CREATE EXTENSION idempotency;

CREATE FUNCTION pg_temp.error_of(statement text) RETURNS text LANGUAGE plpgsql AS $$
DECLARE detail text;
BEGIN
    EXECUTE statement;
    RETURN 'no error';
EXCEPTION WHEN OTHERS THEN
    GET STACKED DIAGNOSTICS detail = PG_EXCEPTION_DETAIL;
    RETURN concat_ws(E'\n', SQLSTATE || ' ' || SQLERRM, nullif(detail, ''));
END $$;
-- life runs a key through everything a row of each table goes through, and says what it was answered. What was claimed
-- before any DDL must be replayed after it.
CREATE FUNCTION pg_temp.life(k text) RETURNS text LANGUAGE plpgsql AS $$
DECLARE c idem_result; r idem_result; said text[];
BEGIN
    c := idem_claim('ddl.actor', 'ddl.op', k, '{"n": 1}');
    said := said || c.outcome;
    r := idem_extend(c.operation_id, c.token);
    r := idem_checkpoint(c.operation_id, c.token, '{"step": 1}');
    said := said || (idem_claim('ddl.actor', 'ddl.op', k, '{"n": 1}')).reason;
    r := idem_complete(c.operation_id, c.token, 201, 'answer of ' || k);
    said := said || r.outcome;
    r := idem_claim('ddl.actor', 'ddl.op', k, '{"n": 1}');
    said := said || r.outcome || r.body;
    said := said || (idem_claim('ddl.actor', 'ddl.op', k, '{"n": 2}')).outcome;
    said := said || (idem_claim('ddl.actor', 'ddl.op', 'before', '{}')).body;
    c := idem_claim('ddl.actor', 'ddl.op', k || ' 2');
    r := idem_release(c.operation_id, c.token);
    c := idem_claim('ddl.actor', 'ddl.op', k || ' 2');
    r := idem_fail(c.operation_id, c.token, 'failed', 402);
    said := said || r.state || (idem_claim_many('ddl.actor', 'ddl.op', ARRAY[k || ' 2'])).status::text;
    RETURN array_to_string(said, ', ');
END $$;
PREPARE claim_it(text) AS SELECT outcome, status, body FROM idem_claim('ddl.actor', 'ddl.op', $1, '{}');
SELECT c.outcome, r.outcome AS then FROM idem_claim('ddl.actor', 'ddl.op', 'before', '{}') c,
    idem_complete(c.operation_id, c.token, 200, 'as before') r;
EXECUTE claim_it('before');
SELECT pg_temp.life('start');

-- rewrites and rebuilt indexes
REINDEX INDEX idem_keys_pkey;
SELECT pg_temp.life('reindex');
REINDEX TABLE CONCURRENTLY idem_keys;
REINDEX TABLE CONCURRENTLY idem_responses;
SELECT pg_temp.life('reindex concurrently');
VACUUM FULL idem_keys, idem_responses, idem_leases, idem_policies;
SELECT pg_temp.life('vacuum full');
CLUSTER idem_keys USING idem_keys_pkey;
SELECT pg_temp.life('cluster');
VACUUM (FREEZE, ANALYZE) idem_keys;
SELECT pg_temp.life('freeze');
ALTER TABLE idem_keys SET (fillfactor = 100);
ALTER TABLE idem_keys ALTER COLUMN key SET STORAGE EXTERNAL, ALTER COLUMN checkpoint SET STATISTICS 10;
SELECT pg_temp.life('options');
CREATE UNIQUE INDEX CONCURRENTLY other_pkey ON idem_keys (operation_id);
SELECT pg_temp.life('second key index');
ALTER TABLE idem_keys DROP CONSTRAINT idem_keys_pkey, ADD CONSTRAINT idem_keys_pkey PRIMARY KEY USING INDEX other_pkey;
SELECT pg_temp.life('key replaced');
EXECUTE claim_it('before');

-- extra indexes, also on what changes, partial, by expression, and of other methods
CREATE INDEX ON idem_keys (actor, op);
CREATE INDEX ON idem_keys (state, lease_until);
CREATE INDEX ON idem_keys (expires_at) WHERE state = 'c';
CREATE INDEX ON idem_keys (lower(key), md5(claimed_by));
CREATE INDEX ON idem_keys USING brin (updated_at);
CREATE INDEX ON idem_keys USING hash (token);
CREATE INDEX ON idem_keys USING gin (checkpoint);
CREATE INDEX ON idem_responses (status, md5(body));
CREATE INDEX ON idem_leases (lease_until);
SELECT pg_temp.life('indexes');
SET enable_seqscan = off;
SELECT count(*) FROM idem_keys WHERE state = 'c' AND expires_at > now();
RESET enable_seqscan;
SELECT format('DROP INDEX %s', indexrelid::regclass) FROM pg_index WHERE indrelid IN ('idem_keys'::regclass,
    'idem_responses'::regclass, 'idem_leases'::regclass) AND NOT indisprimary ORDER BY indexrelid::regclass::text \gexec
SELECT pg_temp.life('indexes dropped');

-- an extra unique index that a claim runs into: named at once, never a loop, and nothing is left
CREATE UNIQUE INDEX one_per_actor ON idem_keys (actor) WHERE op = 'ddl.single';
SELECT outcome FROM idem_claim('ddl.actor', 'ddl.single', 'a');
SELECT pg_temp.error_of($$SELECT idem_claim('ddl.actor', 'ddl.single', 'b')$$);
SELECT pg_temp.error_of($$SELECT idem_claim_many('ddl.actor', 'ddl.single', ARRAY['a', 'b', 'c'])$$);
SELECT outcome FROM idem_claim('ddl.actor', 'ddl.single', 'a', wait => '0');
SELECT pg_temp.life('unique');
DROP INDEX one_per_actor;
SELECT outcome FROM idem_claim('ddl.actor', 'ddl.single', 'b');
CREATE UNIQUE INDEX one_completed ON idem_keys (actor) WHERE op = 'ddl.updates' AND state = 'c';
SELECT c.outcome, r.outcome AS then FROM idem_claim('ddl.actor', 'ddl.updates', 'a') c, idem_complete(c.operation_id,
    c.token) r;
SELECT pg_temp.error_of($$SELECT r.* FROM idem_claim('ddl.actor', 'ddl.updates', 'b') c, idem_complete(c.operation_id, c.token) r$$);
DROP INDEX one_completed;
ALTER TABLE idem_keys ADD CONSTRAINT one_deferred UNIQUE (traceparent, op) DEFERRABLE INITIALLY DEFERRED;
ALTER TABLE idem_keys ADD CONSTRAINT one_excluded EXCLUDE USING hash (actor WITH =) WHERE (op = 'ddl.excluded');
SELECT pg_temp.life('constraints');
SELECT outcome FROM idem_claim('ddl.actor', 'ddl.excluded', 'a');
SELECT pg_temp.error_of($$SELECT idem_claim('ddl.actor', 'ddl.excluded', 'b')$$);
SELECT outcome FROM idem_claim('ddl.actor', 'ddl.deferred', 'a',
    traceparent => '00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01');
SELECT outcome FROM idem_claim('ddl.actor', 'ddl.deferred', 'b',
    traceparent => '00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01');
BEGIN;
SAVEPOINT s;
SELECT outcome FROM idem_claim('ddl.actor', 'ddl.deferred', 'c',
    traceparent => '00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-02');
SET CONSTRAINTS ALL IMMEDIATE;
COMMIT;
ALTER TABLE idem_keys DROP CONSTRAINT one_deferred, DROP CONSTRAINT one_excluded;

-- triggers of the user: before and after, on insert and update, by column, with conditions, deferred
CREATE TABLE log (n int GENERATED ALWAYS AS IDENTITY, entry text);
CREATE FUNCTION log_row() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    INSERT INTO log (entry) VALUES (concat_ws(' ', TG_NAME, TG_WHEN, TG_OP, TG_TABLE_NAME, to_jsonb(OLD) ->> 'state',
        '->', to_jsonb(NEW) ->> 'state'));
    RETURN NEW;
END $$;
CREATE TRIGGER before BEFORE INSERT OR UPDATE ON idem_keys FOR EACH ROW EXECUTE FUNCTION log_row();
CREATE TRIGGER after AFTER INSERT OR UPDATE ON idem_keys FOR EACH ROW EXECUTE FUNCTION log_row();
CREATE TRIGGER completed AFTER UPDATE OF state ON idem_keys FOR EACH ROW WHEN (NEW.state = 'c'
    AND OLD.state <> 'c') EXECUTE FUNCTION log_row();
CREATE TRIGGER moved BEFORE UPDATE OF operation_id ON idem_keys FOR EACH ROW EXECUTE FUNCTION log_row();
CREATE CONSTRAINT TRIGGER deferred AFTER INSERT
    ON idem_keys DEFERRABLE INITIALLY DEFERRED FOR EACH ROW EXECUTE FUNCTION log_row();
CREATE TRIGGER answers BEFORE INSERT ON idem_responses FOR EACH ROW EXECUTE FUNCTION log_row();
CREATE TRIGGER answers_after AFTER INSERT ON idem_responses FOR EACH ROW EXECUTE FUNCTION log_row();
CREATE TRIGGER hints BEFORE INSERT ON idem_leases FOR EACH ROW EXECUTE FUNCTION log_row();
CREATE TRIGGER hints_after AFTER INSERT ON idem_leases FOR EACH ROW EXECUTE FUNCTION log_row();
SELECT c.outcome, r.outcome AS then FROM idem_claim('ddl.actor', 'ddl.triggers', 'logged') c,
    idem_complete(c.operation_id, c.token) r;
SELECT outcome FROM idem_claim('ddl.actor', 'ddl.triggers', 'left open');
SELECT outcome FROM idem_claim('ddl.actor', 'ddl.triggers', 'left open', wait => '0');
SELECT entry FROM log ORDER BY n;
SELECT count(*) FROM idem_leases l JOIN idem_keys k USING (operation_id) WHERE op = 'ddl.triggers';
SELECT pg_temp.life('triggers');
DROP TRIGGER hints ON idem_leases;
DROP TRIGGER hints_after ON idem_leases;
DROP TRIGGER answers ON idem_responses;
DROP TRIGGER answers_after ON idem_responses;
SELECT format('DROP TRIGGER %I ON idem_keys', tgname) FROM pg_trigger WHERE tgrelid = 'idem_keys'::regclass
    ORDER BY tgname \gexec
-- one that fills a column of its own, one that raises, one that would suppress the row
ALTER TABLE idem_keys ADD COLUMN region text;
CREATE FUNCTION special() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    IF NEW.key = 'raise' THEN RAISE 'not on my watch' USING ERRCODE = 'XT001'; END IF;
    IF NEW.key = 'suppress' THEN RETURN NULL; END IF;
    NEW.region := 'eu';
    RETURN NEW;
END $$;
CREATE TRIGGER special BEFORE INSERT ON idem_keys FOR EACH ROW EXECUTE FUNCTION special();
SELECT pg_temp.life('special');
SELECT DISTINCT key, region FROM idem_keys WHERE key LIKE 'special%' ORDER BY key;
SELECT pg_temp.error_of($$SELECT idem_claim('ddl.actor', 'ddl.op', 'raise')$$);
SELECT pg_temp.error_of($$SELECT idem_claim('ddl.actor', 'ddl.op', 'suppress')$$);
SELECT pg_temp.error_of($$SELECT idem_claim_many('ddl.actor', 'ddl.op', ARRAY['x', 'raise', 'y'])$$);
SELECT count(*) FROM idem_keys WHERE key IN ('raise', 'suppress', 'x', 'y');
DROP TRIGGER special ON idem_keys;
CREATE TRIGGER special BEFORE UPDATE ON idem_keys FOR EACH ROW EXECUTE FUNCTION special();
SELECT c.operation_id AS id, c.token FROM idem_claim('ddl.actor', 'ddl.op', 'suppress') c \gset
SELECT pg_temp.error_of(format('SELECT idem_complete(%L, %s)', :'id', :token));
SELECT c.operation_id AS id, c.token FROM idem_claim('ddl.actor', 'ddl.op', 'raise') c \gset
SELECT pg_temp.error_of(format('SELECT idem_release(%L, %s)', :'id', :token));
SELECT outcome FROM idem_lookup('ddl.actor', 'ddl.op', 'suppress');
SELECT count(*) FROM idem_responses r JOIN idem_keys k USING (operation_id) WHERE key IN ('suppress', 'raise');
DROP TRIGGER special ON idem_keys;
SELECT outcome FROM idem_complete(:'id', :token);
-- a thousand errors out of the middle of a claim, then a normal one
CREATE TRIGGER special BEFORE INSERT ON idem_keys FOR EACH ROW EXECUTE FUNCTION special();
DO $$
BEGIN
    FOR i IN 1..1000 LOOP
        BEGIN
            PERFORM idem_claim('ddl.actor', 'ddl.op', 'error ' || i, wait => '0');
            PERFORM idem_claim('ddl.other', 'ddl.op', CASE WHEN i % 2 = 0 THEN 'raise' ELSE 'suppress' END,
                wait => '0');
            RAISE 'not reached';
        EXCEPTION WHEN SQLSTATE 'XT001' OR triggered_data_change_violation THEN NULL;
        END;
    END LOOP;
END $$;
DROP TRIGGER special ON idem_keys;
SELECT count(*) FROM idem_keys WHERE key LIKE 'error %';
SELECT pg_temp.life('after errors');
-- statement triggers and transition tables are not run: nothing here is a statement on the table
CREATE TRIGGER statement AFTER UPDATE
    ON idem_keys REFERENCING NEW TABLE AS t FOR EACH STATEMENT EXECUTE FUNCTION log_row();
SELECT pg_temp.life('statement trigger');
DROP TRIGGER statement ON idem_keys;
TRUNCATE log;

-- foreign keys, from and to our tables
CREATE TABLE payment (id uuid REFERENCES idem_keys, amount int);
CREATE TABLE tenant (name text PRIMARY KEY);
INSERT INTO tenant VALUES ('ddl.actor');
BEGIN;
SELECT c.operation_id AS id, c.token FROM idem_claim('ddl.actor', 'ddl.fk', 'referenced') c \gset
INSERT INTO payment VALUES (:'id', 10);
SELECT outcome FROM idem_complete(:'id', :token);
COMMIT;
SELECT outcome FROM idem_claim('ddl.actor', 'ddl.fk', 'referenced');
SELECT pg_temp.error_of($$INSERT INTO payment VALUES ('00000000-0000-8000-8000-000000000001', 1)$$);
SELECT pg_temp.life('referenced');
ALTER TABLE idem_keys ADD CONSTRAINT known_tenant FOREIGN KEY (actor) REFERENCES tenant;
SELECT pg_temp.life('referencing');
SELECT left(pg_temp.error_of($$SELECT idem_claim('ddl.stranger', 'ddl.fk', 'k')$$), 120);
SELECT count(*) FROM idem_keys WHERE actor = 'ddl.stranger';
ALTER TABLE idem_keys DROP CONSTRAINT known_tenant;
ALTER TABLE idem_keys ADD CONSTRAINT known_tenant FOREIGN KEY (actor) REFERENCES tenant DEFERRABLE INITIALLY DEFERRED;
SELECT pg_temp.life('referencing later');
SELECT outcome FROM idem_claim('ddl.stranger', 'ddl.fk', 'k');
SELECT count(*) FROM idem_keys WHERE actor = 'ddl.stranger';
ALTER TABLE idem_keys DROP CONSTRAINT known_tenant;
ALTER TABLE idem_responses ADD FOREIGN KEY (operation_id) REFERENCES idem_keys ON DELETE CASCADE;
ALTER TABLE idem_leases ADD FOREIGN KEY (operation_id) REFERENCES idem_keys ON DELETE CASCADE;
SELECT pg_temp.life('own tables');
SELECT outcome FROM idem_claim('ddl.actor', 'ddl.fk', 'left open');
DELETE FROM idem_keys WHERE op = 'ddl.fk' AND key = 'left open';
SELECT count(*) FROM idem_leases WHERE operation_id NOT IN (SELECT operation_id FROM idem_keys);
SELECT format('ALTER TABLE %s DROP CONSTRAINT %I', conrelid::regclass, conname) FROM pg_constraint WHERE contype = 'f'
    ORDER BY conname \gexec
SELECT pg_temp.life('no foreign keys');

-- CHECK constraints, with and without triggers on the table
ALTER TABLE idem_keys ADD CONSTRAINT short CHECK (length(key) < 40);
ALTER TABLE idem_keys ADD CONSTRAINT honest CHECK (op <> 'ddl.check' OR state <> 'c');
ALTER TABLE idem_responses ADD CONSTRAINT no_teapot CHECK (status <> 418);
SELECT pg_temp.life('checked');
SELECT split_part(pg_temp.error_of(format('SELECT idem_claim(%L, %L, %L)', 'ddl.actor', 'ddl.op', repeat('long', 10))),
    E'\n', 1);
SELECT split_part(pg_temp.error_of($$SELECT r.* FROM idem_claim('ddl.actor', 'ddl.check', 'k') c, idem_complete(c.operation_id, c.token) r$$), E'\n', 1);
SELECT split_part(pg_temp.error_of($$SELECT r.* FROM idem_claim('ddl.actor', 'ddl.op', 'tea') c, idem_complete(c.operation_id, c.token, 418) r$$), E'\n', 1);
SELECT count(*) FROM idem_keys WHERE key LIKE 'long%' OR op = 'ddl.check' OR key = 'tea';
CREATE TRIGGER after AFTER INSERT OR UPDATE ON idem_keys FOR EACH ROW EXECUTE FUNCTION log_row();
SELECT split_part(pg_temp.error_of(format('SELECT idem_claim(%L, %L, %L)', 'ddl.actor', 'ddl.op', repeat('long', 10))),
    E'\n', 1);
SELECT pg_temp.life('checked and logged');
DROP TRIGGER after ON idem_keys;
ALTER TABLE idem_keys DROP CONSTRAINT short, DROP CONSTRAINT honest;
ALTER TABLE idem_responses DROP CONSTRAINT no_teapot;

-- columns: a nullable one may come and go; nothing else may change
ALTER TABLE idem_responses ADD COLUMN note text;
ALTER TABLE idem_leases ADD COLUMN note text;
SELECT pg_temp.life('columns added');
SELECT outcome FROM idem_claim('ddl.actor', 'ddl.op', 'columns added, left open');
ALTER TABLE idem_keys DROP COLUMN region;
ALTER TABLE idem_responses DROP COLUMN note;
ALTER TABLE idem_leases DROP COLUMN note;
SELECT pg_temp.life('columns dropped');
EXECUTE claim_it('before');
CREATE FUNCTION pg_temp.after(ddl text) RETURNS text LANGUAGE plpgsql AS $$
BEGIN
    EXECUTE ddl;
    RETURN pg_temp.error_of($q$SELECT idem_claim('ddl.actor', 'ddl.op', 'shape', wait => '0')$q$);
END $$;
CREATE ACCESS METHOD heap2 TYPE TABLE HANDLER heap_tableam_handler;
BEGIN;
SAVEPOINT s;
SELECT pg_temp.after('ALTER TABLE idem_keys ADD COLUMN must text NOT NULL DEFAULT $$x$$');
ROLLBACK TO s;
SELECT pg_temp.after('ALTER TABLE idem_keys ADD COLUMN may text DEFAULT $$x$$');
ROLLBACK TO s;
SELECT pg_temp.after('ALTER TABLE idem_responses ADD COLUMN made int GENERATED ALWAYS AS (status + 1) STORED');
ROLLBACK TO s;
SELECT pg_temp.after('ALTER TABLE idem_leases ADD COLUMN n bigserial');
ROLLBACK TO s;
SELECT pg_temp.after('TRUNCATE idem_keys; ALTER TABLE idem_keys ALTER COLUMN traceparent SET NOT NULL');
ROLLBACK TO s;
SELECT pg_temp.after('ALTER TABLE idem_keys DROP COLUMN payload_hash');
ROLLBACK TO s;
SELECT pg_temp.after('ALTER TABLE idem_keys RENAME COLUMN payload TO body');
ROLLBACK TO s;
SELECT pg_temp.after('ALTER TABLE idem_keys ALTER COLUMN traceparent TYPE varchar');
ROLLBACK TO s;
SELECT pg_temp.after('ALTER TABLE idem_responses DROP COLUMN body_ref');
ROLLBACK TO s;
SELECT pg_temp.after('ALTER TABLE idem_keys RENAME TO keys');
ROLLBACK TO s;
SELECT pg_temp.after('ALTER TABLE idem_keys SET UNLOGGED');
ROLLBACK TO s;
SELECT pg_temp.after('ALTER TABLE idem_responses SET UNLOGGED');
ROLLBACK TO s;
SELECT pg_temp.after('ALTER TABLE idem_keys SET ACCESS METHOD heap2');
ROLLBACK TO s;
SELECT pg_temp.after('ALTER TABLE idem_keys DROP CONSTRAINT idem_keys_pkey');
ROLLBACK TO s;
SELECT pg_temp.after('ALTER TABLE idem_keys DROP CONSTRAINT idem_keys_pkey, ADD PRIMARY KEY (operation_id, token)');
ROLLBACK TO s;
SELECT pg_temp.after('ALTER TABLE idem_keys DROP CONSTRAINT idem_keys_pkey, ADD PRIMARY KEY (operation_id) DEFERRABLE');
ROLLBACK TO s;
SELECT pg_temp.after('ALTER TABLE idem_responses DROP CONSTRAINT idem_responses_pkey');
ROLLBACK TO s;
SELECT pg_temp.after('ALTER TABLE idem_policies RENAME COLUMN options TO settings');
ROLLBACK TO s;
SELECT pg_temp.after('ALTER TYPE idem_result ADD ATTRIBUTE more text');
ROLLBACK TO s;
SELECT pg_temp.error_of($$DROP TABLE idem_leases$$);
ROLLBACK TO s;
SELECT pg_temp.error_of($$DROP FUNCTION idem_complete$$);
ROLLBACK;
SELECT pg_temp.life('shapes restored');
EXECUTE claim_it('before');
ALTER TABLE idem_leases SET UNLOGGED;
SELECT pg_temp.error_of($$SELECT idem_claim('ddl.actor', 'ddl.op', 'before', '{}')$$);
ALTER TABLE idem_leases SET LOGGED;
SELECT pg_temp.life('logged again');

-- row level security is for people who query the tables, not for claims
ALTER TABLE idem_keys ENABLE ROW LEVEL SECURITY, FORCE ROW LEVEL SECURITY;
SELECT pg_temp.life('row level security');
ALTER TABLE idem_keys DISABLE ROW LEVEL SECURITY, NO FORCE ROW LEVEL SECURITY;
-- publications need to know what was updated
CREATE PUBLICATION everything FOR ALL TABLES;
SELECT pg_temp.life('published');
ALTER TABLE idem_keys REPLICA IDENTITY NOTHING;
SELECT pg_temp.error_of($$SELECT r.* FROM idem_claim('ddl.actor', 'ddl.op', 'no identity') c, idem_complete(c.operation_id, c.token) r$$);
ALTER TABLE idem_keys REPLICA IDENTITY FULL;
SELECT pg_temp.life('published in full');
ALTER TABLE idem_keys REPLICA IDENTITY DEFAULT;
DROP PUBLICATION everything;

-- policies: seen by the next call of the session, however they were changed
SELECT version FROM idem_set_policy('ddl.policy', 'default', '{"key_min": 5}');
SELECT reason FROM idem_claim('ddl.actor', 'ddl.policy', 'four');
UPDATE idem_policies SET options = options || '{"key_min": 3}' WHERE op = 'ddl.policy';
SELECT reason, outcome FROM idem_claim('ddl.actor', 'ddl.policy', 'four');
BEGIN;
SELECT version FROM idem_set_policy('ddl.policy', 'default', '{"key_min": 8}');
SELECT reason FROM idem_claim('ddl.actor', 'ddl.policy', 'seven77');
ROLLBACK;
SELECT outcome FROM idem_claim('ddl.actor', 'ddl.policy', 'seven77');
TRUNCATE idem_policies;
SELECT outcome FROM idem_claim('ddl.actor', 'ddl.policy', 'k');

-- the schema: moved by its extension, renamed, also in one transaction and rolled back
CREATE SCHEMA "o'ther; ""Schema""";
ALTER EXTENSION idempotency SET SCHEMA "o'ther; ""Schema""";
EXECUTE claim_it('before');
SELECT pg_temp.error_of($$SELECT idem_claim('ddl.actor', 'ddl.op', 'before', '{}')$$);
SET search_path = "o'ther; ""Schema""", public;
SELECT pg_temp.life('moved');
ALTER SCHEMA "o'ther; ""Schema""" RENAME TO renamed;
SET search_path = renamed, public;
SELECT pg_temp.life('renamed');
EXECUTE claim_it('before');
SELECT version FROM renamed.idem_set_policy('ddl.policy', 'default', '{"key_min": 9}');
SELECT reason FROM renamed.idem_claim('ddl.actor', 'ddl.policy', 'k2');
SELECT count(*) > 20 AS helpful FROM renamed.idem_help;
CREATE FUNCTION handled(payload jsonb) RETURNS jsonb LANGUAGE sql AS 'SELECT $1 || ''{"handled": true}''';
SELECT version FROM idem_set_policy('ddl.execute', 'default',
    '{"mode": "transaction", "handler": "renamed.handled", "handler_error": "store"}');
SELECT outcome, body FROM idem_execute('ddl.actor', 'ddl.execute', 'k', '{"n": 1}');
BEGIN;
ALTER SCHEMA renamed RENAME TO "Later";
SELECT outcome FROM "Later".idem_claim('ddl.actor', 'ddl.op', 'before', '{}');
CREATE SCHEMA third;
ALTER EXTENSION idempotency SET SCHEMA third;
SELECT outcome FROM third.idem_claim('ddl.actor', 'ddl.op', 'before', '{}');
SELECT outcome FROM third.idem_claim('ddl.actor', 'ddl.op', 'in third', '{}');
ROLLBACK;
SELECT outcome FROM renamed.idem_claim('ddl.actor', 'ddl.op', 'in third', '{}');
SET search_path = '';
SELECT outcome FROM renamed.idem_claim('ddl.actor', 'ddl.op', 'before', '{}');
RESET search_path;
DROP FUNCTION renamed.handled;
ALTER EXTENSION idempotency SET SCHEMA public;
SELECT pg_temp.life('moved back');

-- dropped and created again, in one session: what was known is gone, nothing stale is used. (PL/pgSQL itself cannot use
-- a variable of a composite type that was dropped, so life() retires here.)
DROP TABLE payment;
DROP EXTENSION idempotency;
SELECT pg_temp.error_of($$SELECT idem_claim('ddl.actor', 'ddl.op', 'before', '{}')$$);
SET default_table_access_method = heap2;
CREATE EXTENSION idempotency;
RESET default_table_access_method;
SELECT relname, amname FROM pg_class c JOIN pg_am a ON a.oid = c.relam WHERE relname LIKE 'idem%' AND relkind = 'r'
    ORDER BY relname;
EXECUTE claim_it('before');
SELECT c.outcome, r.outcome AS then FROM idem_claim('ddl.actor', 'ddl.op', 'done again', '{}') c,
    idem_complete(c.operation_id, c.token, 200, 'new') r;
DROP EXTENSION idempotency;
CREATE EXTENSION idempotency SCHEMA renamed;
SELECT outcome FROM renamed.idem_claim('ddl.actor', 'ddl.op', 'before', '{}');
DROP EXTENSION idempotency;
CREATE EXTENSION idempotency;
SELECT c.outcome, r.outcome AS then FROM idem_claim('ddl.actor', 'ddl.op', 'before', '{}') c,
    idem_complete(c.operation_id, c.token, 200, 'as before') r;
-- in one transaction, with claims before, between and after; then rolled back
BEGIN;
SELECT outcome FROM idem_claim('ddl.actor', 'ddl.op', 'open at drop');
DROP EXTENSION idempotency;
CREATE EXTENSION idempotency;
SELECT outcome FROM idem_claim('ddl.actor', 'ddl.op', 'open at drop');
SELECT outcome FROM idem_claim('ddl.actor', 'ddl.op', 'before', '{}');
SAVEPOINT s;
DROP EXTENSION idempotency;
CREATE EXTENSION idempotency SCHEMA renamed;
SELECT outcome FROM renamed.idem_claim('ddl.actor', 'ddl.op', 'before', '{}');
ROLLBACK TO s;
SELECT outcome, reason FROM idem_claim('ddl.actor', 'ddl.op', 'before', '{}');
ROLLBACK;
SELECT outcome, body FROM idem_claim('ddl.actor', 'ddl.op', 'before', '{}');
SELECT outcome FROM idem_lookup('ddl.actor', 'ddl.op', 'open at drop');
SELECT c.outcome, r.outcome AS then FROM idem_claim('ddl.actor', 'ddl.op', 'rolled back', '{}') c,
    idem_complete(c.operation_id, c.token) r;
BEGIN;
SELECT outcome FROM idem_claim('ddl.actor', 'ddl.op', 'open at drop');
DROP EXTENSION idempotency;
COMMIT;
SELECT count(*) FROM pg_class WHERE relname LIKE 'idem%';
BEGIN;
CREATE EXTENSION idempotency;
SELECT outcome FROM idem_claim('ddl.actor', 'ddl.op', 'left at create');
COMMIT;
SELECT outcome FROM idem_claim('ddl.actor', 'ddl.op', 'left at create', wait => '0');
SELECT state FROM idem_unfinished;
-- with a claim left open in the old tables and one in the new
BEGIN;
SELECT outcome FROM idem_claim('ddl.actor', 'ddl.op', 'old');
DROP EXTENSION idempotency;
CREATE EXTENSION idempotency;
SELECT outcome FROM idem_claim('ddl.actor', 'ddl.op', 'new');
COMMIT;
SELECT key, u.state FROM idem_unfinished u;
DROP EXTENSION idempotency CASCADE;
SELECT count(*) FROM pg_class WHERE relname LIKE 'idem%';

\c :home
DROP DATABASE idempotency_ddl;
