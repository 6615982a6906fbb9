-- hash_options: payload options change the value before it is made canonical, one after the other, and nothing else.
-- Covers A16 A17 B11.
SET client_min_messages = warning;
CREATE EXTENSION IF NOT EXISTS idempotency;
RESET client_min_messages;

-- canonical is idem_canonical with options from a JSON object, or the SQLSTATE it fails with.
CREATE FUNCTION pg_temp.canonical(payload jsonb, options jsonb) RETURNS text LANGUAGE plpgsql AS $$
DECLARE
    paths text[] := ARRAY(SELECT jsonb_array_elements_text(options -> 'ignore'));
BEGIN
    RETURN idem_canonical(payload, trim_strings => (options ->> 'trim')::boolean, nfc_strings => (options ->> 'nfc')::boolean,
                          ignore_paths => paths, strip_nulls => (options ->> 'strip_nulls')::boolean,
                          numbers => options ->> 'numbers');
EXCEPTION WHEN OTHERS THEN
    RETURN 'error ' || SQLSTATE;
END
$$;

-- Options, input, canonical text (computed outside of the database), note. A row shown here is a broken promise.
CREATE TEMP TABLE vector (options jsonb, input text, canonical text, note text);
INSERT INTO vector VALUES
    ($j${"trim": true}$j$, $j$"\u0009a\u0009b\u0009"$j$, $j$"a\tb"$j$, $j$U+0009 trimmed at both ends, kept inside$j$),
    ($j${"trim": true}$j$, $j$"\u000aa\u000ab\u000a"$j$, $j$"a\nb"$j$, $j$U+000A trimmed at both ends, kept inside$j$),
    ($j${"trim": true}$j$, $j$"\u000ba\u000bb\u000b"$j$, $j$"a\u000bb"$j$, $j$U+000B trimmed at both ends, kept inside$j$),
    ($j${"trim": true}$j$, $j$"\u000ca\u000cb\u000c"$j$, $j$"a\fb"$j$, $j$U+000C trimmed at both ends, kept inside$j$),
    ($j${"trim": true}$j$, $j$"\u000da\u000db\u000d"$j$, $j$"a\rb"$j$, $j$U+000D trimmed at both ends, kept inside$j$),
    ($j${"trim": true}$j$, $j$"\u0020a\u0020b\u0020"$j$, $j$"a b"$j$, $j$U+0020 trimmed at both ends, kept inside$j$),
    ($j${"trim": true}$j$, $j$"\u00a0a\u00a0b\u00a0"$j$, U&'"a\00A0b"', $j$U+00A0 trimmed at both ends, kept inside$j$),
    ($j${"trim": true}$j$, $j$"\u2002a\u2002b\u2002"$j$, U&'"a\2002b"', $j$U+2002 trimmed at both ends, kept inside$j$),
    ($j${"trim": true}$j$, $j$"\u2004a\u2004b\u2004"$j$, U&'"a\2004b"', $j$U+2004 trimmed at both ends, kept inside$j$),
    ($j${"trim": true}$j$, $j$"\u2005a\u2005b\u2005"$j$, U&'"a\2005b"', $j$U+2005 trimmed at both ends, kept inside$j$),
    ($j${"trim": true}$j$, $j$"\u2007a\u2007b\u2007"$j$, U&'"a\2007b"', $j$U+2007 trimmed at both ends, kept inside$j$),
    ($j${"trim": true}$j$, $j$"\u205fa\u205fb\u205f"$j$, U&'"a\205Fb"', $j$U+205F trimmed at both ends, kept inside$j$),
    ($j${"trim": true}$j$, $j$"\u3000a\u3000b\u3000"$j$, U&'"a\3000b"', $j$U+3000 trimmed at both ends, kept inside$j$),
    ($j${"trim": true}$j$, $j$"\u001ca\u001c"$j$, $j$"\u001ca\u001c"$j$, $j$U+001C is not White_Space: kept$j$),
    ($j${"trim": true}$j$, $j$"\u001fa\u001f"$j$, $j$"\u001fa\u001f"$j$, $j$U+001F is not White_Space: kept$j$),
    ($j${"trim": true}$j$, $j$"\u200ca\u200c"$j$, U&'"\200Ca\200C"', $j$U+200C is not White_Space: kept$j$),
    ($j${"trim": true}$j$, $j$"\ufeffa\ufeff"$j$, U&'"\FEFFa\FEFF"', $j$U+FEFF is not White_Space: kept$j$),
    ($j${"trim": true}$j$, $j$"\u00ada\u00ad"$j$, U&'"\00ADa\00AD"', $j$U+00AD is not White_Space: kept$j$),
    ($j${"trim": true}$j$, $j$"\u2800a\u2800"$j$, U&'"\2800a\2800"', $j$U+2800 is not White_Space: kept$j$),
    ($j${"trim": true}$j$, $j${" k ":" v "}$j$, $j${" k ":"v"}$j$, $j$values only; keys untouched$j$),
    ($j${"nfc": true}$j$, $j$"\u212b"$j$, U&'"\00C5"', $j$values only; keys untouched$j$),
    ($j${"nfc": true}$j$, $j$"\uac01"$j$, U&'"\AC01"', $j$values only; keys untouched$j$),
    ($j${"nfc": true}$j$, $j$"\u0344"$j$, U&'"\0308\0301"', $j$values only; keys untouched$j$),
    ($j${"nfc": true}$j$, $j$"\u0958"$j$, U&'"\0915\093C"', $j$values only; keys untouched$j$),
    ($j${"nfc": true}$j$, $j$"\ufb01"$j$, U&'"\FB01"', $j$values only; keys untouched$j$),
    ($j${"nfc": true}$j$, $j$"\uf900"$j$, U&'"\8C48"', $j$values only; keys untouched$j$),
    ($j${"nfc": true}$j$, $j$"a\u0301\u0327"$j$, U&'"\00E1\0327"', $j$values only; keys untouched$j$),
    ($j${"nfc": true}$j$, $j$"\ud834\udd5e"$j$, U&'"\+01D157\+01D165"', $j$values only; keys untouched$j$),
    ($j${"nfc": true}$j$, $j$"\u1e0a\u0323"$j$, U&'"\1E0C\0307"', $j$values only; keys untouched$j$),
    ($j${"nfc": true}$j$, $j$"\u0340\u0341\u0343"$j$, U&'"\0300\0301\0313"', $j$values only; keys untouched$j$),
    ($j${"nfc": true}$j$, $j${"\u00e9":1,"e\u0301":2}$j$, U&'{"e\0301":2,"\00E9":1}', $j$values only; keys untouched$j$),
    ($j${"nfc": true}$j$, $j$"\ud81b\udd67\ud81b\udd67"$j$, U&'"\+016D68"', $j$U+16D67 U+16D67 composes to U+16D68 only with Unicode 16.0 or newer tables (PostgreSQL 15 leaves it unchanged)$j$),
    ($j${"trim": true, "nfc": true}$j$, $j$" e\u0301\u2001"$j$, U&'"\00E9"', $j$order of trim and NFC does not matter$j$),
    ($j${"ignore": ["$.ts"]}$j$, $j${"id":1,"ts":"x","d":{"a":1,"ts":2}}$j$, $j${"d":{"a":1,"ts":2},"id":1}$j$, $j$only the top-level member$j$),
    ($j${"ignore": ["$.a.b"]}$j$, $j${"a":{"b":1,"c":2}}$j$, $j${"a":{"c":2}}$j$, $j$$j$),
    ($j${"ignore": ["$.zz", "$.a.b"]}$j$, $j${"a":1}$j$, $j${"a":1}$j$, $j$missing paths are no error$j$),
    ($j${"ignore": ["$.\"*\""]}$j$, $j${"*":1,"a":2}$j$, $j${"a":2}$j$, $j$a quoted * is a literal key$j$),
    ($j${"ignore": ["$.a"]}$j$, $j$"scalar"$j$, $j$"scalar"$j$, $j$root scalar unaffected$j$),
    ($j${"strip_nulls": true}$j$, $j$[null,{"a":null}]$j$, $j$[null,{}]$j$, $j$same rule as jsonb_strip_nulls$j$),
    ($j${"numbers": "double"}$j$, $j$9007199254740993$j$, $j$9007199254740992$j$, $j$strict RFC 8785 number mode$j$),
    ($j${"numbers": "double"}$j$, $j$18446744073709551615$j$, $j$18446744073709552000$j$, $j$strict RFC 8785 number mode$j$),
    ($j${"numbers": "double"}$j$, $j$333333333.33333329$j$, $j$333333333.3333333$j$, $j$strict RFC 8785 number mode$j$),
    ($j${"numbers": "double"}$j$, $j$295147905179352825856$j$, $j$295147905179352830000$j$, $j$strict RFC 8785 number mode$j$),
    ($j${"numbers": "double"}$j$, $j$1e-400$j$, $j$0$j$, $j$strict RFC 8785 number mode$j$),
    ($j${"numbers": "double"}$j$, $j$4.9406564584124654e-324$j$, $j$5e-324$j$, $j$strict RFC 8785 number mode$j$),
    ($j${"numbers": "double"}$j$, $j$1.7976931348623158e308$j$, $j$1.7976931348623157e+308$j$, $j$strict RFC 8785 number mode$j$),
    ($j${"numbers": "double"}$j$, $j$1e400$j$, $j$error 22003$j$, $j$beyond double: error, as RFC 8785 requires$j$),
    ($j${"numbers": "double"}$j$, $j$-1e131071$j$, $j$error 22003$j$, $j$beyond double: error, as RFC 8785 requires$j$);

