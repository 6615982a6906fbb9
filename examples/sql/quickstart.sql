-- quickstart.sql: the main job in plain SQL. Run it twice: psql -f examples/sql/quickstart.sql
-- It needs a superuser once, for CREATE EXTENSION. The rule: do the work if and only if `proceed`; in every other case
-- send what idem_http_response gives, which is NULL where there is work to do.
CREATE EXTENSION IF NOT EXISTS idempotency;
CREATE TEMP TABLE orders (order_id bigint GENERATED ALWAYS AS IDENTITY, content jsonb);
SELECT gen_random_uuid() AS key \gset

-- A request arrives: claim, work and answer in one transaction.
-- The arguments: who asks, which operation, the client's key, what is asked.
BEGIN;
SELECT c.outcome, c.proceed, c.operation_id, c.token, h.status, h.headers, h.body
  FROM idem_claim('tenant-1', 'order.place', :'key', '{"sku": "A1", "quantity": 10}') AS c,
       idem_http_response(c) AS h \gset
\echo The first request: :outcome
INSERT INTO orders (content) VALUES ('{"sku": "A1", "quantity": 10}');
SELECT outcome, status, body
  FROM idem_complete(:'operation_id', :token, status => 201, body_json => '{"order": 1}',
                     headers => '{"Content-Type": "application/json"}');
COMMIT;

-- The client retries, with other spellings of the same request: the same answer, and nothing to do.
SELECT c.outcome, c.proceed, h.status, convert_from(h.body, 'UTF8') AS body
  FROM idem_claim('tenant-1', 'order.place', :'key', '{"quantity": 10.00, "sku": "A1"}') AS c,
       idem_http_response(c) AS h;

-- Another request under the same key does not run. Without a policy the 409 shows the hash of what has the key, not its
-- answer; conflict_detail says how much. Presets payment and order show more.
SELECT c.outcome, c.proceed, h.status, convert_from(h.body, 'UTF8')::jsonb #>> '{winner,state}' AS winner
  FROM idem_claim('tenant-1', 'order.place', :'key', '{"sku": "A1", "quantity": 11}') AS c,
       idem_http_response(c) AS h;

-- All of a response.
SELECT h.status, h.headers, convert_from(h.body, 'UTF8') AS body
  FROM idem_claim('tenant-1', 'order.place', :'key', '{"sku": "A1", "quantity": 10}') AS c,
       idem_http_response(c) AS h \gx

-- One order.
SELECT count(*) AS orders FROM orders;
