# The background worker serves every database that has the extension, without configuration, and stands in nobody's way.
# Covers D01 D03 D04 D05 D06 D07 D08 D09 D12 D14 D15 D20 (the parts named below).
use strict;
use warnings;

use FindBin;
use lib "$FindBin::RealBin/lib";
use IdempotencyTest;
use PostgreSQL::Test::Cluster;
use PostgreSQL::Test::Utils;
use Test::More;

my $node = new_server('worker', streaming => 1, settings => [ 'idempotency.naptime = 100ms', 'wal_level = replica', 'restart_after_crash = on' ]);
my $offset = log_size($node);
my $started = $node->safe_psql('postgres', 'SELECT pg_postmaster_start_time()');

# make_old DATABASE: one answered key whose time is over.
sub make_old
{
	my ($database, $key) = @_;
	$node->safe_psql($database, qq(
		SELECT r.outcome FROM idem_claim('t', 'o', '$key', '1') c, idem_complete(c.operation_id, c.token, body => 'x') r;
		BEGIN;
		UPDATE idem_responses SET token = token - 259200000000;
		UPDATE idem_keys SET token = token - 259200000000, completed_at = completed_at - interval '3 days',
			expires_at = expires_at - interval '3 days' WHERE key = '$key';
		COMMIT));
	return;
}

sub gone
{
	my ($database, $key) = @_;
	return wait_until(sub { $node->safe_psql($database, "SELECT count(*) FROM idem_keys WHERE key = '$key'") eq '0' }, 30);
}

sub launcher { return $node->safe_psql('postgres', q(SELECT pid FROM pg_stat_activity WHERE backend_type = 'idempotency launcher')) }

make_old('postgres', 'first');
ok(gone('postgres', 'first'), 'what is over goes by itself');
is($node->safe_psql('postgres', q(SELECT state, errors, passes > 0, launcher = (SELECT pid FROM pg_stat_activity WHERE backend_type = 'idempotency launcher')
	FROM idem_worker_status() WHERE database = 'postgres' AND state <> 'sweeping' UNION ALL SELECT 'idle', 0, true, true LIMIT 1)), 'idle|0|t|t',
	'and the status says so');

# D04 D03 D01: cloned, renamed, dropped.
$node->safe_psql('postgres', 'CREATE DATABASE src');
$node->safe_psql('src', 'CREATE EXTENSION idempotency');
make_old('src', 'second');
ok(gone('src', 'second'), 'a new database is served after its first claim');
$node->safe_psql('src', q(SELECT outcome FROM idem_claim('t', 'o', 'kept', '1')));
for my $n (1 .. 10)
{
	is($node->psql('postgres', "CREATE DATABASE clone$n TEMPLATE src"), 0, "clone $n is made while the worker serves its template");
}
make_old('clone1', 'third');
ok(gone('clone1', 'third'), 'a clone is served');
is($node->psql('postgres', 'ALTER DATABASE clone2 RENAME TO renamed'), 0, 'renamed under the worker');
make_old('renamed', 'fourth');
ok(gone('renamed', 'fourth'), 'and served under its new name');
is($node->psql('postgres', 'DROP DATABASE clone3'), 0, 'dropped under the worker');
is($node->psql('postgres', 'DROP DATABASE clone4 WITH (FORCE)'), 0, 'dropped by force');

# Settings of databases and roles change nothing.
$node->safe_psql('postgres', q(
	ALTER DATABASE clone5 SET default_transaction_read_only = on;
	ALTER DATABASE clone5 SET default_transaction_isolation = 'serializable';
	ALTER DATABASE clone5 SET statement_timeout = '1ms';
	ALTER DATABASE clone5 SET search_path = 'nowhere'));
# Our own sessions take theirs from the connection, which comes before what the database says.
$ENV{PGOPTIONS} = '-c default_transaction_read_only=off -c default_transaction_isolation=read\\ committed -c statement_timeout=0';
$node->safe_psql('clone5', q(SET default_transaction_read_only = off; SET statement_timeout = 0;
	BEGIN READ WRITE; SET LOCAL search_path = public;
	SELECT r.outcome FROM idem_claim('t', 'o', 'fifth', '1') c, idem_complete(c.operation_id, c.token, body => 'x') r;
	UPDATE idem_responses SET token = token - 259200000000;
	UPDATE idem_keys SET token = token - 259200000000, completed_at = completed_at - interval '3 days',
		expires_at = expires_at - interval '3 days' WHERE key = 'fifth';
	COMMIT));
ok( wait_until(
		sub { $node->safe_psql('clone5', q(SET default_transaction_isolation = 'read committed'; SET statement_timeout = 0; SELECT count(*) FROM public.idem_keys WHERE key = 'fifth')) eq '0' },
		30),
	'settings of a database change nothing');
delete $ENV{PGOPTIONS};

# D05: terminated, and back.
my $pid = launcher();
$node->safe_psql('postgres', "SELECT pg_terminate_backend($pid)");
ok(wait_until(sub { my $now = launcher(); $now ne '' && $now ne $pid }, 30), 'a terminated launcher comes back');
make_old('postgres', 'sixth');
ok(gone('postgres', 'sixth'), 'and serves');

