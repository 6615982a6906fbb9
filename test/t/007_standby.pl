# A hot standby: claims are refused as any write is, lookups work, nothing of ours is logged as an error by itself; after
# promotion everything goes on where it stood. Covers A25, D14, B12 (what synchronous replication keeps).
use strict;
use warnings;

use FindBin;
use lib "$FindBin::RealBin/lib";
use IdempotencyTest;
use PostgreSQL::Test::Cluster;
use Test::More;

my $primary = new_server('primary', streaming => 1, settings => ['max_prepared_transactions = 2']);
$primary->safe_psql('postgres', q(
	CREATE FUNCTION same(payload jsonb) RETURNS jsonb LANGUAGE sql RETURN payload;
	SELECT FROM idem_set_policy('retry', 'default', '{"mode": "lease", "lease": "2 seconds", "grace": "0 seconds", "on_stale": "retry"}');
	SELECT FROM idem_set_policy('pay', 'payment', '{"key_min": 1}');
));
$primary->backup('base');
my $standby = PostgreSQL::Test::Cluster->new('standby');
$standby->init_from_backup($primary, 'base', has_streaming => 1);
$standby->start;
$primary->append_conf('postgresql.conf', "synchronous_standby_names = '*'");
$primary->reload;
$primary->poll_query_until('postgres', q(SELECT count(*) = 1 FROM pg_stat_replication WHERE sync_state IN ('sync', 'quorum'))) or die;

my $client = session($primary);
my @done = split /\|/, $client->ask(q(SELECT operation_id, token FROM idem_claim('t', 'o', 'done', '{"a": 1}')));
$client->ask("SELECT FROM idem_complete('$done[0]', $done[1], 201, body => 'charged', headers => '[[\"ETag\", \"x\"]]')");
my @running = split /\|/, $client->ask(q(SELECT operation_id, token FROM idem_claim('t', 'retry', 'running', '{"a": 1}')));
my @paying = split /\|/, $client->ask(q(SELECT operation_id, token FROM idem_claim('t', 'pay', 'paying', '{"a": 1}', attempt_id => '11111111-1111-1111-1111-111111111111')));
my $open = session($primary);
$open->ask(q(BEGIN; SELECT FROM idem_claim('t', 'o', 'open', '{"a": 1}')));
$primary->wait_for_catchup($standby, 'replay');

