-- privileges: what each level may call and read, nothing on the tables, nothing for PUBLIC. Covers G05 G08 G01.
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
CREATE ROLE regress_idem_client;
CREATE ROLE regress_idem_relay;
CREATE ROLE regress_idem_monitor;
CREATE ROLE regress_idem_admin;
CREATE ROLE regress_idem_nobody;
CREATE ROLE "regress_idem ""odd'; --";
SELECT l AS level, count(g) > 5 AS granted FROM unnest(ARRAY['client', 'relay', 'monitor', 'admin']) l,
    idem_admin_grant(('regress_idem_' || l)::name, l) g GROUP BY l ORDER BY l;
SELECT count(*) > 5 AS granted, bool_and(g LIKE '%TO "regress_idem ""odd''; --"') AS quoted
    FROM idem_admin_grant('regress_idem "odd''; --', 'client') g;
SELECT n, pg_temp.error_of(format('SELECT * FROM idem_admin_grant(%s)', arguments)) AS error
  FROM (VALUES (1, $$NULL, 'client'$$), (2, $$'regress_idem_client', NULL$$), (3, $$'regress_idem_client', 'root'$$),
      (4, $$'regress_idem_client', 'Client'$$), (5, $$'regress_idem_missing', 'client'$$)) AS t (n, arguments)
      ORDER BY n;

-- every function and every level
CREATE TEMP VIEW objects AS
SELECT d.classid, d.objid FROM pg_depend d JOIN pg_extension e ON d.refclassid = 'pg_extension'::regclass
    AND d.refobjid = e.oid AND e.extname = 'idempotency' WHERE d.deptype = 'e';
CREATE FUNCTION pg_temp.mark(granted boolean) RETURNS text LANGUAGE sql RETURN CASE WHEN granted THEN 'x' ELSE '' END;
SELECT p.proname, pg_temp.mark(has_function_privilege('regress_idem_client', p.oid, 'EXECUTE')) AS client,
    pg_temp.mark(has_function_privilege('regress_idem_relay', p.oid, 'EXECUTE')) AS relay,
       pg_temp.mark(has_function_privilege('regress_idem_monitor', p.oid, 'EXECUTE')) AS monitor,
           pg_temp.mark(has_function_privilege('regress_idem_admin', p.oid, 'EXECUTE')) AS admin,
       pg_temp.mark(has_function_privilege('regress_idem_nobody', p.oid, 'EXECUTE')) AS nobody
  FROM objects o JOIN pg_proc p ON o.classid = 'pg_proc'::regclass AND p.oid = o.objid ORDER BY p.proname;
-- every table, view and sequence: what may be done with it
SELECT c.relname, c.relkind, string_agg(priv, ' ' ORDER BY priv) FILTER (WHERE role = 'client') AS client,
    string_agg(priv, ' ' ORDER BY priv) FILTER (WHERE role = 'relay') AS relay,
       string_agg(priv, ' ' ORDER BY priv) FILTER (WHERE role = 'monitor') AS monitor, string_agg(priv, ' '
           ORDER BY priv) FILTER (WHERE role = 'admin') AS admin, string_agg(priv, ' '
           ORDER BY priv) FILTER (WHERE role = 'nobody') AS nobody
  FROM objects o JOIN pg_class c ON o.classid = 'pg_class'::regclass AND c.oid = o.objid AND c.relkind IN ('r', 'v',
      'S', 'm', 'p')
       LEFT JOIN LATERAL (SELECT role, priv FROM unnest(ARRAY['client', 'relay', 'monitor', 'admin', 'nobody']) role,
           unnest(ARRAY['SELECT', 'INSERT', 'UPDATE', 'DELETE', 'TRUNCATE', 'REFERENCES', 'TRIGGER']) priv
                           WHERE c.relkind <> 'S' AND has_table_privilege('regress_idem_' || role, c.oid, priv)) g
                               ON true
 GROUP BY c.relname, c.relkind ORDER BY c.relname;
SELECT count(*) AS column_grants FROM objects o JOIN pg_attribute a ON o.classid = 'pg_class'::regclass
    AND a.attrelid = o.objid WHERE a.attacl IS NOT NULL;

