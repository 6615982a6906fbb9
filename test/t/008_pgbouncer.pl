# Through pgbouncer in transaction pooling, where each transaction may meet another server process: nothing is kept in a
# session, no advisory lock is left, and what one client did wrong does not reach the next one on the same process. Simple
# and extended protocol, and PREPARE inside a transaction. Covers E07, E09, E10.
use strict;
use warnings;

use FindBin;
use lib "$FindBin::RealBin/lib";
use IdempotencyTest;
use PostgreSQL::Test::Cluster;
use PostgreSQL::Test::Utils;
use Test::More;

my $node = new_server('pooled');
my $offset = log_size($node);
my $user = getpwuid $<;
my $dir = PostgreSQL::Test::Utils::tempdir_short();
my $port = PostgreSQL::Test::Cluster::get_free_port();

sub write_file
{
	my ($file, $text) = @_;
	open my $out, '>', $file or die "$file: $!";
	print $out $text;
	close $out;
	return;
}

write_file("$dir/users", qq("$user" ""\n));
write_file("$dir/pgbouncer.ini", <<"INI");
[databases]
postgres = host=@{[ $node->host ]} port=@{[ $node->port ]} dbname=postgres pool_size=3
single = host=@{[ $node->host ]} port=@{[ $node->port ]} dbname=postgres pool_size=1
[pgbouncer]
listen_addr =
listen_port = $port
unix_socket_dir = $dir
auth_type = trust
auth_file = $dir/users
pool_mode = transaction
max_client_conn = 100
logfile = $dir/log
pidfile = $dir/pid
INI
system_or_bail('pgbouncer', '-q', '-d', "$dir/pgbouncer.ini");
my $pooled = "host=$dir port=$port user=$user";
my $first = session($node, undef, connstr => "$pooled dbname=single");
my $second = session($node, undef, connstr => "$pooled dbname=single");
is($first->pid, $second->pid, 'two clients share one server process');

# Claim in one transaction, another client on the same process, complete in a third.
$first->ask(q(SELECT operation_id AS id, token FROM idem_claim('t', 'o', 'lease', '{"a": 1}') \gset));
is($second->ask(q(SELECT outcome, reason FROM idem_claim('t', 'o', 'lease', '{"a": 1}', wait => '0'))), 'in_progress|running',
	'the other client does not own the claim of the first');
is($first->ask(q(SELECT outcome FROM idem_complete(:'id', :token, body => 'x'))), 'completed', 'which completes it later');
is($second->ask(q(SELECT outcome, body FROM idem_claim('t', 'o', 'lease', '{"a": 1}'))), 'replay|x', 'and the other replays');

# An error and an abort leave nothing behind.
is($first->sqlstate(q(BEGIN; SELECT FROM idem_claim('t', 'o', 'failed', '{"a": 1}'); SELECT idem_complete('00000000-0000-8000-8000-000000000000', 1))),
	'ID007', 'an error inside a transaction');
$first->ask('ROLLBACK');
is($second->ask(q(SELECT outcome FROM idem_claim('t', 'o', 'failed', '{"a": 1}'))), 'claimed', 'frees the key for the next client');
is($first->sqlstate(q(BEGIN; SET LOCAL statement_timeout = '100 ms'; SELECT FROM idem_claim('t', 'o', 'failed', '{"a": 1}', wait => '10 s'))), '57014',
	'a wait that is cut off');
$first->ask('ROLLBACK');
$first->ask(q(BEGIN; SET LOCAL idempotency.require_policy = on; SELECT FROM idem_claim('t', 'o', 'k'); COMMIT));
is($second->ask(q(SELECT outcome FROM idem_claim('t', 'o', 'no policy'))), 'claimed', 'a setting of one transaction ends with it');

# Prepared inside of a transaction.
is($first->ask(q(BEGIN; PREPARE p(text, jsonb) AS SELECT outcome FROM idem_claim('t', 'o', $1, $2); EXECUTE p('prepared', '{"a": 1}');
	DEALLOCATE p; COMMIT)), 'claimed', 'PREPARE and EXECUTE in one transaction');

# An uncommitted claim, and a rival on another process.
my $third = session($node, undef, connstr => "$pooled dbname=postgres");
my $fourth = session($node, undef, connstr => "$pooled dbname=postgres");
$third->ask(q(BEGIN; SELECT FROM idem_claim('t', 'o', 'open', '{"a": 1}') AS c, idem_complete(c.operation_id, c.token, body => 'y')));
$fourth->send(q(SELECT outcome, body FROM idem_claim('t', 'o', 'open', '{"a": 1}', wait => '20 s')));
sleepers($node, 1);
$third->ask('COMMIT');
is($fourth->answer, 'replay|y', 'a waiter behind the pool is woken');
cmp_ok($fourth->{took}, '<', 10, 'in time');

# Sixteen clients on three processes.
$node->safe_psql('postgres', 'CREATE TABLE said (protocol text, key int, client int, outcome text)');
for my $protocol (qw(simple extended))
{
	my $bench = start_bench($node, <<"SQL", clients => 16, transactions => 40, protocol => $protocol, connstr => "$pooled dbname=postgres");
\\set k random(1, 100)
SELECT outcome, proceed, coalesce(operation_id::text, '') AS id, coalesce(token, 0) AS token FROM idem_claim('t', '$protocol', 'k' || (:k)::text, '{"a": 1}', wait => '0') \\gset
\\if :proceed
INSERT INTO said VALUES ('$protocol', :k, :client_id, '\@');
SELECT outcome FROM idem_complete(@{[ $protocol eq 'simple' ? "':id'" : ':id' ]}::uuid, :token, body => 'done') \\gset
\\endif
BEGIN;
SELECT outcome, proceed, coalesce(operation_id::text, '') AS id, coalesce(token, 0) AS token FROM idem_claim('t', '$protocol', 'b' || (:k)::text, '{"a": 1}', wait => '2 s') \\gset
\\if :proceed
SELECT outcome FROM idem_complete(@{[ $protocol eq 'simple' ? "':id'" : ':id' ]}::uuid, :token, body => 'done') \\gset
\\endif
COMMIT;
SQL
	ok(finish_bench($bench), "sixteen clients on three processes, $protocol protocol");
	is($node->safe_psql('postgres', "SELECT count(*) - count(DISTINCT key), count(*) > 50 FROM said WHERE protocol = '$protocol'"), '0|t', "$protocol: no key was claimed twice");
	is($node->safe_psql('postgres', "SELECT DISTINCT state, attempt FROM idem_keys WHERE op = '$protocol'"), 'c|1', "$protocol: all are completed");
}
is($node->safe_psql('postgres', q(SELECT count(*) FROM pg_locks WHERE locktype = 'advisory')), '0', 'no advisory locks');
is($node->safe_psql('postgres', q(SELECT count(*) FROM pg_prepared_statements)), '0', 'no prepared statements');
cmp_ok($node->safe_psql('postgres', q(SELECT count(*) FROM pg_stat_activity WHERE backend_type = 'client backend')), '<=', 6, 'the pool was as small as it should be');
log_is_clean($node, $offset, 'pgbouncer', '40P01');
sweep($node, 'postgres', 'pgbouncer');
$_->quit for $first, $second, $third, $fourth;
END
{
	if (defined $dir && -e "$dir/pid")
	{
		my $status = $?;
		kill 'INT', PostgreSQL::Test::Utils::slurp_file("$dir/pid") =~ /(\d+)/;
		$? = $status;
	}
}
$node->stop;
done_testing();
