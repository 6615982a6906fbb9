"""cases.py: what runs side by side: for each case a stream of ours, a rival's, and the ratio that is promised.

A stream is a pgbench script, sent with -M prepared. Keys are 19 random digits, as unordered as the uuids that clients
send; :kept picks one of the answered keys that fixture.fill makes. What a client computes (the rival's payload hash) is
a parameter; what the server does for the caller is in the statement.
"""
from dataclasses import dataclass, field, replace

PAYLOAD = ('{"amount": 12995, "currency": "EUR", "customer": "cus_9s6XKzkNRiz8i3", "capture": true, '
           '"metadata": {"order": "6735", "cart": "c-20117"}, "note": "x"}')
assert len(PAYLOAD) == 150
BODY = ('{"id": "ch_3MmlLrLkdIwHu7ix0snN0B15", "object": "charge", "amount": 12995, "currency": "EUR", "paid": true, '
        '"receipt": "https://pay.example/receipts/CAcaFwoVYWNjdF8xTTJKVGtMa2RJd0h1N2l4KOv", "ok": 10}')
assert len(BODY) == 200
HEADERS = '[["Content-Type", "application/json"], ["Location", "/orders/6735"]]'
FIRST_KEPT = 10**18
ANSWER_SIZES = {200: '200 B', 8000: '8 kB'}

NEW_KEY = '\\set k random(1000000000000000000, 8999999999999999999)\n'
KEPT_KEY = f'\\set k {FIRST_KEPT} + random(1, :kept)\n'

# What a client reads who does not know beforehand whether it is the first: six of the twenty columns.
READ = 'proceed, operation_id, token, status, headers, body'
CLAIM = f"SELECT {READ} FROM idem_claim(:actor, 'bench.lease', :k, :payload);\n"
CLAIM_ALL = CLAIM.replace(READ, '*')
CLAIM_SHA256 = CLAIM.replace('bench.lease', 'bench.sha256')
CLAIM_MANY = (''.join(NEW_KEY.replace('set k', f'set k{n}') for n in range(10)) +
              "SELECT * FROM idem_claim_many(:actor, 'bench.lease', ARRAY[" + ', '.join(f':k{n}' for n in range(10)) +
              '], ARRAY[' + ', '.join(10 * [':payload::jsonb']) + ']);\n')
INSERT = ("INSERT INTO obvious (actor_id, op, key, payload_hash, state, created_at, updated_at) "
          "VALUES (:actor, 'bench.lease', :k, :hash, 'in_progress', now(), now()) ON CONFLICT DO NOTHING;\n")

REPLAY = f"SELECT {READ} FROM idem_claim(:actor, :op, :k, :payload);\n"
REPLAY_ALL = REPLAY.replace(READ, '*')
SELECT_CHECKED = ("SELECT status, headers, body, payload_hash = sha256(convert_to(:payload::jsonb::text, 'UTF8')) "
                  "FROM obvious WHERE actor_id = :actor AND op = :op AND key = :k;\n")
SELECT_BARE = "SELECT status, headers, body FROM obvious WHERE actor_id = :actor AND op = :op AND key = :k;\n"

CLAIM_COMPLETE = """\
SELECT r.* FROM idem_claim(:actor, 'bench.transaction', :k, :payload) AS c,
    idem_complete(c.operation_id, c.token, 201, :body, headers => :headers) AS r;
"""
OBVIOUS_CLAIM_COMPLETE = """\
SELECT r.* FROM obvious_claim(:actor, 'bench.transaction', :k, :payload) AS c,
    obvious_complete(:actor, 'bench.transaction', :k, CASE WHEN c.proceed THEN 201 END, :headers, :body) AS r;
"""
FOUR = """\
BEGIN;
SELECT operation_id, token FROM idem_claim(:actor, 'bench.transaction', :k, :payload) \\gset
SELECT * FROM idem_complete(:operation_id, :token, 201, :body, headers => :headers);
COMMIT;
"""
OBVIOUS_FOUR = """\
BEGIN;
SELECT proceed FROM obvious_claim(:actor, 'bench.transaction', :k, :payload) \\gset
SELECT * FROM obvious_complete(:actor, 'bench.transaction', :k, 201, :headers, :body);
COMMIT;
"""
LEASE = """\
SELECT operation_id, token FROM idem_claim(:actor, 'bench.lease', :k, :payload) \\gset
SELECT * FROM idem_complete(:operation_id, :token, 201, :body, headers => :headers);
"""
OBVIOUS_LEASE = """\
SELECT proceed FROM obvious_claim(:actor, 'bench.lease', :k, :payload) \\gset
SELECT * FROM obvious_complete(:actor, 'bench.lease', :k, 201, :headers, :body);
"""
EXECUTE = "SELECT * FROM idem_execute(:actor, 'bench.transaction', :k, :payload, 'bench_handler');\n"


