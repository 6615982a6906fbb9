# Without shared_preload_libraries: the same answers, by polling; a wait lasts two seconds at most; LOAD is no error, and
# neither is a library that a session loads itself. Covers A02, D17, F08.
use strict;
use warnings;

use FindBin;
use lib "$FindBin::RealBin/lib";
use IdempotencyTest;
use Test::More;
use Time::HiRes qw(time);

my $node = new_server('polling', preload => 0, settings => ['max_prepared_transactions = 2']);
my $offset = log_size($node);
my $owner = session($node);
my $rival = session($node);
$owner->ask(q(SELECT FROM idem_set_policy('two', 'default', '{"max_waiters": 2}')));

sub claim { return "SELECT outcome, reason, body FROM idem_claim('t', '$_[0]', '$_[1]', '{\"a\": 1}', wait => '$_[2]')" }
sub claim_and_complete { return "SELECT FROM idem_claim('t', 'o', '$_[0]', '{\"a\": 1}') AS c, idem_complete(c.operation_id, c.token, body => '$_[0]')" }

is($owner->sqlstate("LOAD 'idempotency'"), '', 'LOAD is no error');
is($owner->ask('SHOW idempotency.require_policy'), 'off', 'and brings the settings');

$owner->ask('BEGIN');
$owner->ask(claim_and_complete('commit'));
$rival->send(claim('o', 'commit', '1.9 s'));
sleepers($node, 1);
$owner->ask('COMMIT');
my $since = time;
is($rival->answer, 'replay||commit', 'a waiter replays what was committed');
note sprintf 'answered %.0f ms after the commit', (time - $since) * 1000;
cmp_ok(time - $since, '<', 1, 'soon');

my @waiters = map { session($node) } 1 .. 4;
$owner->ask('BEGIN');
$owner->ask(claim('o', 'abort', 0));
$_->send(claim('o', 'abort', '1.9 s')) for @waiters;
sleepers($node, 4);
$owner->ask('ROLLBACK');
my @answers = sort map { scalar $_->answer } @waiters;
is("@answers", 'claimed|| in_progress|running| in_progress|running| in_progress|running|', 'after an abort exactly one waiter claims');

$owner->ask('BEGIN');
$owner->ask(claim('o', 'long', 0));
$rival->send(claim('o', 'long', '60 s'));
is($rival->answer, 'in_progress|running|', 'a wait of a minute is not waited');
cmp_ok($rival->{took}, '>', 1.9, 'but two seconds');
cmp_ok($rival->{took}, '<', 5, 'and no more');
$rival->send(claim('o', 'long', '0'));
is($rival->answer, 'in_progress|running|', 'with wait 0');
cmp_ok($rival->{took}, '<', 1, 'the answer comes at once');
is($rival->sqlstate("SET statement_timeout = '200 ms'; " . claim('o', 'long', '1 s')), '57014', 'statement_timeout ends a wait');
$rival->ask('RESET statement_timeout');
$rival->send("SET lock_timeout = '200 ms'; " . claim('o', 'long', '1 s') . '; RESET lock_timeout');
is($rival->answer, 'in_progress|running|', 'lock_timeout bounds it');
cmp_ok($rival->{took}, '<', 1, 'in time');
$rival->send(claim('o', 'long', '1.9 s'));
sleepers($node, 1);
$waiters[0]->ask("SELECT pg_cancel_backend($rival->{pid})");
my (undef, $err) = $rival->answer;
is(IdempotencyTest::Session::state_of($err), '57014', 'a cancel ends it');
cmp_ok($rival->{took}, '<', 1.5, 'in time');
$owner->ask('ROLLBACK');

# A circle of keys cannot be seen, but the bound ends it in data.
$owner->ask('BEGIN');
$owner->ask(claim('o', 'a', 0));
$rival->ask('BEGIN');
$rival->ask(claim('o', 'b', 0));
$owner->send(claim('o', 'b', '20 s'));
$rival->send(claim('o', 'a', '20 s'));
is(join(' ', sort map { scalar $_->answer } $owner, $rival), 'in_progress|running| in_progress|running|', 'a circle ends at the bound');
$_->ask('ROLLBACK') for $owner, $rival;

$owner->ask('BEGIN');
$owner->ask(claim_and_complete('prepared'));
$owner->ask(q(PREPARE TRANSACTION 'p'));
is($rival->ask(claim('o', 'prepared', '0')), 'in_progress|running|', 'a prepared claim is in progress');
$owner->ask(q(COMMIT PREPARED 'p'));
is($rival->ask(claim('o', 'prepared', '0')), 'replay||prepared', 'and replayed when it is committed');

# The whole life, as everywhere.
is($owner->ask(q(
	SELECT operation_id AS id, token FROM idem_claim('t', 'o', 'life', '{"a": 1}', attempt_id => '11111111-1111-1111-1111-111111111111') \gset
	SELECT outcome FROM idem_claim('t', 'o', 'life', '{"a": 2}', wait => '0');
	SELECT outcome, token > :token FROM idem_claim('t', 'o', 'life', '{"a": 1}', attempt_id => '11111111-1111-1111-1111-111111111111');
	SELECT token FROM idem_claim('t', 'o', 'life', '{"a": 1}', attempt_id => '11111111-1111-1111-1111-111111111111') \gset
	SELECT state FROM idem_extend(:'id', :token, '1 min');
	SELECT checkpoint FROM idem_checkpoint(:'id', :token, '{"n": 1}');
	SELECT outcome FROM idem_release(:'id', :token);
	SELECT outcome, attempt, checkpoint FROM idem_claim('t', 'o', 'life', '{"a": 1}');
)), "conflict\nresumed|t\nin_progress\n{\"n\": 1}\nreleased\nclaimed|2|{\"n\": 1}", 'the verbs answer as with preload');
log_is_clean($node, $offset, 'without preload', '40P01');
sweep($node, 'postgres', 'without preload');

# From a session's own setting, and from an unprivileged one.
$node->safe_psql('postgres', q(CREATE ROLE client LOGIN; SELECT FROM idem_admin_grant('client', 'client'); CREATE ROLE nobody LOGIN));
is($node->safe_psql('postgres', q(SELECT outcome FROM idem_claim('t', 'o', 'session preload')),
	connstr => $node->connstr('postgres') . " user=client"), 'claimed', 'a client without other rights may claim');
my ($rc) = $node->psql('postgres', q(SELECT outcome FROM idem_claim('t', 'o', 'x')), connstr => $node->connstr('postgres') . ' user=nobody');
is($rc, 3, 'others may not');
is($node->safe_psql('postgres', 'SELECT 1', connstr => $node->connstr('postgres') . q( options='-c session_preload_libraries=idempotency')),
	'1', 'session_preload_libraries is fine');
$_->quit for $owner, $rival, @waiters;

# With max_connections and the rest changed, preloaded again: nothing is kept in the data directory.
$node->append_conf('postgresql.conf', "shared_preload_libraries = 'idempotency'\nmax_connections = 20");
$node->restart;
is($node->safe_psql('postgres', q(SELECT outcome, body FROM idem_claim('t', 'o', 'commit', '{"a": 1}'))), 'replay|commit', 'preloaded again, the keys are there');
$node->stop;
done_testing();
