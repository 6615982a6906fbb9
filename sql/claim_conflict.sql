-- claim_conflict: another payload under a used key is a conflict on every path, and discloses no more than the policy
-- allows. Covers A14 A15 A24 B09 and invariant 3.
SET client_min_messages = warning;
CREATE EXTENSION IF NOT EXISTS idempotency;
RESET client_min_messages;
\pset null '(null)'

-- keys in every state, claimed with the payload A: what claims with A and with B are answered, and that B changes
-- nothing
SELECT op FROM idem_set_policy('conflict.retry', 'default',
    '{"on_stale": "retry", "grace": "0", "wait": "0", "tombstone_ttl": "1 hour"}');
SELECT op FROM idem_set_policy('conflict.op', 'default', '{"grace": "0", "wait": "0"}');
CREATE TEMP TABLE keys AS
SELECT o AS op, k AS what, operation_id, token
  FROM unnest(ARRAY['conflict.op', 'conflict.retry']) o, unnest(ARRAY['running', 'lapsed', 'completed', 'failed',
      'released', 'unknown', 'over', 'long over']) k,
       idem_claim('conflict.actor', o, k, '{"payload": "A"}');
SELECT count(*) FROM keys;
SELECT what, r.state FROM keys, idem_complete(operation_id, token, 201, 'answer to A',
    headers => '{"ETag": "secret"}') r WHERE what IN ('completed', 'over', 'long over') ORDER BY op, what;
SELECT what, r.state FROM keys, idem_fail(operation_id, token,
    CASE what WHEN 'failed' THEN 'failed' WHEN 'released' THEN 'released' ELSE 'indeterminate' END, 402,
    'failure of A') r
 WHERE what IN ('failed', 'released', 'unknown') ORDER BY op, what;
UPDATE idem_keys SET lease_until = now() - interval '1 s' WHERE actor = 'conflict.actor' AND key = 'lapsed';
UPDATE idem_keys SET expires_at = now() - interval '1 min' WHERE actor = 'conflict.actor' AND key = 'over';
UPDATE idem_keys SET expires_at = now() - interval '1 day' WHERE actor = 'conflict.actor' AND key = 'long over';
SELECT md5(string_agg(k::text, ';' ORDER BY operation_id)) AS before FROM idem_keys k
    WHERE actor = 'conflict.actor' AND key NOT LIKE '%over' \gset
SELECT k.op, k.what, r.outcome, r.proceed, r.replayed, r.token, r.state, r.attempt, r.status, r.headers, r.body,
    r.completed_at, r.expires_at, r.reason, (r.detail -> 'winner') - 'claimed_at' - 'payload_hash' AS winner
  FROM keys k, idem_claim('conflict.actor', op, what, '{"payload": "B"}') r WHERE what NOT LIKE '%over'
      ORDER BY op, what;
SELECT md5(string_agg(k::text, ';' ORDER BY operation_id)) = :'before' AS untouched FROM idem_keys k
    WHERE actor = 'conflict.actor' AND key NOT LIKE '%over';
-- with A as if B had never been; only an expired key takes a new payload
SELECT k.op, k.what, r.outcome, r.proceed, r.state, r.attempt, r.status, r.body, r.reason
    FROM keys k, idem_claim('conflict.actor', op, what, '{"payload": "A"}') r WHERE what NOT LIKE '%over'
    ORDER BY op, what;
SELECT k.op, k.what, r.outcome, r.proceed, r.state, r.attempt, r.status, r.body, r.reason
    FROM keys k, idem_claim('conflict.actor', op, what, '{"payload": "B"}') r WHERE what LIKE '%over' ORDER BY op, what;

-- how much of the winner a conflict shows: level by level, running and completed
SELECT op FROM unnest(ARRAY['none', 'hash', 'response', 'full']) l, idem_set_policy('conflict.' || l, 'default',
    jsonb_build_object('conflict_detail', l, 'store_payload', CASE l WHEN 'full' THEN 'canonical' ELSE 'no' END,
        'hash_algorithm', 'sha256')) ORDER BY op;
CREATE TEMP TABLE levels AS
SELECT op, k AS what, r.operation_id, r.token
  FROM unnest(ARRAY['none', 'hash', 'response', 'full']) WITH ORDINALITY AS l (level, n),
      LATERAL (SELECT 'conflict.' || level AS op) o, unnest(ARRAY['bytes', 'completed', 'kept elsewhere', 'running']) k,
       idem_claim('conflict.actor', op, k, '{"amount": 1.50, "secret": "payload"}') r ORDER BY n, what;
