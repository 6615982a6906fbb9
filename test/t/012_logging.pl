# What reaches the server log: a marker in payload, key, actor, answer, header, checkpoint and evidence goes through every
# error the extension has, with log_min_messages = debug1, and is never logged outside of the client's own statement. A key
# with line breaks cannot forge a log line. Covers A28, A33, A34, G08; invariant 8.
use strict;
use warnings;

use FindBin;
use lib "$FindBin::RealBin/lib";
use IdempotencyTest;
use Test::More;

my $node = new_server('logging', settings => [
	'log_min_messages = debug1', 'log_min_error_statement = panic', 'log_error_verbosity = verbose',
	'log_parameter_max_length = 0', 'log_parameter_max_length_on_error = 0', 'log_min_duration_statement = -1',
	'deadlock_timeout = 100ms', 'max_prepared_transactions = 2' ]);
my $marker = 'wHiStLe';
my $key = "$marker-key-0123456789";
my $offset = log_size($node);
my $s = session($node);
my $other = session($node);
$s->ask(q(
	SELECT FROM idem_set_policy('pay', 'payment');
	SELECT FROM idem_set_policy('order', 'order');
	SELECT FROM idem_set_policy('full', 'default', '{"conflict_detail": "full", "store_payload": "canonical"}');
	SELECT FROM idem_set_policy('quick', 'default', '{"lease": "1 second", "grace": "0 seconds"}');
	SELECT FROM idem_set_policy('small', 'default', '{"body_max": 10}');
	SELECT FROM idem_set_policy('store', 'default', '{"handler_error": "store"}');
	CREATE FUNCTION boom(jsonb) RETURNS jsonb LANGUAGE plpgsql AS $$ BEGIN RAISE EXCEPTION 'boom'; END $$;
	CREATE FUNCTION wrong(jsonb) RETURNS text LANGUAGE sql AS $$ SELECT 'x' $$;
	CREATE FUNCTION many(jsonb) RETURNS SETOF jsonb LANGUAGE sql AS $$ SELECT $1 $$;
	CREATE FUNCTION nothing(jsonb) RETURNS jsonb LANGUAGE sql AS $$ SELECT NULL::jsonb $$;
));
$s->ask(qq(
	\\set m $marker
	\\set k $key
	\\set p {"card":"$marker"}
));

