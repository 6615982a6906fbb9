-- zz_invariants: what must be true of everything that the tests before this one have left behind. Covers invariants 1,
-- 2, 3
-- and 7 of the contract, F09 and A29.
SET client_min_messages = warning;
CREATE EXTENSION IF NOT EXISTS idempotency;
RESET client_min_messages;
\pset null '(null)'
-- one live row for each (actor, op, key), under the id that anybody can compute
SELECT actor, op, key FROM idem_keys GROUP BY actor, op, key HAVING count(*) > 1;
SELECT operation_id, op FROM idem_keys k,
       LATERAL (SELECT substr(sha256(int4send(octet_length(a)) || a || int4send(octet_length(o)) || o || int4send(octet_length(i)) || i), 1, 16) AS h
                  FROM (SELECT convert_to(actor, 'UTF8') AS a, convert_to(op, 'UTF8') AS o, convert_to(key,
                      'UTF8') AS i) b) c
 WHERE operation_id <> encode(set_byte(set_byte(h, 6, get_byte(h, 6) & 15 | 128), 8, get_byte(h, 8) & 63 | 128),
     'hex')::uuid;
-- tokens: positive, exact in JavaScript, and no answer of a later acquisition than the row's
SELECT operation_id, op, token FROM idem_keys WHERE token <= 0 OR token >= 9007199254740992;
SELECT k.operation_id, k.op FROM idem_keys k JOIN idem_responses r USING (operation_id) WHERE r.token > k.token;
-- a finished key has exactly one answer, an unfinished one has none under its token
SELECT k.operation_id, k.op, k.state, count(r.token) FROM idem_keys k LEFT JOIN idem_responses r
    ON r.operation_id = k.operation_id AND r.token = k.token
 GROUP BY k.operation_id, k.op, k.state HAVING count(r.token) <> CASE WHEN k.state IN ('c', 'f') THEN 1 ELSE 0 END;
SELECT r.operation_id FROM idem_responses r WHERE NOT EXISTS (SELECT FROM idem_keys k
    WHERE k.operation_id = r.operation_id);
-- times and states agree
SELECT operation_id, op, key, state FROM idem_keys
 WHERE state NOT IN ('i', 'c', 'f', 'r', 'u') OR (state IN ('c', 'f')) <> (completed_at IS NOT NULL) OR (state IN ('c',
     'f', 'r')) <> (expires_at IS NOT NULL) OR attempt < 1 OR created_at > updated_at
    OR completed_at < created_at OR octet_length(payload_hash) NOT IN (16, 32);
-- no unfinished row without its hint, so whatever sweeps will find it
SELECT operation_id, op, key, state FROM idem_keys k WHERE state IN ('i', 'u') AND NOT EXISTS (SELECT FROM idem_leases l
    WHERE l.operation_id = k.operation_id);
SELECT count(*) = (SELECT count(*) FROM idem_unfinished) AS all_unfinished FROM idem_keys WHERE state IN ('i', 'u');
-- no claim of a mode "transaction" op was committed unfinished
SELECT k.op, k.key FROM idem_keys k JOIN idem_policies p USING (op) WHERE p.options ->> 'mode' = 'transaction'
    AND k.state = 'i' AND k.updated_at > p.updated_at;
-- table and index agree
SET enable_indexscan = off;
SET enable_bitmapscan = off;
SET enable_indexonlyscan = off;
SELECT count(*) AS rows, md5(string_agg(operation_id::text, '' ORDER BY operation_id)) AS ids FROM idem_keys \gset
RESET enable_indexscan;
RESET enable_bitmapscan;
RESET enable_indexonlyscan;
SET enable_seqscan = off;
SELECT count(*) = :rows AS same_rows, md5(string_agg(operation_id::text, '' ORDER BY operation_id)) = :'ids' AS same_ids
    FROM (SELECT operation_id FROM idem_keys ORDER BY operation_id) k;
RESET enable_seqscan;
SELECT indexrelid::regclass FROM pg_index WHERE indrelid IN ('idem_keys'::regclass, 'idem_responses'::regclass,
    'idem_policies'::regclass) AND NOT (indisvalid AND indisready);
-- the server has not crashed on the way, and nothing is left that holds anything
SELECT backend_start - pg_postmaster_start_time() < '10 s' AS never_crashed FROM pg_stat_activity
    WHERE backend_type = 'checkpointer';
SELECT gid FROM pg_prepared_xacts;
SELECT rolname FROM pg_roles WHERE rolname LIKE 'regress%';