SELECT count(r.outcome) FROM levels, idem_complete(operation_id, token, 201, 'the answer', headers => '{"ETag": "1"}') r
    WHERE what = 'completed';
SELECT count(r.outcome) FROM levels, idem_complete(operation_id, token, 201, body_bytes => '\x00ff') r
    WHERE what = 'bytes';
SELECT count(r.outcome) FROM levels, idem_complete(operation_id, token, 201, body_ref => 's3://bucket/key') r
    WHERE what = 'kept elsewhere';
\pset format unaligned
SELECT op, what, outcome, reason, status, body, (detail #- '{winner,claimed_at}') #- '{winner,completed_at}' AS detail,
    detail -> 'winner' ? 'claimed_at' AS claimed_at, detail -> 'winner' ? 'completed_at' AS completed_at
  FROM levels l, LATERAL (SELECT outcome, reason, status, body, detail FROM idem_claim('conflict.actor', op, what,
      '{"amount": 2}', wait => '0')) r;
\pset format aligned
SELECT encode(sha256(convert_to(idem_canonical('{"amount": 2}'), 'UTF8')), 'hex') AS hash_of_the_conflicting,
    encode(idem_hash('{"secret": "payload", "amount": 1.5}', 'sha256'), 'hex') AS hash_of_the_winner;
-- what the HTTP client is sent
SELECT h.status, h.headers, convert_from(h.body,
    'UTF8')::jsonb #- '{winner,claimed_at}' #- '{winner,completed_at}' AS body
  FROM unnest(ARRAY['conflict.none', 'conflict.hash']) o, idem_claim('conflict.actor', o, 'completed',
      '{"amount": 2}') r, idem_http_response(r) h;

-- statuses by policy
SELECT op FROM idem_set_policy('conflict.draft', 'default',
    '{"conflict_status": 422, "in_progress_status": 425, "conflict_detail": "none", "wait": "0"}');
SELECT r.outcome FROM idem_claim('conflict.actor', 'conflict.draft', 'k', '{}') r;
SELECT r.outcome, h.status, h.headers -> 1 AS second_header FROM idem_claim('conflict.actor', 'conflict.draft', 'k',
    '{}') r, idem_http_response(r) h;
SELECT r.outcome, h.status FROM idem_claim('conflict.actor', 'conflict.draft', 'k', '{"x": 1}') r,
    idem_http_response(r) h;

-- payload_compare off: no conflict, but told
SELECT op FROM idem_set_policy('conflict.webhook', 'webhook');
BEGIN;
SELECT c.outcome, r.outcome AS then FROM idem_claim('conflict.actor', 'conflict.webhook', 'event-1',
    '{"delivery": 1}') c, idem_complete(c.operation_id, c.token, 200) r;
COMMIT;
SELECT outcome, detail FROM idem_claim('conflict.actor', 'conflict.webhook', 'event-1', '{"delivery": 1}');
SELECT outcome, detail FROM idem_claim('conflict.actor', 'conflict.webhook', 'event-1', '{"delivery": 2}');
SELECT outcome, detail FROM idem_claim('conflict.actor', 'conflict.webhook', 'event-1');

-- a policy that changes the hash makes no conflicts: old rows are compared under their own
SELECT op, version FROM idem_set_policy('conflict.hashes', 'default', '{"wait": "0"}');
SELECT outcome FROM idem_claim('conflict.actor', 'conflict.hashes', 'old', '{"n": 1}', target => 't');
SELECT op, version FROM idem_set_policy('conflict.hashes', 'default', '{"wait": "0", "hash_algorithm": "sha256"}');
SELECT k, p, outcome FROM (VALUES (1, 'old', '{"n": 1}'::jsonb, 't'), (2, 'old', '{"n": 2}', 't'), (3, 'old',
    '{"n": 1}', 'u'), (4, 'old', NULL, NULL), (5, 'new', '{"n": 1}', 't')) AS v (i, k, p, t),
       idem_claim('conflict.actor', 'conflict.hashes', k, p, target => t) ORDER BY i;
SELECT key, octet_length(payload_hash) AS hash, profile FROM idem_keys WHERE op = 'conflict.hashes' ORDER BY key;
