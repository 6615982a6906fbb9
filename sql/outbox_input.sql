-- The outbox against bad input and without rights: own SQLSTATE, no row, nothing lost. G04 G05.
CREATE FUNCTION pg_temp.error_of(statement text) RETURNS text LANGUAGE plpgsql AS $$
DECLARE
    detail text;
BEGIN
    EXECUTE statement;
    RETURN 'no error';
EXCEPTION WHEN OTHERS THEN
    GET STACKED DIAGNOSTICS detail = PG_EXCEPTION_DETAIL;
    RETURN concat_ws(' | ', SQLSTATE, SQLERRM, nullif(detail, ''));
END $$;

SELECT s AS call, pg_temp.error_of('SELECT * FROM idem_outbox_put(' || s || ')') FROM unnest(ARRAY[
    $$NULL, 'order'$$, $$'', 'order'$$, $$repeat('a', 256), 'order'$$, $$'a', NULL$$, $$'a', ''$$, $$'a', repeat('t', 129)$$,
    $$'a', 'order', '{}', '\x00'$$, $$'a', 'order', ordering_key => ''$$, $$'a', 'order', ordering_key => repeat('k', 256)$$,
    $$'a', 'order', dedup_id => ''$$, $$'a', 'order', dedup_id => repeat('k', 256)$$,
    $$'a', 'order', to_jsonb(repeat('x', 1048577))$$, $$'a', 'order', payload_bytes => convert_to(repeat('x', 1048577), 'UTF8')$$,
    $$'a', 'order', headers => '[]'$$, $$'a', 'order', headers => '"x"'$$, $$'a', 'order', headers => '{"a": {}}'$$,
    $$'a', 'order', headers => '{"a": [1]}'$$, $$'a', 'order', headers => '{"id": "x"}'$$, $$'a', 'order', headers => '{"specversion": "2"}'$$,
    $$'a', 'order', headers => '{"type": ""}'$$, $$'a', 'order', headers => '{"type": 5}'$$, $$'a', 'order', headers => '{"source": ""}'$$,
    $$'a', 'order', headers => (SELECT jsonb_object_agg(n, n) FROM generate_series(1, 65) n)$$,
    $$'a', 'order', headers => jsonb_build_object('a', repeat('x', 16385))$$,
    $$'a', 'order', delay => '-1 s'$$, $$'a', 'order', delay => '91 days'$$, $$'a', 'order', operation_id => 'x'$$]) AS s;
SELECT s AS call, pg_temp.error_of('SELECT * FROM idem_outbox_fetch(' || s || ')') FROM unnest(ARRAY[
    $$NULL$$, $$''$$, $$repeat('r', 256)$$, $$'r', 0$$, $$'r', -1$$, $$'r', 10001$$, $$'r', 1, '0'$$, $$'r', 1, '25 h'$$,
    $$'r', 1, topics => ARRAY[NULL]::text[]$$, $$'r', 1, topics => '{{a}}'$$, $$'r', 1, wait => '-1 s'$$, $$'r', 1, wait => '61 s'$$]) AS s;
SELECT s AS call, pg_temp.error_of('SELECT ' || s) FROM unnest(ARRAY[
    $$idem_outbox_ack(NULL, 1)$$, $$idem_outbox_ack('{}', NULL)$$, $$idem_outbox_ack('{}', 1)$$,
    $$idem_outbox_ack(ARRAY[NULL]::uuid[], 1)$$, $$idem_outbox_ack('{00000000-0000-0000-0000-000000000000}', 1)$$,
    $$idem_outbox_ack(array_fill(gen_random_uuid(), ARRAY[10001]), 1)$$,
    $$idem_outbox_nack(NULL, 1)$$, $$idem_outbox_nack('00000000-0000-0000-0000-000000000000', NULL)$$,
    $$idem_outbox_nack('00000000-0000-0000-0000-000000000000', 1)$$, $$idem_outbox_nack('00000000-0000-0000-0000-000000000000', 1, '-1 s')$$,
    $$idem_outbox_nack('00000000-0000-0000-0000-000000000000', 1, '25 h')$$,
    $$idem_outbox_requeue(NULL)$$, $$idem_outbox_requeue('{00000000-0000-0000-0000-000000000000}')$$,
    $$idem_outbox_skip(NULL)$$, $$idem_outbox_skip('{00000000-0000-0000-0000-000000000000}')$$,
    $$idem_outbox_set_topic(NULL)$$, $$idem_outbox_set_topic('')$$, $$idem_outbox_set_topic('t', 0)$$, $$idem_outbox_set_topic('t', 1001)$$,
    $$idem_outbox_set_topic('t', NULL)$$, $$idem_outbox_set_topic('t', 5, 'drop')$$, $$idem_outbox_set_topic('t', 5, NULL)$$]) AS s;
