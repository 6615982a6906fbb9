# An immediate stop between every pair of steps of the lease flow: what was committed is there after the restart, what
# was not is gone, no key is claimed twice, and the holder of a token can still end its work. Ops of the payment preset
# keep their promise whatever synchronous_commit the session has. Covers A02, A23, A31, B06, B08, B12; invariants 1, 2.
use strict;
use warnings;

use FindBin;
use lib "$FindBin::RealBin/lib";
use IdempotencyTest;
use Test::More;

# A long wal_writer_delay, so that nothing but the commit itself makes it durable.
my $node = new_server('crash', settings => [ 'wal_writer_delay = 10s', 'max_prepared_transactions = 5' ]);
$node->safe_psql('postgres', q(
	SELECT FROM idem_set_policy('pay', 'payment');
	SELECT FROM idem_set_policy('plain', 'default', '{"mode": "lease", "lease": "1 hour"}');
	SELECT FROM idem_set_policy('order', 'order');
	CREATE TABLE charges (key text);
));

# Each life is one key: what is done to it before the server stops (SQL; @C@ claims into the psql variables id and token,
# the rest names them; BEGIN without COMMIT leaves the transaction open), and what is found afterwards: the outcome of a
# claim of the same request, the SQLSTATE of completing with the token handed out, and how many charges were made.
my $complete = q(SELECT FROM idem_complete(:'id', :token, 201, body => 'charged', headers => '[["ETag", "x"], ["Link", "a"], ["Link", "b"]]'));
my $charge = q(INSERT INTO charges VALUES (:'key'));
my @lives = (
	[ 'nothing committed',           "BEGIN; \@C\@",                                              'claimed',       'ID007', 0 ],
	[ 'claim in a savepoint',        "BEGIN; SAVEPOINT s; \@C\@ ROLLBACK TO s; COMMIT",           'claimed',       'ID007', 0 ],
	[ 'claimed',                     "\@C\@",                                                     'in_progress',   '',      0 ],
	[ 'claimed, work open',          "\@C\@ BEGIN; $charge",                                      'in_progress',   '',      0 ],
	[ 'worked',                      "\@C\@ $charge",                                             'in_progress',   '',      1 ],
	[ 'worked, complete open',       "\@C\@ $charge; BEGIN; $complete",                           'in_progress',   '',      1 ],
	[ 'work and complete open',      "\@C\@ BEGIN; $charge; $complete",                           'in_progress',   '',      0 ],
	[ 'completed',                   "\@C\@ $charge; $complete",                                  'replay',        '',      1 ],
	[ 'completed with the work',     "\@C\@ BEGIN; $charge; $complete; COMMIT",                   'replay',        '',      1 ],
	[ 'extended, open',              "\@C\@ BEGIN; SELECT FROM idem_extend(:'id', :token, '2 h')", 'in_progress',  '',      0 ],
	[ 'checkpoint',                  "\@C\@ SELECT FROM idem_checkpoint(:'id', :token, '7')",     'in_progress',   '',      0 ],
	[ 'release open',                "\@C\@ BEGIN; SELECT FROM idem_release(:'id', :token)",      'in_progress',   '',      0 ],
	[ 'released',                    "\@C\@ SELECT FROM idem_release(:'id', :token)",             'claimed',       'ID001', 0 ],
	[ 'failed',                      "\@C\@ SELECT FROM idem_fail(:'id', :token, 'failed', 402)", 'replay',        'ID002', 0 ],
	[ 'unknown',                     "\@C\@ SELECT FROM idem_fail(:'id', :token, 'indeterminate')", 'indeterminate', '',    0 ],
	[ 'unknown, resolve open',       "\@C\@ SELECT FROM idem_fail(:'id', :token, 'indeterminate'); BEGIN; SELECT FROM idem_resolve(:'id', 'released', '1')",
	                                                                                              'indeterminate', '',      0 ],
	[ 'resolved',                    "\@C\@ SELECT FROM idem_fail(:'id', :token, 'indeterminate'); SELECT FROM idem_resolve(:'id', 'released', '1')",
	                                                                                              'claimed',       'ID001', 0 ],
	[ 'resumed, open',               "\@C\@ BEGIN; SELECT FROM idem_claim('t', :'op', :'key', '{\"a\": 1}', attempt_id => '11111111-1111-1111-1111-111111111111')",
	                                                                                              'in_progress',   '',      0 ],
	[ 'resumed',                     "\@C\@ SELECT FROM idem_claim('t', :'op', :'key', '{\"a\": 1}', attempt_id => '11111111-1111-1111-1111-111111111111')",
	                                                                                              'in_progress',   'ID001', 0 ],
	[ 'claim prepared',              "BEGIN; \@C\@ PREPARE TRANSACTION :'key'",                   'in_progress',   'ID007', 0 ],
);

