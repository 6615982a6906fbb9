-- inbox: one effect for each event, whatever is redelivered, late or out of order. Covers B01 C01 C02 C05 C10 C11.
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
-- committing the receive is done; an abort leaves no trace
BEGIN;
SELECT outcome, proceed, state, token IS NOT NULL AS has_token FROM idem_inbox_claim('shop', 'psp', 'evt_1', '{"v": 1}');
ROLLBACK;
SELECT outcome, proceed, state FROM idem_inbox_claim('shop', 'psp', 'evt_1', '{"v": 1}');
SELECT outcome, proceed, replayed, detail FROM idem_inbox_claim('shop', 'psp', 'evt_1', '{"v": 1}');
-- providers change bodies on redelivery
SELECT outcome, detail FROM idem_inbox_claim('shop', 'psp', 'evt_1', '{"v": 1, "retry": 2}');
SELECT (idem_http_response(r)).status FROM idem_inbox_claim('shop', 'psp', 'evt_1') r;
-- the same id elsewhere is another event
SELECT outcome FROM idem_inbox_claim('other', 'psp', 'evt_1') UNION ALL SELECT outcome FROM idem_inbox_claim('shop', 'crm', 'evt_1');
BEGIN;
SELECT outcome FROM idem_inbox_claim('shop', 'psp', 'evt_2');
SELECT outcome FROM idem_inbox_claim('shop', 'psp', 'evt_2');
COMMIT;
-- an op may ask for conflict
SELECT op FROM idem_set_policy('inbox:strict.psp', 'webhook', '{"payload_compare": true}');
SELECT outcome FROM idem_inbox_claim('shop', 'strict.psp', 'e', '1');
SELECT outcome, reason FROM idem_inbox_claim('shop', 'strict.psp', 'e', '2');
-- dedup_id is the intent, event_id the delivery
SELECT outcome FROM idem_inbox_claim('shop', 'psp', 'evt_3', '1', dedup_id => 'pay-1');
SELECT outcome, key FROM idem_inbox_claim('shop', 'psp', 'evt_4', '1', dedup_id => 'pay-1');
SELECT outcome FROM idem_inbox_claim('shop', 'psp', 'pay-1', '1');
SELECT expires_at - completed_at AS window FROM idem_inbox_claim('shop', 'psp', 'evt_5', dedup_window => '2 h');
SELECT expires_at - completed_at AS window FROM idem_inbox_claim('shop', 'psp', 'evt_6');

-- latest: what is not newer is stale, and remembered as that
SELECT outcome, detail FROM idem_inbox_claim('shop', 'psp', 'l-5', '5', 'order-1', 5);
SELECT outcome, proceed, state, detail FROM idem_inbox_claim('shop', 'psp', 'l-4', '4', 'order-1', 4);
SELECT outcome, detail FROM idem_inbox_claim('shop', 'psp', 'l-4', '4', 'order-1', 4);
SELECT outcome FROM idem_inbox_claim('shop', 'psp', 'l-5b', '5', 'order-1', 5);
SELECT outcome FROM idem_inbox_claim('shop', 'psp', 'l-9', '9', 'order-1', 9);
SELECT outcome FROM idem_inbox_claim('shop', 'psp', 'l-0', '0', 'order-2', 0);
SELECT (idem_http_response(r)).status FROM idem_inbox_claim('shop', 'psp', 'l-1', '0', 'order-1', 1) r;

