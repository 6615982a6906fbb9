# IdempotencyTest.pm: what the TAP tests share: servers, sessions that can be left waiting, and the invariant sweep.
package IdempotencyTest;

use strict;
use warnings;

use Exporter 'import';
use IPC::Run;
use PostgreSQL::Test::Cluster;
use PostgreSQL::Test::Utils;
use Test::More;
use Time::HiRes qw(sleep time);

our @EXPORT = qw(new_server session bench start_bench finish_bench bash wait_until sleepers cpu_seconds log_size
  server_log log_is_clean sweep);

# new_server NAME, settings => [...], preload => 0, extra => [initdb options], streaming => 1, start => 0: a server in
# UTF8 and locale C with the extension in database postgres. The log names the SQLSTATE after the process id.
sub new_server
{
	my ($name, %given) = @_;
	my $node = PostgreSQL::Test::Cluster->new($name);
	$node->init(
		extra => $given{extra} // [ '--encoding=UTF8', '--locale=C' ],
		allows_streaming => $given{streaming} // 0);
	my $preload = $given{preload} // 1 ? 'idempotency' : '';
	$node->append_conf('postgresql.conf', join "\n",
		"shared_preload_libraries = '$preload'",
		"log_line_prefix = '%m [%p] %e %q%a '",
		'log_statement = none',
		'log_lock_waits = on',
		'autovacuum_naptime = 5s',
		'shared_buffers = 32MB',
		'max_connections = 100',
		@{ $given{settings} // [] });
	return $node if defined $given{start} && !$given{start};
	$node->start;
	$node->safe_psql('postgres', 'CREATE EXTENSION idempotency');
	return $node;
}

# session NODE, DATABASE: a psql that goes on after errors.
sub session
{
	my ($node, $database, %given) = @_;
	return IdempotencyTest::Session->new($given{connstr} // $node->connstr($database // 'postgres'), %given);
}

# script_file writes a script for pgbench or psql and returns its name.
my $scripts = 0;

sub script_file
{
	my ($script) = @_;
	my $file = "$PostgreSQL::Test::Utils::tmp_check/script_$$" . '_' . ++$scripts . '.sql';
	open my $out, '>', $file or die "$file: $!";
	print $out $script;
	close $out;
	return $file;
}

# start_bench NODE, SCRIPT, clients => n, and transactions => n (each) or seconds => n, protocol => 'prepared',
# define => {name => value}: pgbench in the background.
sub start_bench
{
	my ($node, $script, %given) = @_;
	my $run = { out => '', err => '' };
	my @command = (
		'pgbench', '-n', '-c', $given{clients}, '-j', $given{threads} // 2, '-M', $given{protocol} // 'prepared', '-f',
		script_file($script),
		defined $given{seconds} ? ('-T', $given{seconds}) : ('-t', $given{transactions}),
		map { ('-D', "$_=$given{define}{$_}") } sort keys %{ $given{define} // {} });
	$run->{handle} = IPC::Run::start([ @command, $given{connstr} // $node->connstr($given{database} // 'postgres') ],
		'<', \undef, '>', \$run->{out}, '2>', \$run->{err}, IPC::Run::timeout(180));
	return $run;
}

# finish_bench RUN waits for it; true when no client failed.
sub finish_bench
{
	my ($run) = @_;
	my $fine = $run->{handle}->finish;
	note $run->{err} if !$fine;
	return $fine;
}

# bench is both.
sub bench { return finish_bench(start_bench(@_)) }

# bash SCRIPT, %ENV: a shell in the background.
sub bash
{
	my ($script, %environment) = @_;
	local @ENV{ keys %environment } = values %environment;
	my $run = { out => '', err => '' };
	$run->{handle} = IPC::Run::start([ 'bash', '-c', $script ], '<', \undef, '>', \$run->{out}, '2>', \$run->{err},
		IPC::Run::timeout(180));
	return $run;
}

# wait_until TEST, SECONDS: polls a sub until it is true; what it said last.
sub wait_until
{
	my ($test, $seconds) = @_;
	my $end = time + ($seconds // 30);
	while (1)
	{
		my $said = $test->();
		return $said if $said || time > $end;
		sleep 0.01;
	}
}

# sleepers NODE, NUMBER: waits until so many backends sleep in a claim; true when they do.
sub sleepers
{
	my ($node, $number) = @_;
	my $asker = session($node);
	my $found = wait_until(sub {
		my $count = $asker->ask(
			q(SELECT count(*) FROM pg_stat_activity WHERE wait_event = 'Extension' AND backend_type = 'client backend'));
		return $count == $number;
	});
	$asker->quit;
	return $found;
}

# cpu_seconds PID...: processor time these processes have used. schedstat counts nanoseconds; the ticks of stat would
# round the little that a sleeper uses down to nothing.
sub cpu_seconds
{
	my $nanoseconds = 0;
	$nanoseconds += (split ' ', PostgreSQL::Test::Utils::slurp_file("/proc/$_/schedstat"))[0] for @_;
	return $nanoseconds / 1e9;
}

# log_size NODE: how long the server log is now, for server_log and log_is_clean.
sub log_size { return -s $_[0]->logfile }

# server_log NODE, OFFSET: the log from there on.
sub server_log { return PostgreSQL::Test::Utils::slurp_file($_[0]->logfile, $_[1] // 0) }

# log_is_clean NODE, OFFSET, NAME, SQLSTATES...: one assertion, that none of what must never happen was logged.
sub log_is_clean
{
	my ($node, $offset, $name, @also) = @_;
	my $bad = join '|', qw(23505 XX000 XX001 XX002 57P02), @also;
	my @lines = grep { /\[\d+\] (?:$bad) |PANIC|TRAP|terminated by signal|WARNING:  (?!terminating|there is|PID \d+ is not)/ } split /\n/,
	  server_log($node, $offset);
	is(scalar @lines, 0, "$name: nothing in the log that must never happen") or diag join "\n", @lines[ 0 .. ($#lines < 9 ? $#lines : 9) ];
	return;
}

# sweep NODE, DATABASE, NAME: one assertion with everything that must hold between transactions, whatever went on before.
sub sweep
{
	my ($node, $database, $name) = @_;
	my $found = $node->safe_psql($database, q(
		SET enable_indexscan = off; SET enable_bitmapscan = off; SET enable_indexonlyscan = off;
		SELECT 'two rows for one key: ' || count(*) FROM (
			SELECT FROM idem_keys GROUP BY actor, op, key HAVING count(*) > 1) AS twice HAVING count(*) > 0;
		SELECT 'two rows for one id: ' || count(*) FROM (
			SELECT FROM idem_keys GROUP BY operation_id HAVING count(*) > 1) AS twice HAVING count(*) > 0;
		SELECT 'unfinished without a hint: ' || count(*) FROM idem_keys AS k WHERE state IN ('i', 'u')
			AND NOT EXISTS (SELECT FROM idem_leases AS l WHERE l.operation_id = k.operation_id) HAVING count(*) > 0;
		SELECT 'ended without an answer: ' || count(*) FROM idem_keys AS k WHERE state IN ('c', 'f')
			AND NOT EXISTS (SELECT FROM idem_responses AS r WHERE r.operation_id = k.operation_id AND r.token = k.token)
			HAVING count(*) > 0;
		SELECT 'token not below 2^53: ' || count(*) FROM idem_keys WHERE token NOT BETWEEN 1 AND 9007199254740991 HAVING count(*) > 0;
		SELECT 'ended without a time: ' || count(*) FROM idem_keys WHERE state IN ('c', 'f')
			AND (completed_at IS NULL OR expires_at IS NULL OR expires_at <= completed_at) HAVING count(*) > 0;
		SELECT 'replayed otherwise than stored: ' || count(*)
		  FROM idem_keys AS k JOIN idem_responses AS r USING (operation_id, token), idem_lookup(k.actor, k.op, k.key) AS l
		 WHERE k.state IN ('c', 'f') AND k.expires_at > clock_timestamp() + interval '10 s'
		   AND (l.outcome, l.status, l.body, l.body_bytes, l.headers) IS DISTINCT FROM ('replay', r.status, r.body, r.body_bytes, r.headers)
			HAVING count(*) > 0;
		SELECT 'advisory locks: ' || count(*) FROM pg_locks WHERE locktype = 'advisory' HAVING count(*) > 0;
	));
	is($found, '', "$name: the invariants hold");
	return;
}

# A psql in the background. Statements are sent and their answers fetched apart, so that a session can be left waiting.
package IdempotencyTest::Session;

use strict;
use warnings;

use Time::HiRes qw(sleep time);

my $LONGEST = 120;

sub new
{
	my ($class, $connstr, %given) = @_;
	my $self = bless { in => '', out => '', err => '', asked => 0 }, $class;
	$self->{run} = IPC::Run::start(
		[ 'psql', '-XAtq', '-F', '|', '-v', 'VERBOSITY=verbose', '-v', 'ON_ERROR_STOP=0', '-f', '-', '-d', $connstr ],
		'<', \$self->{in}, '>', \$self->{out}, '2>', \$self->{err});
	$self->{pid} = $self->ask('SELECT pg_backend_pid()') unless $given{no_wait};
	return $self;
}

sub pid { return $_[0]{pid} }

# send SQL: starts it. What is longer than a pipe holds goes through a file.
sub send
{
	my ($self, $sql) = @_;
	$sql = '\i ' . IdempotencyTest::script_file("$sql\n;\n") if length $sql > 30000;
	my $mark = 'answered ' . ++$self->{asked};
	$self->{sent_at} = Time::HiRes::time;
	$self->{in} .= "$sql\n;\n\\echo '$mark'\n\\warn '$mark'\n";
	eval { $self->{run}->pump_nb };
	return $self;
}

# answered: true when what was sent last is done; the connection may be gone.
sub answered
{
	my ($self) = @_;
	return 1 if $self->{gone};
	eval { $self->{run}->pump_nb; 1 } or $self->{gone} = 1;
	my $mark = "answered $self->{asked}\n";
	return 1 if $self->{out} =~ /$mark/ && $self->{err} =~ /$mark/;
	$self->{gone} = 1 if !$self->{run}->pumpable;
	return $self->{gone};
}

# answer: waits; what psql printed, and in a list also the errors. `took` is the time since it was sent, in seconds.
sub answer
{
	my ($self) = @_;
	my $end = time + $LONGEST;
	until ($self->answered)
	{
		die "no answer in $LONGEST s\n" if time > $end;
		sleep 0.002;
	}
	$self->{took} = Time::HiRes::time - $self->{sent_at};
	my ($out, $err) = ($self->{out}, $self->{err});
	$self->{out} = $self->{err} = '';
	s/answered \d+\n//g, s/\n\z// for $out, $err;
	return wantarray ? ($out, $err) : $out;
}

# try SQL: answer and errors.
sub try
{
	my ($self, $sql) = @_;
	$self->send($sql);
	my ($out, $err) = $self->answer;
	return ($out, $err);
}

# ask SQL: the answer; an error ends the test.
sub ask
{
	my ($self, $sql) = @_;
	my ($out, $err) = $self->try($sql);
	die "$sql\n$err\n" if $err =~ /ERROR|FATAL|PANIC|server closed|connection/ || $self->{gone};
	return $out;
}

# sqlstate SQL: the SQLSTATE it fails with, or ''.
sub sqlstate
{
	my ($self, $sql) = @_;
	my ($out, $err) = $self->try($sql);
	return state_of($err);
}

# state_of ERRORS: the first SQLSTATE in them.
sub state_of { return $_[0] =~ /(?:ERROR|FATAL):  (\w{5}):/ ? $1 : '' }

sub quit
{
	my ($self) = @_;
	$self->{in} .= "\\q\n";
	eval { $self->{run}->finish };
	return;
}

1;
