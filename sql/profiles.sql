-- profiles: a payload is compared under the rules its key was claimed under, whatever the policy has become since; rules
-- are versioned, never reused, never lost while a key needs them; a keyed hash needs the database's secret and the actor.
-- Covers A14 A15 G08 and invariant 6.
SET client_min_messages = warning;
CREATE EXTENSION IF NOT EXISTS idempotency;
RESET client_min_messages;
\pset null '(null)'
\set lenient '{"trim_strings": true, "ignore_paths": ["$.memo"]}'

-- Every kind of change, for a key in every state. A payload is the first one spelt otherwise (same), the same only to a
-- lenient profile (alike), or another.
CREATE TEMP TABLE change (n int, name text, old jsonb, new jsonb);
INSERT INTO change VALUES
    (1, 'xxh3-128 to sha256', '{}', '{"hash_algorithm": "sha256"}'),
    (2, 'sha256 to xxh3-128', '{"hash_algorithm": "sha256"}', '{}'),
    (3, 'strict to lenient', '{}', jsonb_build_object('profile', :'lenient'::jsonb)),
    (4, 'lenient to strict', jsonb_build_object('profile', :'lenient'::jsonb), '{}'),
    (5, 'none to per_actor', '{}', '{"hash_key": "per_actor"}'),
    (6, 'per_actor to none', '{"hash_key": "per_actor"}', '{}'),
    (7, 'no policy to all', NULL, jsonb_build_object('hash_algorithm', 'sha256', 'hash_key', 'per_actor', 'profile', :'lenient'::jsonb)),
    (8, 'all to no policy', jsonb_build_object('hash_algorithm', 'sha256', 'hash_key', 'per_actor', 'profile', :'lenient'::jsonb), NULL);
CREATE TEMP TABLE payload (kind text, document jsonb);
INSERT INTO payload VALUES
    ('same', '{"n": 1, "memo": "first", "id": " 7 "}'),
    ('alike', '{"id": "7", "n": 1, "memo": "second"}'),
    ('other', '{"id": " 7 ", "memo": "first", "n": 2}');
CREATE TEMP VIEW base AS SELECT '{"on_stale": "retry", "grace": "0", "wait": "0"}'::jsonb AS options;
SELECT n, p.version, p.profile FROM change, base, idem_set_policy('profiles.' || n, 'default', base.options || old) AS p ORDER BY n;
CREATE TEMP TABLE claimed AS
SELECT c.n, s AS state, p.kind, r.operation_id, r.token
  FROM change c, unnest(ARRAY['running', 'completed', 'failed', 'released', 'unknown', 'lapsed', 'over']) s, payload p,
       idem_claim('profiles.actor', 'profiles.' || n, s || ' ' || kind, '{"id": " 7 ", "memo": "first", "n": 1.00}') r;
SELECT count(*) FROM claimed;
SELECT r.state, count(*) FROM claimed c, idem_complete(operation_id, token, 201, 'done') r
 WHERE c.state IN ('completed', 'over') GROUP BY 1;
SELECT r.state, count(*) FROM claimed c, idem_fail(operation_id, token,
    CASE state WHEN 'unknown' THEN 'indeterminate' ELSE state END, 402) r
 WHERE c.state IN ('failed', 'released', 'unknown') GROUP BY 1 ORDER BY 1;
UPDATE idem_keys SET lease_until = now() - interval '1 min' WHERE actor = 'profiles.actor' AND key LIKE 'lapsed%';
UPDATE idem_keys SET expires_at = now() - interval '1 s' WHERE actor = 'profiles.actor' AND key LIKE 'over%';
SELECT n, p.version, p.profile FROM change, base, idem_set_policy('profiles.' || n, 'default', base.options || new) AS p
 WHERE new IS NOT NULL ORDER BY n;
