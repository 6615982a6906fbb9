# 020_canonicalize: 10,000 random documents have the canonical text that npm's canonicalize gives them, plainly and under
# options, and hash alike as text and as jsonb. The package is installed here, from the npm registry. Covers A16 A17 B11.
use strict;
use warnings;

use IdempotencyTest;
use PostgreSQL::Test::Utils;
use Test::More;

my $DOCUMENTS = 10000;
my $PACKAGE = 'canonicalize@4.0.0';
my $seed = $ENV{CANONICALIZE_SEED} // time;

my $tmp = PostgreSQL::Test::Utils::tempdir;
my $build = "$ENV{TESTDIR}/build/npm";
my $module = "$build/node_modules/canonicalize/lib/canonicalize.js";
{
	local $ENV{HOME} = $tmp;
	my ($out, $err) = ('', '');
	IPC::Run::run([ 'npm', 'install', '--no-save', '--no-audit', '--no-fund', '--prefix', $build, $PACKAGE ],
		'>', \$out, '2>', \$err, IPC::Run::timeout(180));
	ok(-e $module, "npm installs $PACKAGE") or die "$out$err";
}

my $err = '';
ok(IPC::Run::run([ 'node', "$ENV{TESTDIR}/test/t/lib/documents.mjs", $module, $DOCUMENTS, $seed ], '>', "$tmp/rows", '2>', \$err),
	"documents of seed $seed") or diag $err;

my $node = new_server('canonicalize');
$node->safe_psql('postgres', qq(
	CREATE TABLE raw (json text, canonical text, options text, changed text, is_exact text);
	COPY raw FROM '$tmp/rows';
	CREATE FUNCTION plain(base64 text) RETURNS text IMMUTABLE LANGUAGE sql AS \$\$SELECT convert_from(decode(base64, 'base64'), 'UTF8')\$\$;
	CREATE TABLE document AS SELECT plain(json) AS json, plain(canonical) AS canonical, plain(options)::jsonb AS options,
		plain(changed) AS changed, plain(is_exact)::boolean AS is_exact FROM raw;
	CREATE FUNCTION paths(list jsonb) RETURNS text[] IMMUTABLE LANGUAGE sql AS \$\$SELECT ARRAY(SELECT jsonb_array_elements_text(list))\$\$;
	CREATE FUNCTION under(payload jsonb, o jsonb) RETURNS text IMMUTABLE LANGUAGE sql AS \$\$
		SELECT idem_canonical(payload, (o ->> 'trim_strings')::boolean, (o ->> 'nfc_strings')::boolean, paths(o -> 'ignore_paths'),
			strip_nulls => (o ->> 'strip_nulls')::boolean, numbers => 'double', unordered_paths => paths(o -> 'unordered_paths'))\$\$;
));

is($node->safe_psql('postgres', 'SELECT count(*) FROM document'), $DOCUMENTS, 'all are there');

# none asserts that no document meets a condition, and shows one that does.
sub none
{
	my ($condition, $name) = @_;
	my $found = $node->safe_psql('postgres', "SELECT count(*) || ' of seed $seed, as ' || min(json) FROM document WHERE $condition HAVING count(*) > 0");
	is($found, '', $name);
	return;
}

none(q(idem_canonical(json::jsonb, numbers => 'double') <> canonical), 'numbers => double is RFC 8785');
none(q(is_exact AND idem_canonical(json::jsonb) <> canonical), 'the default form is RFC 8785 where no number has more digits');
none(q(is_exact <> idem_payload_jcs_safe(json::jsonb)), 'idem_payload_jcs_safe tells which');
none(q(under(json::jsonb, options) <> changed), 'options change the value first and nothing else');
none(q(idem_hash_text(json, numbers => 'double') <> idem_hash(canonical::jsonb)), 'text, value and canonical text hash alike');
none(q(idem_hash(json::jsonb, 'sha256', numbers => 'double') <> sha256(convert_to(canonical, 'UTF8'))), 'sha256 is that of the text');
cmp_ok($node->safe_psql('postgres', 'SELECT count(*) FROM document WHERE is_exact'), '>', $DOCUMENTS / 20, 'some have exact numbers');
cmp_ok($node->safe_psql('postgres', 'SELECT count(*) FROM document WHERE NOT is_exact'), '>', $DOCUMENTS / 20, 'some have not');
cmp_ok($node->safe_psql('postgres', 'SELECT count(*) FROM document WHERE changed <> canonical'), '>', $DOCUMENTS / 5, 'options change many');

$node->stop;
done_testing();
