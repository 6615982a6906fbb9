# The example relay in Python, as docs/outbox.md tells users to run it; test/drivers/run runs the one in Node.
use strict;
use warnings;

use FindBin;
use lib "$FindBin::RealBin/lib";
use IdempotencyTest;
use Test::More;

my $node = new_server('relay');
my $run = bash("$FindBin::RealBin/../../examples/outbox/run python", PGHOST => $node->host, PGPORT => $node->port);
ok($run->{handle}->finish, 'the example runs') or diag $run->{err};
like($run->{out}, qr/^ok python relay/m, 'and delivers every message, in order');
$node->stop;

done_testing();
