-- search_path: nobody's operators, functions, types and tables are used but the extension's and the server's own.
-- Covers G03.
SET client_min_messages = warning;
CREATE EXTENSION IF NOT EXISTS idempotency;
RESET client_min_messages;
\pset null '(null)'
-- everything somebody could hope to be called by name
CREATE SCHEMA evil;
CREATE TABLE evil.calls (what text);
CREATE FUNCTION evil.log(what text) RETURNS boolean LANGUAGE plpgsql AS $$ BEGIN EXECUTE 'INSERT INTO evil.calls VALUES ($1)' USING what; RETURN true; END $$;
DO $do$
DECLARE t text; o text;
BEGIN
    FOREACH t IN ARRAY ARRAY['text', 'uuid', 'bigint', 'integer', 'jsonb', '"char"', 'timestamptz', 'interval', 'bytea',
        'name', 'oid', 'boolean'] LOOP
        EXECUTE format($$CREATE FUNCTION evil.compare(%1$s, %1$s) RETURNS boolean LANGUAGE plpgsql AS 'BEGIN PERFORM evil.log(''operator on %2$s''); RETURN false; END'$$, t, replace(t, '"', ''));
        FOREACH o IN ARRAY ARRAY['=', '<>', '<', '>', '<=', '>='] LOOP
            EXECUTE format('CREATE OPERATOR evil.%s (FUNCTION = evil.compare, LEFTARG = %s, RIGHTARG = %s)', o, t, t);
        END LOOP;
    END LOOP;
    FOREACH t IN ARRAY ARRAY['text', 'jsonb', 'anynonarray'] LOOP
        EXECUTE format($$CREATE FUNCTION evil.join(%1$s, text) RETURNS text LANGUAGE plpgsql AS 'BEGIN PERFORM evil.log(''|| on %1$s''); RETURN ''evil''; END'$$, t);
        EXECUTE format('CREATE OPERATOR evil.|| (FUNCTION = evil.join, LEFTARG = %s, RIGHTARG = text)', t);
    END LOOP;
    FOREACH t IN ARRAY ARRAY['now()', 'clock_timestamp()', 'length(text)', 'upper(text)', 'lower(text)',
        'quote_ident(text)', 'format(text, VARIADIC "any")', 'concat(VARIADIC "any")', 'substring(text, text)',
        'array_position(name[], name)', 'array_position(text[], text)',
                             'jsonb_build_object(VARIADIC "any")', 'unnest(text[])', 'to_jsonb(anyelement)',
                                 'sha256(bytea)', 'text(name)', 'age(timestamptz)',
                                 'idem_policy_resolve(text, text, jsonb)',
                             'idem_call_handler(text, jsonb, public.idem_result, boolean, boolean)',
                                 'idem_http_response(public.idem_result)', 'idem_hash(jsonb, text)',
                                 'idem_policy_options_rows()'] LOOP
        IF t NOT LIKE '%"any"%' THEN
            EXECUTE format('CREATE FUNCTION evil.%s RETURNS text LANGUAGE plpgsql AS %L', t,
                format('BEGIN PERFORM evil.log(%L); RETURN ''evil''; END', t));
        END IF;
    END LOOP;
    FOREACH t IN ARRAY ARRAY['idem_keys', 'idem_responses', 'idem_leases', 'idem_policies', 'idem_unfinished',
        'pg_extension', 'pg_namespace', 'pg_proc', 'pg_class', 'pg_depend', 'pg_description', 'pg_type'] LOOP
        EXECUTE format($$CREATE VIEW evil.%I AS SELECT evil.log('relation %s') AS operation_id$$, t, t);
    END LOOP;
    FOREACH t IN ARRAY ARRAY['idem_result', 'idem_response', 'idem_http', 'text', 'jsonb', 'uuid', 'record'] LOOP
        EXECUTE format('CREATE DOMAIN evil.%I AS pg_catalog.text CHECK (evil.log(''type %s'') AND false)', t, t);
    END LOOP;
END $do$;
CREATE FUNCTION evil.handler(p pg_catalog.jsonb) RETURNS pg_catalog.jsonb LANGUAGE sql AS $$SELECT pg_catalog.jsonb_strip_nulls($1)$$;
CREATE ROLE regress_idem_path;

-- every function of the extension, with the attacker's schema before everything else
SET search_path = evil, pg_catalog, public;
SELECT length('control');
SELECT 'a'::pg_catalog.text = 'a'::pg_catalog.text AS control;
DELETE FROM evil.calls;
SELECT version FROM public.idem_set_policy('path.op', 'default',
    '{"ttl": "2 days", "handler": "evil.handler", "conflict_detail": "full", "store_payload": "canonical"}');
SELECT version FROM public.idem_set_policy('path.op', 'default',
    '{"ttl": "3 days", "handler": "evil.handler", "conflict_detail": "full", "store_payload": "canonical"}');
SELECT version FROM public.idem_set_policy('path.store', 'default',
    '{"handler": "evil.handler", "handler_error": "store"}');
