-- The outbox in one session: put, fetch, ack; ids and headers; deduplication; shares; retention. C01 C05 C08 C09 C11 C14 C15.
\set VERBOSITY terse
SELECT actor, topic FROM (VALUES ('t-1', 'order')) AS v (actor, topic) \gset

-- A message is there once its transaction has committed, and not before.
BEGIN;
SELECT outcome FROM idem_outbox_put(:'actor', :'topic', '{"n": 1}', ordering_key => 'o-1', headers => '{"type": "order.placed", "x": 5, "y": null}');
SELECT count(*) AS undelivered FROM idem_outbox_queue;
SAVEPOINT a;
SELECT outcome FROM idem_outbox_put(:'actor', :'topic', '{"n": 0}', ordering_key => 'o-1');
ROLLBACK TO a;
COMMIT;
BEGIN;
SELECT outcome FROM idem_outbox_put(:'actor', :'topic', '{"n": 0}');
ROLLBACK;
SELECT outcome FROM idem_outbox_put(:'actor', :'topic', payload_bytes => '\x00ff', ordering_key => 'o-1');
SELECT topic, actor, queued, leased, oldest_age < '1 min' AS young FROM idem_outbox_backlog;

-- The row is what Debezium's outbox event router reads; the headers are CloudEvents 1.0.
SELECT aggregatetype, aggregateid, type, payload, payload_bytes, headers ->> 'id' = id::text AS id,
       headers - 'id' - 'time' AS headers, (headers ->> 'time')::timestamptz - created_at < '1 min' AS time
  FROM idem_outbox ORDER BY created_at;

-- traceparent comes from the operation that causes the message; source is a URI whatever the actor is.
SELECT operation_id FROM idem_claim('Zoë/1', 'outbox.trace', 'k', '{}',
                                    traceparent => '00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01') \gset
SELECT id FROM idem_outbox_put('Zoë/1', 'trace', operation_id => :'operation_id') \gset
SELECT headers -> 'source' AS source, headers -> 'traceparent' AS traceparent, operation_id = :'operation_id' AS operation
  FROM idem_outbox WHERE id = :'id';
SELECT id FROM idem_outbox_put('Zoë/1', 'trace', '{}', operation_id => :'operation_id', headers =>
  '{"traceparent": "own", "source": "/own", "time": "2026-01-01T00:00:00Z", "datacontenttype": "text/plain", "type": "t"}') \gset
SELECT headers - 'id' AS headers FROM idem_outbox WHERE id = :'id';

-- Leased once, with one token; in the order of the key.
SELECT topic, ordering_key, payload, payload_bytes, attempt, lease_until > clock_timestamp() + '29 s' AS half_a_minute, token = max(token) OVER () AS one_token
  FROM idem_outbox_fetch('relay', 10, topics => ARRAY['order', 'order', 'nobody']) ORDER BY seq;
SELECT count(*) FROM idem_outbox_fetch('relay', 10, topics => ARRAY['order']);
SELECT count(*) FROM idem_outbox_fetch('relay', 10, topics => '{}');
SELECT array_agg(message_id) AS ids, max(token) AS token FROM idem_outbox_queue WHERE topic = 'order' \gset
SELECT idem_outbox_ack(:'ids', :token + 1);
SELECT idem_outbox_ack(:'ids', :token);
SELECT idem_outbox_ack(:'ids', :token) AS again;
SELECT count(*) FROM idem_outbox_fetch('relay', 10, topics => ARRAY['order']);
SELECT count(*) AS kept FROM idem_outbox WHERE aggregatetype = 'order';

-- A relay whose lease has lapsed cannot ack (C09); who has the messages now can.
SELECT array_agg(id) AS ids, max(token) AS token FROM idem_outbox_fetch('slow', 10, '1 s') \gset
SELECT cardinality(:'ids'::uuid[]), pg_sleep(1.1);
SELECT idem_outbox_ack(:'ids', :token);
SELECT array_agg(id) AS ids2, max(token) AS token2, min(attempt) AS attempt FROM idem_outbox_fetch('other', 10) \gset
SELECT idem_outbox_ack(:'ids', :token);
SELECT :attempt AS attempt, :token2 > :token AS greater, idem_outbox_ack(:'ids2', :token2);
SELECT idem_outbox_ack(:'ids', :token) AS delivered_by_other;

-- One intent, one message; it stays so after delivery (C11).
SELECT outcome, id AS first FROM idem_outbox_put('t-1', 'mail', '{}', dedup_id => 'welcome 1') \gset
SELECT :'outcome' AS first, outcome, id = :'first' AS same FROM idem_outbox_put('t-1', 'mail', '{"other": 1}', dedup_id => 'welcome 1');
SELECT outcome, id = :'first' AS same FROM idem_outbox_put('t-2', 'mail', '{}', dedup_id => 'welcome 1');
SELECT outcome, id = :'first' AS same FROM idem_outbox_put('t-1', 'sms', '{}', dedup_id => 'welcome 1');
SELECT idem_outbox_ack(array_agg(id), max(token)) FROM idem_outbox_fetch('relay', 10);
SELECT outcome, id = :'first' AS same FROM idem_outbox_put('t-1', 'mail', '{}', dedup_id => 'welcome 1');
SELECT count(*) AS nothing_new FROM idem_outbox_fetch('relay', 10);

