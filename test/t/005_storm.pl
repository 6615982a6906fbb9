# Storms: 64 sessions claim one key behind a barrier, round after round, and a crowd claims, completes, fails, releases,
# extends, takes over and lets expire a handful of keys. Every round has exactly one owner, and afterwards every invariant
# holds. Covers A01, A02, A09, A11, A26, A32, B06, B07 and the invariant sweep; invariants 1 to 4.
use strict;
use warnings;

use FindBin;
use lib "$FindBin::RealBin/lib";
use IdempotencyTest;
use Test::More;

my $node = new_server('storm', settings => [ 'max_connections = 300', 'max_locks_per_transaction = 256' ]);
my $offset = log_size($node);
my $started = $node->safe_psql('postgres', 'SELECT pg_postmaster_start_time()');

# A row that is updated more often than its page has room needs new index entries; a violated CHECK is an error.
is($node->safe_psql('postgres', q(
	DO $$ DECLARE r idem_result; BEGIN
		r := idem_claim('t', 'o', 'crowded page');
		FOR i IN 1 .. 500 LOOP PERFORM idem_extend(r.operation_id, r.token, '1 h'); END LOOP;
		PERFORM idem_complete(r.operation_id, r.token, body => 'at last');
	END $$;
	SELECT outcome, body FROM idem_lookup('t', 'o', 'crowded page'))), 'replay|at last', 'updates leave their page');
is($node->safe_psql('postgres', q(
	ALTER TABLE idem_keys ADD CONSTRAINT short CHECK (key <> 'unwanted');
	DO $$ BEGIN PERFORM idem_claim('t', 'o', 'unwanted'); EXCEPTION WHEN check_violation THEN RAISE NOTICE 'refused'; END $$;
	ALTER TABLE idem_keys DROP CONSTRAINT short;
	SELECT outcome FROM idem_claim('t', 'o', 'unwanted'))), 'claimed', 'a violated CHECK is an error');

# rounds NAME, CLIENTS, ROUNDS, BODY: each client runs BODY once a round, all at once, and reports its outcome.
sub rounds
{
	my ($name, $clients, $rounds, $body) = @_;
	my $conductor = session($node);
	$conductor->ask("CREATE TABLE $name (round int, client int, outcome text, body text)");
	$conductor->ask("SELECT pg_advisory_lock(1, round) FROM generate_series(1, $rounds) AS round");
	my $bench = start_bench($node, <<"SQL", clients => $clients, transactions => $rounds, define => { round => 0 });
\\set round :round + 1
SELECT pg_advisory_lock_shared(1, :round::int);
$body
INSERT INTO $name VALUES (:round, :client_id, :outcome, :body);
SELECT pg_advisory_unlock_shared(1, :round::int);
SQL
	# The gate of a round opens when all stand before it.
	$conductor->ask(qq(
		CREATE PROCEDURE open_$name() LANGUAGE plpgsql AS \$\$
		BEGIN
			FOR round IN 1 .. $rounds LOOP
				WHILE (SELECT count(*) FROM pg_locks WHERE locktype = 'advisory' AND NOT granted AND objid = round) < $clients LOOP
					PERFORM pg_sleep(0.002);
				END LOOP;
				PERFORM pg_advisory_unlock(1, round);
			END LOOP;
		END \$\$));
	$conductor->ask("CALL open_$name()");
	ok(finish_bench($bench), "$name: no client met an error");
	$conductor->quit;
	return;
}

# One commits its claim, the others are told at once.
rounds('claims', 64, 200, <<'SQL');
SELECT outcome, coalesce(reason, '') AS body FROM idem_claim('t', 'o', 'round-' || :round, '{"a": 1}', wait => '0') \gset
SQL
is($node->safe_psql('postgres', q(
	SELECT outcome, body, count(*), count(DISTINCT round) FROM claims GROUP BY 1, 2 ORDER BY 1)),
	"claimed||200|200\nin_progress|running|12600|200", '64 claims of one key: each round exactly one is the first');

# One does all in one transaction, the others wait for it and replay.
rounds('orders', 64, 60, <<'SQL');
BEGIN;
SELECT outcome, proceed, operation_id, coalesce(token, 0) AS token, coalesce(body, '') AS body FROM idem_claim('t', 'o', 'order-' || :round, '{"a": 1}', wait => '30 s') \gset
\if :proceed
SELECT body FROM idem_complete(:operation_id, :token, body => 'client ' || :client_id) \gset
\endif
COMMIT;
SQL
is($node->safe_psql('postgres', q(
	SELECT outcome, count(*), count(DISTINCT round), count(DISTINCT (round, body)) FROM orders GROUP BY 1 ORDER BY 1)),
	"claimed|60|60|60\nreplay|3780|60|60", 'with one transaction each round has one owner, all others replay its answer');

