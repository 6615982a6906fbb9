-- help: the reference in the database is complete, in order, and its examples are SQL that runs.
SET client_min_messages = warning;
CREATE EXTENSION IF NOT EXISTS idempotency;
RESET client_min_messages;
\pset null '(null)'
CREATE TEMP VIEW members AS
SELECT d.classid, d.objid, i.type, i.name, i.identity, obj_description(d.objid, d.classid::regclass::name) AS comment
  FROM pg_depend d JOIN pg_extension e ON d.refclassid = 'pg_extension'::regclass AND d.refobjid = e.oid
      AND e.extname = 'idempotency', pg_identify_object(d.classid, d.objid, 0) i WHERE d.deptype = 'e';

-- the seven of day one first, in the order in which they are met
SELECT topic, name, summary <> '' AS summary, example ~ '^SELECT ' AS example FROM idem_help LIMIT 7;
SELECT array_agg(topic ORDER BY first) AS topics FROM (SELECT topic, min(n) AS first
    FROM (SELECT row_number() OVER () AS n, topic FROM idem_help) t GROUP BY topic) t;
-- every function, table and view is there, and nothing else
SELECT type, identity FROM members WHERE type IN ('function', 'view', 'table', 'procedure')
    AND objid NOT IN (SELECT objid FROM members m JOIN idem_help h ON m.identity LIKE '%' || h.name || '%')
    ORDER BY 1, 2;
SELECT name, count(*) FROM idem_help GROUP BY name HAVING count(*) > 1;
SELECT count(*) = (SELECT count(*) FROM members WHERE type IN ('function', 'view', 'table', 'procedure')) AS complete
    FROM idem_help;
-- everything has a comment that opens with a known topic
SELECT type, identity, left(comment, 40) AS comment FROM members
 WHERE (comment IS NULL OR comment !~ '^(day one|key life|http|families|policy|admin|internal): [^ ]')
     AND NOT (type = 'type' AND name IN (SELECT relname FROM pg_class UNION SELECT '_' || relname
     FROM pg_class) OR type LIKE '%[]') ORDER BY 1, 2;
SELECT name, summary FROM idem_help WHERE summary IS NULL OR summary = '' OR topic IS NULL OR (example IS NULL
    AND topic <> 'internal' AND name NOT IN (SELECT relname FROM pg_class WHERE relkind = 'r'));
-- the examples are valid, with values for what they take from the caller
CREATE SCHEMA shop;
CREATE FUNCTION shop.place_order(payload jsonb) RETURNS jsonb LANGUAGE sql AS 'SELECT payload';
CREATE ROLE payments_api;
DO $$
DECLARE h record; statement text;
BEGIN
    FOR h IN SELECT name, example FROM idem_help WHERE example IS NOT NULL AND example NOT LIKE 'CALL %' LOOP
        statement := replace(replace(replace(h.example, ':operation_id',
            quote_literal('00000000-0000-8000-8000-000000000001')), ':id',
            quote_literal('00000000-0000-8000-8000-000000000001')), ':token', '1');
        BEGIN
            EXECUTE 'EXPLAIN ' || statement;
        EXCEPTION WHEN OTHERS THEN
            RAISE WARNING '%: % (%)', h.name, SQLERRM, statement;
        END;
    END LOOP;
END $$;
SET client_min_messages = warning;
DROP ROLE payments_api;
DROP SCHEMA shop CASCADE;
RESET client_min_messages;
-- every option is explained, of every preset
SELECT name FROM idem_policy_options WHERE meaning IS NULL OR meaning = '' OR type IS NULL OR default_value IS NULL
    AND type NOT IN ('text', 'object', 'array', 'document') AND name <> 'key_chars';
SELECT count(*) = (SELECT count(*) FROM jsonb_object_keys(idem_policy_resolve('help', 'default',
    '{}'))) AS every_option, count(DISTINCT name) = count(*) AS once FROM idem_policy_options;
SELECT column_name FROM information_schema.columns WHERE table_name = 'idem_policy_options' ORDER BY ordinal_position;
-- the types are those that were promised
SELECT attname, format_type(atttypid, atttypmod) AS type FROM pg_attribute
    WHERE attrelid = 'idem_result'::regclass AND attnum > 0 ORDER BY attnum;
\pset format unaligned
SELECT p.proname, pg_get_function_arguments(p.oid) AS arguments, pg_get_function_result(p.oid) AS result
    FROM members m JOIN pg_proc p ON m.classid = 'pg_proc'::regclass AND p.oid = m.objid
 WHERE m.comment ~ '^(day one|key life|http)' ORDER BY 1;
