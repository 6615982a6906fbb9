-- settings: ours, and what a database or a role may set for its sessions, change no answer. Covers E10 A04 A13 A29.
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

-- idempotency.require_policy: an op without a policy is rejected, and nothing is written
SHOW idempotency.require_policy;
SELECT op FROM idem_set_policy('settings.known', 'default', '{"wait": "0"}');
SET idempotency.require_policy = on;
SELECT outcome, proceed, reason, key FROM idem_claim('settings.actor', 'settings.unknown', 'k', '{}');
SELECT key, outcome, reason FROM idem_claim_many('settings.actor', 'settings.unknown', ARRAY['k', 'l']);
SELECT outcome, reason FROM idem_execute('settings.actor', 'settings.unknown', 'k', '{}',
    handler => 'pg_temp.none');
SELECT h.status FROM idem_claim('settings.actor', 'settings.unknown', 'k', '{}') r, idem_http_response(r) h;
SELECT outcome FROM idem_claim('settings.actor', 'settings.known', 'k', '{}');
SELECT outcome FROM idem_claim('settings.actor', 'settings.Known', 'k', '{}');
RESET idempotency.require_policy;
SELECT outcome FROM idem_claim('settings.actor', 'settings.unknown', 'k', '{}');
SELECT count(*) FROM idem_keys WHERE op = 'settings.unknown';
SET idempotency.no_such_setting = 1;

-- what databases and roles set for their sessions, in a database of its own
\set home :DBNAME
CREATE DATABASE idempotency_settings TEMPLATE template0;
\c idempotency_settings
CREATE EXTENSION idempotency;
SELECT op FROM idem_set_policy('settings.known', 'default', '{"wait": "0"}');
CREATE FUNCTION settings_handler(payload jsonb) RETURNS jsonb LANGUAGE sql RETURN payload - 'a';
CREATE FUNCTION settings_life(k text) RETURNS text LANGUAGE plpgsql AS $$
DECLARE c idem_result; said text[];
BEGIN
    c := idem_claim('settings.actor', 'settings.known', k, '{"at": "2024-01-01", "n": 1.5}', lease => '1 hour');
    said := said || c.outcome || (idem_extend(c.operation_id, c.token, '02:00:00')).outcome;
    said := said || (idem_complete(c.operation_id, c.token, 201, body_bytes => '\x00ff5c27')).outcome;
    c := idem_claim('settings.actor', 'settings.known', k, '{"at": "2024-01-01", "n": 1.50}');
    said := said || c.outcome || md5(c.body_bytes) || (idem_claim('settings.actor', 'settings.known', k)).outcome;
    RETURN array_to_string(said, ', ');
END $$;
SELECT settings_life('plain');
SELECT format('ALTER DATABASE %I SET %s', current_database(), s)
    FROM unnest(ARRAY['default_transaction_isolation = ''serializable''', 'default_transaction_deferrable = on',
    'statement_timeout = ''20 s''', 'lock_timeout = ''100 ms''',
    'idle_in_transaction_session_timeout = ''20 s''', 'deadlock_timeout = ''10 ms''', 'synchronous_commit = off',
        'DateStyle = ''SQL, DMY''', 'IntervalStyle = ''iso_8601''', 'TimeZone = ''Asia/Kathmandu''',
        'bytea_output = ''escape''', 'extra_float_digits = -5', 'array_nulls = off',
    'row_security = off', 'enable_indexscan = off', 'enable_bitmapscan = off', 'jit = on', 'jit_above_cost = 0',
        'plpgsql.variable_conflict = ''use_column''', 'plpgsql.extra_errors = ''all''',
        'plan_cache_mode = ''force_generic_plan''', 'work_mem = ''64 kB''',
    'standard_conforming_strings = on', 'backslash_quote = off', 'quote_all_identifiers = on',
        'session_replication_role = ''replica''']) s \gexec
\c idempotency_settings
SHOW transaction_isolation;
SELECT settings_life('all at once');
SELECT settings_life('plain 2');
SELECT op, options ->> 'ttl' AS ttl FROM idem_set_policy('settings.known', 'default',
    '{"wait": "0", "ttl": "36 hours"}');
SELECT settings_life('seen at once');
SELECT op FROM idem_set_policy('settings.store', 'default', '{"handler_error": "store"}');
SELECT outcome, body FROM idem_execute('settings.actor', 'settings.store', 'k', '{"a": null, "b": 1}',
    handler => 'settings_handler');
CREATE ROLE regress_idem_settings;
SELECT count(*) > 5 AS granted FROM idem_admin_grant('regress_idem_settings', 'admin');
SELECT outcome FROM idem_claim('settings.actor', 'settings.slow', 'k', lease => '1 hour');
SELECT outcome FROM idem_claim('settings.actor', 'settings.slow', 'k', wait => '60 s');
SELECT count(*) > 20 AS helped FROM idem_help;
DROP OWNED BY regress_idem_settings;
DROP ROLE regress_idem_settings;
SELECT format('ALTER DATABASE %I RESET ALL', current_database()) \gexec
SELECT format('ALTER DATABASE %I SET default_transaction_read_only = on', current_database()) \gexec
\c idempotency_settings
SELECT outcome FROM idem_claim('settings.actor', 'settings.known', 'read only');
SELECT outcome, status FROM idem_lookup('settings.actor', 'settings.known', 'plain');
BEGIN READ WRITE;
SELECT settings_life('read write');
COMMIT;
BEGIN READ WRITE;
SELECT format('ALTER DATABASE %I RESET ALL', current_database()) \gexec
COMMIT;
\c idempotency_settings
-- isolation levels one by one
SET default_transaction_isolation = 'repeatable read';
SELECT settings_life('repeatable read');
SET default_transaction_isolation = 'read uncommitted';
SELECT settings_life('read uncommitted');
RESET default_transaction_isolation;
-- all key columns compare bytes, not by locale
SELECT attrelid::regclass, attname FROM pg_attribute WHERE attrelid IN ('idem_keys'::regclass,
    'idem_policies'::regclass) AND attname IN ('actor', 'op', 'key') AND attcollation <> '"C"'::regcollation;
\c :home
DROP DATABASE idempotency_settings;
