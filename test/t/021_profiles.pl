# Profiles beyond one session: keyed hashes and versions survive dump and restore, so that honest retries still replay; a
# standby explains; a LATIN1 database hashes under a profile as UTF8 does; and what is hostile in a payload (depth,
# exponents, sheer size) costs no more than its own size. Covers A33, D17, F01 and invariants 6 and 7.
use strict;
use warnings;

use FindBin;
use lib "$FindBin::RealBin/lib";
use IdempotencyTest;
use PostgreSQL::Test::Cluster;
use PostgreSQL::Test::Utils;
use Test::More;
use Time::HiRes qw(time);

my $node = new_server('profiles', streaming => 1);
my $offset = log_size($node);
my $tmp = $PostgreSQL::Test::Utils::tmp_check;
my @connection = ('-h', $node->host, '-p', $node->port);

# --- Dump and restore ------------------------------------------------------------------------------------------------

$node->safe_psql('postgres', 'CREATE DATABASE shop; CREATE DATABASE archive; CREATE DATABASE text');
$node->safe_psql('shop', q(
	CREATE EXTENSION idempotency;
	SELECT FROM idem_set_policy('pay', 'default', '{"hash_key": "per_actor", "profile": {"trim_strings": true, "ignore_paths": ["$.memo"]}}');
	SELECT FROM idem_claim('ann', 'pay', 'one', '{"pin": " 1234", "memo": "a"}') AS c, idem_complete(c.operation_id, c.token, 201, 'paid one');
	SELECT FROM idem_set_policy('pay', 'default', '{"hash_algorithm": "sha256"}');
	SELECT FROM idem_claim('ann', 'pay', 'two', '{"pin": " 1234"}') AS c, idem_complete(c.operation_id, c.token, 201, 'paid two');
	SELECT FROM idem_set_policy('pay', 'default', '{"hash_key": "per_actor"}');
	SELECT FROM idem_claim('ann', 'pay', 'three', '{"pin": " 1234"}') AS c, idem_complete(c.operation_id, c.token, 201, 'paid three');
));
my $all = q(
	SELECT string_agg(p::text, '' ORDER BY p::text) FROM idem_policies AS p;
	SELECT string_agg(p::text, '' ORDER BY p::text) FROM idem_profiles AS p;
	SELECT string_agg(s::text, '' ORDER BY s::text) FROM idem_secrets AS s;
	SELECT hash FROM idem_payload_explain('pay', '{"n": 1}', 'ann'););
my $retries = q(
	SELECT outcome, body FROM idem_claim('ann', 'pay', 'one', '{"memo": "b", "pin": "1234 "}', wait => '0');
	SELECT outcome FROM idem_claim('ann', 'pay', 'one', '{"pin": "1235"}', wait => '0');
	SELECT outcome, body FROM idem_claim('ann', 'pay', 'two', '{"pin": " 1234"}', wait => '0');
	SELECT outcome FROM idem_claim('ann', 'pay', 'two', '{"pin": "1234"}', wait => '0');
	SELECT outcome, body FROM idem_claim('ann', 'pay', 'three', '{"pin": " 1234"}', wait => '0');
	SELECT outcome FROM idem_claim('ann', 'pay', 'three', '{"pin": "1234"}', wait => '0'););
my $answers = "replay|paid one\nconflict\nreplay|paid two\nconflict\nreplay|paid three\nconflict";
my $rows = $node->safe_psql('shop', $all);
is($node->safe_psql('shop', $retries), $answers, 'before the dump: each retry is compared under its own version');
command_ok([ 'pg_dump', @connection, '-Fc', '-f', "$tmp/profiles.dump", 'shop' ], 'pg_dump of an archive');
command_ok([ 'pg_restore', @connection, '--exit-on-error', '-d', 'archive', "$tmp/profiles.dump" ], 'pg_restore');
command_ok([ 'pg_dump', @connection, '-f', "$tmp/profiles.sql", 'shop' ], 'pg_dump of plain text');
command_ok([ 'psql', @connection, '-Xq', '-v', 'ON_ERROR_STOP=1', '-d', 'text', '-f', "$tmp/profiles.sql" ], 'its restore');
for my $database (qw(archive text))
{
	is($node->safe_psql($database, $all), $rows, "$database: policies, versions, secret and keyed hash as before");
	is($node->safe_psql($database, $retries), $answers, "$database: each retry is compared under its own version");
	is($node->safe_psql($database, q(
		SELECT version, profile FROM idem_set_policy('pay', 'default', '{"hash_key": "per_actor"}');
		SELECT version, profile FROM idem_set_policy('pay', 'default');
		SELECT count(*) FROM idem_secrets)), "3|3\n4|4\n1", "$database: the same rules are no new version, others are the next");
	sweep($node, $database, $database);
}