DELETE FROM idem_policies WHERE op IN (SELECT 'profiles.' || n FROM change WHERE new IS NULL);
CREATE FUNCTION pg_temp.retries() RETURNS TABLE (change text, payload text, running text, completed text, failed text,
    released text, unknown text, lapsed text, over text) LANGUAGE sql AS $$
    SELECT c.name, k.kind, max(r.outcome) FILTER (WHERE k.state = 'running'), max(r.outcome) FILTER (WHERE k.state = 'completed'),
           max(r.outcome) FILTER (WHERE k.state = 'failed'), max(r.outcome) FILTER (WHERE k.state = 'released'),
           max(r.outcome) FILTER (WHERE k.state = 'unknown'), max(r.outcome) FILTER (WHERE k.state = 'lapsed'),
           max(r.outcome) FILTER (WHERE k.state = 'over')
      FROM claimed k JOIN change c USING (n) JOIN payload p USING (kind),
           idem_claim('profiles.actor', 'profiles.' || n, k.state || ' ' || kind, document, wait => '0') r
     GROUP BY c.n, c.name, k.kind ORDER BY c.n, array_position(ARRAY['same', 'alike', 'other'], k.kind)
$$;
SELECT * FROM pg_temp.retries();
-- What was acquired again keeps its version, but for a new life; so the next retry is compared as before.
SELECT * FROM pg_temp.retries() WHERE payload = 'same';
SELECT c.name, k.key, k.attempt, k.profile, octet_length(k.payload_hash) AS hash FROM idem_keys k JOIN change c ON k.op = 'profiles.' || c.n
 WHERE k.key IN ('lapsed same', 'released same', 'over same') AND k.attempt + k.profile > 1 ORDER BY c.n, k.key;
-- The other ways to claim.
SELECT c.name, m.key, m.outcome FROM change c, idem_claim_many('profiles.actor', 'profiles.' || n, ARRAY['completed same', 'failed same'],
    ARRAY['{"n": 1, "memo": "first", "id": " 7 "}', '{"n": 3}']::jsonb[]) m ORDER BY n, m.key;
CREATE FUNCTION pg_temp.same(payload jsonb) RETURNS jsonb LANGUAGE sql RETURN payload;
SELECT count(*), r.outcome, r.body FROM change c, idem_execute('profiles.actor', 'profiles.' || n, 'completed same',
    '{"n": 1, "memo": "first", "id": " 7 "}', 'pg_temp.same') r GROUP BY 2, 3;
-- A conflict shows both hashes under the winner's version.
SELECT c.name, r.outcome, octet_length(r.detail ->> 'payload_hash') AS digits, octet_length(r.detail -> 'winner' ->> 'payload_hash') AS winner_digits,
       r.detail ->> 'payload_hash' = encode(idem_hash('{"n": 2}', CASE n WHEN 1 THEN 'xxh3-128' ELSE 'sha256' END), 'hex') AS reproducible
  FROM change c, idem_claim('profiles.actor', 'profiles.' || n, 'completed same', '{"n": 2}') r WHERE n <= 2 ORDER BY n;

-- Versions: the same rules again make none, whatever else changes; other ones do.
SELECT n, p.version, p.profile FROM (VALUES (1, 'default', '{}'::jsonb), (2, 'default', '{}'), (3, 'default', '{"ttl": "2 days"}'),
    (4, 'ephemeral', '{}'), (5, 'default', '{"profile": {}, "hash_key": "none", "hash_algorithm": "xxh3-128"}'),
    (6, 'order', '{}'), (7, 'payment', '{}'), (8, 'default', '{"profile": {"numbers": "double"}}'),
    (9, 'default', '{"profile": {"numbers": "double"}}'), (10, 'default', '{"profile": {"numbers": "double"}, "hash_key": "per_actor"}'),
    (11, 'default', '{"profile": {"numbers": "double"}, "hash_key": "per_actor"}'), (12, 'default', '{}')) AS v (n, preset, options),
    LATERAL (SELECT * FROM idem_set_policy('profiles.versions', preset, options)) p ORDER BY n;