# Half of the owners abort: the next waiter takes its place, and the rest replay its answer.
rounds('aborts', 32, 60, <<'SQL');
BEGIN;
SELECT outcome, proceed, operation_id, coalesce(token, 0) AS token, coalesce(body, '') AS body FROM idem_claim('t', 'o', 'abort-' || :round, '{"a": 1}', wait => '30 s') \gset
\set abort random(1, 3)
\if :proceed
SELECT body FROM idem_complete(:operation_id, :token, body => 'client ' || :client_id) \gset
\if :abort > 1
ROLLBACK;
SELECT 'aborted' AS outcome \gset
\else
COMMIT;
\endif
\else
COMMIT;
\endif
SQL
is($node->safe_psql('postgres', q(
	SELECT count(*) FILTER (WHERE outcome = 'claimed'), count(*) FILTER (WHERE outcome NOT IN ('claimed', 'aborted', 'replay'))
	  FROM aborts)), '60|0', 'after aborts the next waiter takes over, and one commits in the end');
is($node->safe_psql('postgres', q(
	SELECT count(*) FROM (SELECT FROM aborts WHERE outcome IN ('claimed', 'replay') GROUP BY round HAVING count(DISTINCT body) > 1) AS r)),
	'0', 'nobody replays what was rolled back');
note 'aborts of owners: ' . $node->safe_psql('postgres', q(SELECT count(*) FROM aborts WHERE outcome = 'aborted'));

# The crowd. A lease and a ttl of one second, so that keys are taken over and live anew all the time.
$node->safe_psql('postgres', q(
	SELECT FROM idem_set_policy('crowd', 'default',
		'{"lease": "1 second", "grace": "0 seconds", "on_stale": "retry", "ttl": "1 second", "max_waiters": 5}');
	CREATE TABLE said (key text, client int, verb text, outcome text, proceed boolean, token bigint, body text, started timestamptz,
		ended timestamptz DEFAULT clock_timestamp());
	-- try does one verb and notes what came of it, in one transaction.
	CREATE FUNCTION try(key text, client int, verb text, id uuid, held bigint) RETURNS void LANGUAGE plpgsql AS $$
	DECLARE
		start timestamptz := clock_timestamp();
		words text := 'token ' || held || ' client ' || client;
		outcome text := 'ok';
	BEGIN
		BEGIN
			CASE verb
			WHEN 'complete' THEN PERFORM idem_complete(id, held, body => words);
			WHEN 'fail' THEN PERFORM idem_fail(id, held, 'failed', 402, body => words);
			WHEN 'release' THEN PERFORM idem_release(id, held);
			WHEN 'extend' THEN PERFORM idem_extend(id, held, '1 s');
			END CASE;
		EXCEPTION WHEN SQLSTATE 'ID001' OR SQLSTATE 'ID002' OR SQLSTATE '55000' THEN
			outcome := SQLSTATE;
		END;
		INSERT INTO said VALUES (key, client, verb, outcome, NULL, held, words, start);
	END $$;
));
my $storm = <<'SQL';
\set k random(1, 10)
\set act random(1, 100)
\set patience random(0, 60)
\set in_transaction random(1, 4)
SELECT clock_timestamp() AS started \gset
\if :in_transaction = 1
BEGIN;
SAVEPOINT s;
\endif
SELECT outcome, proceed, operation_id, coalesce(token, 0) AS token, coalesce(body, '') AS body FROM idem_claim('t', 'crowd', 'k' || :k, (CASE WHEN :act > 95 THEN '{"a": 2}' ELSE '{"a": 1.0}' END)::jsonb, wait => :patience * interval '1 ms') \gset
INSERT INTO said VALUES ('k' || :k, :client_id, 'claim', :outcome, :proceed, :token, :body, :started);
\if :in_transaction = 1
\if :act <= 25
ROLLBACK TO s;
SELECT outcome, proceed, operation_id, coalesce(token, 0) AS token, coalesce(body, '') AS body FROM idem_claim('t', 'crowd', 'k' || :k, '{"a": 1}', wait => :patience * interval '1 ms') \gset
INSERT INTO said VALUES ('k' || :k, :client_id, 'claim', :outcome, :proceed, :token, :body, :started);
\endif
\if :act <= 50
COMMIT;
\endif
\endif
\if :proceed
\if :act <= 3
SELECT pg_sleep(1.05);
SELECT try('k' || :k, :client_id, 'complete', :operation_id, :token);
\elif :act <= 9
SELECT try('k' || :k, :client_id, 'complete', :operation_id, :token);
SELECT try('k' || :k, :client_id, 'complete', :operation_id, :token);
\elif :act <= 12
SELECT try('k' || :k, :client_id, 'fail', :operation_id, :token);
\elif :act <= 75
SELECT try('k' || :k, :client_id, 'release', :operation_id, :token);
\elif :act <= 90
SELECT try('k' || :k, :client_id, 'extend', :operation_id, :token);
SELECT try('k' || :k, :client_id, 'release', :operation_id, :token);
\elif :act <= 93
SELECT try('k' || :k, :client_id, 'complete', :operation_id, :token);
\endif
\else
\sleep 2 ms
\endif
\if :in_transaction = 1
\if :act > 50
\if :act <= 80
COMMIT;
\else
ROLLBACK;
\endif
\endif
\endif
SQL
ok(bench($node, $storm, clients => 24, seconds => 12), 'no client of the crowd met an error it did not expect');
note "the crowd:\n" . $node->safe_psql('postgres', q(
	SELECT verb, outcome, count(*), count(*) FILTER (WHERE proceed) FROM said GROUP BY 1, 2 ORDER BY 1, 3 DESC));