# --- A standby ---------------------------------------------------------------------------------------------------------

$node->safe_psql('postgres', q(
	SELECT FROM idem_set_policy('pay', 'default', '{"hash_key": "per_actor", "profile": {"trim_strings": true}}');
	SELECT FROM idem_claim('ann', 'pay', 'k', '{"a": " x "}')));
$node->backup('base');
my $standby = PostgreSQL::Test::Cluster->new('profiles_standby');
$standby->init_from_backup($node, 'base', has_streaming => 1);
$standby->start;
my $reader = session($standby);
is($reader->ask(q(SELECT e.canonical, e.hash = k.payload_hash, e.profile FROM idem_keys AS k, idem_payload_explain('pay', '{"a": "x"}', 'ann') AS e)),
	'{"a":"x"}|t|1', 'standby: a payload is explained, keyed hash and all');
is($reader->ask(q(SELECT * FROM idem_payload_diff('pay', '{"a": "x "}', '{"a": "y"}'))), '$."a"|"x"|"y"', 'standby: payloads are compared');
$node->safe_psql('postgres', q(SELECT FROM idem_set_policy('pay', 'default')));
$node->wait_for_catchup($standby, 'replay');
is($reader->ask(q(SELECT canonical, profile FROM idem_payload_explain('pay', '{"a": "x "}'))), '{"a":"x "}|2', 'standby: a new version is followed');
is($reader->sqlstate(q(SELECT * FROM idem_admin_prune_profiles())), '25006', 'standby: nothing is pruned');
$reader->quit;
$standby->stop;

# --- Encodings ---------------------------------------------------------------------------------------------------------

my %hashes;
my $profile = '{"trim_strings": true, "nfc_strings": true, "ignore_paths": ["$.größe"], "unordered_paths": ["$.\"öl\""]}';
for my $name (qw(utf8 latin1))
{
	$node->safe_psql('postgres', "CREATE DATABASE $name TEMPLATE template0 LOCALE 'C' ENCODING '$name'");
	my $s = session($node, $name);
	$s->ask("SET client_encoding = 'UTF8'; CREATE EXTENSION idempotency");
	$s->ask(qq(SELECT FROM idem_set_policy('änderung', 'default', '{"profile": $profile, "conflict_detail": "full", "store_payload": "canonical"}')));
	$s->ask(q(SELECT FROM idem_claim('t', 'änderung', 'k', '{"größe": 1, "öl": ["ü", "a", "é"], "name": "\u00a0Zoë\u0085"}', target => 'für')));
	$hashes{$name} = $s->ask(q(SELECT encode(payload_hash, 'hex'), payload FROM idem_keys));
	is($s->ask(q(SELECT outcome FROM idem_claim('t', 'änderung', 'k', '{"größe": 2, "öl": ["é", "ü", "a"], "name": "Zoë"}', target => 'für', wait => '0'))),
		'in_progress', "$name: the same under the profile");
	is($s->ask(q(SELECT detail -> 'winner' ->> 'payload' FROM idem_claim('t', 'änderung', 'k', '{"name": "Ö"}', wait => '0'))),
		'{"name":"Zoë","öl":["a","é","ü"]}', "$name: a conflict shows the winner");
	is($s->ask(q(SELECT path, given FROM idem_payload_explain('änderung', '{"größe": "ß", "n": 1}'), jsonb_to_recordset(dropped) AS (path text, given text))),
		'$."größe"|ß', "$name: explained");
	$s->quit;
}
like($hashes{utf8}, qr/^[0-9a-f]{32}\|\{"name":"Zoë","öl":\["a","é","ü"\]\}$/, 'UTF8: the canonical payload is stored');
is($hashes{latin1}, $hashes{utf8}, 'LATIN1: the same hash and text');

# --- What is hostile ---------------------------------------------------------------------------------------------------