SELECT version, hash_algorithm, secret_version, options FROM idem_profiles WHERE op = 'profiles.versions' ORDER BY version;
-- A policy that was deleted and is set again goes on counting profiles.
DELETE FROM idem_policies WHERE op = 'profiles.versions';
SELECT outcome FROM idem_claim('profiles.actor', 'profiles.versions', 'no policy', '{"n": 1}');
SELECT version, profile FROM idem_set_policy('profiles.versions', 'default', '{"hash_algorithm": "sha256"}');
DELETE FROM idem_policies WHERE op = 'profiles.versions';
SELECT version, profile FROM idem_set_policy('profiles.versions', 'default', '{"hash_algorithm": "sha256"}');
SELECT outcome FROM idem_claim('profiles.actor', 'profiles.versions', 'again', '{"n": 1}');
SELECT key, profile, payload_hash = idem_hash('{"n": 1}') AS plain, payload_hash = idem_hash('{"n": 1}', 'sha256') AS sha256
  FROM idem_keys WHERE op = 'profiles.versions' ORDER BY key DESC;

-- A version that was rolled back may come again with other rules: neither this session nor another mistakes them.
CREATE FUNCTION pg_temp.rules_of(name text) RETURNS TABLE (version int, rules text) LANGUAGE sql AS $$
    SELECT k.profile, CASE k.payload_hash WHEN idem_hash('{"a": " x "}') THEN 'plain' WHEN idem_hash('{"a": "x"}') THEN 'trimmed'
                                          WHEN idem_hash('{"a": " x "}', 'sha256') THEN 'sha256' ELSE 'other' END
      FROM idem_keys k WHERE k.op = 'profiles.rollback' AND k.key = name $$;
SELECT profile FROM idem_set_policy('profiles.rollback', 'default', '{"wait": "0"}');
BEGIN;
SELECT profile FROM idem_set_policy('profiles.rollback', 'default', '{"wait": "0", "profile": {"trim_strings": true}}');
SELECT outcome FROM idem_claim('profiles.actor', 'profiles.rollback', 'k', '{"a": " x "}');
SELECT * FROM pg_temp.rules_of('k');
ROLLBACK;
SELECT profile FROM idem_set_policy('profiles.rollback', 'default', '{"wait": "0", "hash_algorithm": "sha256"}');
SELECT outcome FROM idem_claim('profiles.actor', 'profiles.rollback', 'k', '{"a": " x "}');
SELECT * FROM pg_temp.rules_of('k');
BEGIN;
SAVEPOINT s;
SELECT profile FROM idem_set_policy('profiles.rollback', 'default', '{"wait": "0", "profile": {"numbers": "double"}}');
SELECT outcome FROM idem_claim('profiles.actor', 'profiles.rollback', 'savepoint', '{"a": " x "}');
ROLLBACK TO s;
SELECT profile FROM idem_set_policy('profiles.rollback', 'default', '{"wait": "0", "profile": {"trim_strings": true}}');
SELECT outcome FROM idem_claim('profiles.actor', 'profiles.rollback', 'savepoint', '{"a": " x "}');
COMMIT;
SELECT * FROM pg_temp.rules_of('savepoint');
SELECT k, r.outcome FROM unnest(ARRAY['k', 'savepoint']) k, idem_claim('profiles.actor', 'profiles.rollback', k, '{"a": " x "}') r ORDER BY k;
SELECT operation_id AS id, token FROM idem_keys WHERE op = 'profiles.rollback' AND key = 'k' \gset
SELECT outcome FROM idem_complete(:'id', :token, 201, 'done');