-- strict: parked until the predecessor was handled, released in order
SELECT op FROM idem_set_policy('inbox:bank', 'webhook', '{"entity_order": "strict"}');
SELECT outcome, proceed, state, detail FROM idem_inbox_claim('shop', 'bank', 's-3', '3', 'acc', 3);
SELECT outcome FROM idem_inbox_claim('shop', 'bank', 's-2', '2', 'acc', 2);
SELECT outcome FROM idem_inbox_claim('shop', 'bank', 's-3', '3', 'acc', 3);
SELECT outcome FROM idem_inbox_claim('shop', 'bank', 's-5', '5', 'acc', 5);
SELECT (idem_http_response(r)).status FROM idem_inbox_claim('shop', 'bank', 's-5', '5', 'acc', 5) r;
SELECT count(*) AS ready FROM idem_inbox_ready('shop', 'bank');
SELECT outcome FROM idem_inbox_claim('shop', 'bank', 's-1', '1', 'acc', 1);
BEGIN;
SELECT event_id, event_entity, seq, payload FROM idem_inbox_ready('shop', 'bank');
ROLLBACK;
SELECT event_id, event_entity, seq, payload, token IS NOT NULL AS held FROM idem_inbox_ready('shop', 'bank');
SELECT outcome, proceed FROM idem_inbox_claim('shop', 'bank', 's-2', '2', 'acc', 2);
SELECT seq, event_id FROM idem_inbox_parked ORDER BY seq;
-- a redelivery whose turn has come needs no idem_inbox_ready
SELECT outcome FROM idem_inbox_claim('shop', 'bank', 's-4', '4', 'acc', 4);
SELECT outcome FROM idem_inbox_claim('shop', 'bank', 's-5', '5', 'acc', 5);
SELECT count(*) AS parked FROM idem_inbox_parked;
-- what will not come is skipped, with a trace
SELECT outcome FROM idem_inbox_claim('shop', 'bank', 's-8', '8', 'acc', 8);
SELECT idem_inbox_skip('shop', 'bank', 'acc', 7, '{"bank": "deleted"}');
SELECT idem_inbox_skip('shop', 'bank', 'acc', 2, '{"bank": "deleted"}');
SELECT event_id FROM idem_inbox_ready('shop', 'bank', 'acc');
SELECT what, detail FROM idem_audit WHERE what = 'idem_inbox_skip' ORDER BY id;

-- with a lease: the work goes on after the commit
BEGIN;
SELECT outcome, state, token AS token FROM idem_inbox_claim('shop', 'psp', 'w-1', '1', lease => '1 min') \gset
\echo :outcome :state
SELECT pg_temp.error_of(format('SELECT idem_inbox_complete(%L, %L, %L, %s)', 'shop', 'psp', 'w-1', :'token'));
COMMIT;
SELECT outcome FROM idem_inbox_claim('shop', 'psp', 'w-1', '1');
SELECT outcome, body_ref FROM idem_inbox_complete('shop', 'psp', 'w-1', :token, 'order-7');
SELECT outcome, body_ref FROM idem_inbox_complete('shop', 'psp', 'w-1', :token, 'order-7');
SELECT outcome, body_ref FROM idem_inbox_claim('shop', 'psp', 'w-1', '1');
-- a handler that died is followed by the redelivery, also when it had moved the mark
SELECT outcome FROM idem_inbox_claim('shop', 'psp', 'w-2', '1', 'order-3', 1, lease => '1 min');
UPDATE idem_keys SET lease_until = now() - interval '1 h' WHERE key = 'w-2';
SELECT outcome, reason, attempt FROM idem_inbox_claim('shop', 'psp', 'w-2', '1', 'order-3', 1, lease => '1 min');
-- strict with a lease: the next one waits for the end, not for the beginning
SELECT outcome, token AS token FROM idem_inbox_claim('shop', 'bank', 'x-1', '1', 'acc2', 1, lease => '1 min') \gset
SELECT outcome FROM idem_inbox_claim('shop', 'bank', 'x-2', '2', 'acc2', 2, lease => '1 min');
SELECT count(*) AS ready FROM idem_inbox_ready('shop', 'bank', 'acc2', lease => '1 min');
SELECT outcome FROM idem_inbox_complete('shop', 'bank', 'x-1', :token);
SELECT event_id, operation_id AS id2, token AS token2 FROM idem_inbox_ready('shop', 'bank', 'acc2', lease => '1 min') \gset
\echo :event_id
-- it dies; idem_inbox_ready finds it again
UPDATE idem_keys SET lease_until = now() - interval '1 h' WHERE operation_id = :'id2';
SELECT event_id, token > :token2 AS newer, token AS token3 FROM idem_inbox_ready('shop', 'bank', 'acc2', lease => '1 min') \gset
\echo :event_id :newer
SELECT pg_temp.error_of(format('SELECT idem_inbox_complete(%L, %L, %L, %s)', 'shop', 'bank', 'x-2', :'token2'));
SELECT outcome FROM idem_fail(:'id2', :token3, 'failed', 422);
SELECT outcome FROM idem_inbox_claim('shop', 'bank', 'x-3', '3', 'acc2', 3);
SELECT outcome FROM idem_inbox_claim('shop', 'bank', 'x-2', '2', 'acc2', 2);
SELECT event_id FROM idem_inbox_ready('shop', 'bank', 'acc2');

