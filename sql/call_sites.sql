-- call_sites: a claim inside other SQL: in a CTE, a function, LATERAL, and expanded by (…).*, which calls it once a
-- column. Covers A02 and rule 2 of the contract.
SET client_min_messages = warning;
CREATE EXTENSION IF NOT EXISTS idempotency;
RESET client_min_messages;
\pset null '(null)'

-- (…).* claims twice: refused with its hint, and nothing is left
SELECT (idem_claim('sites.actor', 'sites.op', 'star', '{}')).*;
SELECT (idem_claim('sites.actor', 'sites.op', 'star', '{}')).outcome, (idem_claim('sites.actor', 'sites.op', 'star',
    '{}')).proceed;
SELECT count(*) FROM idem_keys WHERE actor = 'sites.actor';
BEGIN;
SAVEPOINT s;
SELECT (idem_claim('sites.actor', 'sites.op', 'star', '{}')).*;
ROLLBACK TO s;
SELECT outcome FROM idem_claim('sites.actor', 'sites.op', 'star', '{}');
COMMIT;
-- of what is there already, every column says the same
SELECT (r).outcome, (r).proceed FROM (SELECT idem_claim('sites.actor', 'sites.op', 'star', '{}',
    wait => '0') AS r OFFSET 0) AS s;
SELECT c.operation_id AS id, c.token FROM idem_claim('sites.actor', 'sites.op', 'star done', '{}') c \gset
SELECT outcome FROM idem_complete(:'id', :token, 201, 'x');
SELECT (x.r).outcome, (x.r).status, (x.r).body FROM (SELECT idem_claim('sites.actor', 'sites.op', 'star done',
    '{}') AS r OFFSET 0) x;
SELECT (idem_claim('sites.actor', 'sites.op', 'star done', '{}')).outcome, (idem_claim('sites.actor', 'sites.op',
    'star done', '{}')).body;

-- one value, then its columns
SELECT (r).outcome, (r).proceed, (r).state FROM idem_claim('sites.actor', 'sites.op', 'from', '{}') AS r;
WITH c AS MATERIALIZED (SELECT idem_claim('sites.actor', 'sites.op', 'cte', '{}') AS r) SELECT (r).outcome, (r).proceed
    FROM c;
WITH c AS (SELECT * FROM idem_claim('sites.actor', 'sites.op', 'cte 2', '{}')) SELECT outcome, proceed
    FROM c UNION ALL SELECT state, replayed FROM c;

-- two claims in one SELECT: other keys are other claims, the same key is a mistake
SELECT a.outcome, b.outcome FROM idem_claim('sites.actor', 'sites.op', 'two a') a, idem_claim('sites.actor', 'sites.op',
    'two b') b;
SELECT a.outcome, b.outcome FROM idem_claim('sites.actor', 'sites.op', 'two') a, idem_claim('sites.actor', 'sites.op',
    'two') b;
SELECT outcome FROM idem_claim('sites.actor', 'sites.op', 'union') UNION ALL SELECT outcome
    FROM idem_claim('sites.actor', 'sites.op', 'union');
SELECT count(*) FROM idem_keys WHERE actor = 'sites.actor' AND key IN ('two', 'union');

-- one call site over rows: a key that comes again is the transaction's own
SELECT n, outcome, proceed, reason FROM unnest(ARRAY['r1', 'r2', 'r1', 'r1']) WITH ORDINALITY AS t (k, n),
    idem_claim('sites.actor', 'sites.op', 'rows ' || k) ORDER BY n;
SELECT n, c.outcome, c.proceed, c.status, CASE WHEN c.proceed THEN (SELECT r.outcome
    FROM idem_complete(c.operation_id, c.token, 201) r) END AS then
  FROM unnest(ARRAY['d1', 'd2', 'd1']) WITH ORDINALITY AS t (k, n), idem_claim('sites.actor', 'sites.op',
      'done ' || k) c ORDER BY n;

-- in functions: two statements, one key
CREATE FUNCTION pg_temp.twice(k text) RETURNS text LANGUAGE plpgsql AS $$
DECLARE a idem_result; b idem_result;
BEGIN
    a := idem_claim('sites.actor', 'sites.op', k);
    b := idem_claim('sites.actor', 'sites.op', k);
    RETURN concat_ws(', ', a.outcome, b.outcome, b.reason);
END $$;
SELECT pg_temp.twice('plpgsql 1'), pg_temp.twice('plpgsql 2');
CREATE FUNCTION pg_temp.in_sql(k text) RETURNS text LANGUAGE sql BEGIN ATOMIC
    SELECT outcome FROM idem_claim('sites.actor', 'sites.op', k);
    SELECT outcome || ', ' || reason FROM idem_claim('sites.actor', 'sites.op', k);
END;
SELECT pg_temp.in_sql('sql');
SELECT k, pg_temp.twice('loop ' || k) FROM unnest(ARRAY['a', 'b', 'a']) AS k;
-- in a function that says it is STABLE, which the server does not check
CREATE FUNCTION pg_temp.stable(k text) RETURNS text STABLE LANGUAGE plpgsql AS $$ BEGIN RETURN (SELECT outcome FROM idem_claim('sites.actor', 'sites.op', k)); END $$;
SELECT pg_temp.stable('stable');
-- EXECUTE, and a prepared statement used again in one transaction
BEGIN;
PREPARE again AS SELECT outcome, reason FROM idem_claim('sites.actor', 'sites.op', $1);
EXECUTE again('prepared');
EXECUTE again('prepared');
DEALLOCATE again;
COMMIT;
-- in data-modifying statements
CREATE TEMP TABLE asked (key text, answer text);
INSERT INTO asked SELECT r.key, r.outcome FROM unnest(ARRAY['i1', 'i2']) k, idem_claim('sites.actor', 'sites.op',
    'insert ' || k) r;
UPDATE asked SET answer = (SELECT outcome FROM idem_claim('sites.actor', 'sites.op', asked.key, wait => '0'));
SELECT * FROM asked ORDER BY key;
INSERT INTO asked SELECT 'i3', outcome FROM idem_claim('sites.actor', 'sites.op', 'returning') RETURNING *;
-- CASE and WHERE claim only where they are reached
SELECT CASE WHEN false THEN (SELECT outcome FROM idem_claim('sites.actor', 'sites.op', 'case'))
    ELSE 'not asked' END AS answer;
SELECT count(*) FROM idem_keys WHERE actor = 'sites.actor' AND key = 'case';
