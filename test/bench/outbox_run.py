#!/usr/bin/python3
"""outbox_run.py: put, fetch and ack of messages, ours beside rivals; prints one Markdown table.

Environment: BENCH_MESSAGES (20000) of a backlog that is put by one client, 100 a transaction, and drained by 1, 4 and 16
relays in batches of 100; BENCH_SECONDS (3) of one message a millisecond, one a transaction, whose time from commit to
fetch is measured. Relays publish nothing. Rivals wait as they can: they poll every 10 ms. PgQ hands a queue's batches to
one consumer, so it has no figures for more.
"""
import multiprocessing
import os
import statistics
import time

import psycopg

MESSAGES = int(os.environ.get('BENCH_MESSAGES', '20000'))
SECONDS = float(os.environ.get('BENCH_SECONDS', '3'))
RELAYS = (1, 4, 16)
BATCH = 100
POLL = 0.01
PADDING = 'x' * 200


def connect():
    return psycopg.connect(dbname='postgres', autocommit=True)


class Outbox:
    """Ours; keys > 0: that many ordering keys."""

    setup = ('CREATE EXTENSION IF NOT EXISTS idempotency',)
    relays = RELAYS
    tables = ('idem_outbox', 'idem_outbox_queue')

    def __init__(self, name, keys):
        self.name = name
        key = f"'key ' || g %% {keys}" if keys else 'NULL'
        self.put = ("SELECT count(*) FROM generate_series(%s::int, %s::int) AS g, idem_outbox_put('t', 'bench', "
                    f"jsonb_build_object('n', g, 'padding', %s::text), ordering_key => {key})")
        self.clear = ('TRUNCATE idem_outbox, idem_outbox_queue',)

    def fetch(self, cursor):
        rows = cursor.execute("SELECT id, token, payload FROM idem_outbox_fetch('bench', %s, wait => '200 ms')",
                              [BATCH]).fetchall()
        return [row[2]['n'] for row in rows], rows

    def ack(self, cursor, rows):
        cursor.execute('SELECT idem_outbox_ack(%s, %s)', [[row[0] for row in rows], rows[0][1]])


class SkipLocked:
    """What one writes by hand: a lease in the row, taken with SKIP LOCKED, deleted at ack. No order, no fairness."""

    name = 'SKIP LOCKED by hand'
    relays = RELAYS
    tables = ('hand',)
    setup = ("CREATE TABLE hand (id bigserial PRIMARY KEY, payload jsonb, leased_until timestamptz NOT NULL DEFAULT '-infinity',"
             " token uuid) WITH (fillfactor = 50)",)
    clear = ('TRUNCATE hand',)
    put = ("INSERT INTO hand (payload) SELECT jsonb_build_object('n', g, 'padding', %s::text) "
           'FROM generate_series(%s::int, %s::int) AS g')

    def fetch(self, cursor):
        rows = cursor.execute(
            "UPDATE hand SET leased_until = clock_timestamp() + '30 s', token = gen_random_uuid() WHERE id = ANY (ARRAY("
            'SELECT id FROM hand WHERE leased_until < clock_timestamp() ORDER BY id LIMIT %s FOR UPDATE SKIP LOCKED)) '
            'RETURNING id, payload', [BATCH]).fetchall()
        return [row[1]['n'] for row in rows], rows

    def ack(self, cursor, rows):
        cursor.execute('DELETE FROM hand WHERE id = ANY (%s)', [[row[0] for row in rows]])


class PgQ:
    """PgQ: batches are what came between two ticks; whoever asks ticks."""

    name = 'PgQ'
    relays = (1,)
    tables = ()
    setup = ('CREATE EXTENSION IF NOT EXISTS pgq', "SELECT pgq.create_queue('bench')",
             "SELECT pgq.set_queue_config('bench', 'ticker_max_count', '1')",
             "SELECT pgq.set_queue_config('bench', 'ticker_max_lag', '0')", "SELECT pgq.register_consumer('bench', 'bench')")
    clear = ()
    put = "SELECT pgq.insert_event('bench', 'type', jsonb_build_object('n', g, 'padding', %s::text)::text) " \
          'FROM generate_series(%s::int, %s::int) AS g'

    def fetch(self, cursor):
        cursor.execute("SELECT pgq.ticker('bench')")
        batch = cursor.execute("SELECT pgq.next_batch('bench', 'bench')").fetchone()[0]
        if batch is None:
            return [], None
        rows = cursor.execute("SELECT (ev_data::jsonb ->> 'n')::int FROM pgq.get_batch_events(%s)", [batch]).fetchall()
        if not rows:
            cursor.execute('SELECT pgq.finish_batch(%s)', [batch])
        return [row[0] for row in rows], batch

    def ack(self, cursor, batch):
        cursor.execute('SELECT pgq.finish_batch(%s)', [batch])


