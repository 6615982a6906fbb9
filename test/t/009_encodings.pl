# Databases of other encodings and locales: the same words have the same operation id, canonical text and hash everywhere,
# because all of them are taken as UTF-8; text columns sort by bytes, whatever the locale. Covers A16, A28, A29, A33, B11.
use strict;
use warnings;

use FindBin;
use lib "$FindBin::RealBin/lib";
use IdempotencyTest;
use PostgreSQL::Test::Utils;
use Test::More;

# A locale of our own, so that no locale has to be installed.
my $locales = PostgreSQL::Test::Utils::tempdir();
$ENV{LOCPATH} = $locales;
system_or_bail('localedef', '-i', 'en_US', '-f', 'UTF-8', "$locales/en_US.UTF-8");

my $node = new_server('encodings');
my $offset = log_size($node);
my %databases = (
	utf8 => q(ENCODING 'UTF8' LOCALE 'C'),
	latin1 => q(ENCODING 'LATIN1' LOCALE 'C'),
	sql_ascii => q(ENCODING 'SQL_ASCII' LOCALE 'C'),
	icu => q(ENCODING 'UTF8' LOCALE 'C' LOCALE_PROVIDER icu ICU_LOCALE 'de-DE-u-ks-level1'),
	en_us => q(ENCODING 'UTF8' LOCALE 'en_US.UTF-8'),
);
my ($actor, $op, $key) = ('Müller & Söhne', 'bestellung.änderung', 'clé-été ß ÿ');
my $payload = '{"größe": "ä\u006f", "Ä": 1.0, "a": [1e2, "é\n\u001f", true], "z": {"ß": null, "ss": -0}}';
my $words = "'$actor', '$op', '$key'";

my (%ids, %plain_ids, %hashes);
for my $name (qw(utf8 latin1 sql_ascii icu en_us))
{
	$node->safe_psql('postgres', "CREATE DATABASE $name TEMPLATE template0 $databases{$name}");
	my $s = session($node, $name);
	$s->ask("SET client_encoding = 'UTF8'") if $name ne 'sql_ascii';
	$s->ask('CREATE EXTENSION idempotency');
	# An SQL_ASCII database does not say what its bytes mean, so a payload there must be ASCII; keys may be anything.
	my $ascii = $name eq 'sql_ascii';
	my $plain = q('{"size": "L\u006f", "n": 1.0, "a": [1e2, "\n\u001f", true], "z": {"m": null, "o": -0}}', target => 'order 1');
	$plain_ids{$name} = $s->ask(qq(
		SELECT operation_id AS id, token FROM idem_claim($words || ' plain', $plain) \\gset
		SELECT :'id', encode(payload_hash, 'hex') FROM idem_keys WHERE operation_id = :'id'));
	my ($given, $same) = $ascii ? ($plain, $plain) : ("'$payload', target => 'auftrag ü'",
		qq('{"z": {"ss": 0, "ß": null}, "größe": "äo", "Ä": 1.00, "a": [100, "é\\u000a\\u001f", true]}', target => 'auftrag ü'));
	my ($id, $hash) = split /\|/, $s->ask(qq(
		SELECT operation_id AS id, token FROM idem_claim($words, $given) \\gset
		SELECT :'id', encode(payload_hash, 'hex') FROM idem_keys WHERE operation_id = :'id'));
	is($s->ask("SELECT outcome FROM idem_claim($words, $same, wait => '0')"), 'in_progress', "$name: spelt otherwise it is the same request");
	$ids{$name} = $id;
	$hashes{$name} = join "\n", $hash, $s->ask(
		qq(SELECT encode(idem_hash('$payload'), 'hex'), encode(idem_hash('$payload', 'sha256'), 'hex'), idem_canonical('$payload'))) if !$ascii;
	is($s->ask(qq(SELECT outcome FROM idem_complete(:'id', :token, 201, body => 'für Sie: ÿ', headers => '[["Location", "/aufträge/1"]]'))), 'completed', "$name: completed");
	is($s->ask(qq(SELECT outcome, key, body, headers FROM idem_claim($words, $given))),
		qq(replay|$key|für Sie: ÿ|[["Location", "/aufträge/1"]]), "$name: replayed, to the letter");
	is($s->ask(q(SELECT operation_id AS id, token FROM idem_claim('t', 'o', 'bytes') \gset
		SELECT body_bytes = (SELECT string_agg(set_byte('\x00', 0, g), '') FROM generate_series(0, 255) AS g) AND body IS NULL
		  FROM idem_complete(:'id', :token, body_bytes => (SELECT string_agg(set_byte('\x00', 0, g), '') FROM generate_series(0, 255) AS g)))),
		't', "$name: all 256 bytes");

	# Keys that a locale would take for equal.
	my @keys = ('K', 'k', 'K ', ' K', 'ä', 'Ä', 'a', 'å', 'ss', 'ß', 'co-op', 'coop');
	push @keys, "a\x{cc}\x{88}" if $name ne 'latin1';
	is($s->ask('SELECT count(*) FROM (VALUES ' . join(', ', map { "('$_')" } @keys) . ") AS k (k), idem_claim('t', 'alike', k) AS c WHERE c.outcome = 'claimed'"),
		scalar @keys, "$name: keys that look alike are different keys");
	is($s->ask(q(SELECT string_agg(key, ',' ORDER BY key COLLATE "C") = string_agg(key, ',' ORDER BY key) FROM idem_keys WHERE op = 'alike')), 't', "$name: keys sort by bytes");
	is($s->ask(q(
		SELECT count(*) FROM pg_attribute AS a JOIN pg_class AS c ON c.oid = attrelid JOIN pg_depend AS d ON d.objid = c.oid AND d.deptype = 'e'
		  JOIN pg_extension AS e ON e.oid = d.refobjid AND extname = 'idempotency'
		 WHERE relkind = 'r' AND attname IN ('actor', 'op', 'key', 'claimed_by') AND attcollation <> 'pg_catalog."C"'::regcollation)), '0', "$name: collation C on every key column");
	is($s->ask(q(
		SELECT count(*) FROM pg_index AS i JOIN pg_class AS c ON c.oid = indrelid, unnest(indcollation) AS o
		 WHERE relname LIKE 'idem%' AND o NOT IN (0, 'pg_catalog."C"'::regcollation))), '0', "$name: no index depends on the locale");
	sweep($node, $name, $name);
	$s->quit;
}
is($ids{$_}, $ids{utf8}, "$_: the operation id as in UTF8") for qw(latin1 sql_ascii icu en_us);
is($plain_ids{$_}, $plain_ids{utf8}, "$_: the hash of an ASCII payload as in UTF8") for qw(latin1 sql_ascii icu en_us);
is($hashes{$_}, $hashes{utf8}, "$_: payload hash, hashes and canonical text as in UTF8") for qw(latin1 icu en_us);
like($ids{utf8}, qr/^[0-9a-f]{8}-[0-9a-f]{4}-8[0-9a-f]{3}-[89ab]/, 'the id is a uuid of version 8');