-- what a client does, does not need any right on a table; the same calls by nobody are refused
CREATE FUNCTION pg_temp.same(payload jsonb) RETURNS jsonb LANGUAGE sql RETURN payload;
SET ROLE regress_idem_client;
SELECT operation_id AS id, token FROM idem_claim('privileges.actor', 'privileges.op', 'k', '{}') \gset
SELECT outcome FROM idem_extend(:'id', :token);
SELECT outcome FROM idem_checkpoint(:'id', :token, '1');
SELECT outcome FROM idem_complete(:'id', :token, 201, 'secret answer');
SELECT outcome, body FROM idem_lookup('privileges.actor', 'privileges.op', 'k');
SELECT outcome FROM idem_lookup_id(:'id');
SELECT (idem_http_response(r)).status FROM idem_claim_many('privileges.actor', 'privileges.op', ARRAY['k'],
    ARRAY['{}']::jsonb[]) r;
SELECT c.outcome, r.outcome AS then FROM idem_claim('privileges.actor', 'privileges.op', 'r') c,
    idem_release(c.operation_id, c.token) r;
SELECT c.outcome, r.outcome AS then FROM idem_claim('privileges.actor', 'privileges.op', 'f') c,
    idem_fail(c.operation_id, c.token, 'failed') r;
SELECT outcome FROM idem_execute('privileges.actor', 'privileges.op', 'e', '{"a": null}',
    handler => 'pg_temp.same');
SELECT idem_http_key('"k"'), idem_canonical('{}'), length(idem_hash('{}'));
SELECT count(*) > 20 AS helped FROM idem_help;
SELECT count(*) > 20 AS options FROM idem_policy_options;
RESET ROLE;
CREATE FUNCTION pg_temp.attempts() RETURNS TABLE (statement text, error text) LANGUAGE plpgsql AS $$
BEGIN
    FOREACH statement IN ARRAY ARRAY[
        'SELECT * FROM idem_keys', 'SELECT key FROM idem_keys LIMIT 0', 'INSERT INTO idem_keys DEFAULT VALUES',
            'UPDATE idem_keys SET token = 1', 'DELETE FROM idem_keys', 'TRUNCATE idem_keys',
        'COPY idem_keys TO STDOUT', 'LOCK TABLE idem_keys', 'SELECT * FROM idem_responses',
            'UPDATE idem_responses SET body = NULL', 'SELECT * FROM idem_leases', 'DELETE FROM idem_leases',
            'SELECT * FROM idem_policies',
        'UPDATE idem_policies SET version = 2', 'DELETE FROM idem_policies', 'INSERT INTO idem_policies DEFAULT VALUES',
            'SELECT count(*) FROM idem_unfinished',
            'CREATE TRIGGER t BEFORE INSERT ON idem_keys FOR EACH ROW EXECUTE FUNCTION idem_policies_changed()',
        'CREATE TEMP TABLE f (r idem_result); DROP TABLE f',
            $q$SELECT idem_claim('privileges.actor', 'privileges.op', 'k', '{}')$q$,
            $q$SELECT idem_lookup('privileges.actor', 'privileges.op', 'k')$q$,
        $q$SELECT idem_set_policy('privileges.op', 'default')$q$,
            $q$SELECT idem_policy_resolve('privileges.op', 'default', '{}')$q$,
            $q$SELECT idem_resolve('00000000-0000-8000-8000-000000000001', 'released', '{}')$q$,
            $q$SELECT idem_admin_grant(current_user, 'admin')$q$,
        $q$SET idempotency.require_policy = off$q$, $q$SELECT idem_canonical('1')$q$, 'SELECT count(*) FROM idem_help']
    LOOP
        error := split_part(pg_temp.error_of(statement), E'\n', 1);
        RETURN NEXT;
    END LOOP;
END $$;
GRANT USAGE ON SCHEMA public TO PUBLIC;
DO $$ BEGIN EXECUTE format('GRANT TEMPORARY ON DATABASE %I TO PUBLIC', current_database()); END $$;
CREATE TEMP TABLE tried (n int GENERATED ALWAYS AS IDENTITY, role text, statement text, error text);
GRANT INSERT ON tried TO PUBLIC;
SET ROLE regress_idem_nobody;
INSERT INTO tried (role, statement, error) SELECT 'nobody', * FROM pg_temp.attempts();
SET ROLE regress_idem_client;
INSERT INTO tried (role, statement, error) SELECT 'client', * FROM pg_temp.attempts();
SET ROLE regress_idem_relay;
INSERT INTO tried (role, statement, error) SELECT 'relay', * FROM pg_temp.attempts();
SET ROLE regress_idem_monitor;
INSERT INTO tried (role, statement, error) SELECT 'monitor', * FROM pg_temp.attempts();
SET ROLE regress_idem_admin;
INSERT INTO tried (role, statement, error) SELECT 'admin', * FROM pg_temp.attempts();
RESET ROLE;
SELECT max(statement) AS statement, max(left(error, 5)) FILTER (WHERE role = 'nobody') AS nobody, max(left(error,
    5)) FILTER (WHERE role = 'client') AS client, max(left(error, 5)) FILTER (WHERE role = 'relay') AS relay,
       max(left(error, 5)) FILTER (WHERE role = 'monitor') AS monitor, max(left(error,
           5)) FILTER (WHERE role = 'admin') AS admin
  FROM (SELECT *, row_number() OVER (PARTITION BY role ORDER BY n) AS i FROM tried) t GROUP BY i ORDER BY i;
