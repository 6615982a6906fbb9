# Library and SQL script of different versions: a clean error that says what to do, in new and in old sessions, and all is
# well when they agree again. Prepared statements survive what an update does to the objects they use. Covers D11, E09.
use strict;
use warnings;

use FindBin;
use lib "$FindBin::RealBin/lib";
use IdempotencyTest;
use Test::More;

my $node = new_server('version');
my $offset = log_size($node);
my $version = $node->safe_psql('postgres', q(SELECT extversion FROM pg_extension WHERE extname = 'idempotency'));
my $old = session($node);
my $admin = session($node);
$admin->ask('CREATE FUNCTION same(payload jsonb) RETURNS jsonb LANGUAGE sql RETURN payload');

# Every function a driver prepares, prepared.
my %statements = (
	claim => [ 'text', q(SELECT outcome, proceed, operation_id, token FROM idem_claim('t', 'o', $1, '{"a": 1}', wait => '0')) ],
	row => [ 'text', q(SELECT * FROM idem_claim('t', 'o', $1, '{"a": 1}', wait => '0')) ],
	value => [ 'text', q(SELECT idem_claim('t', 'o', $1, '{"a": 1}', wait => '0')) ],
	many => [ 'text', q(SELECT * FROM idem_claim_many('t', 'o', ARRAY[$1])) ],
	look => [ 'text', q(SELECT * FROM idem_lookup('t', 'o', $1)) ],
	run => [ 'text', q(SELECT * FROM idem_execute('t', 'o', $1, '{"a": 1}', 'same')) ],
	response => [ 'text', q(SELECT h.* FROM idem_lookup('t', 'o', $1) AS r, idem_http_response(r) AS h) ],
	hash => [ 'text', q(SELECT idem_hash(to_jsonb($1))) ],
	options => [ 'text', q(SELECT count(*) FROM idem_policy_options WHERE name <> $1) ],
	help => [ 'text', q(SELECT count(*) FROM idem_help WHERE name <> $1) ],
);
$old->ask("SELECT FROM idem_claim('t', 'o', 'done', '{\"a\": 1}') AS c, idem_complete(c.operation_id, c.token, body => 'done')");
$old->ask("PREPARE $_ ($statements{$_}[0]) AS $statements{$_}[1]") for sort keys %statements;
$old->ask("EXECUTE $_ ('done')") for sort keys %statements;
my $before = join "\n", map { $old->ask("EXECUTE $_ ('done')") } sort keys %statements;

# all_work NAME: the prepared statements of the old session answer as before.
sub all_work
{
	my ($name) = @_;
	my @failed;
	my $after = join "\n", map {
		my ($out, $err) = $old->try("EXECUTE $_ ('done')");
		push @failed, "$_: $err" if $err =~ /ERROR/;
		$out
	} sort keys %statements;
	is(join("\n", @failed), '', "$name: every prepared statement works");
	is($after, $before, "$name: and answers as before");
	return;
}

# What an update script and a DBA do to objects.
all_work('nothing');
$admin->ask('ALTER FUNCTION idem_claim COST 50; ALTER FUNCTION idem_execute COST 50; ALTER FUNCTION idem_lookup COST 50; ALTER FUNCTION idem_claim_many ROWS 10');
all_work('functions altered');
$admin->ask('ANALYZE idem_keys; ANALYZE idem_responses; VACUUM FULL idem_keys; REINDEX TABLE CONCURRENTLY idem_keys; CLUSTER idem_responses USING idem_responses_pkey');
all_work('tables rewritten');
$admin->ask('ALTER TABLE idem_keys ADD COLUMN note text; CREATE INDEX mine ON idem_keys (created_at); CREATE TABLE mine_too (id uuid REFERENCES idem_keys)');
all_work('column, index and foreign key added');
$admin->ask('DROP TABLE mine_too; DROP INDEX mine; ALTER TABLE idem_keys DROP COLUMN note');
all_work('and dropped');
$admin->ask('CREATE SCHEMA elsewhere; ALTER EXTENSION idempotency SET SCHEMA elsewhere');
$_->ask('SET search_path = elsewhere, public') for $old, $admin;
all_work('moved to another schema');
$admin->ask('ALTER SCHEMA elsewhere RENAME TO idem');
$_->ask('SET search_path = idem, public') for $old, $admin;
all_work('schema renamed');

# The script is older, and newer, than the library.
for my $other ('0.9', '1.1', '')
{
	$admin->ask("UPDATE pg_extension SET extversion = '$other' WHERE extname = 'idempotency'");
	my $new = session($node);
	$new->ask('SET search_path = idem, public');
	my ($out, $err) = $new->try(q(SELECT idem_claim('t', 'o', 'new', '{"a": 1}')));
	is(IdempotencyTest::Session::state_of($err), 'ID006', "version '$other': a new session is told");
	like($err, qr/HINT:.*ALTER EXTENSION idempotency UPDATE/, "version '$other': and what to do");
	for my $verb (q(idem_complete('00000000-0000-8000-8000-000000000000', 1)), q(idem_lookup('t', 'o', 'done')), q(idem_claim_many('t', 'o', ARRAY['x'])),
		q(idem_execute('t', 'o', 'x', '1', 'same')))
	{
		is($new->sqlstate("SELECT $verb"), 'ID006', "version '$other': " . ($verb =~ s/\(.*//r));
	}
	# An old session has looked at the version before. It may go on or say the same.
	my $state = $old->sqlstate(q(EXECUTE claim('done')));
	ok($state eq '' || $state eq 'ID006', "version '$other': an old session goes on, or is told too");
	$admin->ask('ANALYZE idem_keys');
	$state = $old->sqlstate(q(EXECUTE claim('done')));
	is($state, 'ID006', "version '$other': it is told once it looks again");
	is($new->ask(q(SELECT count(*) FROM idem_keys WHERE key IN ('new', 'x'))), '0', "version '$other': and nothing was claimed");
	$admin->ask("UPDATE pg_extension SET extversion = '$version' WHERE extname = 'idempotency'");
	is($new->ask(q(BEGIN; SELECT outcome FROM idem_claim('t', 'o', 'new', '{"a": 1}'); ROLLBACK)), 'claimed', "version '$other': the same session works when they agree again");
	$new->quit;
}
all_work('versions agree again');

# Dropped and created again below an open session: other objects, so its plans are made anew or refused, never more.
$admin->ask('DROP EXTENSION idempotency; CREATE EXTENSION idempotency SCHEMA idem');
is($old->ask(q(SELECT outcome FROM idem_claim('t', 'o', 'done', '{"a": 1}'))), 'claimed', 'created again: an old session works');
for my $name (sort keys %statements)
{
	my $state = $old->sqlstate("EXECUTE $name ('done')");
	ok($state eq '' || $state eq '0A000' || $state eq '42883' || $state eq '22023', "created again: prepared statement $name: " . ($state || 'works'));
}
is($old->ask(q(BEGIN; DROP EXTENSION idempotency; CREATE EXTENSION idempotency SCHEMA idem; SELECT outcome FROM idem_claim('t', 'o', 'inside'); COMMIT)), 'claimed',
	'dropped, created and used in one transaction');
log_is_clean($node, $offset, 'versions');
sweep($node, 'postgres', 'versions') if $admin->ask(q(ALTER DATABASE postgres SET search_path = idem, public)) eq '';
$_->quit for $old, $admin;
$node->stop;
done_testing();
