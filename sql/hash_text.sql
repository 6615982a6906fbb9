-- hash_text: JSON text is hashed as jsonb is, and strictly what I-JSON forbids is refused, with a position and without a part
-- of the payload. Covers A16 A33 B11 G08.
SET client_min_messages = warning;
CREATE EXTENSION IF NOT EXISTS idempotency;
RESET client_min_messages;

-- The same hash as the value's.
CREATE TEMP TABLE sample (input text);
INSERT INTO sample VALUES ('null'), (' [ 1.0 , 1e1 , -0 ]'), ('{"b":1,"a":{"c":[]}}'), ('"\u00e9\ud83d\ude00\n\/"'), ('{"":{"":""}}'),
    ('9007199254740993'), ('1e131071'), (E'\t\r\n{"a" :1}\n'), ('[{"a":1},{"a":2}]'), ('{"a":{"a":{"a":1}},"b":[{"a":1,"b":2}]}'),
    ('"\\u0000"'), ('"\u2028"');
INSERT INTO sample SELECT json_object_agg('k' || i, json_build_array(i, 'v' || i))::text FROM generate_series(1, 1000) AS i;
SELECT count(*) AS texts,
       count(*) FILTER (WHERE idem_hash_text(input) <> idem_hash(input::jsonb)) AS other_hash,
       count(*) FILTER (WHERE idem_hash_text(input, false, 'sha256') <> idem_hash(input::jsonb, 'sha256')) AS other_sha256,
       count(*) FILTER (WHERE idem_hash_text(input, trim_strings => true, numbers => 'exact', ignore_paths => '{$.a}')
                        <> idem_hash(input::jsonb, trim_strings => true, ignore_paths => '{$.a}')) AS other_with_options
FROM sample;
SELECT idem_hash_text('{"a":1}'), idem_hash_text(NULL) IS NULL AS no_text, idem_hash_text('1', algorithm => NULL) IS NULL AS no_algorithm;

-- Members that occur twice: after unescaping, in any object, also among many; not the same name in different objects.
\set VERBOSITY default
SELECT idem_hash_text('{"a":1,"b":2,"a":3}');
SELECT idem_hash_text(U&'[0,{"secret":{"\00E9":1, "\\u00e9":2}}]');
SELECT idem_hash_text('{"a":1,"a":1}', NULL);
SELECT idem_hash_text(replace(v, '"k700"', '"k3"')) FROM (SELECT json_object_agg('k' || i, i)::text AS v FROM generate_series(1, 1000) AS i) AS x;
SELECT idem_hash_text('{"a":1,"a":2}', strict => false) = idem_hash('{"a":2}') AS last_wins,
       idem_hash_text('{"a":1,"\u0061":{"b":1,"b":2}}', false) = idem_hash('{"a":{"b":2}}') AS last_wins_unescaped,
       idem_hash_text('{"a":1,"A":2,"a ":3,"\u00e1":4,"a\u0301":5}') IS NOT NULL AS others_differ;

-- Noncharacters, as themselves or escaped, in values and names.
SELECT idem_hash_text(U&'["\00E9", "\\uffff"]');
SELECT idem_hash_text(U&'{"\FDD0":1}');
SELECT idem_hash_text('"\uffff"', false) = idem_hash('"\uffff"') AS accepted, idem_hash_text('"\ufffd"') IS NOT NULL AS replacement_is_fine;

-- What is not JSON, strict or not. Nothing of the text is shown.
CREATE FUNCTION pg_temp.attempt(input text) RETURNS text LANGUAGE plpgsql AS $$
DECLARE
    said text;
    more text;
    context text;
BEGIN
    PERFORM idem_hash_text(input, false);
    RETURN 'fine';
EXCEPTION WHEN OTHERS THEN
    GET STACKED DIAGNOSTICS said = MESSAGE_TEXT, more = PG_EXCEPTION_DETAIL, context = PG_EXCEPTION_CONTEXT;
    IF said || more LIKE '%secret%' OR context LIKE '%JSON data%' THEN
        RETURN 'shows the payload';
    END IF;
    RETURN SQLSTATE || ' ' || said || ': ' || more;
END
$$;
SELECT input, pg_temp.attempt(input) FROM unnest(ARRAY[
    '', ' ', 'secret', '"secret', '["secret",]', '{"secret":1,}', '{secret:1}', '{"secret" 1}', '[1 2]', '01', '+1', '.5', '1.', '1e', '-',
    'nul', 'NaN', '''secret''', '[1}', '1 1', E'"a\tb"', '"\x"', '"\u12g4"', U&'"\00E9\\ud800"', '"\udc00\ud800"', '"\ud800\u0041"', '"\u0000"',
    '{"secret":"\u0000"}', '["secret", 1e131072]', '1e-16384']) AS input;
SELECT pg_temp.attempt(U&'\FEFF1') AS byte_order_mark;
SELECT idem_hash_text('{"a":', algorithm => 'md5');
SELECT idem_hash_text('1e400', numbers => 'double');
SELECT idem_hash_text('1', ignore_paths => '{a}');

-- Deep text is refused by jsonb's own limit, not by a crash; syntax is checked without recursion.
SET max_stack_depth = '100kB';
SELECT pg_temp.attempt(repeat('[', 20000) || repeat(']', 20000)) LIKE '54001%' AS too_deep, pg_temp.attempt(repeat('[', 1000000));
RESET max_stack_depth;

-- Frozen, so it may be stored.
CREATE TEMP TABLE received (body text, hash bytea GENERATED ALWAYS AS (idem_hash_text(body)) STORED);
INSERT INTO received VALUES ('{"amount":10.00}');
SELECT hash = idem_hash('{"amount":10}') AS same FROM received;
INSERT INTO received VALUES ('{"amount":1,"amount":2}');

-- Other encodings: the same hash, and no character that has no place there.
\set home :DBNAME
SELECT idem_hash_text(U&'{"\00E9":"\00FC"}') AS utf8;
CREATE DATABASE regress_idem_text ENCODING 'LATIN1' LOCALE 'C' TEMPLATE template0;
\c regress_idem_text
CREATE EXTENSION idempotency;
SELECT idem_hash_text('{"' || chr(233) || '":"\u00fc"}') AS latin1;
SELECT idem_hash_text('["secret", "\u0153"]');
SELECT idem_hash_text('{"' || chr(233) || '":1, "\u00e9":1}');
\c :home
CREATE DATABASE regress_idem_text_ascii ENCODING 'SQL_ASCII' LOCALE 'C' TEMPLATE template0;
\c regress_idem_text_ascii
CREATE EXTENSION idempotency;
SELECT idem_hash_text('{"a":1}') AS sql_ascii;
SELECT idem_hash_text(convert_from('\x22ff22', 'SQL_ASCII'));
\c :home
DROP DATABASE regress_idem_text;
DROP DATABASE regress_idem_text_ascii;