SELECT DISTINCT error FROM tried WHERE error LIKE '42501%' ORDER BY error;

-- an administrator sets policies and resolves, and a monitor sees what is unfinished
SET ROLE regress_idem_admin;
SELECT op, preset, updated_by = session_user AS by_session FROM idem_set_policy('privileges.op2', 'default',
    '{"grace": "0"}');
SELECT c.operation_id AS id, f.outcome FROM idem_claim('privileges.actor', 'privileges.op2', 'unknown') c,
    idem_fail(c.operation_id, c.token, 'indeterminate') f \gset
SET ROLE regress_idem_monitor;
SELECT op, key, state FROM idem_unfinished WHERE actor = 'privileges.actor';
SELECT op, preset FROM idem_policies WHERE op LIKE 'privileges%';
SET ROLE regress_idem_admin;
SELECT outcome FROM idem_resolve(:'id', 'released', '{}');
RESET ROLE;
-- rights are those of the caller: inherited, assumed, or lent by a SECURITY DEFINER function
CREATE ROLE regress_idem_member IN ROLE regress_idem_client;
CREATE ROLE regress_idem_noinherit NOINHERIT IN ROLE regress_idem_client;
SET ROLE regress_idem_member;
SELECT outcome FROM idem_lookup('privileges.actor', 'privileges.op', 'k');
SET ROLE regress_idem_noinherit;
SELECT outcome FROM idem_lookup('privileges.actor', 'privileges.op', 'k');
RESET ROLE;
CREATE FUNCTION pg_temp.lent(k text) RETURNS text SECURITY DEFINER LANGUAGE sql AS $$SELECT outcome FROM idem_lookup('privileges.actor', 'privileges.op', k)$$;
CREATE FUNCTION pg_temp.not_lent(k text) RETURNS text LANGUAGE sql AS $$SELECT outcome FROM idem_lookup('privileges.actor', 'privileges.op', k)$$;
SET ROLE regress_idem_nobody;
SELECT pg_temp.lent('k');
SELECT pg_temp.not_lent('k');
RESET ROLE;
-- a client's own trigger function does not run with more than the client's rights
CREATE FUNCTION pg_temp.who() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN NEW.claimed_by := current_user; RETURN NEW; END $$;
CREATE TRIGGER who BEFORE INSERT ON idem_keys FOR EACH ROW EXECUTE FUNCTION pg_temp.who();
SET ROLE regress_idem_client;
SELECT outcome FROM idem_claim('privileges.actor', 'privileges.op', 'who');
RESET ROLE;
SELECT claimed_by FROM idem_keys WHERE actor = 'privileges.actor' AND key = 'who';
DROP TRIGGER who ON idem_keys;

-- the install script adopts nothing that is there already; where in the script it stops, only some majors tell
\set SHOW_CONTEXT never
CREATE DATABASE regress_idem_adopt TEMPLATE template0;
\set home :DBNAME
\c regress_idem_adopt
CREATE TABLE public.idem_keys (mine int);
CREATE EXTENSION idempotency;
SELECT count(*) FROM pg_extension WHERE extname = 'idempotency';
DROP TABLE public.idem_keys;
CREATE FUNCTION public.idem_http_key(header text) RETURNS text LANGUAGE sql AS 'SELECT header';
CREATE EXTENSION idempotency;
SELECT count(*) FROM pg_extension WHERE extname = 'idempotency';
\c :home
DROP DATABASE regress_idem_adopt;
SET client_min_messages = warning;
DROP OWNED BY regress_idem_client, regress_idem_relay, regress_idem_monitor, regress_idem_admin, regress_idem_nobody,
    "regress_idem ""odd'; --", regress_idem_member, regress_idem_noinherit;
DROP ROLE regress_idem_client, regress_idem_relay, regress_idem_monitor, regress_idem_admin, regress_idem_nobody,
    "regress_idem ""odd'; --", regress_idem_member, regress_idem_noinherit;