# Each row: the SQLSTATE expected, and what raises it. @M@ is the marker, @K@ a key that has it, @P@ such a payload.
# Prefix 'claim' claims into :id and :token before.
my @errors = (
	[ '22004', q(SELECT idem_claim(NULL, 'o', '@K@', '@P@')) ],
	[ '22004', q(SELECT idem_claim('@M@', NULL, '@K@', '@P@')) ],
	[ '22004', q(SELECT idem_claim('@M@', 'o', NULL, '@P@')) ],
	[ '22023', q(SELECT idem_claim('', 'o', '@K@', '@P@')) ],
	[ '22023', q(SELECT idem_claim(repeat('@M@', 200), 'o', '@K@', '@P@')) ],
	[ '22023', q(SELECT idem_claim('@M@', repeat('@M@', 200), '@K@', '@P@')) ],
	[ '22023', q(SELECT idem_claim('@M@', 'o', '@K@', '@P@', wait => '-1 s')) ],
	[ '22023', q(SELECT idem_claim('@M@', 'o', '@K@', '@P@', wait => '1 day')) ],
	[ '22023', q(SELECT idem_claim('@M@', 'o', '@K@', '@P@', lease => '1 year')) ],
	[ '22023', q(SELECT idem_claim('@M@', 'o', '@K@', '@P@', ttl => '0')) ],
	[ '22023', q(SELECT idem_claim('@M@', 'o', '@K@', '@P@', payload_bytes => '@M@')) ],
	[ '0A000', q(SELECT (idem_claim('@M@', 'o', '@K@ twice', '@P@')).*) ],
	[ '22P02', q(SELECT idem_claim('@M@', 'o', '@K@', '{"card": "@M@", }')) ],
	[ '22P05', q(SELECT idem_claim('@M@', 'o', '@K@', '{"card": "@M@ \u0000"}')) ],
	[ '22004', q(SELECT idem_claim_many('@M@', 'o', ARRAY['@K@', NULL])) ],
	[ '22023', q(SELECT idem_claim_many('@M@', 'o', ARRAY['@K@'], ARRAY['1', '"@M@"']::jsonb[])) ],
	[ '22023', q(SELECT idem_claim_many('@M@', 'o', ARRAY[['@K@'], ['@M@']])) ],
	[ 'ID005', q(SELECT idem_claim_many('@M@', 'o', array_fill('@K@'::text, ARRAY[10001]))) ],
	[ 'ID001', q(claim SELECT idem_complete(:'id', :token - 1, body => '@M@')) ],
	[ 'ID001', q(claim SELECT idem_fail(:'id', :token + 1, 'failed', body => '@M@')) ],
	[ 'ID001', q(claim SELECT idem_extend(:'id', :token + 1)) ],
	[ 'ID001', q(claim SELECT idem_release(:'id', :token + 1)) ],
	[ 'ID001', q(claim SELECT idem_checkpoint(:'id', :token + 1, '"@M@"')) ],
	[ 'ID002', q(claim SELECT idem_complete(:'id', :token, body => 'first @M@'); SELECT idem_complete(:'id', :token, body => 'second @M@')) ],
	[ 'ID002', q(claim SELECT idem_complete(:'id', :token, body => 'first @M@'); SELECT idem_fail(:'id', :token, 'released')) ],
	[ 'ID003', q(BEGIN; SELECT operation_id AS id, token FROM idem_claim('@M@', 'pay', '@K@', '@P@') \gset
		SELECT idem_complete(:'id', :token, body => '@M@')) ],
	[ 'ID003', q(SELECT idem_execute('@M@', 'pay', '@K@', '@P@', 'nothing')) ],
	[ 'ID004', q(BEGIN; SELECT FROM idem_claim('@M@', 'order', '@K@', '@P@'); COMMIT) ],
	[ 'ID005', q(claim SELECT idem_checkpoint(:'id', :token, to_jsonb(repeat('@M@', 20000)))) ],
	[ 'ID007', q(SELECT idem_complete('00000000-0000-8000-8000-000000000000', 1, body => '@M@')) ],
	[ '55000', q(claim SELECT idem_complete(:'id', :token, body => '@M@'); SELECT idem_extend(:'id', :token)) ],
	[ '55000', q(claim SELECT idem_resolve(:'id', 'released', '"@M@"')) ],
	[ '22004', q(claim SELECT idem_resolve(:'id', 'released', NULL)) ],
	[ '22023', q(claim SELECT idem_resolve(:'id', '@M@', '"@M@"')) ],
	[ '22023', q(claim SELECT idem_fail(:'id', :token, '@M@')) ],
	[ '22023', q(claim SELECT idem_complete(:'id', :token, 99, body => '@M@')) ],
	[ '22023', q(claim SELECT idem_complete(:'id', :token, body => '@M@', body_json => '"@M@"')) ],
	[ '22023', q(claim SELECT idem_complete(:'id', :token, body => '@M@', headers => '"@M@"')) ],
	[ '22023', q(claim SELECT idem_complete(:'id', :token, body => '@M@', headers => '[["@M@", {"a": "@M@"}]]')) ],
	[ '22023', q(claim SELECT idem_complete(:'id', :token, body => '@M@', headers => '[["@M@\n", "x"]]')) ],
	[ '22023', q(claim SELECT idem_complete(:'id', :token, body_ref => '@M@', body_sha256 => '@M@')) ],
	[ '25006', q(BEGIN READ ONLY; SELECT idem_claim('@M@', 'o', '@K@', '@P@')) ],
	[ '22004', q(SELECT idem_execute('@M@', 'o', '@K@', '@P@')) ],
	[ '42883', q(SELECT idem_execute('@M@', 'o', '@K@', '@P@', 'nowhere.to_be_found')) ],
	[ '42809', q(SELECT idem_execute('@M@', 'o', '@K@', '@P@', 'many')) ],
	[ '42804', q(SELECT idem_execute('@M@', 'o', '@K@', '@P@', 'wrong')) ],
	[ 'P0001', q(SELECT idem_execute('@M@', 'o', '@K@', '@P@', 'boom')) ],
	[ '',      q(SELECT outcome FROM idem_execute('@M@', 'store', '@K@', '@P@', 'boom')) ],
	[ '22004', q(SELECT idem_lookup('@M@', 'o', NULL)) ],
	[ '',      q(SELECT idem_http_response(idem_claim('@M@', 'o', '@K@ http', '@P@'))) ],
	[ '',      q(SELECT outcome FROM idem_claim('@M@', 'pay', 'short', '@P@')) ],
	[ '',      q(SELECT outcome FROM idem_claim('@M@', 'pay', '@K@ with blanks', '@P@')) ],
	[ '',      q(SELECT outcome FROM idem_claim('@M@', 'o', repeat('@K@', 100), '@P@')) ],
	[ '',      q(SELECT outcome FROM idem_claim('@M@', 'o', '@K@', to_jsonb(repeat('@M@', 200000)))) ],
	[ '',      q(claim SELECT outcome FROM idem_claim('@M@', 'full', :'key', '"another @M@"', wait => '0')) ],
	[ '',      q(claim SELECT outcome, reason FROM idem_claim('@M@', 'full', :'key', '@P@', wait => '50 ms')) ],
	[ '',      q(claim SELECT outcome FROM idem_fail(:'id', :token, 'indeterminate', evidence => '"@M@"'); SELECT outcome FROM idem_resolve(:'id', 'failed', '"@M@"', 402, body => '@M@')) ],
	[ '',      q(claim SELECT outcome FROM idem_complete(:'id', :token, body_bytes => '@M@', headers => '{"ETag": "@M@", "Set-Cookie": "@M@"}')) ],
	[ '23514', q(ALTER TABLE idem_keys ADD CONSTRAINT mine CHECK (attempt < 2);
		claim SELECT FROM idem_release(:'id', :token); SELECT FROM idem_claim('@M@', 'full', :'key', '@P@'), (SELECT :'id') AS x) ],
	[ '55000', q(ALTER TABLE idem_keys DROP CONSTRAINT mine; ALTER TABLE idem_keys ADD COLUMN mine text NOT NULL DEFAULT '';
		SELECT FROM idem_claim('@M@', 'o', '@K@ shape', '@P@')) ],
	[ '',      q(ALTER TABLE idem_keys DROP COLUMN mine; SELECT outcome FROM idem_claim('@M@', 'o', '@K@ shape', '@P@')) ],
	[ '23505', q(CREATE UNIQUE INDEX mine ON idem_keys (actor, (state)) WHERE op = 'unique';
		SELECT outcome FROM idem_claim('@M@', 'unique', '@K@ 1', '@P@'); SELECT outcome FROM idem_claim('@M@', 'unique', '@K@ 2', '@P@')) ],
	[ '27000', q(DROP INDEX mine; CREATE FUNCTION skip() RETURNS trigger LANGUAGE plpgsql AS 'BEGIN RETURN NULL; END';
		CREATE TRIGGER mine BEFORE INSERT ON idem_keys FOR EACH ROW EXECUTE FUNCTION skip();
		SELECT FROM idem_claim('@M@', 'o', '@K@ trigger', '@P@')) ],
	[ '57014', q(DROP TRIGGER mine ON idem_keys; SET statement_timeout = '50 ms'; claim SELECT FROM idem_claim('@M@', 'full', :'key', '@P@', wait => '5 s')) ],
	[ '',      q(RESET statement_timeout) ],
);
my $number = 0;
my %seen;
for my $case (@errors)
{
	my ($state, $sql) = @$case;
	my $n = ++$number;
	my $claim = qq(\\set key '\@K\@ $n'\nSELECT operation_id AS id, token FROM idem_claim('\@M\@', 'full', :'key', '\@P\@') \\gset\n);
	$sql =~ s/\bclaim (?=SELECT)/$claim/;
	$sql =~ s/\@K\@/$key/g, $sql =~ s/\@M\@/$marker/g, $sql =~ s/\@P\@/{"card": "$marker"}/g;
	my (undef, $err) = $s->try($sql);
	my $got = IdempotencyTest::Session::state_of($err);
	$seen{$got} = 1;
	is($got, $state, 'SQLSTATE of ' . ($case->[1] =~ s/\s+/ /gr =~ s/^(.{90}).*/$1/r)) or diag $err;
	$s->try('ROLLBACK') if $sql =~ /^BEGIN/;
	$err =~ s/^LINE \d+:.*\n.*\^$//mg;
	# What psql shows the client names the key nowhere either, but where the server's own JSON parser quotes its input.
	next if $state =~ /^22P0/;
	unlike($err, qr/$marker/, "$state: the client's message does not carry it either") if $err =~ /$marker/;
}

