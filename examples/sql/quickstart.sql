-- quickstart.sql: the main job in plain SQL. Run it twice: psql -f examples/sql/quickstart.sql
-- The rule: do the work if and only if `proceed`; in every other case send idem_http_response(result).
CREATE EXTENSION IF NOT EXISTS idempotency;
CREATE TEMP TABLE orders (order_id bigint GENERATED ALWAYS AS IDENTITY, content jsonb);
SELECT gen_random_uuid() AS key \gset

-- A request arrives: claim, work and answer in one transaction.
-- The arguments: who asks, which operation, the client's key, what is asked.
BEGIN;
SELECT outcome, proceed, operation_id, token
  FROM idem_claim('tenant-1', 'order.place', :'key', '{"sku": "A1", "quantity": 10}') \gset
\echo The first request: :outcome
INSERT INTO orders (content) VALUES ('{"sku": "A1", "quantity": 10}');
SELECT outcome, status, body
  FROM idem_complete(:'operation_id', :token, status => 201, body_json => '{"order": 1}',
                     headers => '{"Content-Type": "application/json"}');
COMMIT;

-- The client retries, with other spellings of the same request: the same answer, and nothing to do.
SELECT outcome, proceed, status, body
  FROM idem_claim('tenant-1', 'order.place', :'key', '{"quantity": 10.00, "sku": "A1"}');

-- Another request under the same key gets no answer of somebody else's, and does not run.
SELECT outcome, proceed, status, body
  FROM idem_claim('tenant-1', 'order.place', :'key', '{"sku": "A1", "quantity": 11}');

-- What to send in each of these cases.
SELECT h.status, h.headers, convert_from(h.body, 'UTF8') AS body
  FROM idem_claim('tenant-1', 'order.place', :'key', '{"sku": "A1", "quantity": 10}') AS result,
       idem_http_response(result) AS h \gx
SELECT h.status, convert_from(h.body, 'UTF8')::jsonb ->> 'code' AS code
  FROM idem_claim('tenant-1', 'order.place', :'key', '{"sku": "A1", "quantity": 11}') AS result,
       idem_http_response(result) AS h \gx

-- One order.
SELECT count(*) AS orders FROM orders;
