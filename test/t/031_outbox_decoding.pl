# Logical decoding: what a connector such as Debezium's outbox event router sees of put, fetch, ack and the sweep. The table
# is insert only until the sweep, delivery state is another table, and put and delete in one transaction still decode
# as an insert. Covers C15.
use strict;
use warnings;

use FindBin;
use lib "$FindBin::RealBin/lib";
use IdempotencyTest;
use Test::More;

my $node = new_server('decoding', settings => [ 'wal_level = logical' ]);
# Late minors let a role use only the output plugins that are listed.
if ($node->safe_psql('postgres', q(SELECT count(*) FROM pg_settings WHERE name = 'output_plugin_libraries')))
{
	$node->append_conf('postgresql.conf', "output_plugin_libraries = 'wal2json'");
	$node->reload;
}
$node->safe_psql('postgres', q(SELECT pg_create_logical_replication_slot('events', 'wal2json')));

# changes TABLES: kind, table and, of idem_outbox, the columns the router reads.
sub changes
{
	my ($tables) = @_;
	return $node->safe_psql('postgres', qq(
		SELECT c ->> 'action', c ->> 'table', v.id IS NOT NULL AND v.id = v.header_id, v.aggregatetype, v.aggregateid, v.type, v.payload
		  FROM pg_logical_slot_get_changes('events', NULL, NULL, 'format-version', '2', 'add-tables', '$tables') AS d,
		       LATERAL (SELECT d.data::jsonb AS c) AS j,
		       LATERAL (SELECT max(x ->> 'value') FILTER (WHERE x ->> 'name' = 'id') AS id,
		                       max(x ->> 'value') FILTER (WHERE x ->> 'name' = 'aggregatetype') AS aggregatetype,
		                       max(x ->> 'value') FILTER (WHERE x ->> 'name' = 'aggregateid') AS aggregateid,
		                       max(x ->> 'value') FILTER (WHERE x ->> 'name' = 'type') AS type,
		                       max(x ->> 'value') FILTER (WHERE x ->> 'name' = 'payload') AS payload,
		                       max((x ->> 'value')::jsonb ->> 'id') FILTER (WHERE x ->> 'name' = 'headers') AS header_id
		                  FROM jsonb_array_elements(c -> 'columns') AS x) AS v
		 WHERE c ->> 'action' NOT IN ('B', 'C')));
}

$node->safe_psql('postgres', q(SELECT FROM idem_outbox_put('t', 'order', '{"n": 1}', ordering_key => 'o-1', headers => '{"type": "order.placed"}')));
$node->safe_psql('postgres', q(BEGIN; SELECT FROM idem_outbox_put('t', 'order', '{"n": 2}', ordering_key => 'o-1'); ROLLBACK));
$node->safe_psql('postgres', q(SELECT FROM idem_outbox_put('t', 'order', '{"n": 3}', ordering_key => 'o-2', headers => '{"type": "order.paid"}')));
$node->safe_psql('postgres', q(SELECT idem_outbox_ack(array_agg(id), max(token)) FROM idem_outbox_fetch('r')));
is(changes('*.idem_outbox'), join("\n",
	'I|idem_outbox|t|order|o-1|order.placed|{"n": 1}',
	'I|idem_outbox|t|order|o-2|order.paid|{"n": 3}'),
	'put, fetch and ack: one insert a committed message, with the columns of the event router, and nothing else');

$node->safe_psql('postgres', q(SELECT FROM idem_outbox_put('t', 'order', '{"n": 4}', ordering_key => 'o-1')));
$node->safe_psql('postgres', q(SELECT FROM idem_outbox_nack((SELECT id FROM idem_outbox_fetch('r')), (SELECT last_value FROM idem_outbox_seq), '0')));
$node->safe_psql('postgres', q(SELECT idem_outbox_ack(array_agg(id), max(token)) FROM idem_outbox_fetch('r')));
is($node->safe_psql('postgres', q(
	SELECT c.data::jsonb ->> 'action', c.data::jsonb ->> 'table', count(*) FROM pg_logical_slot_get_changes('events', NULL, NULL, 'format-version', '2') AS c
	 WHERE c.data::jsonb ->> 'action' NOT IN ('B', 'C') GROUP BY 1, 2 ORDER BY 2, 1)), join("\n",
	'I|idem_outbox|1', 'D|idem_outbox_queue|1', 'I|idem_outbox_queue|1', 'U|idem_outbox_queue|3'),
	'the relay\'s updates are all of idem_outbox_queue');

$node->safe_psql('postgres', q(
	BEGIN;
	SELECT FROM idem_outbox_put('t', 'order', '{"n": 5}');
	DELETE FROM idem_outbox WHERE payload = '{"n": 5}';
	COMMIT;
	DELETE FROM idem_outbox_queue));
is(changes('*.idem_outbox'), join("\n", 'I|idem_outbox|t|order||order|{"n": 5}', 'D|idem_outbox|f||||'), 'put and delete in one transaction decode as both');

# Without a relay the queue is in the way of the sweep; a publication needs the tables' replica identity.
$node->safe_psql('postgres', q(CREATE PUBLICATION everything FOR ALL TABLES));
$node->safe_psql('postgres', q(SELECT FROM idem_outbox_put('t', 'order', '{"n": 6}')));
$node->safe_psql('postgres', q(SELECT idem_outbox_ack(array_agg(id), max(token)) FROM idem_outbox_fetch('r')));
is($node->safe_psql('postgres', q(
	UPDATE idem_outbox SET created_at = created_at - interval '8 days';
	SELECT idem_sweep_outbox(100))), '4', 'tables in a publication can be swept');
is($node->safe_psql('postgres', q(SELECT count(*) FROM idem_outbox_queue)), '0', 'and acked');
$node->stop;

done_testing();