@dataclass(frozen=True)
class Stream:
    """One side of a comparison. `calls` is how many keys one transaction handles; `variables` are pgbench's."""
    name: str
    script: str
    calls: int = 1
    clients: int = 1
    variables: tuple = ()
    settings: str = '-c synchronous_commit=off'
    database: str = 'postgres'


@dataclass(frozen=True)
class RedisGet:
    """GET of an answer from redis, by redis-benchmark: memory only, no payload compared."""
    clients: int
    name: str = 'redis GET'


@dataclass(frozen=True)
class Case:
    """Two streams side by side. `target` is the least ratio that is promised, None where it is only reported."""
    name: str
    ours: Stream
    rival: Stream | RedisGet
    target: float | None = None


def new_key_cases():
    claim, insert = Stream('idem_claim', NEW_KEY + CLAIM), Stream('INSERT ON CONFLICT', NEW_KEY + INSERT)
    ten = Stream('10 INSERT', 'BEGIN;\n' + 10 * (NEW_KEY + INSERT) + 'COMMIT;\n', 10)
    return [
        Case('new claim, synchronous commit', replace(claim, settings=''), replace(insert, settings=''), 1.0),
        Case('new claim, asynchronous commit', claim, insert, 1.0),
        Case('the same, all columns', Stream('idem_claim', NEW_KEY + CLAIM_ALL), insert),
        Case('the same, sha256', Stream('idem_claim', NEW_KEY + CLAIM_SHA256), insert),
        Case('ten claims per transaction',
             Stream('10 idem_claim', 'BEGIN;\n' + 10 * (NEW_KEY + CLAIM) + 'COMMIT;\n', 10), ten, 1.15),
        Case('ten claims in one call', Stream('idem_claim_many', CLAIM_MANY, 10), ten),
    ]


def replay_cases():
    cases = []
    for size, label in ANSWER_SIZES.items():
        kept = (('op', f'bench.replay{size}'),)
        ours = Stream('idem_claim', KEPT_KEY + REPLAY, variables=kept)
        cases += [
            Case(f'replay, {label}', ours,
                 Stream('SELECT, hash check', KEPT_KEY + SELECT_CHECKED, variables=kept), 1.0),
            Case(f'replay, {label}, all columns', Stream('idem_claim', KEPT_KEY + REPLAY_ALL, variables=kept),
                 Stream('SELECT, hash check', KEPT_KEY + SELECT_CHECKED, variables=kept)),
            Case(f'replay, {label}', ours, Stream('bare SELECT', KEPT_KEY + SELECT_BARE, variables=kept)),
        ]
    return cases


def whole_cases():
    four = Stream('BEGIN, claim, complete, COMMIT', NEW_KEY + FOUR)
    return [
        Case('claim + complete, one statement', Stream('idem_claim, idem_complete', NEW_KEY + CLAIM_COMPLETE),
             Stream('in PL/pgSQL', NEW_KEY + OBVIOUS_CLAIM_COMPLETE), 1.5),
        Case('claim + complete, four statements', four, Stream('in PL/pgSQL', NEW_KEY + OBVIOUS_FOUR)),
        Case('idem_execute', Stream('idem_execute', NEW_KEY + EXECUTE), four, 2.0),
    ]


def stored_cases(database):
    """stored_cases are run for what they leave on disk."""
    def case(name, ours, rival):
        return Case(name, Stream('idem_claim, idem_complete', NEW_KEY + ours, database=database),
                    Stream('in PL/pgSQL', NEW_KEY + rival, database=database))
    return [case('claim + complete in one transaction', CLAIM_COMPLETE, OBVIOUS_CLAIM_COMPLETE),
            case('claim, then complete', LEASE, OBVIOUS_LEASE)]


def redis_cases():
    ours = Stream('idem_claim', KEPT_KEY + REPLAY, variables=(('op', 'bench.replay200'),))
    return [Case(f'replay, 200 B, {clients} connection{"s" * (clients > 1)}', replace(ours, clients=clients),
                 RedisGet(clients)) for clients in (1, 16)]


def size_cases(few, many, kept):
    """size_cases compares a database of many keys (ours) with one of few; `kept` is how many answered keys it has."""
    replay = Stream('idem_claim', KEPT_KEY + REPLAY, variables=(('op', 'bench.replay200'),))
    listed = [('new claim', Stream('idem_claim', NEW_KEY + CLAIM), 0.85),
              ('replay of any key', replay, 0.85),
              ('INSERT ON CONFLICT', Stream('INSERT ON CONFLICT', NEW_KEY + INSERT), None)]
    return [Case(f'{name}, {kept:,} live keys',
                 replace(stream, name=f'{kept:,}', database=many, variables=stream.variables + (('kept', kept),)),
                 replace(stream, name='10,000', database=few), target) for name, stream, target in listed]
