-- again: what a second attempt, a second answer or a second look may not change. One case per fault that was found.
-- Covers A14 A23 A26 A34.
SET client_min_messages = warning;
CREATE EXTENSION IF NOT EXISTS idempotency;
RESET client_min_messages;
\pset null '(null)'

-- the ttl a later attempt asks for is the one that counts
SELECT op FROM idem_set_policy('again.retry', 'default',
    '{"lease": "1 second", "grace": "0 seconds", "on_stale": "retry"}');
SELECT operation_id AS id, token FROM idem_claim('again', 'again.retry', 'released', '{}', ttl => '1 hour') \gset
SELECT outcome FROM idem_release(:'id', :token);
SELECT operation_id AS id, token FROM idem_claim('again', 'again.retry', 'released', '{}', ttl => '7 days') \gset
SELECT expires_at - completed_at AS ttl FROM idem_complete(:'id', :token);
SELECT operation_id AS id, token FROM idem_claim('again', 'again.retry', 'stale', '{}', ttl => '1 hour') \gset
UPDATE idem_keys SET lease_until = now() - interval '1 s' WHERE actor = 'again' AND key = 'stale';
SELECT operation_id AS id, token FROM idem_claim('again', 'again.retry', 'stale', '{}') \gset
SELECT expires_at - completed_at AS ttl FROM idem_complete(:'id', :token);
SELECT operation_id AS id, token FROM idem_claim('again', 'again.retry', 'part', '{}', ttl => '1.5 s') \gset
SELECT expires_at - completed_at AS ttl FROM idem_complete(:'id', :token);

-- a repeated answer is the same answer whatever the policy keeps by then; a date or a cookie is new each time
SELECT op FROM idem_set_policy('again.policy', 'default', '{"body_max": 100}');
SELECT operation_id AS id, token FROM idem_claim('again', 'again.policy', 'k', '{}') \gset
SELECT outcome, headers FROM idem_complete(:'id', :token, 200, 'twenty letters of it', headers => '{"ETag": "1", "Date": "then"}');
SELECT op FROM idem_set_policy('again.policy', 'default', '{"body_max": 1, "replay_headers": ["Date"]}');
SELECT outcome, headers, body FROM idem_complete(:'id', :token, 200, 'twenty letters of it', headers => '{"ETag": "1", "Date": "now"}');
\set VERBOSITY sqlstate
SELECT idem_complete(:'id', :token, 200, 'twenty letters of it', headers => '{"ETag": "2", "Date": "now"}');
SELECT idem_complete(:'id', :token, 200, 'twenty letters or so', headers => '{"ETag": "1", "Date": "now"}');

-- a lease-mode claim that is not committed cannot be completed by a detour either
SELECT op FROM idem_set_policy('again.lease', 'default', '{"mode": "lease", "lease": "1 second", "grace": "0 seconds"}');
BEGIN;
SELECT operation_id AS id, token FROM idem_claim('again', 'again.lease', 'k', '{}') \gset
SELECT outcome FROM idem_fail(:'id', :token, 'indeterminate');
SELECT idem_complete(:'id', :token);
ROLLBACK;
BEGIN;
SELECT operation_id AS id, token FROM idem_claim('again', 'again.lease', 'k', '{}') \gset
SELECT outcome FROM idem_fail(:'id', :token, 'indeterminate');
SELECT idem_resolve(:'id', 'completed', '{}');
ROLLBACK;
\set VERBOSITY default

-- a conflict tells the winner's payload as it was stored: a number of a few letters stays one
SELECT op FROM idem_set_policy('again.full', 'default', '{"conflict_detail": "full", "store_payload": "canonical"}');
SELECT outcome FROM idem_claim('again', 'again.full', 'k', ('[' || repeat('1e131071,', 999) || '1]')::jsonb);
SELECT outcome, octet_length(detail::text) < 20000 AS small, left(detail #>> '{winner,payload}', 20) AS payload
  FROM idem_claim('again', 'again.full', 'k', '1', wait => '0');
SELECT outcome FROM idem_claim('again', 'again.full', 'long', to_jsonb(repeat('x', 20000)));
SELECT outcome, detail #> '{winner,payload}' AS payload, detail #> '{winner,payload_omitted}' AS omitted
  FROM idem_claim('again', 'again.full', 'long', '1', wait => '0');

-- a time that is shown does not give a token away
SELECT count(*) FILTER (WHERE c.token = (extract(epoch FROM c.claimed_at) * 1e6 - 946684800000000)::bigint) < 5 AS hidden
  FROM generate_series(1, 100) i, idem_claim('again', 'again.retry', 'token-' || i) c;

-- a nullable column on idem_policies changes no result type
BEGIN;
ALTER TABLE idem_policies ADD COLUMN note text;
SELECT op, version FROM idem_set_policy('again.note', 'default');
ROLLBACK;

-- an altered result type is refused, wherever a row of it is made
\set VERBOSITY sqlstate
BEGIN;
ALTER TYPE idem_result ALTER ATTRIBUTE retry_after_s TYPE text CASCADE;
SELECT retry_after_s FROM idem_claim('again', 'again.retry', 'altered');
ROLLBACK;
BEGIN;
ALTER TYPE idem_result ADD ATTRIBUTE more text CASCADE;
SELECT count(*) FROM idem_claim_many('again', 'again.retry', ARRAY['altered']);
ROLLBACK;
\set VERBOSITY default

-- a STRICT handler would not be called without a payload
CREATE FUNCTION again_strict(payload jsonb) RETURNS jsonb LANGUAGE sql STRICT AS 'SELECT payload';
SELECT idem_execute('again', 'again.strict', 'k', NULL, 'again_strict');
DROP FUNCTION again_strict;
