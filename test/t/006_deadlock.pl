# Deadlocks: keys against keys, keys against row locks, circles of three, and a waiter beside the circle. Exactly one
# session gets 40P01 within deadlock_timeout + 1 s (and another for a busy machine), the others go on. Covers A26, B07, E08.
use strict;
use warnings;

use FindBin;
use lib "$FindBin::RealBin/lib";
use IdempotencyTest;
use Test::More;

my $node = new_server('deadlock', settings => ['deadlock_timeout = 500ms']);
my $offset = log_size($node);
$node->safe_psql('postgres', 'CREATE TABLE orders (id int PRIMARY KEY, n int); INSERT INTO orders SELECT g, 0 FROM generate_series(1, 9) AS g');
my @s = map { session($node) } 1 .. 6;

sub claim { return "SELECT outcome FROM idem_claim('t', 'o', '$_[0]', '{\"a\": 1}', wait => '30 s')" }
sub row { return "UPDATE orders SET n = n + 1 WHERE id = $_[0]" }

# circle NAME, HELD, WANTED: session i begins and does HELD[i], then all do WANTED[i] at once. Who is answered
# rolls back, so that the next one goes on. Undefined entries take no part.
sub circle
{
	my ($name, $held, $wanted) = @_;
	my @member = grep { defined $held->[$_] } 0 .. $#$held;
	$s[$_]->ask('BEGIN'), $s[$_]->ask($held->[$_]) for @member;
	for my $n (@member)
	{
		$s[$n]->send($wanted->[$n]) if defined $wanted->[$n];
		$node->poll_query_until('postgres', "SELECT wait_event IS NOT NULL AND state = 'active' FROM pg_stat_activity WHERE pid = $s[$n]{pid}")
		  if defined $wanted->[$n] && $n != $member[-1];
	}
	my %open = map { $_ => 1 } grep { defined $wanted->[$_] } @member;
	my (@victims, $took, @odd);
	while (%open)
	{
		my $n = wait_until(sub { my ($done) = grep { $s[$_]->answered } sort keys %open; defined $done ? $done + 1 : 0 }, 40);
		last if !$n;
		delete $open{ --$n };
		my (undef, $err) = $s[$n]->answer;
		my $state = IdempotencyTest::Session::state_of($err);
		if ($state eq '40P01') { push @victims, $n; $took //= $s[$n]{took} }
		elsif ($state ne '') { push @odd, $err }
		$s[$n]->ask('ROLLBACK');
	}
	$s[$_]->ask('ROLLBACK') for grep { !defined $wanted->[$_] } @member;
	is(scalar @victims, 1, "$name: one victim") or diag "victims @victims, others @odd";
	is(scalar @odd, 0, "$name: no other error");
	note sprintf '%s: found after %.2f s', $name, $took // -1;
	cmp_ok($took // 99, '<', 0.5 + 1 + 1, "$name: in time");
	return;
}

for my $round (1, 2)
{
	circle("two keys, $round", [ claim("a$round"), claim("b$round") ], [ claim("b$round"), claim("a$round") ]);
	circle("key and row, $round", [ claim("c$round"), row(1) ], [ row(1), claim("c$round") ]);
	circle("row and key, $round", [ row(1), claim("d$round") ], [ claim("d$round"), row(1) ]);
	circle("three keys, $round", [ map { claim("$_$round") } qw(e f g) ], [ map { claim("$_$round") } qw(f g e) ]);
	circle("key, row, key, $round", [ claim("h$round"), row(2), claim("i$round") ], [ row(2), claim("i$round"), claim("h$round") ]);
}
circle('two rows and a key', [ row(3), row(4), claim('j') ], [ row(4), claim('j'), row(3) ]);
circle('savepoints', [ 'SAVEPOINT a; ' . claim('k'), 'SAVEPOINT a; ' . claim('l') ], [ 'SAVEPOINT b; ' . claim('l'), 'SAVEPOINT b; ' . claim('k') ]);

# Two in a circle through a shared table lock, beside them one that shares the lock and waits for a key that nobody in the
# circle holds: it must not be taken for the one to give up, whichever process id is greater.
for my $order ([ 0, 1, 2 ], [ 0, 2, 1 ])
{
	my ($first, $second, $beside) = @s[@$order];
	my $name = 'beside a circle, ' . ($beside->pid > $second->pid ? 'greater' : 'smaller');
	my $outsider = $s[4];
	$_->ask('BEGIN') for $first, $second, $beside, $outsider;
	$outsider->ask(claim("outside $name"));
	$beside->ask('LOCK TABLE orders IN SHARE MODE');
	$beside->ask(claim("own $name"));
	$beside->send(claim("outside $name"));
	sleepers($node, 1);
	$first->ask(claim("inside $name"));
	$second->ask('LOCK TABLE orders IN SHARE MODE');
	$second->ask(claim("own too $name"));
	$first->send(row(5));
	$node->poll_query_until('postgres', "SELECT cardinality(pg_blocking_pids($first->{pid})) = 2");
	$second->send(claim("inside $name"));
	wait_until(sub { $second->answered || $beside->answered }, 10);
	ok(!$beside->answered, "$name: who waits outside of it waits on");
	$outsider->ask('COMMIT') if !$second->answered;
	$node->safe_psql('postgres', "SELECT pg_cancel_backend($second->{pid})") if !$second->answered;
	my (undef, $err) = $second->answer;
	is(IdempotencyTest::Session::state_of($err), '40P01', "$name: who waits in it gives up");
	cmp_ok($second->{took}, '<', 0.5 + 1 + 1, "$name: in time");
	$second->ask('ROLLBACK');
	$outsider->try('COMMIT');
	$node->safe_psql('postgres', "SELECT pg_cancel_backend($beside->{pid})");
	$beside->answer;
	$beside->ask('ROLLBACK');
	$first->answer;
	$first->ask('COMMIT');
}

# Batches claim in one order, whatever the order of the keys given.
my @batches = map { my $n = $_; join ', ', map { "'batch $_'" } $n % 2 ? 1 .. 200 : reverse 1 .. 200 } 0 .. 3;
for (1 .. 5)
{
	$s[$_]->send("BEGIN; SELECT count(*) FROM idem_claim_many('t', 'o', ARRAY[$batches[$_]], wait => '20 s'); ROLLBACK") for 0 .. 3;
	my @said = map { join '', $s[$_]->answer } 0 .. 3;
	is("@said", '200 200 200 200', "batches in opposite orders do not deadlock, round $_");
}
log_is_clean($node, $offset, 'deadlocks');
sweep($node, 'postgres', 'deadlocks');
$_->quit for @s;
$node->stop;
done_testing();
