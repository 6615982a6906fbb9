-- names: actors, ops and keys are data, whatever they look like; they stay apart, and no message repeats them. Covers
-- A28
-- A30 B04 G04 G08 and invariant 8.
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

-- names that break what is pasted into SQL, formats, paths, patterns or terminals; each is its own name
CREATE TEMP TABLE names AS
SELECT n, name FROM unnest(ARRAY['x''; DROP TABLE idem_keys; --', 'a"b', '%I', '%s%n', '$1', ':x', '{"a": 1}',
    '../../etc/passwd', 'a-b', 'A-B', 'a_b', 'a b', ' a b', 'a b ', 'a  b', '\\', '\', E'tab\there', E'line\nbreak',
    E'\x1b[31mred',
    E'bell\x07', E'\x01', E'\x7f', U&'caf\00e9', U&'cafe\0301', U&'\202egnp.exe', U&'\200b', U&'\+01F600', U&'\fb01',
        'fi', 'NULL', '(null)', '', repeat('p', 63) || '1', repeat('p', 63) || '2', repeat('p', 127), 'k', 'K', 'K ',
        U&'\212a',
    '<script>', ';', '''', '''''', '"', '`', '#', '/*', '*/', '--', E'\r\n', '0', '00', '1e0',
        'true']) WITH ORDINALITY AS t (name, n) WHERE name <> '';
SELECT count(*) AS names, count(DISTINCT name) AS different FROM names;
CREATE TEMP TABLE claimed AS
SELECT n, part, c.outcome, c.operation_id, c.token
  FROM names, unnest(ARRAY['actor', 'op', 'key', 'all']) part,
       idem_claim(CASE WHEN part IN ('actor', 'all') THEN name ELSE 'names.actor' END, CASE WHEN part IN ('op',
           'all') THEN name ELSE 'names.op' END, CASE WHEN part IN ('key', 'all') THEN name ELSE 'key' END) c;
SELECT part, outcome, count(*), count(DISTINCT operation_id) AS different FROM claimed GROUP BY part, outcome
    ORDER BY part, outcome;
SELECT count(DISTINCT operation_id) FROM claimed;
SELECT r.outcome, count(*) FROM claimed c, idem_complete(c.operation_id, c.token, 200, c.part || c.n) r
    GROUP BY r.outcome;
-- each gets its own answer again, by claim, batch and lookup; the key comes back as it was given
SELECT c.outcome, count(*), bool_and(c.body = t.part || t.n) AS own, bool_and(c.key = CASE WHEN t.part IN ('key',
    'all') THEN name ELSE 'key' END) AS as_given
  FROM claimed t JOIN names USING (n),
       idem_claim(CASE WHEN part IN ('actor', 'all') THEN name ELSE 'names.actor' END, CASE WHEN part IN ('op',
           'all') THEN name ELSE 'names.op' END, CASE WHEN part IN ('key', 'all') THEN name ELSE 'key' END) c
           GROUP BY c.outcome;
SELECT count(*), bool_and(r.body = 'key' || n.n AND r.key = n.name) AS own FROM (SELECT row_number() OVER () AS i, *
    FROM idem_claim_many('names.actor', 'names.op', ARRAY(SELECT name FROM names
    ORDER BY n))) r JOIN (SELECT row_number() OVER (ORDER BY n) AS i, * FROM names) n USING (i);
SELECT count(*), bool_and(r.body = 'all' || n) AS own FROM names, idem_lookup(name, name, name) r;
-- as names of policies, where controls are refused
SELECT count(*) AS set, bool_and(p.op = name) AS as_given FROM names, idem_set_policy(name, 'default',
    '{"wait": "0"}') p WHERE name !~ '[\x01-\x1f\x7f]';
SELECT DISTINCT left(pg_temp.error_of(format('SELECT idem_set_policy(%L, %L)', name, 'default')), 60) AS error
    FROM names WHERE name ~ '[\x01-\x1f\x7f]';
DELETE FROM idem_policies p USING names WHERE p.op = names.name;
SELECT count(*) > 0 AS still_there FROM idem_keys;
-- limits count bytes, and a character is never cut
SELECT n, outcome, reason FROM (VALUES (1, repeat(U&'\+01F600', 63)), (2, repeat(U&'\+01F600', 63) || 'abc'), (3,
    repeat(U&'\+01F600', 64)), (4, repeat(U&'\00e9', 127)), (5, repeat(U&'\00e9', 128))) AS t (n, k),
    idem_claim('names.actor', 'names.limits', k) ORDER BY n;
SELECT outcome FROM idem_claim(repeat('a', 255), repeat('o', 128), repeat('k', 255));
SELECT outcome FROM idem_claim(repeat('a', 255), repeat('o', 128), repeat('k', 255), wait => '0');

-- no message shows a key, a payload, an answer or evidence, nor a control character
SELECT op FROM idem_set_policy('names.tx', 'default', '{"mode": "transaction"}');
SELECT op FROM idem_set_policy('names.lease', 'default', '{"mode": "lease"}');
CREATE TEMP TABLE messages (message text);
CREATE FUNCTION pg_temp.same(payload jsonb) RETURNS jsonb LANGUAGE sql RETURN payload;
DO $$
DECLARE marker text := E'MARKER\n\x1b[31m'; c idem_result; f text; s text; detail text; hint text; context text;
BEGIN
    c := idem_claim('names.actor', 'names.op', marker, to_jsonb(marker), target => marker);
    FOREACH s IN ARRAY ARRAY[
        format('SELECT idem_complete(%L, %s, 200, %L)', c.operation_id, c.token + 1, marker),
        format('SELECT idem_complete(%L, %s, 200, %L), idem_complete(%1$L, %2$s, 200, %3$L || 1)', c.operation_id,
            c.token, marker),
        format('SELECT idem_complete(%L, %s, 999, %L)', c.operation_id, c.token, marker),
        format('SELECT idem_complete(%L, %s, 200, %L, body_ref => %3$L)', c.operation_id, c.token, marker),
        format('SELECT idem_complete(%L, %s, 200, headers => jsonb_build_object(%L, 1))', c.operation_id, c.token,
            marker),
        format('SELECT idem_complete(%L, %s, 200, headers => jsonb_build_object(''ETag'', %L))', c.operation_id,
            c.token, marker),
        format('SELECT idem_complete(%L, 1, 200, %L)', '00000000-0000-8000-8000-000000000001', marker),
        format('SELECT idem_fail(%L, %s, %L)', c.operation_id, c.token, marker),
        format('SELECT idem_resolve(%L, %L, %L)', c.operation_id, 'released', to_jsonb(marker)),
        format('SELECT idem_resolve(%L, %L, %L)', c.operation_id, marker, to_jsonb(marker)),
        format('SELECT idem_checkpoint(%L, %s, to_jsonb(repeat(%L, 10000)))', c.operation_id, c.token, marker),
        format('SELECT (idem_claim(%L, %L, %L || 2, to_jsonb(%3$L::text))).*', 'names.actor', 'names.op', marker),
        format('SELECT idem_claim(repeat(%L, 100), %L, %1$L)', marker, 'names.op'),
        format('SELECT idem_claim(%L, repeat(%1$L, 100), %1$L)', marker),
        format('SELECT idem_claim(%L, %1$L, %1$L, to_jsonb(%1$L::text), payload_bytes => convert_to(%1$L, ''UTF8''))',
            marker),
        format('SELECT idem_claim(%L, %1$L, %1$L, wait => ''-1 s'')', marker),
        format('SELECT idem_claim_many(%L, %1$L, ARRAY[%1$L, NULL])', marker),
        format('SELECT idem_execute(%L, %1$L, %1$L, to_jsonb(%1$L::text))', marker),
        format('SELECT idem_execute(%L, %L, %1$L, to_jsonb(%1$L::text), handler => ''pg_temp.same'')', marker,
            'names.lease'),
        format('SELECT idem_hash(to_jsonb(%L::text), ''md5'')', marker),
        format('DO %L', format('BEGIN PERFORM idem_claim(%L, %L, %1$L, to_jsonb(%1$L::text)); SET CONSTRAINTS ALL IMMEDIATE; END', marker, 'names.tx'))]
    LOOP
        BEGIN
            EXECUTE s;
        EXCEPTION WHEN OTHERS THEN
            GET STACKED DIAGNOSTICS detail = PG_EXCEPTION_DETAIL, hint = PG_EXCEPTION_HINT;
            INSERT INTO messages VALUES (concat_ws(E' ', SQLSTATE, SQLERRM, detail, hint));
        END;
    END LOOP;
    PERFORM idem_release(operation_id, token) FROM idem_keys WHERE op = 'names.tx';
END $$;
SELECT count(*), count(*) FILTER (WHERE message LIKE '%MARKER%') AS revealing,
    count(*) FILTER (WHERE message ~ '[\x01-\x1f]') AS raw_controls FROM messages;
SELECT DISTINCT left(message, 5) AS sqlstate FROM messages ORDER BY 1;
SELECT * FROM messages WHERE message LIKE '%MARKER%' OR message ~ '[\x01-\x1f]';
DELETE FROM idem_policies WHERE op IN ('names.tx', 'names.lease');
