# Memory of a session: a hundred thousand calls of every kind, errors too, and the session's memory contexts are no larger
# than after the first few; so are batches, large payloads and errors in the midst of a wait. Covers A34, F01, F02, F03.
use strict;
use warnings;

use FindBin;
use lib "$FindBin::RealBin/lib";
use IdempotencyTest;
use PostgreSQL::Test::Utils;
use Test::More;
use Time::HiRes qw(time);

my $node = new_server('memory', settings => [ 'synchronous_commit = off', 'autovacuum = off' ]);
my $offset = log_size($node);
$node->safe_psql('postgres', q(
	SELECT FROM idem_set_policy('retry', 'default', '{"on_stale": "retry"}');
	CREATE TABLE used (kind text, round int, bytes bigint);
	CREATE PROCEDURE note_memory(kind text, round int) LANGUAGE sql AS
		'INSERT INTO used SELECT kind, round, sum(used_bytes) FROM pg_backend_memory_contexts';
	-- life does every kind of call once, errors caught.
	CREATE FUNCTION life(n int) RETURNS void LANGUAGE plpgsql AS $$
	DECLARE
		r idem_result;
	BEGIN
		r := idem_claim('t', 'o', 'key ' || n, '{"a": [1, 2.50, "three"], "b": {"c": null}}');
		PERFORM idem_claim('t', 'o', 'key ' || n, '{"b": 1}', wait => '0');
		PERFORM idem_extend(r.operation_id, r.token, '1 min');
		PERFORM idem_checkpoint(r.operation_id, r.token, '{"at": 1}');
		PERFORM idem_complete(r.operation_id, r.token, 201, body => 'an answer', headers => '[["ETag", "x"]]');
		PERFORM idem_claim('t', 'o', 'key ' || n, '{"a": [1, 2.5, "three"], "b": {"c": null}}');
		PERFORM idem_lookup('t', 'o', 'key ' || n);
		BEGIN
			PERFORM idem_complete(r.operation_id, r.token, body => 'another');
		EXCEPTION WHEN SQLSTATE 'ID002' THEN NULL; END;
		BEGIN
			PERFORM idem_extend(r.operation_id, r.token - 1);
		EXCEPTION WHEN SQLSTATE 'ID001' THEN NULL; END;
		BEGIN
			PERFORM idem_claim('t', 'o', 'key', wait => '2 days');
		EXCEPTION WHEN invalid_parameter_value THEN NULL; END;
	END $$;
));

