# The outbox over time: relays woken by commits, polling without preload, killed relays and a killed server, and a storm
# of writers that abort and relays that nack and vanish, in which nothing is lost, doubled by ack or out of order.
# Covers C01, C02, C03, C07, C08, C09, C12, C14.
use strict;
use warnings;

use FindBin;
use lib "$FindBin::RealBin/lib";
use IdempotencyTest;
use Test::More;
use Time::HiRes qw(sleep time);

my $node = new_server('outbox', settings => ['max_prepared_transactions = 5']);
my $offset = log_size($node);
my $relay = session($node);
my $writer = session($node);

# What is put wakes who waits, once it is committed; an abort delivers nothing.
my $fetch = q(SELECT payload FROM idem_outbox_fetch('relay', 10, wait => '20 s'));
$writer->ask('BEGIN');
$writer->ask(q(SELECT FROM idem_outbox_put('t', 'order', '1')));
$relay->send($fetch);
ok(sleepers($node, 1), 'a relay that finds nothing sleeps');
my $cpu = cpu_seconds($relay->pid);
sleep 2;
cmp_ok(cpu_seconds($relay->pid) - $cpu, '<', 0.1, 'and burns nothing');
$writer->ask('COMMIT');
my $committed = time;
is($relay->answer, '1', 'it is woken by the commit');
cmp_ok(time - $committed, '<', 0.5, 'at once');
$relay->send(q(SELECT payload FROM idem_outbox_fetch('relay', 10, wait => '1 s')));
$writer->ask(q(BEGIN; SELECT FROM idem_outbox_put('t', 'order', '2'); ROLLBACK));
is($relay->answer, '', 'an aborted message is never delivered');
cmp_ok($relay->{took}, '>', 0.9, 'and wait is kept');
$relay->send($fetch);
sleepers($node, 1);
$writer->ask(q(BEGIN; SELECT FROM idem_outbox_put('t', 'order', '3'); PREPARE TRANSACTION 'p'));
$writer->ask(q(COMMIT PREPARED 'p'));
is($relay->answer, '3', 'a prepared transaction delivers when it is committed');
cmp_ok($relay->{took}, '<', 5, 'within the longest sleep');
$relay->send($fetch);
sleepers($node, 1);
$writer->ask('SELECT pg_cancel_backend(' . $relay->pid . ')');
is(IdempotencyTest::Session::state_of(($relay->answer)[1]), '57014', 'a waiting relay can be cancelled');

# An ack wakes who waits for the next message of its key.
$writer->ask(q(SELECT count(*) FROM generate_series(1, 2) AS n, idem_outbox_put('t', 'key', to_jsonb(n), ordering_key => 'k')));
my $lease = $writer->ask(q(SELECT id, token FROM idem_outbox_fetch('other', 1, topics => '{key}')));
my ($id, $token) = split /\|/, $lease;
$relay->send(q(SELECT payload FROM idem_outbox_fetch('relay', 10, topics => '{key}', wait => '20 s')));
sleepers($node, 1);
$writer->ask("SELECT idem_outbox_ack('{$id}', $token)");
is($relay->answer, '2', 'an ack wakes who waits for the key');
cmp_ok($relay->{took}, '<', 5, 'soon');

# Unrelated messages do not shorten a back-off (C08).
$writer->ask(q(SELECT FROM idem_outbox_put('t', 'slow', '1')));
$writer->ask(q(SELECT a.outcome FROM idem_outbox_fetch('other', 1, topics => '{slow}') AS f, idem_outbox_nack(f.id, f.token, '2 s') AS a));
$relay->send(q(SELECT attempt FROM idem_outbox_fetch('relay', 1, topics => '{slow}', wait => '20 s')));
$writer->ask(q(SELECT FROM idem_outbox_put('t', 'noise', '1'))) for 1 .. 20;
is($relay->answer, '2', 'a message that backs off comes again');
cmp_ok($relay->{took}, '>', 1.5, 'not before its time');

