# The worker among many databases and hostile neighbours: template1 and roles, DDL storms, dropped databases, locked tables,
# settings that would slow it down or hold it, 200 databases, 100,000 turns, pg_upgrade, no preload.
# Covers D03, D06, D08, D10, D13, D16, D17, D20 (what 031_worker.pl leaves).
use strict;
use warnings;

use FindBin;
use lib "$FindBin::RealBin/lib";
use IdempotencyTest;
use PostgreSQL::Test::Cluster;
use PostgreSQL::Test::Utils;
use Test::More;
use Time::HiRes qw(sleep time);

# D16 goes on beside everything else: a launcher that looks round every millisecond, and a database whose sweep fails.
my $spinning = new_server('spinning', settings => [ 'idempotency.naptime = 1ms', 'autovacuum = off' ]);
$spinning->safe_psql('postgres', q(SELECT FROM idem_claim('t', 'o', 'k', '1'); ALTER FUNCTION idem_sweep_step RENAME TO idem_sweep_stop));
my $spinner = $spinning->safe_psql('postgres', q(SELECT pid FROM pg_stat_activity WHERE backend_type = 'idempotency launcher'));

# turns: how often it went to sleep. private_kb: memory of its own.
sub proc_status { my ($field) = @_; return slurp_file("/proc/$spinner/status") =~ /^$field:\s+(\d+)/m ? $1 : 0 }
wait_until(sub { proc_status('voluntary_ctxt_switches') > 5000 }, 60);
my ($first_turns, $first_kb) = (proc_status('voluntary_ctxt_switches'), proc_status('RssAnon'));

my $node = new_server('databases', settings => [ 'idempotency.naptime = 1s', 'idempotency.max_sweepers = 4' ]);

# lapse DATABASE: a claim whose lease is over soon; the sweep writes that down, as state u.
my $number = 0;
sub lapse
{
	my ($database, $server) = @_;
	my $key = 'k' . ++$number;
	($server // $node)->safe_psql($database, qq(
		SELECT FROM idem_set_policy('o', 'default', '{"mode": "lease", "lease": "1 second", "grace": "0 seconds"}');
		SELECT FROM idem_claim('t', 'o', '$key', '1')));
	return $key;
}