-- A version that is gone is an error, and nothing runs. Another session does not know the old one.
CREATE TABLE run (payload jsonb);
CREATE FUNCTION run(payload jsonb) RETURNS jsonb LANGUAGE sql AS 'INSERT INTO run VALUES (payload) RETURNING payload';
CREATE TABLE lost AS SELECT * FROM idem_profiles WHERE op = 'profiles.rollback' AND version > 1;
DELETE FROM idem_profiles WHERE op = 'profiles.rollback' AND version > 1;
\c -
\pset null '(null)'
SELECT outcome FROM idem_claim('profiles.actor', 'profiles.rollback', 'k', '{"a": " x "}');
SELECT outcome FROM idem_execute('profiles.actor', 'profiles.rollback', 'new', '{"a": " x "}', 'run');
SELECT count(*) FROM idem_claim_many('profiles.actor', 'profiles.rollback', ARRAY['k', 'new'], ARRAY['{"a": " x "}', '1']::jsonb[]);
SELECT canonical FROM idem_payload_explain('profiles.rollback', '{"a": " x "}');
SELECT outcome, body FROM idem_lookup('profiles.actor', 'profiles.rollback', 'k');
SELECT count(*) AS keys FROM idem_keys WHERE op = 'profiles.rollback';
-- A key needs its own version only.
INSERT INTO idem_profiles SELECT * FROM lost WHERE version = 2;
SELECT outcome, body FROM idem_claim('profiles.actor', 'profiles.rollback', 'k', '{"a": " x "}');
SELECT outcome FROM idem_claim('profiles.actor', 'profiles.rollback', 'new', '{"a": " x "}');
INSERT INTO idem_profiles SELECT * FROM lost WHERE version <> 2;
SELECT outcome FROM idem_claim('profiles.actor', 'profiles.rollback', 'savepoint', '{"a": "x"}');
SELECT count(*) AS runs FROM run;
DROP FUNCTION run;
DROP TABLE run, lost;

-- New rules that cannot hash a payload are no concern of a key that has older ones.
SELECT profile FROM idem_set_policy('profiles.double', 'default', '{"wait": "0"}');
SELECT outcome FROM idem_claim('profiles.actor', 'profiles.double', 'k', '[1e400]');
SELECT profile FROM idem_set_policy('profiles.double', 'default', '{"wait": "0", "profile": {"numbers": "double"}}');
SELECT idem_canonical(p), outcome FROM (VALUES (1, '[1e400]'::jsonb), (2, '[1e401]')) v (n, p), idem_claim('profiles.actor', 'profiles.double', 'k', p) ORDER BY n;
SELECT outcome FROM idem_claim('profiles.actor', 'profiles.double', 'new', '[1e400]');

-- What won is shown as it was compared.
SELECT profile FROM idem_set_policy('profiles.full', 'default', '{"conflict_detail": "full", "store_payload": "canonical", "wait": "0",
    "profile": {"trim_strings": true, "ignore_paths": ["$.at"], "decimal_paths": ["$.amount"], "unordered_paths": ["$.tags"]}}');
SELECT outcome FROM idem_claim('profiles.actor', 'profiles.full', 'k', '{"at": "9:00", "amount": "10.00", "tags": ["b", "a"], "to": " Ann "}');
SELECT outcome FROM idem_claim('profiles.actor', 'profiles.full', 'k', '{"at": "9:01", "amount": 10, "tags": ["a", "b"], "to": "Ann"}');
SELECT profile FROM idem_set_policy('profiles.full', 'default', '{"conflict_detail": "full", "store_payload": "canonical", "wait": "0"}');
SELECT outcome FROM idem_claim('profiles.actor', 'profiles.full', 'k', '{"at": "9:02", "amount": 10, "tags": ["a", "b"], "to": "Ann"}');
SELECT outcome, detail -> 'winner' -> 'payload' AS winner, convert_from(h.body, 'UTF8')::jsonb -> 'winner' -> 'payload' AS sent
  FROM idem_claim('profiles.actor', 'profiles.full', 'k', '{"at": "9:00", "amount": 11}') c, idem_http_response(c) h;