SELECT count(*) AS vectors FROM vector;
SELECT v.*, pg_temp.canonical(input::jsonb, options) AS got FROM vector AS v
WHERE pg_temp.canonical(input::jsonb, options) IS DISTINCT FROM canonical;

-- Without options, and with options that find nothing, the text is that of the default form, for any value.
CREATE TEMP TABLE value AS
SELECT v FROM (
    SELECT input::jsonb AS v FROM vector
    UNION ALL SELECT s::jsonb FROM unnest(ARRAY['null', '{}', '[]', '[[],{}]', '[null,true,false,0,"",-1.50,1e131071,1e-16383]',
        '{"b":{"d":1,"c":[{"f":1,"e":2}]},"a":0}', '{"\ufb33":1,"\ud83d\ude00":2,"aa":[[[["x"]]]],"":{"":{"":""}}}',
        '"\u0001\"\\/"', '[1,[2,[3,{"a":[4]}],5],6]']) AS s
    UNION ALL SELECT jsonb_agg(i * 1.25) FROM generate_series(1, 3000) AS i
    UNION ALL SELECT jsonb_object_agg(repeat('k', i % 40) || i, jsonb_build_object('n', i)) FROM generate_series(1, 2000) AS i
    UNION ALL SELECT to_jsonb(repeat(E'\x01\\"', 5000))
    UNION ALL SELECT to_jsonb(('-' || repeat('1234567890', 5000) || '.' || repeat('987654321', 1000))::numeric)) AS x;