SELECT public.idem_policy_resolve('path.op', 'order', '{}') ->> 'ttl' AS ttl;
SELECT operation_id AS id, token, outcome FROM public.idem_claim('path.actor', 'path.op', 'k',
    '{"a": [1, {"b": null}]}', target => 't', wait => '0', attempt_id => '00000000-0000-4000-8000-000000000001') \gset
SELECT outcome, reason FROM public.idem_claim('path.actor', 'path.op', 'k', '{"a": [1, {"b": null}]}', target => 't',
    wait => '0');
SELECT outcome FROM public.idem_claim('path.actor', 'path.op', 'k', '{"other": 1}', wait => '0');
SELECT outcome FROM public.idem_extend(:'id', :token, '1 hour');
SELECT outcome FROM public.idem_checkpoint(:'id', :token, '{"a": 1}');
SELECT outcome FROM public.idem_complete(:'id', :token, 201, body_json => '{"b": 2}', headers => '{"ETag": "1"}');
SELECT outcome FROM public.idem_complete(:'id', :token, 201, body_json => '{"b": 2}', headers => '{"ETag": "1"}');
SELECT outcome, body FROM public.idem_claim('path.actor', 'path.op', 'k', '{"a": [1, {"b": null}]}', target => 't');
SELECT outcome FROM public.idem_claim('path.actor', 'path.op', 'k', '{"other": 1}', wait => '0');
SELECT h.status FROM public.idem_lookup('path.actor', 'path.op', 'k') r, public.idem_http_response(r) h;
SELECT outcome FROM public.idem_lookup_id(:'id');
SELECT operation_id AS id, token FROM public.idem_claim('path.actor', 'path.op', 'f') \gset
SELECT outcome FROM public.idem_fail(:'id', :token, 'indeterminate', evidence => '{}');
SELECT outcome FROM public.idem_resolve(:'id', 'failed', '{"seen": true}', 402);
SELECT operation_id AS id, token FROM public.idem_claim('path.actor', 'path.op', 'r') \gset
SELECT outcome FROM public.idem_release(:'id', :token);
SELECT key, outcome FROM public.idem_claim_many('path.actor', 'path.op', ARRAY['m1', 'm2', 'm1']);
SELECT outcome, body FROM public.idem_execute('path.actor', 'path.op', 'e', '{"x": null, "y": 1}');
SELECT outcome, body FROM public.idem_execute('path.actor', 'path.store', 'e', '{"x": null, "y": 1}');
SELECT public.idem_http_key('"k"') AS key, public.idem_canonical('{"b": 1.0, "a": []}') AS canonical,
    pg_catalog.length(public.idem_hash('{}', 'sha256')) AS hash;
SELECT pg_catalog.count(*) FROM public.idem_policy_options WHERE name OPERATOR(pg_catalog.=) 'ttl';
SELECT pg_catalog.count(*) FROM public.idem_help WHERE topic OPERATOR(pg_catalog.=) 'day one';
SELECT pg_catalog.count(*) FROM public.idem_unfinished WHERE actor OPERATOR(pg_catalog.=) 'path.actor';
SELECT pg_catalog.count(*) OPERATOR(pg_catalog.>) 5 AS granted FROM public.idem_admin_grant('regress_idem_path',
    'client');
SELECT pg_catalog.count(*) AS calls_of_evil FROM evil.calls;
SELECT DISTINCT what FROM evil.calls;
-- a claim that is committed by its hint, waits, and is swept through a trigger on the policies
UPDATE public.idem_policies SET version = version + 1 WHERE op OPERATOR(pg_catalog.=) 'path.op';
SELECT outcome FROM public.idem_claim('path.actor', 'path.op', 'm1', wait => '10 ms');
SELECT pg_catalog.count(*) AS calls_of_evil FROM evil.calls;

-- no path at all, and a temporary schema first
SET search_path = '';
SELECT outcome FROM public.idem_claim('path.actor', 'path.op', 'empty path');
SELECT outcome, body FROM public.idem_execute('path.actor', 'path.store', 'e2', '{"x": null, "y": 2}');
SELECT version FROM public.idem_set_policy('path.op2', 'payment');
SELECT count(*) > 20 AS helped FROM public.idem_help;
CREATE TEMP TABLE idem_keys (mine int);
CREATE TEMP TABLE idem_policies (mine int);
SET search_path = pg_temp, public;
SELECT outcome FROM idem_claim('path.actor', 'path.op', 'temporary');
SELECT version FROM idem_set_policy('path.op2', 'payment', '{"ttl": "5 days"}');
SELECT (SELECT count(*) FROM pg_temp.idem_keys) AS mine, (SELECT count(*) FROM pg_temp.idem_policies) AS policies;
RESET search_path;
SET client_min_messages = warning;
DROP SCHEMA evil CASCADE;
DROP OWNED BY regress_idem_path;
DROP ROLE regress_idem_path;
