-- effects: effects once by name and only for the holder, keys of children, the tree, locks on resources. Covers B03 C10.
SET client_min_messages = warning;
CREATE EXTENSION IF NOT EXISTS idempotency;
RESET client_min_messages;
\pset null '(null)'
CREATE FUNCTION pg_temp.error_of(statement text) RETURNS text LANGUAGE plpgsql AS $$
BEGIN
    EXECUTE statement;
    RETURN 'no error';
EXCEPTION WHEN OTHERS THEN
    RETURN SQLSTATE || ' ' || SQLERRM;
END $$;
SELECT operation_id AS id, token FROM idem_claim('effects', 'order.place', 'o-1', '{"sku": 1}') \gset
SELECT first, recorded_ref, recorded_data, recorded_at IS NOT NULL AS timed FROM idem_effect(:'id', :token, 'charge', 'ch_1', '{"amount": 10}');
-- a resumed worker is told what the first one did
SELECT first, recorded_ref, recorded_data FROM idem_effect(:'id', :token, 'charge', 'ch_2');
SELECT first, recorded_ref FROM idem_effect(:'id', :token, 'mail');
-- only the holder records
SELECT n, pg_temp.error_of(format('SELECT * FROM idem_effect(%s)', replace(replace(a, ':id', quote_literal(:'id')), ':token', :'token'))) AS error
  FROM (VALUES (1, 'NULL, :token, ''x'''), (2, ':id, NULL, ''x'''), (3, ':id, :token, NULL'), (4, ':id, :token, '''''),
      (5, ':id, :token - 1, ''x'''), (6, '''00000000-0000-8000-8000-000000000000'', 1, ''x'''),
      (7, ':id, :token, repeat(''x'', 256)'), (8, ':id, :token, ''x'', repeat(''x'', 2049)'),
      (9, ':id, :token, ''x'', NULL, to_jsonb((SELECT string_agg(md5(i::text), '''') FROM generate_series(1, 3000) i))')) AS t (n, a) ORDER BY n;
SELECT count(*) FROM idem_effects WHERE operation_id = :'id';
-- what is rolled back was not recorded
BEGIN;
SAVEPOINT s;
SELECT first FROM idem_effect(:'id', :token, 'sms');
ROLLBACK TO s;
SELECT first FROM idem_effect(:'id', :token, 'sms');
COMMIT;

-- children: derived keys, the same in every retry of the parent
SELECT idem_child_key('11111111-1111-8111-8111-111111111111', 'payment.capture', 'deposit') AS key;
SELECT idem_child_key(:'id', 'a', 'bc') = idem_child_key(:'id', 'ab', 'c') AS confused,
       idem_child_key(:'id', 'a', 'bc') = idem_child_key(:'id', 'a', 'bc') AS same;
SELECT n, pg_temp.error_of(format('SELECT idem_child_key(%s)', a)) AS error
  FROM (VALUES (1, 'NULL, ''o'', ''n'''), (2, 'gen_random_uuid(), NULL, ''n'''), (3, 'gen_random_uuid(), ''o'', NULL')) AS t (n, a) ORDER BY n;
SELECT operation_id AS child, token AS child_token FROM idem_claim('effects', 'payment.capture',
    idem_child_key(:'id', 'payment.capture', 'deposit'), '1', parent_operation_id => :'id') \gset
SELECT first FROM idem_effect(:'child', :child_token, 'psp', 'pi_1');
SELECT outcome FROM idem_complete(:'child', :child_token, 201);
SELECT outcome FROM idem_claim('effects', 'payment.capture', idem_child_key(:'id', 'payment.capture', 'deposit'), '1', parent_operation_id => :'id');
SELECT outcome FROM idem_checkpoint(:'id', :token, '{"step": 2}');
SELECT outcome FROM idem_complete(:'id', :token, 201);
-- an effect noted late, by its own token
SELECT first FROM idem_effect(:'id', :token, 'late', 'x');
-- new intent, new key: linked
SELECT outcome FROM idem_claim('effects', 'order.place', 'o-1-changed', '{"sku": 2}', parent_operation_id => :'id');
SELECT depth, kind, name, state, data - 'claimed_by' - 'completed_at' - 'key' AS data FROM idem_tree(:'id')
 ORDER BY depth, CASE kind WHEN 'operation' THEN 0 ELSE 1 END, name;
SELECT jsonb_array_length(idem_tree_json(:'id')) AS rows, idem_tree_json(:'id') -> 0 ->> 'kind' AS first;
SELECT count(*) AS nothing FROM idem_tree('00000000-0000-8000-8000-000000000000');
SELECT idem_tree_json('00000000-0000-8000-8000-000000000000');
SELECT pg_temp.error_of('SELECT * FROM idem_tree(NULL)');
-- an operation that says it is its own parent ends somewhere
SELECT operation_id AS own FROM idem_claim('effects', 'loop', 'l-1', '1') \gset
UPDATE idem_keys SET parent = operation_id WHERE operation_id = :'own';
INSERT INTO idem_children VALUES (:'own', :'own');
SELECT count(*) FROM idem_tree(:'own');

-- locks
BEGIN;
SELECT idem_lock_resource('order/1'), idem_lock_resource('order/1', '0'), idem_lock_resource('order/2');
SELECT count(*) AS advisory_locks, bool_and(mode = 'ExclusiveLock' AND objsubid = 1) AS of_bigints FROM pg_locks WHERE locktype = 'advisory' AND pid = pg_backend_pid();
COMMIT;
SELECT count(*) AS left_behind FROM pg_locks WHERE locktype = 'advisory' AND pid = pg_backend_pid();
SELECT n, pg_temp.error_of(format('SELECT idem_lock_resource(%s)', a)) AS error
  FROM (VALUES (1, 'NULL'), (2, ''''''), (3, '''x'', ''61 s'''), (4, '''x'', ''-1 s'''), (5, 'repeat(''x'', 1025)')) AS t (n, a) ORDER BY n;

-- retention: effects and links go when their operation is gone, and not before
SELECT sum(idem_sweep_effects(1000)) AS too_early FROM generate_series(1, 20);
DELETE FROM idem_responses WHERE operation_id = :'id';
DELETE FROM idem_keys WHERE operation_id IN (:'id', :'own');
SELECT sum(idem_sweep_effects(1000)) > 0 AS removed FROM generate_series(1, 200);
SELECT count(*) AS of_the_parent FROM idem_effects WHERE operation_id = :'id';
SELECT count(*) AS of_the_child FROM idem_effects WHERE operation_id = :'child';
