-- expiry: an answer lives for its ttl from completion; a tombstone remembers longer; then the key lives anew, and the
-- old
-- answer never comes back. Covers A15 A32 B08 and invariant 4.
SET client_min_messages = warning;
CREATE EXTENSION IF NOT EXISTS idempotency;
RESET client_min_messages;
\pset null '(null)'
CREATE FUNCTION pg_temp.error_of(statement text) RETURNS text LANGUAGE plpgsql AS $$
DECLARE detail text; hint text;
BEGIN
    EXECUTE statement;
    RETURN 'no error';
EXCEPTION WHEN OTHERS THEN
    GET STACKED DIAGNOSTICS detail = PG_EXCEPTION_DETAIL, hint = PG_EXCEPTION_HINT;
    RETURN concat_ws(E'\n', SQLSTATE || ' ' || SQLERRM, nullif(detail, ''), nullif(hint, ''));
END $$;
SELECT op FROM idem_set_policy('expiry.plain', 'default', '{"ttl": "1 second", "grace": "0", "wait": "0"}');
SELECT op FROM idem_set_policy('expiry.tombstone', 'default',
    '{"ttl": "1 second", "tombstone_ttl": "1 hour", "grace": "0", "wait": "0"}');
CREATE TEMP TABLE life AS
SELECT o AS op, k AS what, operation_id, token FROM unnest(ARRAY['expiry.plain', 'expiry.tombstone']) o,
    unnest(ARRAY['completed', 'failed', 'released', 'running', 'unknown', 'own ttl']) k,
       idem_claim('expiry.actor', o, k, '{"life": 1}', lease => '1 hour',
           ttl => CASE k WHEN 'own ttl' THEN interval '1 hour' END);
SELECT op, what, r.state, r.expires_at - r.completed_at AS ttl FROM life, idem_complete(operation_id, token, 201,
    'first life') r WHERE life.what IN ('completed', 'own ttl') ORDER BY op, life.what;
SELECT count(r.state) FROM life, idem_fail(operation_id, token, what, 402, 'first life') r
    WHERE life.what IN ('failed', 'released');
SELECT count(r.state) FROM life, idem_fail(operation_id, token, 'indeterminate') r WHERE life.what = 'unknown';
SELECT pg_sleep(1.1);

-- lookups first: they change nothing
SELECT op, life.what, r.outcome, r.state, r.status, r.body FROM life, idem_lookup_id(operation_id) r
    ORDER BY op, life.what;
-- what runs, or may have run, never expires into "absent"; the ttl that the claim asked for stands; the rest is gone,
-- or remembered as used
SELECT op, life.what, r.outcome, r.proceed, r.state, r.attempt, r.status, r.headers, r.body, r.checkpoint, r.reason,
    r.token > life.token AS greater
  FROM life, idem_claim('expiry.actor', op, life.what, '{"life": 2}') r ORDER BY op, life.what;
-- the new life has its own payload and answer
SELECT op, life.what, r.outcome FROM life, idem_claim('expiry.actor', op, life.what, '{"life": 1}') r
    WHERE life.what IN ('completed', 'failed', 'released') ORDER BY op, life.what;
SELECT op, life.what, left(pg_temp.error_of(format('SELECT idem_complete(%L, %s, 201, %L)', operation_id, token,
    'first life')), 5) AS old_token FROM life WHERE op = 'expiry.plain' AND what IN ('completed', 'failed')
    ORDER BY what;
SELECT r.outcome, r.body FROM idem_keys k, idem_complete(k.operation_id, k.token, 200, 'second life') r
    WHERE k.op = 'expiry.plain' AND k.key = 'completed';
SELECT outcome, status, body FROM idem_claim('expiry.actor', 'expiry.plain', 'completed', '{"life": 2}');
SELECT outcome, body FROM idem_claim('expiry.actor', 'expiry.plain', 'completed', '{"life": 1}');
-- a new life remembers nothing of the old one
SELECT operation_id AS id, token FROM idem_claim('expiry.actor', 'expiry.plain', 'clean', '{}',
    attempt_id => '00000000-0000-4000-8000-000000000001', parent_operation_id => '00000000-0000-8000-8000-000000000009',
    traceparent => '00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01', ttl => '2 hours') \gset
SELECT outcome FROM idem_checkpoint(:'id', :token, '{"old": true}');
SELECT outcome FROM idem_fail(:'id', :token, 'failed', evidence => '{"old": true}');
UPDATE idem_keys SET expires_at = now() - interval '1 s' WHERE operation_id = :'id';
SELECT outcome, attempt, checkpoint, detail FROM idem_claim('expiry.actor', 'expiry.plain', 'clean');
SELECT attempt_id, parent, traceparent, ttl_s, checkpoint, evidence, completed_at, expires_at, payload_hash,
    clock_timestamp() - created_at < '1 min' AS created_anew FROM idem_keys WHERE operation_id = :'id';

-- a tombstone answers expired whatever the payload, and shows no answer; when it is over the key lives anew
SELECT outcome, proceed, state, status, body, completed_at IS NOT NULL AS completed, expires_at < now() AS over
    FROM idem_claim('expiry.actor', 'expiry.tombstone', 'completed', '{"life": 1}');
SELECT h.status FROM idem_claim('expiry.actor', 'expiry.tombstone', 'completed', '{"life": 1}') r,
    idem_http_response(r) h;
SELECT outcome FROM idem_claim_many('expiry.actor', 'expiry.tombstone', ARRAY['completed', 'failed']);
UPDATE idem_keys SET expires_at = expires_at - interval '1 hour' WHERE op = 'expiry.tombstone' AND key IN ('completed',
    'failed');
SELECT life.what, r.outcome, r.attempt FROM life, idem_claim('expiry.actor', op, life.what, '{"life": 3}') r
    WHERE op = 'expiry.tombstone' AND life.what IN ('completed', 'failed') ORDER BY life.what;
-- a policy that changes counts from then on: the ttl was fixed at completion, the tombstone is not
SELECT version FROM idem_set_policy('expiry.plain', 'default',
    '{"ttl": "90 days", "tombstone_ttl": "90 days", "wait": "0"}');
SELECT r.outcome FROM idem_keys k, idem_complete(k.operation_id, k.token) r
    WHERE k.op = 'expiry.plain' AND k.key = 'clean';
UPDATE idem_keys SET expires_at = now() - interval '1 s' WHERE operation_id = :'id';
SELECT outcome FROM idem_claim('expiry.actor', 'expiry.plain', 'clean');
-- a completion that is repeated after the ttl is still the same completion
SELECT c.operation_id AS id, c.token FROM idem_claim('expiry.actor', 'expiry.tombstone', 'repeated') c \gset
SELECT outcome FROM idem_complete(:'id', :token, 201, 'same');
UPDATE idem_keys SET expires_at = now() - interval '1 s' WHERE operation_id = :'id';
SELECT outcome, body FROM idem_complete(:'id', :token, 201, 'same');
