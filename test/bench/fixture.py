"""fixture.py: databases to measure in, and the answered keys in them."""
import os

import psycopg

import cases

HERE = os.path.dirname(os.path.abspath(__file__))

# Made by the verbs themselves; the rival's rows hold the same answers.
FILL = """
    WITH k AS MATERIALIZED (SELECT (%(first)s + n)::text AS key, bench_body(n::text, %(size)s) AS body
                              FROM generate_series(1, %(count)s) AS n),
         ours AS (SELECT r.outcome, k.key, k.body
                    FROM k, idem_claim('tenant-1', %(op)s, k.key, %(payload)s::jsonb) AS c,
                         idem_complete(c.operation_id, c.token, 201, k.body, headers => %(headers)s::jsonb) AS r)
    INSERT INTO obvious
    SELECT 'tenant-1', %(op)s, key, sha256(convert_to(%(payload)s::jsonb::text, 'UTF8')), 'completed', 201,
           %(headers)s::jsonb, body, now(), now()
      FROM ours WHERE outcome = 'completed'
"""

# Millions of them, straight into the tables. The operation id: 122 bits of SHA-256 over the three texts, each after its
# length.
FILL_DIRECTLY = """
    WITH k AS MATERIALIZED (
             SELECT n, key, encode(set_byte(set_byte(d, 6, get_byte(d, 6) & 15 | 128), 8, get_byte(d, 8) & 63 | 128),
                                   'hex')::uuid AS id
               FROM (SELECT n, (%(first)s + n)::text AS key FROM generate_series(%(from)s, %(to)s) AS n) AS s,
                    substr(sha256(int4send(8) || 'tenant-1' || int4send(length(%(op)s)) || %(op)s::bytea ||
                                  int4send(length(key)) || key::bytea), 1, 16) AS d),
         keys AS (
             INSERT INTO idem_keys (operation_id, token, created_at, updated_at, lease_until, attempt, profile, state,
                                    actor, op, key, claimed_by, payload_hash, completed_at, expires_at)
             SELECT id, 1000 + n, now(), now(), now(), 1, 0, 'c', 'tenant-1', %(op)s, key, 'bench/1',
                    idem_hash(%(payload)s::jsonb), now(), now() + interval '1 day'
               FROM k),
         responses AS (
             INSERT INTO idem_responses (operation_id, token, status, body_omitted, headers, body)
             SELECT id, 1000 + n, 201, false, %(headers)s::jsonb, %(body)s FROM k)
    INSERT INTO obvious
    SELECT 'tenant-1', %(op)s, key, sha256(convert_to(%(payload)s::jsonb::text, 'UTF8')), 'completed', 201,
           %(headers)s::jsonb, %(body)s, now(), now()
      FROM k
"""


def connect(database='postgres'):
    return psycopg.connect(dbname=database, autocommit=True)


def create(database, count):
    """create makes a database, unless it is postgres, with so many answered keys of each size, if any."""
    if database != 'postgres':
        with connect() as admin:
            admin.execute(f'CREATE DATABASE {database}')
    with connect(database) as admin:
        with open(os.path.join(HERE, 'setup.sql')) as file:
            admin.execute(file.read())
        for size in cases.ANSWER_SIZES if count else ():
            fill(admin, size, count)
        settle(admin)


def fill(admin, size, count):
    made = admin.execute(FILL, dict(first=cases.FIRST_KEPT, size=size, count=count, op=f'bench.replay{size}',
                                    payload=cases.PAYLOAD, headers=cases.HEADERS)).rowcount
    if made != count:
        raise SystemExit(f'only {made} of {count} keys could be completed')


def fill_directly(database, first, last):
    """fill_directly adds the answered keys from first to last in steps, so that progress and memory stay in sight."""
    step = 1_000_000
    with connect(database) as admin:
        cursor = psycopg.ClientCursor(admin)
        for start in range(first, last + 1, step):
            cursor.execute(FILL_DIRECTLY, {'first': cases.FIRST_KEPT, 'from': start, 'to': min(start + step - 1, last),
                                           'op': 'bench.replay200', 'payload': cases.PAYLOAD, 'headers': cases.HEADERS,
                                           'body': cases.BODY})
        settle(admin)


def settle(admin):
    admin.execute('VACUUM (ANALYZE)')
    admin.execute('CHECKPOINT')
