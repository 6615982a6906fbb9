-- hash_json: the canonical text of jsonb and its hash are frozen, whatever the spelling, the depth, the size, the encoding.
SET client_min_messages = warning;
CREATE EXTENSION IF NOT EXISTS idempotency;
RESET client_min_messages;

-- What xxhsum -H128 prints for the canonical text, computed outside of the database. A row shown here is a broken promise.
CREATE TEMP TABLE golden (note text, input text, hash text);
INSERT INTO golden VALUES
    ('top-level scalar', $j$null$j$, 'dc32537e27486e2c652e7b35ccc22eda'),
    ('outer white space dropped', $j$ true $j$, 'f41296b9e2d38ac855a9a1372b7155c1'),
    ('top-level number', $j$1$j$, 'df3ce784d856334d65cd25028f98f158'),
    ('must not equal the scalar 1', $j$[1]$j$, '7d59a3ec7c67aefe7e22e688c546b965'),
    ('empty object', $j${ }$j$, 'dc7048f8f8747f561349cde127705c16'),
    ('nested empties', $j$[[],{}]$j$, 'e0f205ff58b5b44d7f7963c9c078a14a'),
    ('jsonb_hash_extended collides with next row', $j$[[1],2]$j$, 'bd98f0865d55b83a051a0a32c83c3a82'),
    ('jsonb_hash_extended collides with previous row', $j$[[1,2]]$j$, '6831fd6612ccc56904cb303f7565f335'),
    ('all types', $j$[null,true,false,0,"",[],{}]$j$, 'd046880dbaa55b930eafaa3409b62ac7'),
    ('array order is significant', $j$[3,1,2]$j$, 'eb844a7c8fde85fc1f1be226f4246dd2'),
    ('recursive sort', $j${"b":{"d":1,"c":[{"f":1,"e":2}]},"a":0}$j$, '3add7b4e4065ddb3b41eb0f67b569254'),
    ('duplicate key: jsonb keeps the last; I-JSON forbids', $j${"a":1,"a":2}$j$, 'ec3c20319ed854d02f7f04b64fdb80cf'),
    ('duplicate after unescaping', $j${"a":1,"\u0061":2}$j$, 'ec3c20319ed854d02f7f04b64fdb80cf'),
    ('empty key first', $j${"":1,"a":2}$j$, 'f367e275273b5cc22394d7ed52c1bee8'),
    ('jsonb stores b before aa (length first)', $j${"b":1,"aa":2}$j$, '5a3c5b4ca548cc4351a004453696bef6'),
    ('keys are strings, not numbers', $j${"10":1,"9":2,"1":3}$j$, 'f25bf333a8eef595a4635065badf6c3a'),
    ('code-unit order, not locale', $j${"a":1,"B":2,"A":3,"b":4}$j$, '80720556bf030c44f1a4d9e5126d6703'),
    ('prefix sorts first', $j${"ab":1,"a":2,"abc":3}$j$, 'a73b9944d639a454e467779ce3cd3aa3'),
    ('control characters sort by code unit, before escaping', $j${"\n":1,"\t":2," ":3,"!":4}$j$, '0f386fa35342ec94485e3e69cbc6593f'),
    ('sort on raw value: U+0022 < U+002F < U+005C', $j${"\\":1,"\"":2,"/":3}$j$, 'c696488db4138077002e36e91199b257'),
    ('NFC and NFD keys are different keys', $j${"\u00e9":1,"e\u0301":2}$j$, '0e40f92843f36d1bb33b88409fd75019'),
    ('UTF-16 order: D83D < FB33 (UTF-8 order is the reverse)', $j${"\ufb33":1,"\ud83d\ude00":2}$j$, '3d8edb383d23781ab2eaf8bf43caec10'),
    ('D7FF < D800.. < DBFF.. < E000', $j${"\ue000":1,"\ud7ff":2,"\ud800\udc00":3,"\udbff\udffd":4}$j$, 'fa4fdfa486993c6bbbc2ba99e9752c5d'),
    ('BMP above E000 after the emoji', $j${"\ufffd":1,"\uff21":2,"\ud83d\ude00":3,"z":4}$j$, 'c8b047fa73bce650788705df904b15b2'),
    ('two-character escapes', $j$"\b\t\n\f\r\"\\"$j$, '0488a69252ee0a8b47ddee04da1c9497'),
    ('other controls: \u00xx, lower-case hex', $j$"\u0001\u000b\u001F"$j$, '14270507d787fc84e957cc42a169328e'),
    ('DEL and C1 are raw', $j$"\u007f\u0080\u009f"$j$, 'ae4f2635e366c6070ac246e873fe074d'),
    ('line separators are raw (Go and PHP escape them)', $j$"\u2028\u2029"$j$, 'b8cf7e376542d7d6f4cf0bd8b975866c'),
    ('no HTML escaping', $j$"<>&'"$j$, 'd13656b00e7fc6066aad69197dc223b7'),
    ('pair as 4-byte UTF-8', $j$"\ud83d\ude00"$j$, 'ed74e538ed13a201b8579e0414387c5f'),
    ('no normalisation by default', $j$"A\u030a"$j$, 'a07f6784ff1c58e2a253b781133818cb'),
    ('noncharacters: jsonb accepts; I-JSON forbids', $j$"\uffff\ufdd0"$j$, '2fa6f36fe304269b8ad78be51dd81f08'),
    ('numeric-looking string untouched', $j$"1.0"$j$, '37d1262735810bcc993a61bf64ddfaf1'),
    ('no negative zero in numeric', $j$-0$j$, 'ce8f15881282a4001982e3a7bb241055'),
    ('jsonb keeps scale 2, so md5(jsonb::text) differs from 10', $j$10.00$j$, 'cc662761ad24bd12d0698444ed39c832'),
    ('', $j$-1.50$j$, '9dcce205345fe8b45720cc0d7e131b91'),
    ('first exponent form', $j$1e21$j$, 'a0affe614a3bdaec113bc579f6507b5c'),
    ('21 integer digits, plain', $j$999999999999999900000$j$, 'fa7d5c280d1df50aa40cf6c4b56de655'),
    ('22 integer digits, exponent', $j$1234567890123456800000$j$, '9712f056e6aaa5acc3f60c333e7b82a5'),
    ('last plain', $j$0.000001$j$, 'e144f6137d5a404149d02db976c3b22b'),
    ('', $j$0.000000123$j$, 'd732fdf616a98f0c2b6fb63188fd7a7b'),
    ('2^53+1: doubles round to ...992', $j$9007199254740993$j$, '93dc20d660c1d80e1dfb55def31770fd'),
    ('more digits than a double', $j$0.1000000000000000055511151231257827$j$, 'ca60930874fd2fa9ec742c36a1349f6d'),
    ('exact value of the double 1e23', $j$99999999999999991611392$j$, 'f8ac39420865746b31d0b72436e268fb'),
    ('largest power of ten; jsonb::text is 131072 characters', $j$1e131071$j$, '4dd928febe45fa62701da8e56753f806'),
    ('smallest power of ten', $j$1e-16383$j$, '00a11326cdd3695f81f15081d6980d5f'),
    ('exponent form with 31 digits', $j$123456789012345678901234567890.5$j$, 'ec56ef5a6ea644fb2e43128a91f96172'),
    ('one value, four spellings', $j$[1,1.0,1.00,1e0]$j$, '8de79490989463c852044e30cc8f78cd'),
    ('one member', $j${"a":1}$j$, '3c8c141663acf5a1b6b7137162fa70fb');