# D09: DROP and CREATE EXTENSION, again and again, waiting for nobody.
my $ddl = log_size($node);
for my $n (1 .. 30)
{
	$node->safe_psql('clone6', q(SET lock_timeout = '2s'; DROP EXTENSION idempotency; CREATE EXTENSION idempotency; SELECT outcome FROM idem_claim('t', 'o', 'k', '1')));
	$node->safe_psql('clone6', q(SET lock_timeout = '2s'; VACUUM FULL idem_keys));
	$node->safe_psql('clone6', q(SET lock_timeout = '2s'; TRUNCATE idem_leases));
}
my @errors = grep { /ERROR|FATAL|deadlock/ && !/administrator command/ } split /\n/, server_log($node, $ddl);
is(scalar @errors, 0, 'DDL meets no lock of the worker, and the worker no error') or diag join "\n", @errors;
make_old('clone6', 'seventh');
ok(gone('clone6', 'seventh'), 'and the last extension is served');

# D07: a table of its own gone is an error of one visit, no crash.
$node->safe_psql('clone7', q(ALTER TABLE idem_policies RENAME TO elsewhere; SELECT pg_sleep(2.5); ALTER TABLE elsewhere RENAME TO idem_policies));
is($node->safe_psql('postgres', 'SELECT pg_postmaster_start_time()'), $started, 'errors do not restart the server');
make_old('clone7', 'eighth');
ok(gone('clone7', 'eighth'), 'a mended database is served again');

# D20: asleep it holds nothing.
my $held = 0;
for (1 .. 100)
{
	$held += $node->safe_psql('postgres', q(
		SELECT count(*) FROM pg_stat_activity WHERE backend_type = 'idempotency launcher' AND (backend_xid IS NOT NULL OR backend_xmin IS NOT NULL OR xact_start IS NOT NULL) AND state = 'idle'));
}
is($held, 0, 'the launcher holds nothing while it sleeps');

# D14: a standby is quiet, and serves when promoted.
$node->backup('copy');
my $standby = PostgreSQL::Test::Cluster->new('standby');
$standby->init_from_backup($node, 'copy', has_streaming => 1);
$standby->start;
$node->wait_for_catchup($standby);
is($standby->safe_psql('postgres', q(SELECT count(*) FROM pg_stat_activity WHERE backend_type LIKE 'idempotency%')), '0', 'no worker on a standby');
unlike(server_log($standby), qr/ERROR/, 'and no error');
$standby->promote;
ok( wait_until(sub { $standby->safe_psql('postgres', q(SELECT count(*) FROM pg_stat_activity WHERE backend_type = 'idempotency launcher')) eq '1' }, 30),
	'a promoted one has it');
$standby->stop('immediate');

# D06: after a crash, and after the postmaster is gone.
my $victim = session($node);
kill 'KILL', $victim->pid;
ok(wait_until(sub { $node->psql('postgres', 'SELECT 1') == 0 && launcher() ne '' }, 60), 'the worker is back after a crash restart');
make_old('postgres', 'ninth');
ok(gone('postgres', 'ninth'), 'and serves');

# D15: a fast stop does not wait for a standby that is not there.
$node->safe_psql('postgres', q(ALTER SYSTEM SET synchronous_standby_names = 'nobody'));
$node->reload;
make_old_async();
my $before = time;
$node->stop('fast');
cmp_ok(time - $before, '<', 30, 'a fast stop is fast');

sub make_old_async
{
	$node->safe_psql('postgres', q(
		SET synchronous_commit = local;
		SELECT r.outcome FROM idem_claim('t', 'o', 'tenth', '1') c, idem_complete(c.operation_id, c.token, body => 'x') r;
		UPDATE idem_responses SET token = token - 259200000000;
		UPDATE idem_keys SET token = token - 259200000000, completed_at = completed_at - interval '3 days', expires_at = expires_at - interval '3 days'));
	return;
}

# D12: no slot for a sweeper (two are taken: logical replication has a launcher too), and the server starts, claims work, and the log is not filled.
$node->append_conf('postgresql.conf', "max_worker_processes = 2\nsynchronous_standby_names = ''\nidempotency.naptime = 10ms");
$node->adjust_conf('postgresql.auto.conf', 'synchronous_standby_names', undef);
my $full = log_size($node);
$node->start;
is($node->safe_psql('postgres', q(SELECT outcome FROM idem_claim('t', 'o', 'eleventh', '1'))), 'claimed', 'claims work without a worker slot');
$node->safe_psql('postgres', 'SELECT pg_sleep(3)');
my @lines = grep { /no background worker slot/ } split /\n/, server_log($node, $full);
is(scalar @lines, 1, 'and that is logged once');
$node->safe_psql('postgres', q(ALTER SYSTEM SET idempotency.max_sweepers = 0));
$node->stop('fast');

done_testing();