SELECT count(*) FROM idem_outbox;
BEGIN READ ONLY;
SELECT pg_temp.error_of($$SELECT idem_outbox_put('a', 'order')$$);
SELECT pg_temp.error_of($$SELECT idem_outbox_fetch('r')$$);
SELECT pg_temp.error_of($$SELECT idem_outbox_ack('{}', 1)$$);
COMMIT;

-- Names are data.
SELECT count(*) FROM unnest(ARRAY['x''; DROP TABLE idem_outbox; --', 'a"b', '%I', '$1', 'a-b', 'A-B', E'line\nbreak', repeat('p', 63) || '1', repeat('p', 63) || '2']) AS n,
       idem_outbox_put(n, n, '{}', ordering_key => n, dedup_id => n);
SELECT count(*), count(DISTINCT topic), bool_and(topic = actor AND topic = ordering_key AND type = topic) FROM idem_outbox_fetch('r');
SELECT idem_outbox_ack(array_agg(message_id), max(token)) FROM idem_outbox_queue;
DELETE FROM idem_outbox;

-- Levels: a client puts, a relay delivers, a monitor looks, an admin decides; nobody touches the tables.
CREATE ROLE outbox_client; CREATE ROLE outbox_relay; CREATE ROLE outbox_monitor; CREATE ROLE outbox_admin;
SELECT count(*) > 0 FROM unnest(ARRAY['client', 'relay', 'monitor', 'admin']) AS l, idem_admin_grant(('outbox_' || l)::name, l);
CREATE FUNCTION pg_temp.allowed(statement text) RETURNS boolean LANGUAGE plpgsql AS $$
BEGIN
    EXECUTE statement;
    RETURN true;
EXCEPTION WHEN insufficient_privilege THEN
    RETURN false;
WHEN OTHERS THEN
    RETURN true;
END $$;
CREATE TABLE outbox_rights (call text, client bool, relay bool, monitor bool, admin bool);
GRANT ALL ON outbox_rights TO outbox_client, outbox_relay, outbox_monitor, outbox_admin;
INSERT INTO outbox_rights SELECT unnest(ARRAY[
    $$SELECT idem_outbox_put('a', 'rights')$$, $$SELECT idem_outbox_fetch('r')$$, $$SELECT idem_outbox_ack('{}', 1)$$,
    $$SELECT idem_outbox_nack(gen_random_uuid(), 1)$$, $$SELECT idem_outbox_requeue('{}')$$, $$SELECT idem_outbox_skip('{}')$$,
    $$SELECT idem_outbox_set_topic('rights')$$, $$SELECT idem_sweep_outbox(0)$$, $$SELECT FROM idem_outbox_backlog$$, $$SELECT FROM idem_outbox_dead$$,
    $$SELECT FROM idem_outbox_topics$$, $$SELECT FROM idem_outbox$$, $$SELECT FROM idem_outbox_queue$$,
    $$DELETE FROM idem_outbox$$, $$DELETE FROM idem_outbox_queue$$, $$UPDATE idem_outbox_topics SET max_attempts = 1$$, $$SELECT nextval('idem_outbox_seq')$$]);
SET ROLE outbox_client; UPDATE outbox_rights SET client = pg_temp.allowed(call); RESET ROLE;
SET ROLE outbox_relay; UPDATE outbox_rights SET relay = pg_temp.allowed(call); RESET ROLE;
SET ROLE outbox_monitor; UPDATE outbox_rights SET monitor = pg_temp.allowed(call); RESET ROLE;
SET ROLE outbox_admin; UPDATE outbox_rights SET admin = pg_temp.allowed(call); RESET ROLE;
SELECT * FROM outbox_rights;
DROP TABLE outbox_rights;
DROP OWNED BY outbox_client, outbox_relay, outbox_monitor, outbox_admin;
DROP ROLE outbox_client, outbox_relay, outbox_monitor, outbox_admin;
DELETE FROM idem_outbox_queue; DELETE FROM idem_outbox; DELETE FROM idem_outbox_topics;