SELECT payload FROM idem_keys WHERE op = 'profiles.full';

-- Bytes are hashed as they are; a target goes before either.
SELECT profile FROM idem_set_policy('profiles.bytes', 'default', '{"wait": "0", "hash_algorithm": "sha256", "profile": {"trim_strings": true}}');
SELECT key, outcome FROM (VALUES ('bytes', NULL::jsonb, ' {"a": " x "}'::bytea, NULL), ('bytes, target', NULL, ' {"a": " x "}', ' t '),
    ('json, target', '{"a": " x "}', NULL, ' t '), ('target', NULL, NULL, ' t '), ('nothing', NULL, NULL, NULL)) AS v (key, j, b, t),
    LATERAL (SELECT outcome FROM idem_claim('profiles.actor', 'profiles.bytes', key, j, t, payload_bytes => b)) r;
SELECT key, payload_hash = CASE key WHEN 'bytes' THEN sha256(' {"a": " x "}') WHEN 'bytes, target' THEN sha256('" t "' || '\x0a'::bytea || ' {"a": " x "}')
    WHEN 'json, target' THEN sha256('" t "' || '\x0a'::bytea || '{"a":"x"}') WHEN 'target' THEN sha256('" t "' || '\x0a'::bytea) END AS as_documented
  FROM idem_keys WHERE op = 'profiles.bytes' ORDER BY key;
SELECT profile FROM idem_set_policy('profiles.bytes', 'default', '{"wait": "0", "hash_key": "per_actor"}');
SELECT key, note, outcome FROM (VALUES (1, 'bytes', 'the same', NULL::jsonb, ' {"a": " x "}'::bytea, NULL), (2, 'bytes', 'trimmed', NULL, '{"a":"x"}', NULL),
    (3, 'bytes', 'as JSON', '{"a": " x "}', NULL, NULL), (4, 'bytes, target', 'the same', NULL, ' {"a": " x "}', ' t '),
    (5, 'bytes, target', 'no target', NULL, ' {"a": " x "}', NULL), (6, 'json, target', 'trimmed', '{"a": "x"}', NULL, ' t '),
    (7, 'json, target', 'other target', '{"a": "x"}', NULL, 't'), (8, 'target', 'the same', NULL, NULL, ' t '), (9, 'target', 'other target', NULL, NULL, 't'),
    (10, 'nothing', 'nothing', NULL, NULL, NULL), (11, 'nothing', 'something', '{}', NULL, NULL)) AS v (n, key, note, j, b, t),
    LATERAL (SELECT outcome FROM idem_claim('profiles.actor', 'profiles.bytes', key, j, t, payload_bytes => b)) r ORDER BY n;