# What an encoding cannot hold is an error of the server, and leaves no claim.
my $s = session($node, 'latin1');
$s->ask("SET client_encoding = 'UTF8'");
is($s->sqlstate(q(SELECT idem_claim('t', 'o', 'euro €', '1'))), '22P05', 'latin1: a key it cannot hold');
is($s->sqlstate(q(SELECT idem_claim('t', 'o', 'euro', '"\u20ac"'))), '22P05', 'latin1: a payload it cannot hold');
is($s->ask(q(SELECT count(*) FROM idem_keys WHERE key LIKE 'euro%')), '0', 'and no claim is left');
$s->quit;
$s = session($node, 'sql_ascii');
is($s->sqlstate(q(SELECT idem_claim('t', 'o', 'k', '"ä"'))), '22021', 'sql_ascii: a payload of unknown meaning is refused');
my ($out, $err) = $s->try(q(SELECT outcome FROM idem_claim('t', 'o', E'broken \xe9\xff', '1')));
ok($out eq 'claimed' || IdempotencyTest::Session::state_of($err) =~ /^22/, 'sql_ascii: bytes that are not UTF-8 are claimed or refused, no more');
note "sql_ascii: bytes that are not UTF-8: $out $err";
is($s->ask('SELECT 1'), '1', 'and the server is there');
$s->quit;

# Moved from one encoding to another, every id still fits its key.
my @connection = ('-h', $node->host, '-p', $node->port);
$node->safe_psql('latin1', 'TRUNCATE idem_keys, idem_responses, idem_leases');
$node->safe_psql('utf8', q(DELETE FROM idem_keys WHERE key LIKE 'a' || U&'\0308'));
command_ok([ 'bash', '-c', 'set -o pipefail; pg_dump "$0" "$1" "$2" "$3" -a utf8 | psql "$0" "$1" "$2" "$3" -Xq -v ON_ERROR_STOP=1 -d latin1', @connection ], 'from UTF8 to LATIN1');
is($node->safe_psql('latin1', q(SELECT count(*) FILTER (WHERE outcome = 'claimed'), count(*) > 10 FROM idem_keys AS k, idem_claim(k.actor, k.op, k.key, wait => '0'))),
	'0|t', 'every key is found by its id');
log_is_clean($node, $offset, 'encodings');
$node->stop;
done_testing();