# stop_in_the_middle OP, SYNCHRONOUS_COMMIT lives all lives at once, each in a session of its own.
sub stop_in_the_middle
{
	my ($op, $synchronous_commit) = @_;
	my $name = "$op, synchronous_commit = $synchronous_commit";
	my (@sessions, @held);
	for my $n (0 .. $#lives)
	{
		my $key = sprintf '%s-%s-key-%04d-000', $op, $synchronous_commit, $n;
		my $claim = q(SELECT operation_id AS id, token FROM idem_claim('t', :'op', :'key', '{"a": 1}', attempt_id => '11111111-1111-1111-1111-111111111111') \gset) . "\n";
		(my $life = $lives[$n][1]) =~ s/\@C\@ ?/$claim/;
		my $session = session($node);
		$session->ask("SET synchronous_commit = $synchronous_commit");
		$session->ask("\\set key $key\n\\set op $op\n$life");
		push @held, [ $key, split /\|/, $session->ask(q(\echo :id|:token)) ];
		push @sessions, $session;
	}
	$node->stop('immediate');
	$_->quit for @sessions;
	$node->start;

	my $asker = session($node);
	for my $n (0 .. $#lives)
	{
		my ($title, undef, $outcome, $state, $charges) = @{ $lives[$n] };
		my ($key, $id, $token) = @{ $held[$n] };
		my @found = (
			$asker->ask("SELECT count(*) FROM charges WHERE key = '$key'"),
			$asker->ask("BEGIN; SELECT outcome FROM idem_claim('t', '$op', '$key', '{\"a\": 1}', wait => '0'); ROLLBACK"),
			$asker->sqlstate("\\set id $id\n\\set token $token\n$complete"));
		is("@found", "$charges $outcome $state", "$name: $title: charges, next claim, late complete");
		# However it ended, from now on there is one answer, or nobody owns the key.
		next if $state ne '';
		is($asker->ask("SELECT outcome, status, headers, body FROM idem_claim('t', '$op', '$key', '{\"a\": 1}')"),
			'replay|201|[["ETag", "x"], ["Link", "a"], ["Link", "b"]]|charged', "$name: $title: replayed");
	}
	is($asker->ask("SELECT checkpoint FROM idem_lookup('t', '$op', '" . $held[10][0] . "')"), '', 'a completed key has no checkpoint');
	my ($prepared) = $held[$#lives];
	$asker->ask("COMMIT PREPARED '$prepared->[0]'");
	is($asker->sqlstate("\\set id $prepared->[1]\n\\set token $prepared->[2]\n$complete"), '',
		"$name: a prepared claim outlives the crash, and its token holds");
	$asker->quit;
	return;
}

my $offset = log_size($node);
stop_in_the_middle('plain', 'on');
stop_in_the_middle('pay', 'off');

# One transaction for everything: all or nothing.
my $session = session($node);
$session->ask(q(BEGIN; SELECT FROM idem_claim('t', 'order', 'order-key-0000000001', '{"a": 1}') AS c, idem_complete(c.operation_id, c.token, body => 'one')));
$session->ask(q(INSERT INTO charges VALUES ('order 1')));
my $second = session($node);
$second->ask(q(BEGIN; SELECT FROM idem_claim('t', 'order', 'order-key-0000000002', '{"a": 1}') AS c, idem_complete(c.operation_id, c.token, body => 'two')));
$second->ask(q(INSERT INTO charges VALUES ('order 2'); COMMIT));
$node->stop('immediate');
$_->quit for $session, $second;
$node->start;
is($node->safe_psql('postgres', q(SELECT key FROM charges WHERE key LIKE 'order%')), 'order 2',
	'one transaction: only what was committed happened');
is($node->safe_psql('postgres', q(SELECT outcome, body FROM idem_lookup('t', 'order', 'order-key-0000000001') UNION ALL
	SELECT outcome, body FROM idem_lookup('t', 'order', 'order-key-0000000002'))), "|\nreplay|two", 'and the keys agree');

# alone SQL runs it in a session without synchronous commits as the last thing before an immediate stop, so that no other
# commit makes it durable by the way.
sub alone
{
	my ($sql) = @_;
	my $alone = session($node);
	$alone->ask('SET synchronous_commit = off');
	my $answer = $alone->ask($sql);
	$node->stop('immediate');
	$alone->quit;
	$node->start;
	return $answer;
}

my $paid = q('t', 'pay', 'pay-key-000000000001');
my ($id, $token) = split /\|/, alone("SELECT operation_id, token FROM idem_claim($paid, '{\"a\": 1}')");
is($node->safe_psql('postgres', "SELECT outcome FROM idem_lookup($paid)"), 'in_progress',
	'payment, synchronous_commit = off: the claim is durable');
alone("SELECT FROM idem_checkpoint('$id', $token, '{\"charge\": 1}')");
is($node->safe_psql('postgres', "SELECT checkpoint FROM idem_lookup($paid)"), '{"charge": 1}', 'so is a checkpoint');
alone("SELECT FROM idem_complete('$id', $token, body => 'paid')");
is($node->safe_psql('postgres', "SELECT outcome, body FROM idem_lookup($paid)"), 'replay|paid', 'and the answer');

# Without the preset a session may give durability away.
alone(q(SELECT FROM idem_claim('t', 'plain', 'may vanish', '{"a": 1}')));
note 'a claim of an op without forced commits, synchronous_commit = off, after an immediate stop: '
  . ($node->safe_psql('postgres', q(SELECT coalesce(outcome, 'lost') FROM idem_lookup('t', 'plain', 'may vanish'))));

log_is_clean($node, $offset, 'crashes');
sweep($node, 'postgres', 'crashes');
$node->stop;
done_testing();