-- Keyed hashes: HMAC-SHA-256 of the length of the actor, the actor, and the SHA-256 of the payload.
CREATE FUNCTION pg_temp.hmac(secret bytea, message bytea) RETURNS bytea LANGUAGE sql AS $$
    SELECT sha256(o.pad || sha256(i.pad || message))
      FROM (SELECT string_agg(set_byte('\x00', 0, CASE WHEN n < length(secret) THEN get_byte(secret, n) ELSE 0 END # 54), '' ORDER BY n) AS pad FROM generate_series(0, 63) n) i,
           (SELECT string_agg(set_byte('\x00', 0, CASE WHEN n < length(secret) THEN get_byte(secret, n) ELSE 0 END # 92), '' ORDER BY n) AS pad FROM generate_series(0, 63) n) o $$;
SELECT pg_temp.hmac('key', 'The quick brown fox jumps over the lazy dog') AS known;
SELECT profile FROM idem_set_policy('profiles.keyed', 'default', '{"wait": "0", "hash_key": "per_actor", "profile": {"trim_strings": true}}');
SELECT count(*) FROM (VALUES ('ann', 'one'), ('ann', 'two'), ('bob', 'one'), ('bo', 'b one')) v (a, k), idem_claim(a, 'profiles.keyed', k, '{"pin": " 1234"}');
SELECT count(*) FROM idem_claim('ann', 'profiles.keyed', 'bytes', target => 't', payload_bytes => '1234');
SELECT k.actor, k.key, dense_rank() OVER (ORDER BY payload_hash = pg_temp.hmac(secret, m)) AS fits, count(*) OVER (PARTITION BY payload_hash) AS same_hash
  FROM idem_keys k JOIN idem_secrets s ON s.version = 1,
       LATERAL (SELECT int4send(octet_length(actor)) || convert_to(actor, 'UTF8') || CASE key WHEN 'bytes' THEN sha256('"t"' || '\x0a'::bytea || '1234')
                       ELSE sha256('{"pin":"1234"}') END AS m) AS x
 WHERE op = 'profiles.keyed' ORDER BY k.actor, k.key;
SELECT actor, bool_and(payload_hash = e.hash) AS as_explained, min(e.hash_algorithm) AS algorithm
  FROM idem_keys k, idem_payload_explain('profiles.keyed', '{"pin": "1234 "}', actor) e WHERE op = 'profiles.keyed' AND key <> 'bytes' GROUP BY actor ORDER BY actor;
SELECT * FROM idem_payload_explain('profiles.keyed', '{"pin": " 1234"}');
SELECT count(*) AS secrets, min(length(secret)) AS bytes, count(DISTINCT secret) AS different FROM idem_secrets;
SELECT md5(secret) AS secret FROM idem_secrets \gset
SELECT profile FROM idem_set_policy('profiles.keyed', 'default', '{"hash_key": "none"}');
SELECT profile FROM idem_set_policy('profiles.keyed', 'default', '{"hash_key": "per_actor"}');
SELECT count(*) AS secrets, bool_and(md5(secret) = :'secret') AS unchanged FROM idem_secrets;
-- A lost secret is not replaced under its number, which a session or a key may still have.
BEGIN;
DELETE FROM idem_secrets;
SELECT profile FROM idem_set_policy('profiles.keyed', 'default', '{"hash_key": "per_actor"}');
SELECT version, md5(secret) = :'secret' AS same FROM idem_secrets;
SELECT secret_version FROM idem_profiles WHERE op = 'profiles.keyed' ORDER BY version;
ROLLBACK;
-- Who sees the secret: nobody but the owner. What is made with it is for everybody to use.
CREATE ROLE regress_idem_keyed;
CREATE FUNCTION pg_temp.attempts(level text) RETURNS TABLE (lvl text, secret text, profiles text, explained text) LANGUAGE plpgsql AS $$
BEGIN
    lvl := level;
    PERFORM idem_admin_grant('regress_idem_keyed', level);
    SET LOCAL ROLE regress_idem_keyed;
    BEGIN PERFORM s.secret FROM idem_secrets s; secret := 'shown'; EXCEPTION WHEN insufficient_privilege THEN secret := 'refused'; END;
    BEGIN PERFORM version FROM idem_profiles; profiles := 'shown'; EXCEPTION WHEN insufficient_privilege THEN profiles := 'refused'; END;
    SELECT length(hash) INTO explained FROM idem_payload_explain('profiles.keyed', '1', 'ann');
    RESET ROLE;
    SET LOCAL client_min_messages = warning;
    DROP OWNED BY regress_idem_keyed;
    RETURN NEXT;
END $$;
SELECT a.* FROM unnest(ARRAY['client', 'relay', 'monitor', 'admin']) l, pg_temp.attempts(l) a;
DROP ROLE regress_idem_keyed;

-- Explaining and comparing.
SELECT profile FROM idem_set_policy('profiles.explain', 'order', '{"profile": {"trim_strings": true, "nfc_strings": true, "strip_nulls": true,
    "ignore_paths": ["$.at", "$.lines[*].note"], "decimal_paths": ["$.lines[*].price"], "round_paths": {"$.total": 2}, "unordered_paths": ["$.tags"]}}');
\set order '{"at": "9:00", "total": 20.004, "tags": ["b", "a"], "to": {"name": " Zoe\\u0308 ", "street": null}, "lines": [{"sku": "A1", "note": "gift", "price": "10.00"}, {"sku": "B2", "price": 10, "note": null}], "none": {}}'
SELECT canonical, hash = sha256(convert_to(canonical, 'UTF8')) AS hash, hash_algorithm, profile FROM idem_payload_explain('profiles.explain', :'order');
SELECT d ->> 'path' AS path, d -> 'given' AS given, d -> 'hashed' AS hashed FROM idem_payload_explain('profiles.explain', :'order'), jsonb_array_elements(dropped) d;
SELECT * FROM idem_payload_diff('profiles.explain', :'order', '{"total": 20, "tags": ["a", "b"], "to": {"name": "Zo\u00eb"},
    "lines": [{"sku": "A1", "price": 10}, {"sku": "B2", "price": "1e1"}], "none": {}}');
SELECT * FROM idem_payload_diff('profiles.explain', :'order', '{"total": 20.005, "tags": ["a", "c"], "to": {"name": "Zoe", "a b\"c": [[1], {"d": true}]},
    "lines": [{"sku": "A1", "price": "ten"}], "none": []}');
SELECT x.a, x.b, d.path, d.a, d.b FROM (VALUES (1, '1'::jsonb, '1.0'::jsonb), (2, '1', '"1"'), (3, '[]', '{}'), (4, 'null', '[null]'), (5, '[1, 2]', '[2, 1]')) x (n, a, b)
  LEFT JOIN LATERAL idem_payload_diff('profiles.without', x.a, x.b) d ON true ORDER BY n, d.path;
SELECT canonical, hash = idem_hash('[1.50, null]') AS hash, hash_algorithm, profile, dropped FROM idem_payload_explain('profiles.without', '[1.50, null]');
SELECT length(canonical) AS length, dropped FROM idem_payload_explain('profiles.without', (repeat('[', 1000) || repeat(']', 1000))::jsonb);
SELECT count(*) AS differences FROM idem_payload_diff('profiles.without', (SELECT jsonb_agg(i) FROM generate_series(1, 2000) i), (SELECT jsonb_agg(i + i / 1000) FROM generate_series(1, 2000) i));
\set VERBOSITY sqlstate
SELECT * FROM idem_payload_explain(NULL, '1');
SELECT * FROM idem_payload_explain('profiles.explain', NULL);
SELECT * FROM idem_payload_diff(NULL, '1', '1');
SELECT * FROM idem_payload_diff('profiles.explain', NULL, '1');
SELECT * FROM idem_payload_diff('profiles.explain', '1', NULL);
SELECT * FROM idem_payload_explain('', '1');
SELECT profile FROM idem_set_policy('profiles.bad', 'default', '{"profile": {"ignore_path": ["$.a"]}}');
SELECT profile FROM idem_set_policy('profiles.bad', 'default', '{"profile": {"ignore_paths": ["a"]}}');
SELECT profile FROM idem_set_policy('profiles.bad', 'default', '{"hash_key": "per_tenant"}');
\set VERBOSITY default
SELECT count(*) AS left_by_errors FROM idem_profiles WHERE op = 'profiles.bad';

-- Versions go when nothing needs them: not the current one, not one that a key has, not one with a young successor.
SELECT p.profile FROM (VALUES (1, '{}'::jsonb), (2, '{"hash_algorithm": "sha256"}'), (3, '{}'), (4, '{"hash_algorithm": "sha256"}'), (5, '{}'),
    (6, '{"hash_algorithm": "sha256"}')) v (n, o), LATERAL (SELECT profile FROM idem_set_policy('profiles.prune', 'default', o)) p ORDER BY n;
SELECT count(*) FROM idem_admin_prune_profiles() WHERE op = 'profiles.prune';
UPDATE idem_profiles SET created_at = now() - interval '2 days' WHERE op = 'profiles.prune' AND version <= 5;
SELECT count(*) FROM idem_claim('profiles.actor', 'profiles.prune', 'k', '1');
UPDATE idem_keys SET profile = 2, payload_hash = idem_hash('1', 'sha256') WHERE op = 'profiles.prune';
SELECT * FROM idem_admin_prune_profiles() WHERE op = 'profiles.prune' ORDER BY version;
SELECT version FROM idem_profiles WHERE op = 'profiles.prune' ORDER BY version;
SELECT outcome FROM idem_claim('profiles.actor', 'profiles.prune', 'k', '1', wait => '0');
UPDATE idem_profiles SET created_at = now() - interval '2 days' WHERE op = 'profiles.prune';
DELETE FROM idem_policies WHERE op = 'profiles.prune';
SELECT * FROM idem_admin_prune_profiles() WHERE op = 'profiles.prune' ORDER BY version;
SELECT profile FROM idem_set_policy('profiles.prune', 'default');

-- The hash functions in parallel workers, in queries and in the build of an index.
CREATE TABLE document AS SELECT i, jsonb_build_object('i', i % 100, 'at', i, 's', ' x ', 'list', jsonb_build_array(i % 7, i % 3), 'number', i % 10 * 1.10) AS payload FROM generate_series(1, 5000) i;
ALTER TABLE document ADD hash bytea GENERATED ALWAYS AS (idem_hash(payload, 'sha256', trim_strings => true, ignore_paths => '{$.at}')) STORED;
ANALYZE document;
SET parallel_setup_cost = 0;
SET parallel_tuple_cost = 0;
SET min_parallel_table_scan_size = 0;
SET max_parallel_workers_per_gather = 2;
CREATE FUNCTION pg_temp.workers(query text) RETURNS int LANGUAGE plpgsql AS $$
DECLARE plan json;
BEGIN
    EXECUTE 'EXPLAIN (ANALYZE, COSTS OFF, TIMING OFF, FORMAT JSON) ' || query INTO plan;
    RETURN (regexp_match(plan::text, '"Workers Launched": (\d+)'))[1];
END $$;
\set query 'SELECT count(*), count(*) FILTER (WHERE hash = idem_hash(payload, ''sha256'', trim_strings => true, ignore_paths => ''{$.at}'')) AS as_stored, count(*) FILTER (WHERE idem_hash(payload) = idem_hash_text(payload::text)) AS as_text, count(*) FILTER (WHERE idem_canonical(payload)::jsonb = payload) AS same_value, count(*) FILTER (WHERE idem_payload_jcs_safe(payload)) AS safe FROM document'
SELECT pg_temp.workers(:'query') > 0 AS in_parallel;
:query;
SELECT set_config(name, 'on', false) FROM pg_settings WHERE name IN ('force_parallel_mode', 'debug_parallel_query');
SELECT pg_temp.workers('SELECT idem_hash(''1''), idem_unicode_version()') AS forced;
SELECT idem_hash('{"a":1}'), idem_canonical('{"b": " x", "a": 1.0}', trim_strings => true), idem_hash_text('{"a": 1}'), idem_payload_jcs_safe('[1]'), idem_unicode_version() = idem_unicode_version() AS version;
SELECT set_config(name, 'off', false) FROM pg_settings WHERE name IN ('force_parallel_mode', 'debug_parallel_query');
ALTER TABLE document SET (parallel_workers = 2);
CREATE INDEX ON document (idem_hash(payload, trim_strings => true));
SET enable_seqscan = off;
SELECT count(*) AS found FROM document WHERE idem_hash(payload, trim_strings => true) = idem_hash('{"i": 42, "at": 42, "s": "x", "list": [0, 0], "number": 2.2}');
DROP TABLE document;