# No NOTIFY, no lock that commits would queue for (C12).
is($node->safe_psql('postgres', q(SELECT pg_notification_queue_usage())), '0', 'nothing is notified');

# A relay that is killed loses its lease, nothing else.
my $doomed = session($node);
$writer->ask(q(SELECT count(*) FROM generate_series(1, 5) AS n, idem_outbox_put('t', 'kill', to_jsonb(n))));
is($doomed->ask(q(SELECT count(*) FROM idem_outbox_fetch('doomed', 10, '2 s', topics => '{kill}'))), '5', 'leased');
kill 9, $doomed->{run}{KIDS}[0]{PID};
is($writer->ask(q(SELECT count(*) FROM idem_outbox_fetch('heir', 10, topics => '{kill}'))), '0', 'still leased');
is($writer->ask(q(SELECT count(*), min(attempt) FROM idem_outbox_fetch('heir', 10, topics => '{kill}', wait => '10 s'))), '5|2', 'then another relay has them');
log_is_clean($node, $offset, 'outbox');

# A killed server forgets nothing that was committed, and no lease (C14).
$writer->ask(q(SELECT count(*) FROM generate_series(1, 100) AS n, idem_outbox_put('t', 'crash', to_jsonb(n))));
$writer->ask(q(SELECT FROM idem_outbox_fetch('r', 40, '1 h', topics => '{crash}')));
$_->quit for $relay, $writer;
$node->stop('immediate');
$node->start;
is($node->safe_psql('postgres', q(SELECT count(*) FROM idem_outbox_fetch('r', 1000, topics => '{crash}'))), '60', 'after a crash the rest is there');
is($node->safe_psql('postgres', q(SELECT count(*) FROM idem_outbox_queue WHERE topic = 'crash')), '100', 'and the leases hold');
$node->safe_psql('postgres', 'DELETE FROM idem_outbox_queue');

