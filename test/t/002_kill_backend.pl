# Server processes that die: kill -9 in mid-claim and in mid-charge, a client that vanishes, and several hundred terminated
# and cancelled sessions at random points with waiters in flight. Rivals get the right answers, the server stays up where
# it must, and no waiter's place leaks. Covers A06, A09, F01, F09.
use strict;
use warnings;

use FindBin;
use lib "$FindBin::RealBin/lib";
use IdempotencyTest;
use Test::More;
use Time::HiRes qw(sleep time);

# A quarter of max_connections may wait in all: twelve.
my $node = new_server('kill', settings => [ 'restart_after_crash = on', 'max_connections = 48' ]);
$node->safe_psql('postgres', q(
	SELECT FROM idem_set_policy('retry', 'default', '{"mode": "lease", "lease": "2 seconds", "grace": "0 seconds", "on_stale": "retry"}');
	SELECT FROM idem_set_policy('ask', 'default', '{"mode": "lease", "lease": "2 seconds", "grace": "0 seconds"}');
	SELECT FROM idem_set_policy('storm', 'default', '{"max_waiters": 3, "lease": "1 second", "grace": "0 seconds", "on_stale": "retry"}');
));

sub claim
{
	my ($op, $key, $more) = @_;
	$more //= '';
	return qq(SELECT outcome, attempt, token, retry_after_s, operation_id FROM idem_claim('t', '$op', '$key', '{"a": 1}'$more));
}

sub crash
{
	my ($victim) = @_;
	kill 9, $victim->pid;
	wait_until(sub { $victim->answered }, 10);
	$victim->quit;
	ok(wait_until(sub { $node->raw_connect_works }, 30), 'the server recovers');
	$node->poll_query_until('postgres', 'SELECT true') or die;
	return;
}

