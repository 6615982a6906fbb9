-- The outbox when publishing fails: nack, back-off, dead letters, requeue, skip. C03 C07 C08.
\set VERBOSITY terse
CREATE FUNCTION pg_temp.fetched() RETURNS text LANGUAGE sql AS
$$ SELECT string_agg(payload ->> 'n', ' ' ORDER BY seq) FROM idem_outbox_fetch('relay') $$;
CREATE FUNCTION pg_temp.nack(n int, retry_in interval DEFAULT NULL, OUT outcome text, OUT after interval) LANGUAGE sql AS
$$ SELECT a.outcome, a.ready_at - clock_timestamp() FROM idem_outbox_queue q JOIN idem_outbox o ON o.id = q.message_id,
   idem_outbox_nack(o.id, q.token, retry_in, 'broker says no') AS a WHERE (o.payload ->> 'n')::int = n $$;
CREATE FUNCTION pg_temp.id_of(n int) RETURNS uuid LANGUAGE sql AS
$$ SELECT id FROM idem_outbox WHERE (payload ->> 'n')::int = n $$;

-- What is behind a message in its key is given back with it, and nothing overtakes it.
SELECT count(*) FROM generate_series(1, 3) AS n, idem_outbox_put('t-1', 'order', jsonb_build_object('n', n), ordering_key => 'a');
SELECT count(*) FROM generate_series(4, 5) AS n, idem_outbox_put('t-1', 'order', jsonb_build_object('n', n), ordering_key => 'b');
SELECT pg_temp.fetched();
SELECT outcome, after > '0.4 s' AND after <= '1 s' AS one_second FROM pg_temp.nack(1);
SELECT state, attempt, token > 0 AS leased, relay, last_error, payload -> 'n' AS n FROM idem_outbox_queue JOIN idem_outbox ON id = message_id ORDER BY seq;
SELECT idem_outbox_ack(ARRAY[pg_temp.id_of(2)], (SELECT max(token) FROM idem_outbox_queue));
SELECT pg_temp.nack(2);
SELECT pg_temp.fetched() AS nothing;
SELECT idem_outbox_ack(ARRAY[pg_temp.id_of(4), pg_temp.id_of(5)], (SELECT max(token) FROM idem_outbox_queue));
SELECT pg_sleep(1);
SELECT pg_temp.fetched();

-- The pause doubles up to 5 minutes, less a half at most; retry_in is taken as it is.
SELECT outcome FROM idem_outbox_put('t-1', 'pause', '{"n": 100}');
CREATE FUNCTION pg_temp.pauses() RETURNS TABLE (attempt int, low numeric, high numeric, fits bool) LANGUAGE plpgsql AS $$
DECLARE
    pause numeric;
BEGIN
    PERFORM idem_outbox_set_topic('pause', 1000);
    FOR i IN 1 .. 12 LOOP
        attempt := i;
        PERFORM idem_outbox_fetch('relay', topics => ARRAY['pause']);
        pause := extract(epoch FROM (SELECT after FROM pg_temp.nack(100)));
        high := least(300, 2 ^ (i - 1));
        low := greatest(1, high / 2);
        fits := pause BETWEEN low - 0.1 AND high;
        RETURN NEXT;
        UPDATE idem_outbox_queue SET ready_at = clock_timestamp() WHERE message_id = pg_temp.id_of(100);
    END LOOP;
END $$;
SELECT attempt, round(low, 1) AS low, high, fits FROM pg_temp.pauses();
SELECT count(*) FROM idem_outbox_fetch('relay', topics => ARRAY['pause']);
SELECT outcome, after > '59 min' AS an_hour FROM pg_temp.nack(100, '1 hour');
DELETE FROM idem_outbox_queue WHERE topic = 'pause';

-- hold: the key waits for somebody. skip: it goes on. Other keys go on anyway.
SELECT idem_outbox_ack(array_agg(message_id), max(token)) FROM idem_outbox_queue WHERE state = 'l';
SELECT idem_outbox_set_topic('hold', 2), idem_outbox_set_topic('skip', 2, 'hold'), idem_outbox_set_topic('skip', 2, 'skip');
SELECT * FROM idem_outbox_topics ORDER BY 1;
SELECT count(*) FROM generate_series(11, 13) AS n, idem_outbox_put('t-1', 'hold', jsonb_build_object('n', n), ordering_key => 'a', dedup_id => n::text);
SELECT count(*) FROM generate_series(21, 23) AS n, idem_outbox_put('t-1', 'skip', jsonb_build_object('n', n), ordering_key => 'a');
SELECT outcome FROM idem_outbox_put('t-1', 'hold', '{"n": 31}');
SELECT pg_temp.fetched();
SELECT (pg_temp.nack(11, '0')).outcome AS hold, (pg_temp.nack(21, '0')).outcome AS skip, (pg_temp.nack(31, '0')).outcome AS alone;
SELECT pg_temp.fetched();
SELECT (pg_temp.nack(11, '0')).outcome AS hold, (pg_temp.nack(21, '0')).outcome AS skip, (pg_temp.nack(31, '0')).outcome AS alone;
SELECT pg_temp.fetched();
SELECT topic, ordering_key, attempt, holds, relay, last_error FROM idem_outbox_dead ORDER BY 1, 2 NULLS LAST;
SELECT topic, queued, dead FROM idem_outbox_backlog ORDER BY 1;

-- A dead letter's dedup_id is told apart, never silently swallowed (C08).
SELECT outcome, id = pg_temp.id_of(11) AS same FROM idem_outbox_put('t-1', 'hold', '{}', ordering_key => 'a', dedup_id => '11');

-- skip lets the rest go on; requeue brings dead letters back to their places.
SELECT idem_outbox_skip(ARRAY[pg_temp.id_of(11), pg_temp.id_of(12), pg_temp.id_of(31)]);
SELECT idem_outbox_skip(ARRAY[pg_temp.id_of(11)]) AS again;
SELECT pg_temp.fetched();
SELECT idem_outbox_requeue(ARRAY[pg_temp.id_of(11), pg_temp.id_of(11), pg_temp.id_of(12), pg_temp.id_of(31)]);
SELECT pg_temp.fetched();
SELECT attempt, holds FROM idem_outbox_dead;
SELECT idem_outbox_requeue('{}') AS none;

-- A message whose relays never come back is given up too.
DELETE FROM idem_outbox_queue;
SELECT idem_outbox_set_topic('poison', 2, 'skip');
SELECT count(*) FROM generate_series(41, 42) AS n, idem_outbox_put('t-1', 'poison', jsonb_build_object('n', n), ordering_key => 'a');
CREATE FUNCTION pg_temp.lapse() RETURNS bigint LANGUAGE sql AS
$$ WITH u AS (UPDATE idem_outbox_queue SET ready_at = clock_timestamp() WHERE state = 'l' RETURNING 1) SELECT count(*) FROM u $$;
SELECT count(*) FROM idem_outbox_fetch('crashing', 1); SELECT pg_temp.lapse();
SELECT count(*) FROM idem_outbox_fetch('crashing', 1); SELECT pg_temp.lapse();
SELECT pg_temp.fetched();
SELECT attempt, last_error FROM idem_outbox_dead;

-- The error is clipped between characters.
SELECT a.outcome FROM idem_outbox_queue q, idem_outbox_nack(q.message_id, q.token, NULL, repeat('é', 600)) AS a WHERE q.state = 'l';
SELECT length(last_error), octet_length(last_error) FROM idem_outbox_queue WHERE state = 'q';

DELETE FROM idem_outbox_queue; DELETE FROM idem_outbox; DELETE FROM idem_outbox_topics;