-- batches: rows in the order given, events of an entity in the order of their numbers
SELECT key, outcome FROM idem_inbox_claim_many('shop', 'bank', ARRAY['m-3', 'm-1', 'm-2', 'm-1', 'm-9'], ARRAY['3', '1', '2', '1', '9']::jsonb[],
    ARRAY['acc3', 'acc3', 'acc3', 'acc3', NULL], ARRAY[3, 1, 2, 1, NULL]);
SELECT key, outcome FROM idem_inbox_claim_many('shop', 'psp', ARRAY['d-1', 'd-2'], dedup_ids => ARRAY['i-1', 'i-1']) ORDER BY 2;
SELECT outcome, count(*) FROM idem_inbox_claim_many('shop', 'kafka', (SELECT array_agg('k-' || i) FROM generate_series(1, 1000) i),
    entities => (SELECT array_agg('p-' || i % 7) FROM generate_series(1, 1000) i), seqs => (SELECT array_agg(i ORDER BY i) FROM generate_series(1, 1000) i)) GROUP BY 1;
SELECT outcome, count(*) FROM idem_inbox_claim_many('shop', 'kafka', (SELECT array_agg('k-' || i) FROM generate_series(1, 1000) i)) GROUP BY 1;
SELECT count(*) FROM idem_inbox_claim_many('shop', 'psp', '{}');
-- what is wrong is told, and leaves nothing
SELECT count(*) AS keys FROM idem_keys WHERE actor = 'shop' \gset
SELECT n, pg_temp.error_of(format('SELECT * FROM %s', a)) AS error
  FROM (VALUES (1, 'idem_inbox_claim(NULL, ''s'', ''e'')'), (2, 'idem_inbox_claim(''shop'', NULL, ''e'')'), (3, 'idem_inbox_claim(''shop'', ''s'', NULL)'),
      (4, 'idem_inbox_claim(''shop'', ''s'', ''e'', entity => ''x'')'), (5, 'idem_inbox_claim(''shop'', ''s'', ''e'', seq => 1)'),
      (6, 'idem_inbox_claim(''shop'', ''s'', ''e'', entity => ''x'', seq => -1)'), (7, 'idem_inbox_claim(''shop'', ''s'', ''e'', entity => '''', seq => 1)'),
      (8, 'idem_inbox_claim(''shop'', repeat(''s'', 121), ''e'')'), (9, 'idem_inbox_claim(''shop'', ''s'', ''e'', dedup_window => ''91 days'')'),
      (10, 'idem_inbox_claim(''shop'', ''s'', ''e'', lease => ''0'')'), (11, 'idem_inbox_claim_many(''shop'', ''s'', NULL)'),
      (12, 'idem_inbox_claim_many(''shop'', ''s'', ARRAY[''a'', NULL])'), (13, 'idem_inbox_claim_many(''shop'', ''s'', ARRAY[''a''], seqs => ARRAY[1, 2])'),
      (14, 'idem_inbox_claim_many(''shop'', ''s'', ARRAY[''a'', ''b''], dedup_ids => ARRAY[''x'', NULL])'),
      (15, 'idem_inbox_complete(''shop'', ''psp'', ''nope'', 1)'), (16, 'idem_inbox_complete(''shop'', ''psp'', NULL, 1)'),
      (17, 'idem_inbox_ready(NULL, ''s'')'), (18, 'idem_inbox_skip(''shop'', ''s'', ''x'', 1, NULL)'),
      (19, '(SELECT (idem_inbox_claim(''shop'', ''psp'', ''twice'')).*) t')) AS t (n, a) ORDER BY n;
SELECT outcome, reason FROM idem_inbox_claim('shop', 'psp', '') UNION ALL SELECT outcome, reason FROM idem_inbox_claim('shop', 'psp', repeat('e', 256));
SELECT count(*) - :keys AS more FROM idem_keys WHERE actor = 'shop';
-- cleaning up does not forget: finished keys are the memory
SELECT sum(idem_sweep_inbox(100)) + sum(idem_sweep_effects(100)) AS removed FROM generate_series(1, 100);
SELECT outcome FROM idem_inbox_claim('shop', 'psp', 'evt_1');
SELECT count(*) AS parked FROM idem_inbox_parked;
-- nothing is left behind by a wait that fills no parked row, and nothing is unlogged
SELECT count(*) AS unlogged FROM pg_class WHERE relname LIKE 'idem\_%' AND relpersistence <> 'p';