# In mid-claim: uncommitted, with a rival waiting for it.
my $owner = session($node);
my $rival = session($node);
$owner->ask('BEGIN');
$owner->ask(claim('retry', 'k1'));
$rival->send(claim('retry', 'k1', ", wait => '20 s'"));
sleepers($node, 1);
$owner->send('SELECT 1');
crash($owner);
$rival->quit;
$rival = session($node);
is($rival->ask(claim('retry', 'k1')) =~ s/\|.*//r, 'claimed', 'an uncommitted claim is gone');

# In mid-charge: committed, lease of two seconds.
for my $case ([ 'retry', 'claimed', 2 ], [ 'ask', 'indeterminate', 1 ])
{
	my ($op, $then, $attempt) = @$case;
	$owner = session($node);
	my $since = time;
	my (undef, undef, $token, undef, $id) = split /\|/, $owner->ask(claim($op, 'k2'));
	$owner->send('SELECT 1');
	crash($owner);
	$rival->quit;
	$rival = session($node);
  SKIP:
	{
		my ($outcome, undef, undef, $retry_after) = split /\|/, $rival->ask(claim($op, 'k2', ", wait => '0'"));
		if (time - $since < 1.8)
		{
			is($outcome, 'in_progress', "$op: in progress while the lease runs");
			ok($retry_after > 0 && $retry_after <= 2, "$op: retry after $retry_after s, not the whole lease");
		}
		else { note 'the recovery took longer than the lease' }
	}
	sleep($since + 2.05 - time) if time < $since + 2.05;
	my ($outcome, $number, $new) = split /\|/, $rival->ask(claim($op, 'k2', ", wait => '0'"));
	is("$outcome $number", "$then $attempt", "$op: $then when it is over");
	if ($op eq 'retry')
	{
		cmp_ok($new, '>', $token, 'with a greater token');
		is($rival->sqlstate("SELECT idem_complete('$id', $token)"), 'ID001', 'the dead owner\'s token is refused');
		is($rival->sqlstate("SELECT idem_complete('$id', $new)"), '', 'the new one is good');
	}
	else
	{
		is($rival->sqlstate("SELECT idem_complete('$id', $token)"), '', 'the last token still counts');
	}
}

# A waiter may take over the moment the lease is over, without being woken by anybody.
$owner = session($node);
$owner->ask(claim('retry', 'k3'));
my $start = time;
my ($outcome, $attempt) = split /\|/, $rival->ask(claim('retry', 'k3', ", wait => '10 s'"));
is("$outcome $attempt", 'claimed 2', 'who waits past the lease takes over');
note sprintf 'after %.2f s', time - $start;
cmp_ok(time - $start, '<', 6, 'as soon as it is over');

# A client that vanishes: its server process notices and rolls back.
my $offset = log_size($node);
my $started = $node->safe_psql('postgres', 'SELECT pg_postmaster_start_time()');
$owner->ask('BEGIN');
$owner->ask(claim('retry', 'k4'));
$rival->send(claim('retry', 'k4', ", wait => '20 s'"));
sleepers($node, 1);
$owner->{run}->signal('KILL');
($outcome) = split /\|/, scalar $rival->answer;
is($outcome, 'claimed', 'when an owner\'s client dies, the waiter claims');
cmp_ok($rival->{took}, '<', 5, 'soon');
$owner->quit;

# filled NAME: exactly as many may wait as the limits say, for one key and in all.
sub filled
{
	my ($name) = @_;
	my $holder = session($node);
	my @all = map { session($node) } 1 .. 13;
	$holder->ask('BEGIN');
	$holder->ask(claim('storm', "$name $_")) for 1 .. 5;
	$all[$_]->send(claim('storm', "$name 1", ", wait => '30 s'")) for 0 .. 2;
	sleepers($node, 3);
	$all[3]->send(claim('storm', "$name 1", ", wait => '30 s'"));
	my @last = split /\|/, scalar $all[3]->answer;
	is($last[0], 'in_progress', "$name: the fourth waiter of a key is not admitted");
	# Keys 2 to 4 take three each, which fills the server.
	for my $n (0 .. 8) { $all[ 3 + $n ]->send(claim('storm', "$name " . (2 + int($n / 3)), ", wait => '30 s'")) }
	ok(sleepers($node, 12), "$name: twelve wait in all");
	$all[12]->send(claim('storm', "$name 5", ", wait => '30 s'"));
	@last = split /\|/, scalar $all[12]->answer;
	is($last[0], 'in_progress', "$name: the thirteenth is not admitted");
	cmp_ok($all[12]{took}, '<', 1, "$name: and told at once");
	$holder->ask("SELECT pg_cancel_backend(pid) FROM unnest(ARRAY[" . join(',', map { $_->pid } @all[ 0 .. 11 ]) . ']) AS pid');
	$_->answer for @all[ 0 .. 11 ];
	$_->quit for @all, $holder;
	return;
}

filled('before the storm');

# Victims claim, wait, complete, abort and hold keys in savepoints; somebody terminates or cancels one of them at random
# every few milliseconds, until five hundred were hit: where connecting is slow, many rounds find nobody.
my $victim = q(
	SELECT outcome, token, operation_id, proceed FROM idem_claim('t', 'storm', 's' || (random() * 3)::int, '{}', wait => '1 s') \gset
	\if :proceed
		SELECT pg_sleep(random() * 0.02);
		SELECT FROM idem_release(:'operation_id', :token);
	\endif
	BEGIN;
	SAVEPOINT s;
	SELECT FROM idem_claim('t', 'storm', 's' || (random() * 3)::int, '{}', wait => '300 ms');
	SELECT pg_sleep(random() * 0.02);
	ROLLBACK TO s;
	SELECT FROM idem_claim('t', 'storm', 's' || (random() * 3)::int, '{}', wait => '300 ms');
	SELECT FROM idem_claim_many('t', 'storm', ARRAY['s1', 's2', 's3'], wait => '100 ms');
	DO $$ BEGIN PERFORM idem_claim('t', 'storm', 's' || (random() * 3)::int, '{}', wait => '300 ms'); PERFORM pg_sleep(0.01);
		EXCEPTION WHEN query_canceled THEN PERFORM idem_claim('t', 'storm', 's0', '{}', wait => '0'); END $$;
	ROLLBACK;
);
my $file = "$PostgreSQL::Test::Utils::tmp_check/victim.sql";
open my $out, '>', $file or die $!;
print $out $victim x 20;
close $out;
my $flag = "$PostgreSQL::Test::Utils::tmp_check/storm";
open $out, '>', $flag or die $!;
close $out;
my @storm = map {
	bash(q(while [ -e "$FLAG" ]; do psql -Xq -v ON_ERROR_STOP=0 -f "$FILE" -d "$DB" >/dev/null 2>&1; done),
		FLAG => $flag, FILE => $file, DB => $node->connstr('postgres') . ' application_name=victim')
} 1 .. 8;
my $killer = session($node);
$node->poll_query_until('postgres', q(SELECT count(*) >= 8 FROM pg_stat_activity WHERE application_name = 'victim'));
$killer->ask(q(
	CREATE TABLE hits (kind text);
	CREATE PROCEDURE hunt(wanted int) LANGUAGE plpgsql AS $$
	DECLARE
		victim int;
		kill boolean;
		late timestamptz := clock_timestamp() + interval '3 minutes';
	BEGIN
		WHILE (SELECT count(*) FROM hits) < wanted AND clock_timestamp() < late LOOP
			PERFORM pg_stat_clear_snapshot();
			SELECT pid INTO victim FROM pg_stat_activity WHERE application_name = 'victim'
			 ORDER BY wait_event IS DISTINCT FROM 'Extension' AND random() < 0.5, random() LIMIT 1;
			kill := random() < 0.5;
			INSERT INTO hits SELECT CASE WHEN kill THEN 'terminate' ELSE 'cancel' END
			 WHERE CASE WHEN kill THEN pg_terminate_backend(victim) ELSE pg_cancel_backend(victim) END;
			COMMIT;
			PERFORM pg_sleep(random() * 0.015);
		END LOOP;
	END $$));
$start = time;
$killer->ask('CALL hunt(500)');
note sprintf '%s in %.1f s', $killer->ask(q(SELECT string_agg(kind || ' ' || count, ', ') FROM (SELECT kind, count(*) FROM hits GROUP BY 1) AS h)),
  time - $start;
unlink $flag;
$killer->ask(q(SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE application_name = 'victim'));
$_->{handle}->finish for @storm;
$node->poll_query_until('postgres', q(SELECT count(*) = 0 FROM pg_stat_activity WHERE application_name = 'victim'));
is($killer->ask('SELECT count(*) FROM hits'), 500, 'hundreds of sessions were terminated and cancelled');
$_->quit for $killer, $rival;
is($node->safe_psql('postgres', 'SELECT pg_postmaster_start_time()'), $started, 'the server never restarted');
filled('after the storm');
log_is_clean($node, $offset, 'kills', '40P01');
sweep($node, 'postgres', 'kills');
$node->stop;
done_testing();
