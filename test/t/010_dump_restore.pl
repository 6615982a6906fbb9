# Dump and restore, as custom archive, plain text, schema only and by pg_upgrade: all rows come back, policies stay, what
# was completed replays, what was running is known, and every operation id is still the one its key has. Covers D17, D18.
use strict;
use warnings;

use FindBin;
use lib "$FindBin::RealBin/lib";
use IdempotencyTest;
use PostgreSQL::Test::Cluster;
use PostgreSQL::Test::Utils;
use Test::More;

my $node = new_server('dump');
my $offset = log_size($node);
my $tmp = $PostgreSQL::Test::Utils::tmp_check;
$node->safe_psql('postgres', q(
	CREATE DATABASE shop;
	CREATE DATABASE custom;
	CREATE DATABASE plain;
	CREATE DATABASE bare;
	CREATE DATABASE moved;
));
$node->safe_psql('shop', q(
	CREATE SCHEMA idem;
	CREATE EXTENSION idempotency SCHEMA idem;
	SET search_path = idem, public;
	SELECT FROM idem_set_policy('pay', 'payment', '{"ttl": "7 days"}');
	SELECT FROM idem_set_policy('order', 'order');
	-- A key in every state, bodies of every kind.
	DO $$
	DECLARE r idem_result; n int; bytes bytea := (SELECT string_agg(set_byte('\x00', 0, g), '') FROM generate_series(0, 255) AS g);
	BEGIN
		FOR n IN 1 .. 300 LOOP
			r := idem_claim('tenant ' || n % 3, 'work ' || n % 7, 'key ' || n || ' Ä€' || chr(9) || '\', jsonb_build_object('n', n), lease => '1 hour', traceparent => '00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01');
			CASE n % 7
			WHEN 0 THEN PERFORM idem_complete(r.operation_id, r.token, 201, body => repeat('answer ', n), headers => '[["ETag", "a"], ["Link", "1"], ["Link", "2"]]');
			WHEN 1 THEN PERFORM idem_complete(r.operation_id, r.token, body_bytes => bytes);
			WHEN 2 THEN PERFORM idem_complete(r.operation_id, r.token, 204);
			WHEN 3 THEN PERFORM idem_fail(r.operation_id, r.token, 'failed', 402, body_json => '{"code": "card"}');
			WHEN 4 THEN PERFORM idem_fail(r.operation_id, r.token, 'indeterminate', evidence => '{"psp": "timeout"}');
			WHEN 5 THEN PERFORM idem_release(r.operation_id, r.token);
			ELSE PERFORM idem_checkpoint(r.operation_id, r.token, jsonb_build_object('at', n));
			END CASE;
		END LOOP;
	END $$;
));

my $all = q(
	SELECT md5(string_agg(k::text, '' ORDER BY operation_id)) FROM idem.idem_keys AS k;
	SELECT md5(string_agg(r::text, '' ORDER BY operation_id, token)) FROM idem.idem_responses AS r;
	SELECT md5(string_agg(l::text, '' ORDER BY operation_id, token)) FROM idem.idem_leases AS l;
	SELECT md5(string_agg(p::text, '' ORDER BY op)) FROM idem.idem_policies AS p;
	SELECT md5(string_agg((k.key, l)::text, '' ORDER BY k.operation_id)) FROM idem.idem_keys AS k, idem.idem_lookup(actor, op, key) AS l;
	SELECT count(*) FROM idem.idem_unfinished;
);
my $rows = $node->safe_psql('shop', $all);
like($rows, qr/^(?:[0-9a-f]{32}\n){5}\d+$/, 'there is something to dump');

my @connection = ('-h', $node->host, '-p', $node->port);
command_ok([ 'pg_dump', @connection, '-Fc', '-f', "$tmp/shop.dump", 'shop' ], 'pg_dump of an archive');
command_ok([ 'pg_restore', @connection, '--exit-on-error', '-d', 'custom', "$tmp/shop.dump" ], 'pg_restore');
command_ok([ 'pg_dump', @connection, '-f', "$tmp/shop.sql", 'shop' ], 'pg_dump of plain text');
command_ok([ 'psql', @connection, '-Xq', '-v', 'ON_ERROR_STOP=1', '-d', 'plain', '-f', "$tmp/shop.sql" ], 'restore of plain text');
command_ok([ 'pg_dump', @connection, '--schema-only', '-Fc', '-f', "$tmp/bare.dump", 'shop' ], 'pg_dump of the schema only');
command_ok([ 'pg_restore', @connection, '--exit-on-error', '-d', 'bare', "$tmp/bare.dump" ], 'its restore');
command_ok([ 'pg_dump', @connection, '-Fd', '-j', 2, '-f', "$tmp/shop.dir", 'shop' ], 'pg_dump in parallel');
command_ok([ 'pg_restore', @connection, '--exit-on-error', '-j', 2, '-d', 'moved', "$tmp/shop.dir" ], 'its restore');

# alive DATABASE, NAME: nothing differs, and work goes on there.
sub alive
{
	my ($server, $database, $name) = @_;
	is($server->safe_psql($database, $all), $rows, "$name: every row, every lookup as before");
	is($server->safe_psql($database, q(
		SELECT outcome, count(*) FROM idem.idem_keys AS k, idem.idem_claim(k.actor, k.op, k.key, jsonb_build_object('n', substring(k.key FROM '\d+')::int), wait => '0')
		 GROUP BY 1 ORDER BY 1)), "claimed|43\nin_progress|43\nindeterminate|43\nreplay|171",
		"$name: each key finds its row again by its id, and is answered by it");
	is($server->safe_psql($database, q(SELECT op, preset, options->>'ttl', version FROM idem.idem_policies ORDER BY op)),
		"order|order|3 days|1\npay|payment|7 days|1", "$name: the policies are kept");
	is($server->safe_psql($database, q(SELECT outcome, reason FROM idem.idem_claim('t', 'pay', 'short'))), 'rejected|key_format', "$name: and in force");
	sweep_in($server, $database, $name);
	return;
}

sub sweep_in
{
	my ($server, $database, $name) = @_;
	$server->safe_psql('postgres', "ALTER DATABASE $database SET search_path = idem, public");
	sweep($server, $database, $name);
	return;
}

alive($node, 'custom', 'archive');
alive($node, 'plain', 'plain text');
alive($node, 'moved', 'parallel');
is($node->safe_psql('bare', q(
	SELECT (SELECT count(*) FROM idem.idem_keys) + (SELECT count(*) FROM idem.idem_responses) + (SELECT count(*) FROM idem.idem_leases) + (SELECT count(*) FROM idem.idem_policies);
	SELECT outcome FROM idem.idem_claim('t', 'o', 'k'))), "0\nclaimed", 'schema only: no rows, and it works');

# Data alone, into a database where the extension has just been created: the script seeds nothing that could collide.
$node->safe_psql('postgres', 'CREATE DATABASE again');
$node->safe_psql('again', 'CREATE SCHEMA idem; CREATE EXTENSION idempotency SCHEMA idem');
command_ok([ 'pg_restore', @connection, '--exit-on-error', '--data-only', '-d', 'again', "$tmp/shop.dump" ], 'restore of the data only');
alive($node, 'again', 'data only');
log_is_clean($node, $offset, 'dumps');

# pg_upgrade, the library preloaded on both sides.
$rows = $node->safe_psql('shop', $all);
my $new = new_server('upgraded', start => 0);
$node->stop;
my $bindir = $node->config_data('--bindir');
my @upgrade = ('pg_upgrade', '--no-sync', '-d', $node->data_dir, '-D', $new->data_dir, '-b', $bindir, '-B', $bindir,
	'-s', $new->host, '-p', $node->port, '-P', $new->port);
chdir $tmp or die $!;
command_ok([ @upgrade, '--check' ], 'pg_upgrade --check');
command_ok(\@upgrade, 'pg_upgrade');
$new->start;
alive($new, 'shop', 'upgraded');
$new->stop;
done_testing();