SELECT count(*) AS documents FROM golden;
SELECT note, hash, idem_hash(input::jsonb) FROM golden WHERE encode(idem_hash(input::jsonb), 'hex') <> hash;
SELECT note, input FROM golden
WHERE idem_hash(input::jsonb, 'sha256') <> sha256(convert_to(idem_canonical(input::jsonb), 'UTF8'));

-- The text itself, where it is ASCII.
SELECT idem_canonical(input::jsonb) FROM golden
WHERE idem_canonical(input::jsonb) ~ '^[ -~]*$' AND length(idem_canonical(input::jsonb)) < 60;

-- Members in UTF-16 order at every depth.
SELECT string_agg(to_hex(ascii(k)), ' ') AS code_points
FROM json_object_keys(idem_canonical('{"\ue000":1,"\ud7ff":2,"\ud800\udc00":3,"\udbff\udffd":4,"z":5}')::json) AS k;
SELECT idem_canonical('{"b":[true,null,{"z":-0.0,"aa":"\u001f\""}],"a":1.50e2}');

-- Equal text if and only if equal value, for every pair.
CREATE TEMP TABLE value AS
SELECT v, idem_canonical(v) AS canonical, idem_hash(v) AS hash
FROM (SELECT input::jsonb AS v FROM golden
      UNION ALL
      SELECT s::jsonb FROM unnest('{1,1.0,1.00,10e-1,-1,-1.0,0,-0.0,0e9,10,10.0,1e1,100e-1,0.1,1e-1,0.10,1e21,10e20,1e20}'::text[]) AS s
      UNION ALL
      SELECT jsonb_build_array(i, 1.5, -1.5) FROM generate_series(-3, 3) AS i
      UNION ALL
      SELECT s::jsonb FROM unnest(ARRAY['[[1],2]', '[[1,2]]', '{}', '[]', '[[]]', '[{}]', '{"a":{"b":1},"c":2}',
                                        '{"a":{"b":1,"c":2}}', '{"a":null}', '"null"', '"1"']) AS s) AS x;
