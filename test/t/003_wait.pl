# Waiting for somebody else's key, with the library preloaded: woken at commit and at abort, no processor time burnt,
# bounded by wait, lock_timeout, statement_timeout, cancel and max_waiters; a prepared transaction holds its claim.
# Covers A02, E08, E11 and max_waiters.
use strict;
use warnings;

use FindBin;
use lib "$FindBin::RealBin/lib";
use IdempotencyTest;
use Test::More;
use Time::HiRes qw(sleep time);

my $node = new_server('wait', settings => [ 'max_connections = 900', 'max_prepared_transactions = 5' ]);
my $offset = log_size($node);
$node->safe_psql('postgres', q(
	SELECT FROM idem_set_policy('many', 'default', '{"max_waiters": 1000}');
	SELECT FROM idem_set_policy('two', 'default', '{"max_waiters": 2}');
	CREATE TABLE answers (client int, outcome text, reason text, body text, answered timestamptz);
));
my $started = $node->safe_psql('postgres', 'SELECT pg_postmaster_start_time()');

my $owner = session($node);
my $rival = session($node);
my $other = session($node);

# claim OP, KEY, ARGUMENTS: what the tests look at of an answer.
sub claim
{
	my ($op, $key, $more) = @_;
	$more //= '';
	return qq(SELECT outcome, proceed, reason, retry_after_s, body FROM idem_claim('t', '$op', '$key', '{"a": 1}'$more));
}

# complete OP, KEY, BODY claims and completes in the present transaction.
sub claim_and_complete
{
	my ($op, $key, $body) = @_;
	return qq(SELECT FROM idem_claim('t', '$op', '$key', '{"a": 1}') AS c, idem_complete(c.operation_id, c.token, body => '$body'));
}

# Woken at commit: the waiter replays what it waited for.
$owner->ask('BEGIN');
$owner->ask(claim_and_complete('o', 'commit', 'done'));
$rival->send(claim('o', 'commit', ", wait => '20 s'"));
ok(sleepers($node, 1), 'a rival of an uncommitted claim sleeps');
$owner->ask('COMMIT');
my $committed = time;
is($rival->answer, 'replay|f|||done', 'it is answered at commit');
my $took = time - $committed;
note sprintf 'woken %.1f ms after the commit was acknowledged', $took * 1000;
cmp_ok($took, '<', 1, 'soon after the commit');

# Woken at abort: exactly one of several waiters claims.
my @waiters = map { session($node) } 1 .. 5;
$owner->ask('BEGIN');
$owner->ask(claim('o', 'abort'));
$_->send(claim('o', 'abort', ", wait => '2 s'")) for @waiters;
sleepers($node, 5);
$owner->ask('ROLLBACK');
my $aborted = time;
wait_until(sub { grep { $_->answered } @waiters });
$took = time - $aborted;
my @answers = sort map { scalar $_->answer } @waiters;
is("@answers", join(' ', 'claimed|t|||', ('in_progress|f|running|1|') x 4), 'after an abort exactly one waiter claims');
note sprintf 'first answer %.1f ms after the rollback was acknowledged', $took * 1000;
cmp_ok($took, '<', 1, 'soon after the abort');

# An abort of a savepoint wakes too.
$owner->ask('BEGIN');
$owner->ask('SAVEPOINT s');
$owner->ask(claim('o', 'savepoint'));
$rival->send(claim('o', 'savepoint', ", wait => '20 s'"));
sleepers($node, 1);
$owner->ask('ROLLBACK TO s');
$aborted = time;
is($rival->answer, 'claimed|t|||', 'a rolled back savepoint frees its key');
cmp_ok(time - $aborted, '<', 2, 'soon, though its transaction goes on');
$owner->ask('COMMIT');

