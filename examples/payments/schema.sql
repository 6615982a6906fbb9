-- schema.sql: the shop's tables, the pretend provider's ledger, and what the two operations promise.
CREATE EXTENSION idempotency;

CREATE SCHEMA shop;
CREATE TABLE shop.orders (
    order_id     bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    merchant     text        NOT NULL,
    operation_id uuid        NOT NULL,
    content      jsonb       NOT NULL,
    placed_at    timestamptz NOT NULL DEFAULT now()
);

-- The provider's books, in another company in real life. Nothing here is unique but the charge itself: a provider that
-- is asked twice charges twice, and so does a shop whose orders.operation_id is written twice. The demo looks for that.
CREATE SCHEMA provider;
CREATE TABLE provider.charges (
    charge_id bigint GENERATED ALWAYS AS IDENTITY (START WITH 1001) PRIMARY KEY,
    reference text        NOT NULL,
    amount    numeric     NOT NULL,
    currency  text        NOT NULL,
    made_at   timestamptz NOT NULL DEFAULT clock_timestamp()
);

-- order.place: claim, order and answer commit together. payment.capture: the claim is committed before the provider is
-- called. grace is 30 seconds in the preset and 0 here, so that nobody has to wait for the end of the demo.
SELECT op, version FROM idem_set_policy('order.place', 'order', '{"effect": "one row in shop.orders"}');
SELECT op, version FROM idem_set_policy('payment.capture', 'payment',
    '{"grace": "0 seconds", "target": "the order", "effect": "one charge at the provider"}');

-- The API's role may claim and finish. It can neither read the tables behind that nor resolve what is indeterminate.
CREATE ROLE payments_api LOGIN;
SELECT * FROM idem_admin_grant('payments_api', 'client');
GRANT USAGE ON SCHEMA shop TO payments_api;
GRANT INSERT, SELECT ON shop.orders TO payments_api;