SELECT count(*) AS pairs,
       count(*) FILTER (WHERE a.v = b.v AND a.canonical <> b.canonical) AS equal_but_other_text,
       count(*) FILTER (WHERE a.v <> b.v AND a.canonical = b.canonical) AS same_text_but_not_equal,
       count(*) FILTER (WHERE (a.canonical = b.canonical) <> (a.hash = b.hash)) AS hash_disagrees
FROM value AS a, value AS b;

-- The text is JSON for the same value, and its own canonical form.
SELECT v FROM value WHERE canonical::jsonb <> v OR idem_canonical(canonical::jsonb) <> canonical;

-- Large values: more members than fit the stack, texts that are streamed, entries beyond the first stored offset.
WITH large(what, v) AS (
    SELECT 'array', jsonb_agg(i * 1.25) FROM generate_series(1, 3000) AS i
    UNION ALL SELECT 'object', jsonb_object_agg(repeat('k', i % 40) || i, jsonb_build_object('n', i)) FROM generate_series(1, 2000) AS i
    UNION ALL SELECT 'escapes', to_jsonb(repeat(E'\x01\\"', 5000))
    UNION ALL SELECT 'string of ' || i, to_jsonb(repeat('x', i)) FROM unnest('{8189,8190,8191,100000}'::int[]) AS i
    UNION ALL SELECT 'number', to_jsonb(('-' || repeat('1234567890', 5000) || '.' || repeat('987654321', 1000))::numeric)
)
SELECT what, length(idem_canonical(v)), idem_canonical(v)::jsonb = v AS same_value,
       idem_hash(v, 'sha256') = sha256(convert_to(idem_canonical(v), 'UTF8')) AS same_hash, idem_hash(v)
FROM large ORDER BY what COLLATE "C";

-- A value nested deeper than the parser would read now.
SET max_stack_depth = '6MB';
CREATE TEMP TABLE deep AS SELECT (repeat('[', 5000) || repeat(']', 5000))::jsonb AS v;
INSERT INTO deep SELECT (repeat('{"a":', 4000) || '1' || repeat('}', 4000))::jsonb;
SET max_stack_depth = '100kB';
SELECT length(idem_canonical(v)), left(idem_canonical(v), 10),
       idem_hash(v, 'sha256') = sha256(convert_to(idem_canonical(v), 'UTF8')) AS same_hash
FROM deep;
RESET max_stack_depth;

-- NULL in, NULL out; only two algorithms.
SELECT idem_hash(NULL) IS NULL AS no_payload, idem_hash('1', NULL) IS NULL AS no_algorithm, idem_canonical(NULL) IS NULL AS no_text;
SELECT length(idem_hash('1')), length(idem_hash('1', 'sha256')), idem_hash('{}', 'xxh3-128');
SELECT idem_hash('1', 'md5');

-- As a generated column and in an index.
CREATE TEMP TABLE request (payload jsonb, hash bytea GENERATED ALWAYS AS (idem_hash(payload, 'sha256')) STORED);
CREATE UNIQUE INDEX ON request (idem_hash(payload));
INSERT INTO request VALUES ('{"amount":10,"to":"a"}');
INSERT INTO request VALUES ('{"to":"a","amount":10.00}') ON CONFLICT DO NOTHING;
SELECT payload, hash = sha256('{"amount":10,"to":"a"}') AS same_hash FROM request;

-- Other server encodings hash like UTF-8.
\set home :DBNAME
SET client_encoding = 'UTF8';
SELECT idem_hash('{"\u00e9":"\u00ff\u00e9","e":["\u00fc"],"\u00b5":1,"z\u00e0":2}') AS utf8;
CREATE DATABASE regress_idem_latin1 ENCODING 'LATIN1' LOCALE 'C' TEMPLATE template0;
CREATE DATABASE regress_idem_sql_ascii ENCODING 'SQL_ASCII' LOCALE 'C' TEMPLATE template0;
\c regress_idem_latin1
CREATE EXTENSION idempotency;
SELECT idem_hash('{"\u00e9":"\u00ff\u00e9","e":["\u00fc"],"\u00b5":1,"z\u00e0":2}') AS latin1;
SELECT idem_canonical(v) = '{"e":1,"' || chr(233) || '":"' || chr(252) || '"}' AS same_text
FROM (SELECT jsonb_build_object(chr(233), chr(252), 'e', 1)) AS x(v);
\c regress_idem_sql_ascii
CREATE EXTENSION idempotency;
SELECT idem_hash('{"a":1}') AS sql_ascii, idem_canonical('["a"]');
SELECT idem_hash(to_jsonb(convert_from('\xff', 'SQL_ASCII')));
SELECT idem_hash(jsonb_build_object(convert_from('\xff', 'SQL_ASCII'), 1));
\c :home
DROP DATABASE regress_idem_latin1;
DROP DATABASE regress_idem_sql_ascii;