my $offset = log_size($standby);
my $reader = session($standby);
for my $verb (
	q(idem_claim('t', 'o', 'new', '{"a": 1}')),
	q(idem_claim('t', 'o', 'done', '{"a": 1}')),
	q(idem_claim_many('t', 'o', ARRAY['new'])),
	q(idem_execute('t', 'o', 'new', '{"a": 1}', 'same')),
	"idem_complete('$paying[0]', $paying[1])",
	"idem_fail('$paying[0]', $paying[1], 'failed')",
	"idem_release('$paying[0]', $paying[1])",
	"idem_extend('$paying[0]', $paying[1])",
	"idem_checkpoint('$paying[0]', $paying[1], '1')",
	"idem_resolve('$paying[0]', 'released', '1')")
{
	is($reader->sqlstate("SELECT * FROM $verb"), '25006', ($verb =~ s/\(.*//r) . ' is refused on a standby');
}
is($reader->sqlstate(q(SELECT FROM idem_set_policy('o', 'default'))), '25006', 'so is a policy');
is($reader->ask(q(SELECT outcome, status, headers, body FROM idem_lookup('t', 'o', 'done'))), 'replay|201|[["ETag", "x"]]|charged',
	'a completed key is looked up');
is($reader->ask("SELECT outcome, body FROM idem_lookup_id('$done[0]')"), 'replay|charged', 'by its id too');
is($reader->ask(q(SELECT outcome, token FROM idem_lookup('t', 'pay', 'paying'))), 'in_progress|', 'a running one is in progress');
is($reader->ask(q(SELECT outcome IS NULL FROM idem_lookup('t', 'o', 'open'))), 't', 'an uncommitted one is unknown');
is($reader->ask(q(SELECT op, preset FROM idem_policies ORDER BY op)), "pay|payment\nretry|default", 'policies are there');
is($reader->ask(q(SELECT h.status FROM idem_lookup('t', 'o', 'done') AS r, idem_http_response(r) AS h)), '201', 'responses are made');
is($reader->ask(q(SELECT count(*) FROM idem_unfinished)), '2', 'what is unfinished is seen');
is($reader->ask(q(SELECT encode(idem_hash('{"a": 1.0}'), 'hex') = encode(idem_hash('{"a": 1}'), 'hex'))), 't', 'hashes are computed');
# A policy that changes on the primary is followed by a session that has read it before.
$client->ask(q(SELECT FROM idem_set_policy('retry', 'default', '{"mode": "lease", "lease": "2 seconds", "grace": "1 hour", "on_stale": "retry"}')));
$primary->wait_for_catchup($standby, 'replay');
is($reader->ask(q(SELECT outcome FROM idem_lookup('t', 'retry', 'running'))), 'in_progress', 'a changed policy is followed');
$client->ask(q(SELECT FROM idem_set_policy('retry', 'default', '{"mode": "lease", "lease": "2 seconds", "grace": "0 seconds", "on_stale": "retry"}')));
$primary->wait_for_catchup($standby, 'replay');
is($reader->ask(q(SELECT pg_sleep(2); SELECT outcome FROM idem_lookup('t', 'retry', 'running'))) =~ s/\n//gr, 'indeterminate', 'so is the next');
my @noise = grep { /ERROR|WARNING|FATAL|PANIC/ && !/ 25006 / } split /\n/, server_log($standby, $offset);
is(scalar @noise, 0, 'nothing else is logged') or diag join "\n", @noise[ 0 .. ($#noise < 5 ? $#noise : 5) ];

$primary->stop('immediate');
$_->quit for $client, $open;
$standby->promote;
$standby->append_conf('postgresql.conf', "synchronous_standby_names = ''");
$standby->reload;
$standby->poll_query_until('postgres', q(SELECT setting = '' FROM pg_settings WHERE name = 'synchronous_standby_names'));
is($reader->ask(q(SELECT outcome, body FROM idem_claim('t', 'o', 'done', '{"a": 1}'))), 'replay|charged', 'promoted: what was done replays, in the same session');
is($reader->ask(q(SELECT outcome FROM idem_claim('t', 'o', 'open', '{"a": 1}'))), 'claimed', 'what was uncommitted is free');
my ($outcome, $attempt, $token) = split /\|/, $reader->ask(q(SELECT outcome, attempt, token FROM idem_claim('t', 'retry', 'running', '{"a": 1}')));
is("$outcome $attempt", 'claimed 2', 'a lapsed claim is taken over');
cmp_ok($token, '>', $running[1], 'with a greater token');
is($reader->sqlstate("SELECT idem_complete('$running[0]', $running[1])"), 'ID001', 'the old one is stale');
is($reader->ask(q(SELECT outcome FROM idem_claim('t', 'pay', 'paying', '{"a": 1}', wait => '0'))), 'in_progress', 'a running claim is in progress');
is($reader->ask(q(SELECT outcome FROM idem_claim('t', 'pay', 'paying', '{"a": 1}', attempt_id => '11111111-1111-1111-1111-111111111111'))),
	'resumed', 'and resumed by its own attempt');
is($reader->sqlstate("SELECT idem_complete('$paying[0]', (SELECT token FROM idem_keys WHERE op = 'pay'), body => 'paid')"), '', 'which completes it');

# Waiting with wake-up works on the promoted server.
my $owner = session($standby);
$owner->ask(q(BEGIN; SELECT FROM idem_claim('t', 'o', 'wake', '{"a": 1}') AS c, idem_complete(c.operation_id, c.token, body => 'up')));
$reader->send(q(SELECT outcome, body FROM idem_claim('t', 'o', 'wake', '{"a": 1}', wait => '20 s')));
sleepers($standby, 1);
$owner->ask('COMMIT');
is($reader->answer, 'replay|up', 'a waiter is answered');
cmp_ok($reader->{took}, '<', 10, 'in time');
log_is_clean($standby, $offset, 'standby');
sweep($standby, 'postgres', 'standby');
$_->quit for $reader, $owner;
$standby->stop;
done_testing();
