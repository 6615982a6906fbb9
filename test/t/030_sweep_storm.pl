# The sweep and claims race on the same few keys while others make these keys old: every acquisition has a token of its
# own, no answer is lost or left behind, and the invariants hold afterwards. Covers E01 and invariants 1 to 5.
use strict;
use warnings;

use FindBin;
use lib "$FindBin::RealBin/lib";
use IdempotencyTest;
use Test::More;

my $node = new_server('sweepstorm');
my $offset = log_size($node);
$node->safe_psql('postgres', q(
	CREATE TABLE ledger (operation_id uuid, token bigint, PRIMARY KEY (operation_id, token));
	SELECT op FROM idem_set_policy('o', 'order', '{"ttl": "1 hour", "tombstone_ttl": "0", "key_min": 1, "wait": "1 s"}');
	SELECT op FROM idem_set_policy('l', 'default', '{"ttl": "1 hour", "on_stale": "retry", "wait": "0"}')));

# Work, in one transaction; work that is left unfinished; time that goes by for one key; the sweep.
my @storm = (
	start_bench($node, <<'SQL', clients => 6, transactions => 400),
\set k random(1, 20)
BEGIN;
SELECT operation_id AS id, coalesce(token, 0) AS token, CASE WHEN proceed THEN 1 ELSE 0 END AS mine FROM idem_claim('t', 'o', 'k' || :k, '1') \gset
\if :mine
INSERT INTO ledger VALUES (:id, :token);
SELECT outcome FROM idem_complete(:id, :token, 200, concat('answer ', :token::bigint));
\endif
COMMIT;
SQL
	start_bench($node, <<'SQL', clients => 2, transactions => 300),
\set k random(1, 20)
SELECT outcome FROM idem_claim('t', 'l', 'k' || :k, '1', lease => '1 s');
SQL
	start_bench($node, <<'SQL', clients => 2, transactions => 600),
\set k random(1, 20)
BEGIN;
SELECT operation_id FROM idem_keys WHERE key = 'k' || :k ORDER BY operation_id FOR UPDATE;
UPDATE idem_responses r SET token = r.token - 86400000000 FROM idem_keys k WHERE k.key = 'k' || :k AND r.operation_id = k.operation_id AND r.token = k.token;
UPDATE idem_keys SET token = token - 86400000000, completed_at = completed_at - interval '1 day', expires_at = expires_at - interval '1 day',
	lease_until = lease_until - interval '1 day' WHERE key = 'k' || :k;
COMMIT;
SQL
	start_bench($node, 'CALL idem_admin_sweep();', clients => 2, transactions => 150));
ok(finish_bench($_), 'no client met an error') for @storm;

# Once more with nobody in the way: what may go goes, and what stays is whole.
$node->safe_psql('postgres', 'CALL idem_admin_sweep()');
is($node->safe_psql('postgres', q(
	SELECT count(*) FROM idem_keys k LEFT JOIN idem_responses r USING (operation_id, token)
	 WHERE k.state = 'c' AND r.body IS NULL)), '0', 'every answered key has its answer');
is($node->safe_psql('postgres', q(
	SELECT count(*) FROM idem_responses r LEFT JOIN idem_keys k USING (operation_id, token) WHERE k.token IS NULL)), '0',
	'no answer without its key');
is($node->safe_psql('postgres', q(
	SELECT count(*) FROM idem_keys k WHERE k.state = 'i' AND NOT EXISTS (SELECT FROM idem_leases l WHERE l.operation_id = k.operation_id))), '0',
	'every unfinished claim has its hint');
cmp_ok($node->safe_psql('postgres', 'SELECT count(*) FROM ledger'), '>', 20, 'keys lived more than once');
sweep($node, 'postgres', 'the invariants hold');
log_is_clean($node, $offset, 'sweep storm');
done_testing();