SELECT count(*) AS values,
       count(*) FILTER (WHERE idem_canonical(v, ignore_paths => '{$.nowhere}') <> idem_canonical(v)) AS other_text,
       count(*) FILTER (WHERE idem_hash(v, ignore_paths => '{$.nowhere}') <> idem_hash(v)) AS other_hash,
       count(*) FILTER (WHERE idem_hash(v, 'sha256', intent_paths => '{$}') <> idem_hash(v, 'sha256')) AS other_sha256,
       count(*) FILTER (WHERE idem_canonical(v, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL) <> idem_canonical(v)) AS other_null
FROM value;

-- Options that PostgreSQL has too.
SELECT count(*) FILTER (WHERE idem_canonical(v, strip_nulls => true) <> idem_canonical(jsonb_strip_nulls(v))) AS other_nulls,
       count(*) FILTER (WHERE idem_canonical(v, nfc_strings => true, trim_strings => true) COLLATE "C"
                        <> idem_canonical(idem_canonical(v, nfc_strings => true, trim_strings => true)::jsonb, nfc_strings => true, trim_strings => true)) AS not_settled
FROM value;

-- Ignored members: at any depth, below every element, in objects that stay.
\set doc '''{"id":1,"ts":"x","i":[{"t":1,"x":{"t":2}},{"x":3},[{"t":9}],4],"m":{"a":{"t":1},"b":{"t":2,"u":3},"c":7}}'''
SELECT idem_canonical(:doc, ignore_paths => '{$.ts}'),
       idem_canonical(:doc, ignore_paths => '{$.i[*].t}'),
       idem_canonical(:doc, ignore_paths => '{$.m.*.t,$.i[*].x}'),
       idem_canonical(:doc, ignore_paths => '{$.i[*][*].t,$.id.none}') \gx