# Depth is limited by the data, not by the stack. A server built with sanitizers needs more stack to read as deep a value.
my $s = session($node);
my $depth;
$s->ask("SET max_stack_depth = '7MB'; CREATE TABLE deep (v jsonb)");
for (20_000, 4_000)
{
	$depth = $_;
	last if $s->sqlstate("INSERT INTO deep VALUES ((repeat('[', $depth) || repeat(']', $depth))::jsonb), ((repeat('{\"a\":', $depth) || '\" x \"' || repeat('}', $depth))::jsonb)") ne '54001';
}
is($s->ask('SELECT count(*) FROM deep'), '2', "values $depth deep");
$s->ask("SET max_stack_depth = '100kB'");
is($s->sqlstate("SELECT repeat('[', $depth)::jsonb"), '54001', 'are deeper than the stack is now');
is($s->ask(q(SELECT count(*) FROM deep WHERE length(idem_canonical(v)) > 20000 AND idem_hash(v, 'sha256') = sha256(convert_to(idem_canonical(v), 'UTF8')))),
	'2', 'they are hashed');
is($s->ask(q(SELECT count(*) FROM deep WHERE length(idem_canonical(v, trim_strings => true, unordered_paths => '{$[*]}', ignore_paths => '{$.*.b}', round_paths => '{"$.a": 2}')) = length(idem_canonical(v)) - CASE jsonb_typeof(v) WHEN 'object' THEN 2 ELSE 0 END)),
	'2', 'under options too');
is($s->ask(q(SELECT count(*) FROM deep WHERE idem_payload_jcs_safe(v))), '2', 'and judged');
$s->ask(q(SELECT FROM idem_set_policy('deep', 'default', '{"wait": "0", "profile": {"trim_strings": true}}')));
my $claims = q(SELECT string_agg(c.outcome, ' ') FROM deep, idem_claim('t', 'deep', jsonb_typeof(v), v) AS c);
is($s->ask("$claims; $claims"), "claimed claimed\nin_progress in_progress", 'and claimed');

# Memory of the session at its highest, in bytes.
sub peak
{
	my ($status) = PostgreSQL::Test::Utils::slurp_file('/proc/' . $s->pid . '/status') =~ /VmHWM:\s+(\d+)/;
	return 1024 * $status;
}

# A thousand numbers of 131,072 digits: 16 kB, where text takes 131 MB.
$s->ask(q(RESET max_stack_depth; CREATE TABLE big AS SELECT jsonb_agg(n) AS v FROM generate_series(1, 1000), LATERAL (SELECT ('1e' || 131071)::numeric AS n) AS x;
	SELECT idem_hash(v), idem_hash(v, trim_strings => true), length(idem_canonical(v)) FROM big));
cmp_ok($s->ask('SELECT pg_column_size(v) FROM big'), '<', 40_000, 'a small value');
my $before = peak();
is($s->ask(q(SELECT length(idem_canonical(v)), idem_canonical(v) LIKE '[1e+131071,1e+131071,%' FROM big)), '10001|t', 'has a small canonical text');
$s->ask(q(SELECT count(idem_hash(v)) FROM big, generate_series(1, 1000)));
my $hashing = $s->{took} / 1000;
$s->ask(q(SELECT count(idem_hash(v, 'sha256', trim_strings => true)) FROM big, generate_series(1, 100)));
cmp_ok(peak() - $before, '<', 4 * 1024 * 1024, 'takes little memory');
$s->ask('SELECT length(v::text) FROM big');
note sprintf 'hashed in %.0f us, made text in %.0f us', 1e6 * $hashing, 1e6 * $s->{took};
cmp_ok($hashing, '<', $s->{took} / 20, 'and little time, against its text');

# Text beyond 1 GB is refused; the hash is not, and does not need it.
$s->ask(q(CREATE TABLE huge AS SELECT to_jsonb(repeat(E'\x01', 180000000)) AS v));
$before = peak();
is($s->ask(q(SELECT encode(idem_hash(v), 'hex') FROM huge)), $s->ask(q(SELECT encode(idem_hash(v, ignore_paths => '{$.none}'), 'hex') FROM huge)),
	'1.08 GB of canonical text are hashed, by both walks');
cmp_ok(peak() - $before, '<', 400_000_000, 'in the memory of the value');
is($s->sqlstate('SELECT length(idem_canonical(v)) FROM huge'), '54000', 'as text they are refused');
is($s->sqlstate('SELECT length(idem_canonical(v, trim_strings => true)) FROM huge'), '54000', 'under options too');
is($s->ask('DROP TABLE huge; SELECT 1'), '1', 'the session goes on');
$s->quit;

log_is_clean($node, $offset, 'profiles');
sweep($node, 'postgres', 'profiles');
$node->stop;
done_testing();