# A deadlock, a serialization failure, a rival that waits.
$s->ask('BEGIN');
$s->ask("SELECT FROM idem_claim('$marker', 'o', '$marker dead 1', '\"$marker\"')");
$other->ask('BEGIN');
$other->ask("SELECT FROM idem_claim('$marker', 'o', '$marker dead 2', '\"$marker\"')");
$s->send("SELECT FROM idem_claim('$marker', 'o', '$marker dead 2', '\"$marker\"', wait => '20 s')");
$other->send("SELECT FROM idem_claim('$marker', 'o', '$marker dead 1', '\"$marker\"', wait => '20 s')");
my @both = map { [ $_, $_->answer ] } $s, $other;
is(join('', map { IdempotencyTest::Session::state_of($_->[2]) } @both), '40P01', 'a deadlock');
$_->ask('ROLLBACK') for $s, $other;
$other->ask('BEGIN ISOLATION LEVEL REPEATABLE READ; SELECT 1');
$s->ask("SELECT FROM idem_claim('$marker', 'o', '$marker serial', '\"$marker\"')");
is($other->sqlstate("SELECT FROM idem_claim('$marker', 'o', '$marker serial', '\"$marker\"')"), '40001', 'a serialization failure');
$other->ask('ROLLBACK');

# Rights, and a stored answer that is gone.
$s->ask(q(CREATE ROLE stranger LOGIN));
is($s->sqlstate("SET ROLE stranger; SELECT idem_claim('$marker', 'o', '$key', '\"$marker\"')"), '42501', 'a stranger');
$s->ask('RESET ROLE');
$s->ask("SELECT FROM idem_claim('$marker', 'o', '$marker gone', '\"$marker\"') AS c, idem_complete(c.operation_id, c.token, body => '$marker')");
$s->ask("DELETE FROM idem_responses WHERE operation_id = (SELECT operation_id FROM idem_keys WHERE key = '$marker gone')");
is($s->sqlstate("SELECT idem_claim('$marker', 'o', '$marker gone', '\"$marker\"')"), 'XX001', 'a lost answer is an error, not an empty one');
$s->ask("UPDATE idem_keys SET actor = 'somebody else' WHERE key = '$marker gone'");
is($s->sqlstate("SELECT idem_claim('$marker', 'o', '$marker gone', '\"$marker\"')"), 'XX001', 'so is an id that belongs to another key');