# grown KIND, NAME, LIMIT: how much more memory the later rounds took than the second one. One assertion.
sub grown
{
	my ($kind, $name, $limit) = @_;
	my ($bytes, $list) = split /\|/, $node->safe_psql('postgres', "
		SELECT max(bytes) FILTER (WHERE round >= 2) - min(bytes) FILTER (WHERE round = 2), string_agg(round || ': ' || bytes, ', ' ORDER BY round) FROM used WHERE kind = '$kind'");
	note "$name: memory after each round: $list bytes";
	cmp_ok($bytes, '<', $limit, "$name: memory stays flat");
	return;
}

# Ten calls a life, each life a transaction: ten rounds of a thousand lives.
my $since = time;
my $s = session($node);
for my $round (0 .. 10)
{
	my $from = $round * 1000;
	$s->ask("SELECT format('SELECT life(%s)', n) FROM generate_series($from, $from + 999) AS n \\gexec");
	$s->ask("CALL note_memory('lives', $round)");
}
note sprintf '110,000 calls in %.1f s', time - $since;
grown('lives', '110,000 calls', 64 * 1024);

# Errors that end their statement, prepared and not.
for my $round (0 .. 5)
{
	$s->send(join "\n", map { (
		"SELECT idem_complete('00000000-0000-8000-8000-000000000000', $_);",
		"SELECT idem_claim('t', 'o', 'k', repeat('[', 100)::jsonb);",
		"SELECT idem_claim('t', 'o', NULL);",
		"SELECT (idem_claim('t', 'o', 'twice')).*;",
		"BEGIN; SELECT FROM idem_claim('t', 'o', 'aborted'); SELECT idem_complete('00000000-0000-8000-8000-000000000000', $_); ROLLBACK;",
		"BEGIN; SAVEPOINT s; SELECT FROM idem_claim('t', 'o', 'savepoint'); ROLLBACK TO s; SELECT FROM idem_claim('t', 'o', 'savepoint'); ROLLBACK;" ) } 1 .. 300);
	$s->answer;
	$s->ask("CALL note_memory('errors', $round)");
}
grown('errors', '9,000 errors', 64 * 1024);

# Waits that end by statement_timeout, in the midst of everything.
my $holder = session($node);
$holder->ask(q(BEGIN; SELECT FROM idem_claim('t', 'o', 'held')));
$s->ask(q(SET statement_timeout = '2 ms'));
for my $round (0 .. 4)
{
	$s->send(join "\n", map { "SELECT FROM idem_claim('t', 'o', 'held', wait => '5 s');" } 1 .. 100);
	my (undef, $err) = $s->answer;
	my $count = () = $err =~ /57014/g;
	is($count, 100, "a hundred waits are cut off, round $round");
	$s->ask("SET statement_timeout = 0; CALL note_memory('waits', $round); SET statement_timeout = '2 ms'");
}
$s->ask('RESET statement_timeout');
$holder->ask('ROLLBACK');
$holder->quit;
grown('waits', '500 waits cut off', 64 * 1024);
is($s->ask(q(SELECT outcome FROM idem_claim('t', 'o', 'held'))), 'claimed', 'and afterwards a normal call works');

# Batches, bodies and payloads of their greatest size.
for my $round (0 .. 4)
{
	$s->ask("SELECT count(*) FROM idem_claim_many('t', 'batch $round', (SELECT array_agg('key ' || n) FROM generate_series(1, 10000) AS n))");
	$s->ask("SELECT length(c.key) FROM idem_claim('t', 'big', 'key $round', to_jsonb(repeat('x', 1000000))) AS c, idem_complete(c.operation_id, c.token, body => repeat('x', 1000000))");
	$s->ask("SELECT length(body) FROM idem_claim('t', 'big', 'key $round', to_jsonb(repeat('x', 1000000)))");
	is($s->ask("SELECT outcome, reason FROM idem_claim('t', 'big', 'key $round', to_jsonb(repeat('x', 3000000)))"), 'rejected|payload_too_large', 'over the limit') if $round == 0;
	is($s->ask("SELECT count(*) FROM idem_keys WHERE op = 'big'"), '1', 'and without a row') if $round == 0;
	$s->ask("CALL note_memory('large', $round)");
}
grown('large', 'batches of 10,000 and bodies of 1 MB', 256 * 1024);

# A hundred thousand claims in one transaction: no lock table is exhausted, and all memory is given back.
my ($out) = $s->ask("BEGIN; SELECT sum(c) FROM (SELECT (SELECT count(*) FROM idem_claim_many('t', 'sea ' || b, (SELECT array_agg('key ' || n) FROM generate_series(1, 10000) AS n)) WHERE outcome = 'claimed') AS c
	FROM generate_series(1, 10) AS b) AS s; SELECT count(*) < 100 FROM pg_locks WHERE pid = pg_backend_pid(); ROLLBACK");
is($out, "100000\nt", 'a hundred thousand claims in one transaction');
$s->ask("CALL note_memory('sea', $_)") for 2, 3;
cmp_ok($node->safe_psql('postgres', q(SELECT max(bytes) FILTER (WHERE kind = 'sea') - max(bytes) FILTER (WHERE kind = 'large') FROM used)), '<', 256 * 1024,
	'and its memory is given back');

# A subtransaction for each error, a thousand in one transaction.
is($s->ask(q(
	DO $$
	DECLARE good int := 0;
	BEGIN
		FOR n IN 1 .. 1000 LOOP
			BEGIN
				PERFORM idem_claim('t', 'caught', 'lost ' || n);
				PERFORM idem_complete('00000000-0000-8000-8000-000000000000', n);
			EXCEPTION WHEN SQLSTATE 'ID007' THEN NULL; END;
			PERFORM idem_claim('t', 'caught', 'kept ' || n);
		END LOOP;
	END $$;
	SELECT count(*), count(*) FILTER (WHERE key LIKE 'kept%') FROM idem_keys WHERE op = 'caught')), '1000|1000', 'a thousand errors caught in one transaction');

# One thread, whatever it did.
my @threads = map { my @tasks = glob "/proc/$_/task/*"; scalar @tasks } split /\n/, $s->ask('SELECT pid FROM pg_stat_activity');
is(join(' ', @threads), join(' ', (1) x @threads), 'every process of the server has one thread');
log_is_clean($node, $offset, 'memory');
sweep($node, 'postgres', 'memory');
$s->quit;
$node->stop;
done_testing();