def put_many(system, cursor, first, last):
    cursor.execute(system.put, [first, last, PADDING] if isinstance(system, Outbox) else [PADDING, first, last])


def relay(system, total, count, ready, start, out):
    """relay fetches and acks until all relays together have seen `total`; reports (n, time of fetch)."""
    with connect() as connection, connection.cursor() as cursor:
        seen = []
        ready.release()
        start.wait()
        while True:
            numbers, handle = system.fetch(cursor)
            now = time.monotonic()
            if numbers:
                seen += [(n, now) for n in numbers]
                system.ack(cursor, handle)
                with count.get_lock():
                    count.value += len(numbers)
            if count.value >= total:
                break
            if not numbers:
                time.sleep(POLL)
        out.put((seen, time.monotonic()))


def write_slowly(system, total, first):
    """write_slowly puts one message a transaction, one a millisecond; returns when each commit was asked for."""
    times = {}
    with connect() as connection, connection.cursor() as cursor:
        begin = time.monotonic()
        for i in range(total):
            pause = begin + i / 1000 - time.monotonic()
            if pause > 0:
                time.sleep(pause)
            cursor.execute('BEGIN')
            put_many(system, cursor, first + i, first + i)
            times[first + i] = time.monotonic()
            cursor.execute('COMMIT')
    return times


def with_relays(system, relays, total, work):
    """with_relays runs work() beside so many relays; returns its result, what they saw, and how long they took."""
    count = multiprocessing.Value('i', 0)
    ready, start, out = multiprocessing.Semaphore(0), multiprocessing.Event(), multiprocessing.Queue()
    processes = [multiprocessing.Process(target=relay, args=(system, total, count, ready, start, out))
                 for _ in range(relays)]
    for process in processes:
        process.start()
    for _ in processes:
        ready.acquire()
    began = time.monotonic()
    start.set()
    result = work()
    answers = [out.get() for _ in processes]
    for process in processes:
        process.join()
    return result, [pair for seen, _ in answers for pair in seen], max(end for _, end in answers) - began


def dead_tuples(system, cursor):
    time.sleep(1.2)  # backends report when they are idle for a second
    cursor.execute('SELECT pg_stat_clear_snapshot()')
    if isinstance(system, PgQ):
        where = "schemaname = 'pgq'"
    else:
        where = f"relname = ANY (ARRAY{list(system.tables)!r})"
    return cursor.execute(f'SELECT sum(n_dead_tup) FROM pg_stat_user_tables WHERE {where}').fetchone()[0]


def measure(system, relays, cursor):
    for statement in system.clear:
        cursor.execute(statement)
    cursor.execute('VACUUM')
    dead = dead_tuples(system, cursor)
    began = time.monotonic()
    for first in range(1, MESSAGES + 1, BATCH):
        put_many(system, cursor, first, first + BATCH - 1)
    put = time.monotonic() - began
    for table in system.tables:
        cursor.execute(f'ANALYZE {table}')
    _, seen, drain = with_relays(system, relays, MESSAGES, lambda: None)
    assert sorted(n for n, _ in seen) == list(range(1, MESSAGES + 1)), f'{system.name}: lost or doubled messages'
    dead = dead_tuples(system, cursor) - dead
    cursor.execute('VACUUM')
    slow = int(SECONDS * 1000)
    times, seen, _ = with_relays(system, relays, slow, lambda: write_slowly(system, slow, MESSAGES + 1))
    delays = statistics.quantiles(((at - times[n]) * 1000 for n, at in seen), n=100)
    print(f'| {system.name} | {relays} | {MESSAGES / put:,.0f} | {MESSAGES / drain:,.0f} | {MESSAGES / (put + drain):,.0f} '
          f'| {dead / MESSAGES:.1f} | {delays[49]:.1f} | {delays[98]:.1f} |', flush=True)


def main():
    print('| | relays | put per s | fetch and ack per s | all per s | dead tuples a message | commit to fetch p50 ms | p99 ms |')
    print('|---|---|---|---|---|---|---|---|')
    with connect() as connection, connection.cursor() as cursor:
        for system in (Outbox('outbox', 0), Outbox('outbox, 1,000 keys', 1000), SkipLocked(), PgQ()):
            for statement in system.setup:
                cursor.execute(statement)
            for relays in system.relays:
                measure(system, relays, cursor)


if __name__ == '__main__':
    main()