-- Exactly batch messages, each key in order, whatever the heap looks like (C05). The rest of a key that was cut waits.
SELECT count(*) FROM generate_series(1, 700) AS n,
       idem_outbox_put('t-1', 'load', jsonb_build_object('n', n), ordering_key => 'k-' || n % 7);
UPDATE idem_outbox_queue SET attempt = 1 WHERE seq % 3 = 0;
UPDATE idem_outbox_queue SET attempt = 0 WHERE seq % 2 = 0;
CREATE TEMP TABLE got AS SELECT row_number() OVER () AS place, f.* FROM idem_outbox_fetch('relay', 450) AS f;
INSERT INTO got SELECT 450 + row_number() OVER (), f.* FROM idem_outbox_fetch('relay', 450) AS f;
SELECT count(*), count(DISTINCT id), min(place) FILTER (WHERE place > 450) AS second FROM got;
SELECT count(*) AS out_of_order FROM got a JOIN got b USING (ordering_key) WHERE a.place < b.place AND (a.payload ->> 'n')::int > (b.payload ->> 'n')::int;
SELECT idem_outbox_ack(array_agg(id), token) FROM got GROUP BY token ORDER BY min(place);
DROP TABLE got;
DELETE FROM idem_outbox_queue;

-- Every topic and actor gets a like share, the rest goes to who has more.
SELECT count(*) FROM generate_series(1, 300) AS n, idem_outbox_put('big', 'load', to_jsonb(n));
SELECT count(*) FROM generate_series(1, 20) AS n, idem_outbox_put('small-' || n % 2, 'load', '{}');
SELECT count(*) FROM generate_series(1, 20) AS n, idem_outbox_put('big', 'other', to_jsonb(n), ordering_key => 'one');
SELECT topic, actor, count(*) FROM idem_outbox_fetch('relay', 36) GROUP BY 1, 2 ORDER BY 1, 2;
SELECT topic, actor, count(*) FROM idem_outbox_fetch('relay', 100) GROUP BY 1, 2 ORDER BY 1, 2;
DELETE FROM idem_outbox_queue;

-- With one message a batch, every group has its turn.
SELECT count(*) FROM generate_series(1, 40) AS n, idem_outbox_put('t-' || n % 4, 'turn', '{}');
CREATE TEMP TABLE got AS SELECT actor FROM idem_outbox_fetch('relay', 1);
INSERT INTO got SELECT actor FROM idem_outbox_fetch('relay', 1);
INSERT INTO got SELECT actor FROM idem_outbox_fetch('relay', 1);
INSERT INTO got SELECT actor FROM idem_outbox_fetch('relay', 1);
SELECT count(DISTINCT actor) FROM got;
DROP TABLE got;
DELETE FROM idem_outbox_queue;

-- delay, and later ones of the key wait too.
SELECT outcome FROM idem_outbox_put('t-1', 'late', '{"n": 1}', ordering_key => 'k', delay => '0.5 s');
SELECT outcome FROM idem_outbox_put('t-1', 'late', '{"n": 2}', ordering_key => 'k');
SELECT count(*) AS too_early FROM idem_outbox_fetch('relay');
SELECT postponed, queued FROM idem_outbox_backlog;
SELECT payload FROM idem_outbox_fetch('relay', wait => '5 s') ORDER BY seq;
DELETE FROM idem_outbox_queue;

-- Delivered messages go after 7 days, at most batch at a time, undelivered ones stay.
SELECT outcome FROM idem_outbox_put('t-1', 'keep', '{}');
SELECT count(*) > 1000 AS many FROM idem_outbox;
SELECT idem_sweep_outbox(1000) AS too_young;
ALTER TABLE idem_outbox DISABLE TRIGGER idem_outbox_enqueue;
UPDATE idem_outbox SET created_at = created_at - interval '7 days 1 second';
ALTER TABLE idem_outbox ENABLE TRIGGER idem_outbox_enqueue;
SELECT idem_sweep_outbox(NULL), idem_sweep_outbox(-1), idem_sweep_outbox(1000);
SELECT idem_sweep_outbox(1000) > 0 AS more, idem_sweep_outbox(1000) AS done;
SELECT aggregatetype FROM idem_outbox;
DELETE FROM idem_outbox_queue;
DELETE FROM idem_outbox;

-- A restored row is not queued again, and a row that somebody deleted is not delivered.
INSERT INTO idem_outbox SELECT gen_random_uuid(), now() - interval '1 s', now(), NULL, 'order', NULL, 'x', 't', NULL, '{}';
SELECT count(*) FROM idem_outbox_queue;
INSERT INTO idem_outbox SELECT gen_random_uuid(), now(), now(), NULL, 'order', NULL, 'x', 't', NULL, '{}';
DELETE FROM idem_outbox;
SELECT count(*) FROM idem_outbox_fetch('relay');
SELECT state, last_error FROM idem_outbox_queue;
DELETE FROM idem_outbox_queue;

SELECT relname, relpersistence FROM pg_class WHERE relname ~ '^idem_outbox' AND relkind = 'r' ORDER BY 1;
DELETE FROM idem_leases l USING idem_keys k WHERE k.operation_id = l.operation_id AND k.op = 'outbox.trace'; DELETE FROM idem_keys WHERE op = 'outbox.trace';
