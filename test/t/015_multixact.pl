# What claims leave behind in the server: no multixact, no subtransaction id, one transaction id for a transaction, no lock
# beyond the tables', nothing that holds back vacuum, and updates that stay on their page. Covers E02, E03, E05, E06, E07.
use strict;
use warnings;

use FindBin;
use lib "$FindBin::RealBin/lib";
use IdempotencyTest;
use Test::More;

my $node = new_server('traces', settings => [ 'max_connections = 120', 'autovacuum = off' ]);
my $offset = log_size($node);
my $s = session($node);
$s->ask(q(SELECT FROM idem_set_policy('retry', 'default', '{"mode": "lease", "lease": "1 second", "grace": "0 seconds", "on_stale": "retry", "ttl": "1 second"}')));

sub next_multixact { return $s->ask('CHECKPOINT; SELECT next_multixact_id, next_multi_offset FROM pg_control_checkpoint()') }

my $before = next_multixact();
ok(bench($node, <<'SQL', clients => 64, transactions => 60), '64 clients claim, wait, complete, extend, release and take over');
\set k random(1, 8)
\set act random(1, 4)
SELECT outcome, proceed, operation_id, coalesce(token, 0) AS token FROM idem_claim('t', 'retry', 'k' || :k, '{"a": 1}', wait => '20 ms') \gset
\if :proceed
\if :act = 1
BEGIN;
SELECT FROM idem_extend(:operation_id, :token, '1 s');
SELECT FROM idem_checkpoint(:operation_id, :token, '1');
SELECT FROM idem_release(:operation_id, :token);
COMMIT;
\elif :act = 2
SELECT FROM idem_release(:operation_id, :token);
\endif
\endif
BEGIN;
SELECT outcome, proceed, operation_id, coalesce(token, 0) AS token FROM idem_claim('t', 'o', 'k' || :client_id || ' ' || random(), '{"a": 1}') \gset
SELECT FROM idem_complete(:operation_id, :token, body => 'done');
COMMIT;
SQL
is(next_multixact(), $before, 'no multixact was made');

# One transaction, every kind of call, one transaction id.
$s->ask(q(SELECT FROM idem_claim('t', 'o', 'replayed', '1') AS c, idem_complete(c.operation_id, c.token)));
$s->ask(q(SELECT FROM idem_claim('t', 'o', 'running', '1')));
my $xid = $s->ask(q(SELECT txid_snapshot_xmax(txid_current_snapshot())));
$s->ask(q(DO $$
	DECLARE r idem_result;
	BEGIN
		FOR n IN 1 .. 1000 LOOP
			r := idem_claim('t', 'o', 'fresh ' || n);
			PERFORM idem_claim('t', 'o', 'fresh ' || n, wait => '0'), idem_claim('t', 'o', 'replayed', '1'), idem_claim('t', 'o', 'replayed', '2'),
				idem_claim('t', 'o', 'running', '1', wait => '0'), idem_complete(r.operation_id, r.token, body => 'x');
		END LOOP;
	END $$));
is($s->ask(q(SELECT txid_snapshot_xmax(txid_current_snapshot()))) - $xid, 1, 'a thousand claims in one transaction take one transaction id');
# A read that claims nothing takes none, where the answer is there.
$xid = $s->ask(q(SELECT txid_snapshot_xmax(txid_current_snapshot())));
$s->ask(q(SELECT idem_claim('t', 'o', 'replayed', '1'), idem_claim('t', 'o', 'replayed', '2'), idem_lookup('t', 'o', 'replayed')));
is($s->ask(q(SELECT txid_snapshot_xmax(txid_current_snapshot()))) - $xid, 0, 'replays and conflicts take none');

is($s->ask(q(BEGIN; SELECT FROM idem_claim('t', 'o', 'locks', '1') AS c, idem_complete(c.operation_id, c.token, body => 'x');
	SELECT string_agg(DISTINCT locktype, ' ' ORDER BY locktype) FROM pg_locks WHERE pid = pg_backend_pid(); COMMIT)), 'relation transactionid virtualxid',
	'claim and complete hold table locks and nothing else');

# Updates stay on their page.
$s->ask(q(SELECT pg_stat_force_next_flush(); SELECT pg_stat_reset_single_table_counters('idem_keys'::regclass)));
ok(bench($node, <<'SQL', clients => 4, transactions => 1000), 'four thousand keys are claimed, extended and completed');
SELECT operation_id, token FROM idem_claim('t', 'o', 'hot ' || :client_id || ' ' || random(), '{"a": 1}') \gset
SELECT FROM idem_extend(:operation_id, :token, '1 min');
SELECT FROM idem_complete(:operation_id, :token, body => 'done');
SQL
$node->poll_query_until('postgres', q(SELECT n_tup_upd >= 8000 FROM pg_stat_user_tables WHERE relname = 'idem_keys'));
my $share = $node->safe_psql('postgres', q(SELECT round(100.0 * n_tup_hot_upd / n_tup_upd, 1) FROM pg_stat_user_tables WHERE relname = 'idem_keys'));
note "$share % of the updates of idem_keys are HOT";
cmp_ok($share, '>', 90, 'updates of idem_keys are HOT');
is($s->ask(q(SELECT count(*) FROM pg_class WHERE relname IN ('idem_keys', 'idem_responses', 'idem_leases') AND reloptions::text ~ 'autovacuum_vacuum_scale_factor')), '3',
	'the tables ask for vacuum in time');
is($s->ask(q(SELECT count(*) FROM pg_constraint WHERE contype = 'f' AND confrelid = 'idem_keys'::regclass)), '0', 'no foreign key points at the hot table');
is($s->ask(q(SELECT count(*) FROM pg_class AS c JOIN pg_depend AS d ON d.objid = c.oid AND d.deptype = 'e' JOIN pg_extension AS e ON e.oid = d.refobjid AND extname = 'idempotency'
	WHERE relkind = 'r' AND (relpersistence <> 'p' OR relam <> (SELECT oid FROM pg_am WHERE amname = 'heap')))), '0', 'no table is unlogged or of another access method');
is($s->ask(q(SELECT count(*) FROM pg_stat_activity WHERE state = 'idle' AND (backend_xid IS NOT NULL OR backend_xmin IS NOT NULL))), '0', 'an idle session holds nothing back');
log_is_clean($node, $offset, 'traces', '40P01');
sweep($node, 'postgres', 'traces');
$s->quit;
$node->stop;
done_testing();