sub served
{
	my ($database, $key, $server) = @_;
	return wait_until(sub { ($server // $node)->safe_psql($database, "SELECT state FROM idem_keys WHERE key = '$key'") eq 'u' }, 20);
}

ok(served('postgres', lapse('postgres')), 'a claim that lapsed is written down');
my $started = $node->safe_psql('postgres', 'SELECT pg_postmaster_start_time()');

# D03: template1 has the extension, and ten databases are made of it while a database is in use.
$node->safe_psql('template1', 'CREATE EXTENSION idempotency');
is(scalar(grep { $node->psql('postgres', "CREATE DATABASE t$_") != 0 } 1 .. 10), 0, 'D03: template1 with the extension, ten of ten');
ok(served('t10', lapse('t10')), 'D03: and what is made of it is served');
$node->safe_psql('template1', 'DROP EXTENSION idempotency');

# D13: all dropped at once; nothing is started for them, and they are forgotten.
my $offset = log_size($node);
$node->safe_psql('postgres', "DROP DATABASE t$_") for 1 .. 10;
ok(wait_until(sub { $node->safe_psql('postgres', 'SELECT count(*) FROM idem_worker_rows() WHERE database NOT IN (SELECT oid FROM pg_database)') eq '0' }, 10),
	'D13: dropped databases are forgotten');
sleep 2;
my @fatal = grep { /FATAL/ } split /\n/, server_log($node, $offset);
cmp_ok(scalar @fatal, '<=', 10, 'D13: at most one line for each, of a sweeper that came too late');
$offset = log_size($node);
sleep 2;
unlike(server_log($node, $offset), qr/FATAL|ERROR/, 'D13: then silence');

# D08: the owner may not log in; a role that had grants is gone; settings of the owner do not reach the sweep.
$node->safe_psql('postgres', 'CREATE DATABASE owned');
$node->safe_psql('owned', q(CREATE ROLE keeper SUPERUSER NOLOGIN; CREATE ROLE gone LOGIN; ALTER ROLE keeper SET default_transaction_read_only = on;
	SET ROLE keeper; CREATE EXTENSION idempotency; RESET ROLE;
	SELECT FROM idem_admin_grant('gone', 'client'); DROP OWNED BY gone; DROP ROLE gone));
ok(served('owned', lapse('owned')), 'D08: an owner without login, and a role that is gone, stop nothing');

# Rule 34: triggers of the owner's run as the owner, restricted.
$node->safe_psql('owned', q(CREATE TABLE seen (who text); GRANT INSERT ON seen TO PUBLIC;
	CREATE FUNCTION watch() RETURNS trigger LANGUAGE plpgsql AS 'BEGIN INSERT INTO public.seen VALUES (current_user); RETURN NEW; END';
	CREATE TRIGGER watch AFTER UPDATE ON idem_keys FOR EACH ROW WHEN (NEW.state = 'u') EXECUTE FUNCTION watch()));
ok(served('owned', lapse('owned')), 'a trigger of the owner');
is($node->safe_psql('owned', 'SELECT DISTINCT who FROM seen'), 'keeper', 'runs with the rights of the owner');

# A rate that would keep it connected for an hour keeps it away instead.
$node->append_conf('postgresql.conf', 'idempotency.sweep_rate = 1');
$node->reload;
lapse('owned') for 1 .. 12;
sleep 2;
my $began = time;
is($node->psql('postgres', 'DROP DATABASE owned'), 0, 'dropped while the sweep keeps a low rate');
cmp_ok(time - $began, '<', 6, 'D01: within the wait of DROP DATABASE');
$node->append_conf('postgresql.conf', "idempotency.sweep_rate = 0\nidempotency.naptime = 10ms");
$node->reload;

# D10: two hundred times.
$offset = log_size($node);
my $ddl = session($node);
my %states;
for (1 .. 200)
{
	$states{ $ddl->sqlstate("SET lock_timeout = '2s'; DROP EXTENSION idempotency; CREATE EXTENSION idempotency") || 'ok' }++;
	$states{ $ddl->sqlstate('VACUUM FULL idem_keys; TRUNCATE idem_leases; ALTER EXTENSION idempotency UPDATE') || 'ok' }++;
}
is(join(' ', map { "$_ $states{$_}" } sort keys %states), 'ok 400', 'D10: no deadlock, no lock timeout');
ok(served('postgres', lapse('postgres')), 'D10: the last extension is served');
my @errors = grep { /ERROR|FATAL/ } split /\n/, server_log($node, $offset);
is(scalar @errors, 0, 'D10: no error of the worker either') or diag join "\n", @errors;

# D20: behind a lock it neither waits nor holds anything; then it goes on.
my $key = lapse('postgres');
$ddl->ask('BEGIN; LOCK TABLE idem_policies IN ACCESS EXCLUSIVE MODE');
my $waiting = 0;
for (1 .. 40)
{
	$waiting += $ddl->ask(q(SELECT count(*) FROM pg_locks l JOIN pg_stat_activity a USING (pid) WHERE a.backend_type LIKE 'idempotency%' AND NOT l.granted));
	sleep 0.05;
}
is($waiting, 0, 'D20: it queues behind nobody');
$ddl->ask('COMMIT');
ok(served('postgres', $key), 'D20: and comes back');

# D07: what a visit failed with is told.
$node->safe_psql('postgres', 'CREATE DATABASE broken');
$node->safe_psql('broken', 'CREATE EXTENSION idempotency; ALTER FUNCTION idem_sweep_step RENAME TO idem_sweep_stop');
$node->safe_psql('broken', q(SELECT FROM idem_claim('t', 'o', 'k', '1')));
ok( wait_until(
		sub { $node->safe_psql('postgres', q(SELECT state, last_error FROM idem_worker_status() WHERE database = 'broken')) eq 'failed|42883' }, 20),
	'D07: an error is told');
is($node->safe_psql('postgres', 'SELECT pg_postmaster_start_time()'), $started, 'D07: and nothing restarts');

# 200 databases, of which three have the extension.
$node->append_conf('postgresql.conf', "idempotency.naptime = 1s");
$node->reload;
$began = time;
my @made = map { bash("for i in \$(seq $_ 2 196); do echo \"CREATE DATABASE many\$i TEMPLATE template0 STRATEGY file_copy;\"; done | psql -XqAt -v ON_ERROR_STOP=1 -d '" . $node->connstr('postgres') . "'") } 1, 2;
$_->{handle}->finish for @made;
note sprintf '196 databases made in %.1f s', time - $began;
$node->safe_psql("many$_", 'CREATE EXTENSION idempotency') for 7, 77;
$began = time;
ok(served("many$_", lapse("many$_")), "many$_ is served among 200") for 7, 77;
ok(wait_until(sub { $node->safe_psql('postgres', q(SELECT count(*) FROM idem_worker_rows() WHERE state = 'not visited')) eq '0' }, 60), 'all have been visited');
note sprintf 'after %.1f s', time - $began;
is($node->safe_psql('postgres', q(SELECT count(*) FROM idem_worker_rows() WHERE state <> 'not served')), '4', 'and the others are left alone');
$offset = $node->safe_psql('postgres', q(SELECT sum(extract(epoch FROM started_at)) FROM idem_worker_rows() WHERE state = 'not served'));
sleep 3;
is($node->safe_psql('postgres', q(SELECT sum(extract(epoch FROM started_at)) FROM idem_worker_rows() WHERE state = 'not served')), $offset, 'for good');

# D06: the postmaster dies, and the worker with it.
my $launcher = $node->safe_psql('postgres', q(SELECT pid FROM pg_stat_activity WHERE backend_type = 'idempotency launcher'));
$ddl->quit;
$node->kill9;
ok(wait_until(sub { !-e "/proc/$launcher/status" }, 5), 'D06: when the postmaster dies the launcher is gone within 5 s');

# D17: pg_upgrade with preload on both sides; nothing of ours starts in it.
my @init = ('--encoding=UTF8', '--locale=C');
my $old = new_server('old');
my @done = split /\|/, $old->safe_psql('postgres', q(SELECT r.operation_id FROM idem_claim('t', 'o', 'done', '1') c, idem_complete(c.operation_id, c.token, 201, 'charged') r));
$old->stop;
my $new = new_server('new', start => 0, settings => ['idempotency.naptime = 1s']);
my $bindir = `pg_config --bindir`;
chomp $bindir;
my @upgrade = ('pg_upgrade', '-d', $old->data_dir, '-D', $new->data_dir, '-b', $bindir, '-B', $bindir, '-s', $new->host, '-p', $old->port, '-P', $new->port, '-U', scalar getpwuid $<);
chdir $PostgreSQL::Test::Utils::tmp_check;
command_ok([ @upgrade, '--check' ], 'D17: pg_upgrade --check');
command_ok(\@upgrade, 'D17: pg_upgrade');
$new->start;
is($new->safe_psql('postgres', q(SELECT outcome, body FROM idem_claim('t', 'o', 'done', '1'))), 'replay|charged', 'D17: a completed key replays');
ok(served("postgres", lapse("postgres", $new), $new), "D17: and the new server sweeps");
is($new->safe_psql('postgres', q(SELECT count(*) FROM pg_stat_activity WHERE backend_type = 'idempotency launcher')), '1', 'D17: one launcher');

# D17: without preload there is nothing to start, and the functions say so.
$new->append_conf('postgresql.conf', "shared_preload_libraries = ''");
$new->restart;
is($new->psql('postgres', q(LOAD 'idempotency')), 0, 'D17: LOAD without preload');
my ($rc, $out, $err) = $new->psql('postgres', 'SELECT * FROM idem_worker_status()');
like($err, qr/shared_preload_libraries/, 'without preload the status has a hint');
($rc, $out, $err) = $new->psql('postgres', 'SELECT * FROM idem_sweep_progress');
like($err, qr/shared_preload_libraries/, 'the progress too');

# D16: what came of the spinning one.
wait_until(sub { proc_status('voluntary_ctxt_switches') > 100_000 + $first_turns }, 150);
my ($turns, $kb) = (proc_status('voluntary_ctxt_switches') - $first_turns, proc_status('RssAnon') - $first_kb);
note "$turns turns, $kb kB";
cmp_ok($turns, '>', 100_000, 'D16: 100,000 turns');
cmp_ok($kb, '<', 1024, 'D16: and flat memory');
cmp_ok($spinning->safe_psql('postgres', q(SELECT errors FROM idem_worker_status() WHERE database = 'postgres')), '>', 3, 'D16: with a database that fails all the while');
$_->stop('immediate') for $spinning, $new;
done_testing();