# Woken by the completion of a committed claim.
$owner->ask(q(SELECT operation_id, token FROM idem_claim('t', 'o', 'lease', '{"a": 1}') \gset l_));
$rival->send(claim('o', 'lease', ", wait => '20 s'"));
ok(sleepers($node, 1), 'a rival of a committed claim sleeps');
my $now = time;
$owner->ask(q(SELECT FROM idem_complete(:'l_operation_id', :l_token, body => 'late')));
is($rival->answer, 'replay|f|||late', 'it is answered when the work is completed');
cmp_ok(time - $now, '<', 1, 'soon after');

# The end of the wait.
$owner->ask(claim('o', 'slow'));
$rival->send(claim('o', 'slow', ", wait => '300 ms'"));
is($rival->answer, 'in_progress|f|running|1|', 'beyond its wait a rival is told in_progress, retry in about a second');
cmp_ok($rival->{took}, '>', 0.29, 'not earlier');
cmp_ok($rival->{took}, '<', 3, 'not much later');
$rival->send(claim('o', 'slow', ", wait => '0'"));
is($rival->answer, 'in_progress|f|running|1|', 'with wait 0');
cmp_ok($rival->{took}, '<', 1, 'at once');

$owner->ask('BEGIN');
$owner->ask(claim('o', 'held'));
$rival->send("BEGIN; SET LOCAL lock_timeout = '250 ms'; " . claim('o', 'held', ", wait => '20 s'"));
is($rival->answer, 'in_progress|f|running|1|', 'lock_timeout bounds the wait');
cmp_ok($rival->{took}, '>', 0.24, 'which lasts as long as that');
cmp_ok($rival->{took}, '<', 3, 'and no longer');
is($rival->sqlstate('SELECT 1'), '', 'without an error');
$rival->ask('ROLLBACK');
is($rival->sqlstate("SET statement_timeout = '250 ms'; " . claim('o', 'held', ", wait => '20 s'")), '57014',
	'statement_timeout ends the wait');
cmp_ok($rival->{took}, '<', 3, 'in time');
$rival->ask('RESET statement_timeout');
$rival->send(claim('o', 'held', ", wait => '20 s'"));
sleepers($node, 1);
$other->ask("SELECT pg_cancel_backend($rival->{pid})");
my (undef, $error) = $rival->answer;
is(IdempotencyTest::Session::state_of($error), '57014', 'a cancel ends the wait');
cmp_ok($rival->{took}, '<', 3, 'in time');
# Several at once, each of which must have been told at once, as the claim stays uncommitted.
$now = time;
$_->send(claim('o', 'held', ", wait => '0'")) for @waiters;
is(join(' ', map { scalar $_->answer } @waiters), join(' ', ('in_progress|f|running|1|') x 5),
	'nobody hangs on an uncommitted claim who does not want to wait');
cmp_ok(time - $now, '<', 1, 'and all are answered at once');
$owner->ask('ROLLBACK');

# Another key is not waited for, and nobody in the lock manager either.
$owner->ask('BEGIN');
$owner->ask(claim('o', 'one key'));
$rival->send(claim('o', 'another key', ", wait => '20 s'"));
is($rival->answer, 'claimed|t|||', 'unrelated keys do not meet');
cmp_ok($rival->{took}, '<', 1, 'at once');
is($other->ask(q(SELECT count(*) FROM pg_locks WHERE locktype = 'advisory')), '0', 'no advisory locks');
$owner->ask('ROLLBACK');

# max_waiters
$owner->ask('BEGIN');
$owner->ask(claim('two', 'crowd'));
$waiters[$_]->send(claim('two', 'crowd', ", wait => '20 s'")) for 0, 1;
sleepers($node, 2);
$rival->send(claim('two', 'crowd', ", wait => '20 s'"));
is($rival->answer, 'in_progress|f|too_many_waiters|1|', 'beyond max_waiters a rival is told in_progress');
cmp_ok($rival->{took}, '<', 1, 'at once');
$other->ask("SELECT pg_cancel_backend($waiters[0]{pid})");
$waiters[0]->answer;
$rival->send(claim('two', 'crowd', ", wait => '20 s'"));
ok(sleepers($node, 2), 'a place that was left is free again');
$owner->ask('ROLLBACK');
wait_until(sub { $rival->answered || $waiters[1]->answered });
$other->ask("SELECT pg_cancel_backend(pid) FROM unnest(ARRAY[$rival->{pid}, $waiters[1]{pid}]) AS pid");
is((grep { scalar($_->answer) =~ /^claimed/ } $rival, $waiters[1]), 1, 'and of the crowd one goes on');