SELECT idem_canonical(:doc, ignore_paths => '{$.i[*][*].t,$.id.none,$.m[*].t,$.ts[*].x}') AS misfits,
       idem_canonical('{"b c":1,"\u00e9":2,"*":3,"a.b":4,"a":{"b":5}}', ignore_paths => '{"$.\"b c\"","$.\"\\u00e9\"","$.\"*\"","$.\"a.b\""}') AS quoted,
       idem_canonical('{"\u00e9":1,"a":2}', ignore_paths => ARRAY[U&'$.\00E9']) AS not_ascii,
       idem_canonical(:doc, ignore_paths => '{$.*}') AS everything,
       idem_canonical('[{"a":1},{"a":2,"b":3}]', ignore_paths => '{$[*].a}') AS elements \gx

-- Intent: what leads to an intent path stays, all below it stays, what it does not fit stays whole.
SELECT idem_canonical(:doc, intent_paths => '{$.id}') AS one,
       idem_canonical(:doc, intent_paths => '{$.i[*].t}') AS elements,
       idem_canonical(:doc, intent_paths => '{$.i,$.m.b.u}') AS whole,
       idem_canonical(:doc, intent_paths => '{$.i,$.m.*.t}', ignore_paths => '{$.i[*].x,$.m.c}') AS and_ignore,
       idem_canonical(:doc, intent_paths => '{$.none}') AS nothing,
       idem_canonical(:doc, intent_paths => '{$.id.a,$.ts[*],$.m[*].t}') AS misfits,
       idem_canonical('5', intent_paths => '{$.a}') AS scalar,
       idem_canonical('[5,{"a":1,"b":2},[1]]', intent_paths => '{$[*].a}') AS array,
       idem_canonical(:doc, intent_paths => '{}') = idem_canonical(:doc) AS none_given \gx

-- Nulls, strings, and their order: a member that is null goes, one that becomes empty stays.
SELECT idem_canonical('{"a":null,"b":[null,{"c":null}],"d":" ","e":{"f":null}}', strip_nulls => true, trim_strings => true);

-- Decimals in strings, rounding, doubles.
SELECT idem_canonical('{"a":"10.00","b":"10.00","c":["1e2","x","-0.50"," 7 "],"d":10}', decimal_paths => '{$.a,$.c[*],$.d}') AS decimal,
       idem_canonical('{"c":[" 7.0 ","\u00a08\u3000"]}', decimal_paths => '{$.c[*]}', trim_strings => true) AS trimmed,
       idem_canonical('"007.50"', decimal_paths => '{$}') AS root,
       idem_canonical('[1.005,-1.005,"1.005",2.5,1e-30]', round_paths => '{"$[*]": 2}') AS rounded,
       idem_canonical('[1.005,"1.005"]', round_paths => '{"$[*]": 2}', decimal_paths => '{$[*]}') AS both,
       idem_canonical('{"a":1250,"b":{"c":0.125}}', round_paths => '{"$.a": -2, "$.b.*": 2, "$.*.c": 1}') AS fewest_digits,
       idem_canonical('[0.1000000000000000055511151231257827,12345678901234567890,1e23,99999999999999991611392,-1e-400]', numbers => 'double') AS double,
       idem_canonical('[9007199254740993.4]', numbers => 'double', round_paths => '{"$[*]": 0}') AS rounded_then_double \gx