# The storm. Writers count up a row of their key and put the number, some of them before the row, and abort one time in
# five; relays deliver in order and stop a key at a nack, and one turn in twenty ends without a word.
$offset = log_size($node);
$node->safe_psql('postgres', q(
	CREATE TABLE counters (k int PRIMARY KEY, n int NOT NULL) WITH (fillfactor = 20);
	INSERT INTO counters SELECT k, 0 FROM generate_series(1, 12) AS k;
	CREATE TABLE sent (k int, n int);
	CREATE TABLE delivered (place bigserial, relay int, k int, n int, id uuid);
	SELECT idem_outbox_set_topic('storm', 1000);
	CREATE FUNCTION write(k int, aborts boolean, early boolean) RETURNS void LANGUAGE plpgsql AS $$
	DECLARE number int;
	BEGIN
		IF early THEN
			PERFORM idem_outbox_put('t', 'early', '{}', ordering_key => write.k::text);
		END IF;
		UPDATE counters c SET n = c.n + 1 WHERE c.k = write.k RETURNING c.n INTO number;
		PERFORM idem_outbox_put('t' || write.k % 3, 'storm', jsonb_build_object('k', write.k, 'n', number), ordering_key => write.k::text);
		IF aborts THEN RAISE 'aborted'; END IF;
		INSERT INTO sent VALUES (write.k, number);
	END $$;
	CREATE PROCEDURE try_write(k int, aborts boolean, early boolean) LANGUAGE plpgsql AS $$
	BEGIN
		PERFORM write(k, aborts, early);
	EXCEPTION WHEN raise_exception THEN NULL;
	END $$;
	CREATE FUNCTION deliver(relay int, message uuid, lease bigint, k int, n int) RETURNS boolean LANGUAGE plpgsql AS $$
	BEGIN
		IF idem_outbox_ack(ARRAY[message], lease) = 1 THEN
			INSERT INTO delivered (relay, k, n, id) VALUES (relay, k, n, message);
		END IF;
		RETURN true;
	EXCEPTION WHEN SQLSTATE 'ID001' THEN
		RETURN false;
	END $$;
	CREATE TYPE leased AS (id uuid, token bigint, lease_until timestamptz, ordering_key text, k int, n int);
	CREATE PROCEDURE turn(relay int) LANGUAGE plpgsql AS $$
	DECLARE m leased; stopped text[] := '{}'; messages leased[]; dice float;
	BEGIN
		messages := ARRAY(SELECT (f.id, f.token, f.lease_until, f.ordering_key, f.payload ->> 'k', f.payload ->> 'n')::leased
			FROM idem_outbox_fetch('relay ' || relay, 20, '1 s', ARRAY['storm']) AS f);
		COMMIT;
		IF messages = '{}' OR random() < 0.05 THEN RETURN; END IF;
		FOREACH m IN ARRAY messages LOOP
			CONTINUE WHEN m.ordering_key = ANY (stopped);
			dice := random();
			IF dice < 0.05 AND m.lease_until > clock_timestamp() + interval '100 ms' THEN
				PERFORM idem_outbox_nack(m.id, m.token, '10 ms');
				stopped := stopped || m.ordering_key;
			ELSIF NOT deliver(relay, m.id, m.token, m.k, m.n) THEN
				stopped := stopped || m.ordering_key;
			END IF;
			COMMIT;
		END LOOP;
	END $$;
));
my $writers = start_bench($node, <<'SQL', clients => 8, seconds => 12, protocol => 'simple');
\set k random(1, 12)
\set aborts random(1, 5)
\set early random(1, 3)
CALL try_write(:k, :aborts = 1, :early = 1);
SQL
my $relays = start_bench($node, <<'SQL', clients => 8, seconds => 15, protocol => 'simple');
CALL turn(:client_id);
SQL
ok(finish_bench($writers), 'no writer met an error');
ok(finish_bench($relays), 'no relay met an error');
my $drain = session($node);
my $left = wait_until(sub {
	$drain->ask('CALL turn(99)');
	return !$drain->ask(q(SELECT count(*) FROM idem_outbox_queue WHERE topic = 'storm'));
}, 60);
ok($left, 'everything is delivered in the end');
note $drain->ask('SELECT count(*) FROM sent') . ' sent, by relay: ' . $drain->ask('SELECT string_agg(n::text, $$ $$) FROM (SELECT count(*) AS n FROM delivered GROUP BY relay) AS r');
is($drain->ask(q(SELECT count(*) FROM (SELECT k, n FROM sent EXCEPT ALL SELECT k, n FROM delivered) AS lost)), '0', 'nothing is lost');
is($drain->ask(q(SELECT count(*) FROM (SELECT k, n FROM delivered EXCEPT ALL SELECT k, n FROM sent) AS extra)), '0', 'nothing is acked twice or out of an abort');
is($drain->ask(q(SELECT count(*) FROM (SELECT n - lag(n, 1, 0) OVER (PARTITION BY k ORDER BY place) AS step FROM delivered) AS s WHERE step <> 1)), '0', 'every key is delivered in the order of its commits');
cmp_ok($drain->ask('SELECT count(DISTINCT relay) FROM delivered'), '>=', 8, 'all relays had a share');
is($drain->ask(q(SELECT count(*) FROM idem_outbox_queue AS a JOIN idem_outbox_queue AS b USING (message_id) WHERE a.ctid <> b.ctid)), '0', 'one row a message');
is($drain->ask('SELECT pg_notification_queue_usage()'), '0', 'no NOTIFY in the storm');
log_is_clean($node, $offset, 'storm', '40P01');
$drain->quit;
$node->stop;

# Without preload relays poll.
my $plain = new_server('outbox_plain', preload => 0);
my $poller = session($plain);
my $other = session($plain);
$poller->send(q(SELECT payload FROM idem_outbox_fetch('relay', 10, wait => '20 s')));
sleep 0.5;
$other->ask(q(SELECT FROM idem_outbox_put('t', 'order', '1')));
is($poller->answer, '1', 'without preload a waiting relay finds the message');
cmp_ok($poller->{took}, '<', 3, 'soon');
$_->quit for $poller, $other;
$plain->stop;

done_testing();