# A prepared transaction holds its claim; COMMIT PREPARED wakes nobody, so the longest sleep bounds the answer.
$owner->ask('BEGIN');
$owner->ask(claim_and_complete('o', 'prepared', 'two phases'));
$owner->ask(q(PREPARE TRANSACTION 'p'));
$rival->send(claim('o', 'prepared', ", wait => '0'"));
is($rival->answer, 'in_progress|f|running|1|', 'a prepared claim is in progress');
cmp_ok($rival->{took}, '<', 1, 'which is said at once');
$rival->send(claim('o', 'prepared', ", wait => '20 s'"));
sleepers($node, 1);
$owner->ask(q(COMMIT PREPARED 'p'));
$committed = time;
is($rival->answer, 'replay|f|||two phases', 'after COMMIT PREPARED it is replayed');
$took = time - $committed;
note sprintf 'answered %.0f ms after COMMIT PREPARED', $took * 1000;
cmp_ok($took, '<', 3, 'within about a second');
$owner->ask('BEGIN');
$owner->ask(claim('o', 'prepared away'));
$owner->ask(q(PREPARE TRANSACTION 'p'));
$owner->ask(q(ROLLBACK PREPARED 'p'));
is($rival->ask(claim('o', 'prepared away')), 'claimed|t|||', 'after ROLLBACK PREPARED the key is free');

# Two hundred on one key.
$owner->ask('BEGIN');
$owner->ask(claim_and_complete('many', 'hot', 'hot'));
my $crowd = start_bench($node, <<'SQL', clients => 200, transactions => 1, threads => 1, protocol => 'simple');
SELECT outcome, coalesce(reason, '') AS reason, coalesce(body, '') AS body, clock_timestamp() AS answered FROM idem_claim('t', 'many', 'hot', '{"a": 1}', wait => '60 s') \gset
INSERT INTO answers VALUES (:client_id, ':outcome', ':reason', ':body', ':answered');
SQL
ok(sleepers($node, 200), '200 connections wait for one key');
my @pids = split /\n/, $other->ask(q(SELECT pid FROM pg_stat_activity WHERE wait_event = 'Extension' AND backend_type = 'client backend'));
my ($burnt, $since) = (cpu_seconds(@pids), time);
sleep 4;
my $share = (cpu_seconds(@pids) - $burnt) / (time - $since);
note sprintf '200 waiting connections use %.1f %% of one core', $share * 100;
cmp_ok($share, '<', 0.2, 'they burn next to nothing while they wait');
$committed = $owner->ask('SELECT clock_timestamp(); COMMIT');
ok(finish_bench($crowd), 'all of them come to an end');
is($other->ask('SELECT outcome, reason, body, count(DISTINCT client) FROM answers GROUP BY 1, 2, 3'), 'replay||hot|200',
	'all of them replay');
my $last = $other->ask("SELECT round(extract(epoch FROM max(answered) - '$committed') * 1000) FROM answers");
note "from the commit to the last of 200 answers: $last ms";
cmp_ok($last, '<', 2000, 'soon after the commit');

is($other->ask('SELECT pg_postmaster_start_time()'), $started, 'the server never restarted');
log_is_clean($node, $offset, 'waits', '40P01');
sweep($node, 'postgres', 'waits');
$_->quit for $owner, $rival, $other, @waiters;
$node->stop;
done_testing();