SELECT count(*) AS numbers, count(*) FILTER (WHERE round(n, s) <> idem_canonical(to_jsonb(n), round_paths => jsonb_build_object('$', s))::numeric) AS otherwise_than_round
FROM (SELECT (i::numeric * i * i - 500) / 977.0 * power(10::numeric, i % 40 - 20) AS n, i % 23 - 11 AS s FROM generate_series(1, 2000) AS i) AS x;

-- Unordered arrays, each asked for: elements sorted by their canonical text as members are, duplicates kept.
SELECT idem_canonical('[3,1,2,1,"1",null,[2],{"b":1,"a":2},{"a":1}]', unordered_paths => '{$}') AS root,
       idem_canonical('{"a":[2,1],"b":[2,1]}', unordered_paths => '{$.b}') AS named,
       idem_canonical('[[2,1],[1,[4,3]]]', unordered_paths => '{$,$[*]}') AS nested,
       idem_canonical('[[2,1],[1,[4,3]]]', unordered_paths => '{$[*][*]}') AS deep,
       idem_canonical('["\ufb33","\ud83d\ude00"]', unordered_paths => '{$}') = U&'["\+01F600","\FB33"]' AS utf16,
       idem_canonical('[{"id":2,"t":1},{"id":1,"t":2}]', unordered_paths => '{$}', ignore_paths => '{$[*].t}') AS after_ignore,
       idem_canonical('[10,"9.50",9.5]', unordered_paths => '{$}', decimal_paths => '{$[*]}') AS after_decimal,
       idem_canonical('[]', unordered_paths => '{$}') AS empty \gx
SELECT idem_hash(a, unordered_paths => '{$}') = idem_hash(b, unordered_paths => '{$}') AS same_hash, idem_hash(a) = idem_hash(b) AS same_without,
       idem_canonical(a, unordered_paths => '{$}') = (SELECT '[' || string_agg(e, ',' ORDER BY e COLLATE "C") || ']' FROM (SELECT idem_canonical(v) AS e FROM jsonb_array_elements(b) AS v) AS x) AS sorted
FROM (SELECT jsonb_agg(v ORDER BY i) AS a, jsonb_agg(v ORDER BY md5(i::text)) AS b
      FROM generate_series(1, 3000) AS i, LATERAL (SELECT CASE i % 3 WHEN 0 THEN to_jsonb(i % 700) WHEN 1 THEN to_jsonb(repeat('x', i)) ELSE jsonb_build_object('i', i, 'a', jsonb_build_array(i)) END AS v) AS e) AS x;

-- Depth and width are limited by the data.
SET max_stack_depth = '6MB';
CREATE TEMP TABLE deep AS SELECT (repeat('[', 5000) || repeat(']', 5000))::jsonb AS v;
INSERT INTO deep SELECT (repeat('{"a":', 4000) || '1' || repeat('}', 4000))::jsonb;
SET max_stack_depth = '100kB';
SELECT idem_canonical(v, trim_strings => true) = idem_canonical(v) AS same, idem_payload_jcs_safe(v) AS safe FROM deep;
RESET max_stack_depth;
SELECT length(idem_canonical(to_jsonb('a' || repeat(U&'\0301\0327', 100000)), nfc_strings => true)) AS marks;

-- A query of many rows with the same options, and with options of each row.
SELECT count(DISTINCT idem_hash(jsonb_build_object('id', i % 10, 'ts', i), ignore_paths => '{$.ts}')) AS ids FROM generate_series(1, 1000) AS i;
SELECT p, idem_canonical('{"a":1,"b":2}', ignore_paths => ARRAY[p]) FROM unnest(ARRAY['$.a', '$.b', '$.a']) AS p;
DO $$
DECLARE
    path text[];
BEGIN
    FOREACH path SLICE 1 IN ARRAY ARRAY[['$.a'], ['$.b'], ['$.a']] LOOP
        RAISE INFO '% %', path, idem_canonical('{"a":1,"b":2}', ignore_paths => path);
    END LOOP;