# A key that would like to look like a log line.
$s->try(qq(SELECT outcome FROM idem_claim('t', 'o', E'x\\n2026-01-01 00:00:00 UTC [1] 00000 FATAL:  $marker forged', '1', wait => '0')));
$s->try(qq(SELECT outcome FROM idem_claim(E'x\\n2026-01-01 00:00:00 UTC [1] 00000 FATAL:  $marker forged', 'o', 'k', '1', wait => '61 s')));
$s->try(qq(SELECT outcome FROM idem_claim('t', E'o\\r\\nFATAL:  $marker forged', 'k', '1', wait => '61 s')));
$s->try(qq(SELECT idem_execute('t', 'o', 'k', '1', E'no\\nFATAL:  $marker forged')));
my ($handler_line) = grep { /forged/ } split /\n/, server_log($node, $offset);
ok(!defined $handler_line || $handler_line !~ /^FATAL/, 'no text of a caller starts a log line');

# The answer to what this is all about. A handler's name is code, not data; nothing above puts the marker into one but the
# forged one.
my @lines = grep { /$marker/ && !/forged/ } split /\n/, server_log($node, $offset);
# The server's own JSON parser quotes what it cannot read, as it does for every jsonb.
@lines = grep { !/22P02|22P05|JSON data, line 1/ } @lines;
is(scalar @lines, 0, 'the marker is nowhere in the log') or diag join "\n", @lines[ 0 .. ($#lines < 9 ? $#lines : 9) ];
for my $state (qw(ID001 ID002 ID003 ID004 ID005 ID007))
{
	ok($seen{$state}, "$state was met");
}
is($node->safe_psql('postgres', 'SELECT count(*) > 0 FROM idem_keys'), 't', 'the server is still there');
$_->quit for $s, $other;
$node->stop;
done_testing();