is($node->safe_psql('postgres', q(
	CREATE INDEX ON said (key, token);
	ANALYZE said;
	CREATE VIEW owned AS SELECT key, token, started, ended, lead(token) OVER w AS next_token, lead(ended) OVER w AS next_ended
		FROM said WHERE verb = 'claim' AND proceed WINDOW w AS (PARTITION BY key ORDER BY token);
	CREATE VIEW finished AS SELECT * FROM said WHERE verb IN ('complete', 'fail', 'release') AND outcome = 'ok';
	SELECT 'one token twice', count(*) FROM (
		SELECT FROM said WHERE verb = 'claim' AND proceed GROUP BY key, token HAVING count(*) > 1) AS s HAVING count(*) > 0;
	SELECT 'tokens out of order', count(*) FROM owned WHERE next_ended < started HAVING count(*) > 0;
	SELECT 'proceed without the word', count(*) FROM said
	 WHERE verb = 'claim' AND proceed IS DISTINCT FROM (outcome IN ('claimed', 'resumed')) HAVING count(*) > 0;
	SELECT 'finished without a claim', count(*) FROM finished AS f
	 WHERE NOT EXISTS (SELECT FROM owned AS o WHERE (o.key, o.token) = (f.key, f.token)) HAVING count(*) > 0;
	SELECT 'finished in two ways', count(*) FROM (
		SELECT FROM finished GROUP BY key, token HAVING count(DISTINCT verb) > 1) AS s HAVING count(*) > 0;
	SELECT 'finished after a greater token was out', count(*)
	  FROM (SELECT key, token, min(started) AS started FROM finished GROUP BY 1, 2) AS f
	  JOIN owned AS o ON (o.key, o.token) = (f.key, f.token) WHERE o.next_ended < f.started HAVING count(*) > 0;
	SELECT 'two owners within a lease', count(*) FROM owned AS o WHERE next_ended < started + interval '1 s'
	   AND NOT EXISTS (SELECT FROM finished AS f WHERE (f.key, f.token) = (o.key, o.token)) HAVING count(*) > 0;
	SELECT 'claimed again before its time', count(*) FROM owned AS o JOIN (
		SELECT key, token, min(started) AS started FROM finished WHERE verb <> 'release' GROUP BY 1, 2) AS f USING (key, token)
	 WHERE o.next_ended < f.started + interval '1 s' HAVING count(*) > 0;
	SELECT 'replayed what nobody answered', count(*) FROM said AS s WHERE outcome = 'replay' AND NOT EXISTS (
		SELECT FROM finished AS f WHERE (f.key, f.body) = (s.key, s.body) AND f.verb <> 'release') HAVING count(*) > 0;
	SELECT 'another answer than asked', count(*) FROM said WHERE verb <> 'claim' AND outcome = 'ID002' HAVING count(*) > 0;
)), '', 'the crowd: one owner at a time, and nothing replayed but what an owner answered');

is($node->safe_psql('postgres', 'SELECT pg_postmaster_start_time()'), $started, 'the server never restarted');
log_is_clean($node, $offset, 'storms', '40P01', '40001');
sweep($node, 'postgres', 'storms');
$node->stop;
done_testing();