END
$$;
CREATE TEMP TABLE request (payload jsonb, hash bytea GENERATED ALWAYS AS (idem_hash(payload, 'sha256', ignore_paths => '{$.ts}', trim_strings => true)) STORED);
CREATE UNIQUE INDEX ON request (idem_hash(payload, ignore_paths => '{$.ts}', trim_strings => true));
INSERT INTO request VALUES ('{"id":" 1","ts":1}');
INSERT INTO request VALUES ('{"ts":2,"id":"1 "}') ON CONFLICT DO NOTHING;
SELECT payload, hash = idem_hash('{"id":"1"}', 'sha256') AS same FROM request;

-- What is wrong is named.
\set VERBOSITY default
SELECT idem_canonical('1', numbers => 'float');
SELECT idem_canonical('[1e400]', numbers => 'double');
SELECT idem_hash('{"a":-1e131071}', numbers => 'double');
SELECT idem_canonical('1', ignore_paths => '{a}');
SELECT idem_canonical('1', ignore_paths => '{$.a.b-c}');
SELECT idem_canonical('1', ignore_paths => '{$}');
SELECT idem_canonical('1', ignore_paths => '{$.a[*]}');
SELECT idem_canonical('1', ignore_paths => '{$.a[0].b}');
SELECT idem_canonical('1', ignore_paths => '{NULL}');
SELECT idem_canonical('1', ignore_paths => '{{$.a},{$.b}}');
SELECT idem_canonical('1', intent_paths => '{$..a}');
SELECT idem_canonical('1', decimal_paths => '{"$.\"a"}');
SELECT idem_canonical('1', unordered_paths => '{"$[\"a\"]"}');
SELECT idem_canonical('1', round_paths => '["$.a"]');
SELECT idem_canonical('1', round_paths => '{"$.a": "2"}');
SELECT idem_canonical('1', round_paths => '{"$.a": 1.5}');
SELECT idem_canonical('1', round_paths => '{"$.a": 16384}');
SELECT idem_canonical('1', round_paths => '{"$.a": 1, "$.\"a\"": 2}');
SELECT idem_canonical('1', round_paths => '{"a": 1}');
\set VERBOSITY sqlstate
SELECT idem_canonical('1', round_paths => jsonb_build_object(repeat('x', 1000), 1));
\set VERBOSITY default

-- Whether any RFC 8785 library agrees.
SELECT v, idem_payload_jcs_safe(v::jsonb) AS safe, idem_canonical(v::jsonb) = idem_canonical(v::jsonb, numbers => 'double') AS same_number
FROM unnest(ARRAY['0.1', '[1.50,-0,1e21]', '9007199254740991', '9007199254740993', '{"a":[18446744073709551616]}', '18446744073709552000',
                  '0.1000000000000000055511151231257827', '5e-324', '4e-324', '"9007199254740993"']) AS v;
SELECT v, idem_payload_jcs_safe(v::jsonb) AS safe FROM unnest(ARRAY['1e400', '"\uffff"', '{"\ufdd0":1}', '"\ufffd"', '{"a":["\ud83f\udffe"]}']) AS v;
SELECT idem_payload_jcs_safe(NULL) IS NULL AS null_in, idem_unicode_version();

-- The same hash in a database of another encoding.
\set home :DBNAME
SELECT idem_hash('{"\u00e9":" \u00e9\u00a0","e":["\u00fc", 1]}', trim_strings => true, ignore_paths => '{$.e}') AS utf8;
CREATE DATABASE regress_idem_options ENCODING 'LATIN1' LOCALE 'C' TEMPLATE template0;
\c regress_idem_options
CREATE EXTENSION idempotency;
SELECT idem_hash('{"\u00e9":" \u00e9\u00a0","e":["\u00fc", 1]}', trim_strings => true, ignore_paths => '{$.e}') AS latin1;
SELECT idem_canonical('{"\u00e9":1,"a":2}', ignore_paths => ARRAY['$.' || chr(233)]) AS converted_path,
       idem_canonical('{"\u00e9":1,"a":2}', ignore_paths => '{"$.\"\\u00e9\""}') AS escaped_path,
       idem_payload_jcs_safe('"\u00e9"') AS safe;
\c :home
DROP DATABASE regress_idem_options;
