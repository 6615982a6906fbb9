-- setup.sql: what both sides of the comparison need. The rival is the table people write by hand, and the PL/pgSQL
-- functions around it.
CREATE EXTENSION idempotency;

SELECT idem_set_policy('bench.lease', 'default', '{"mode": "lease"}');
SELECT idem_set_policy('bench.sha256', 'default', '{"mode": "lease", "hash_algorithm": "sha256"}');
SELECT idem_set_policy('bench.transaction', 'default', '{"mode": "transaction"}');
SELECT idem_set_policy('bench.storm', 'default', '{"mode": "transaction", "max_waiters": 256, "wait": "60 seconds"}');

CREATE TABLE obvious (
    actor_id     text        NOT NULL,
    op           text        NOT NULL,
    key          text        NOT NULL,
    payload_hash bytea       NOT NULL,
    state        text        NOT NULL,
    status       integer,
    headers      jsonb,
    body         text,
    created_at   timestamptz NOT NULL,
    updated_at   timestamptz NOT NULL,
    PRIMARY KEY (actor_id, op, key)
);

-- obvious_claim says whether the caller is the first; if not, it gives the answer kept for the same payload.
CREATE FUNCTION obvious_claim(
    actor_id text, op text, key text, payload jsonb,
    OUT proceed boolean, OUT state text, OUT status integer, OUT headers jsonb, OUT body text)
LANGUAGE plpgsql AS $$
#variable_conflict use_column
DECLARE
    hash bytea := sha256(convert_to(payload::text, 'UTF8'));
    kept bytea;
BEGIN
    INSERT INTO obvious (actor_id, op, key, payload_hash, state, created_at, updated_at)
    VALUES (obvious_claim.actor_id, obvious_claim.op, obvious_claim.key, hash, 'in_progress', now(), now())
    ON CONFLICT DO NOTHING;
    proceed := FOUND;
    state := 'in_progress';
    IF proceed THEN
        RETURN;
    END IF;
    SELECT o.payload_hash, o.state, o.status, o.headers, o.body INTO kept, state, status, headers, body
      FROM obvious o
     WHERE o.actor_id = obvious_claim.actor_id AND o.op = obvious_claim.op AND o.key = obvious_claim.key;
    IF kept <> hash THEN
        RAISE EXCEPTION 'another payload under the same key';
    END IF;
END
$$;

-- obvious_complete keeps the answer and gives back what a replay will give.
CREATE FUNCTION obvious_complete(
    actor_id text, op text, key text, INOUT status integer, INOUT headers jsonb, INOUT body text)
LANGUAGE plpgsql AS $$
#variable_conflict use_column
BEGIN
    UPDATE obvious o
       SET state = 'completed', status = obvious_complete.status, headers = obvious_complete.headers,
           body = obvious_complete.body, updated_at = now()
     WHERE o.actor_id = obvious_complete.actor_id AND o.op = obvious_complete.op AND o.key = obvious_complete.key
       AND o.state = 'in_progress';
    IF NOT FOUND THEN
        RAISE EXCEPTION 'nothing to complete';
    END IF;
END
$$;

-- bench_handler is the work of idem_execute, as small as it gets.
CREATE FUNCTION bench_handler(payload jsonb) RETURNS jsonb
LANGUAGE plpgsql AS $$
BEGIN
    RETURN payload;
END
$$;

-- bench_body makes an answer of about `size` bytes: JSON, as answers are.
CREATE FUNCTION bench_body(key text, size integer) RETURNS text
LANGUAGE sql AS $$
    SELECT left('{"id": "' || key || '", "lines": [' || string_agg(format(
                   '{"sku": "%s", "quantity": %s, "price": "%s.%s", "note": "%s"}', substr(md5(key || n), 1, 10),
                   n % 7 + 1, n * 37 % 400, 10 + n % 90, substr(md5(n || key), 1, 12)), ', '), size - 2) || ']}'
      FROM generate_series(1, size / 80 + 1) AS n
$$;
