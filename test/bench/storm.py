"""storm.py: the hot key: many sessions wait for one key, its owner commits, all want the answer.

Measured from just before COMMIT is sent to the clock of the server when the last waiter has its answer, and to its
arrival here. Both clocks are this machine's. While they wait, the CPU time of all waiting backends is read
(/proc/PID/schedstat, nanoseconds).
"""
import select
import statistics
import time
from dataclasses import dataclass

from psycopg import pq

import cases
import fixture

WATCHED = 1.0

OURS = ("SELECT outcome, body, extract(epoch FROM clock_timestamp()) "
        "FROM idem_claim('tenant-1', 'bench.storm', $1, $2)",
        "SELECT r.outcome FROM idem_claim('tenant-1', 'bench.storm', %s, %s::jsonb) AS c, "
        "idem_complete(c.operation_id, c.token, 201, %s) AS r")
RIVAL = ("SELECT state, body, extract(epoch FROM clock_timestamp()) "
         "FROM obvious_claim('tenant-1', 'bench.storm', $1, $2)",
         "SELECT r.status FROM obvious_claim('tenant-1', 'bench.storm', %s, %s::jsonb) AS c, "
         "obvious_complete('tenant-1', 'bench.storm', %s, 201, NULL, %s) AS r")


@dataclass
class Storm:
    """One storm: ms from commit to the last answer made and received, per cent of a core while waiting."""
    made_ms: float
    received_ms: float
    waiting_cpu: float


class Crowd:
    """Crowd is a set of open connections that ask all at once."""

    def __init__(self, size):
        self.admin = fixture.connect()
        self.owner = fixture.connect()
        self.owner.autocommit = False
        self.waiters = [pq.PGconn.connect(b'dbname=postgres') for _ in range(size)]
        for statement in (OURS[0], RIVAL[0]):
            for waiter in self.waiters:
                waiter.prepare(name_of(statement), statement.encode(), None)

    def waiting(self):
        pids = [waiter.backend_pid for waiter in self.waiters]
        return self.admin.execute("SELECT count(*) FROM pg_stat_activity WHERE pid = ANY (%s) AND state = 'active' "
                                  "AND wait_event IS NOT NULL", [pids]).fetchone()[0]

    def cpu(self):
        total = 0
        for waiter in self.waiters:
            with open(f'/proc/{waiter.backend_pid}/schedstat') as file:
                total += int(file.read().split()[0])
        return total / 1e9

    def storm(self, side, key):
        """storm lets the owner do its work, everybody else ask, and the owner commit."""
        ask, work = side
        arguments = [key, cases.PAYLOAD, cases.BODY] if side is OURS else [key, cases.PAYLOAD, key, cases.BODY]
        self.owner.execute(work, arguments)
        for waiter in self.waiters:
            waiter.send_query_prepared(name_of(ask), [key.encode(), cases.PAYLOAD.encode()])
        while self.waiting() < len(self.waiters):
            time.sleep(0.02)
        before = self.cpu()
        time.sleep(WATCHED)
        waiting_cpu = (self.cpu() - before) / WATCHED * 100
        began = time.time()
        self.owner.commit()
        made, received = self.collect()
        return Storm((made - began) * 1000, (received - began) * 1000, waiting_cpu)

    def collect(self):
        """collect reads all answers; returns when the last was made and received, in seconds since 1970."""
        poll = select.epoll()
        by_socket = {waiter.socket: waiter for waiter in self.waiters}
        for socket in by_socket:
            poll.register(socket, select.EPOLLIN)
        made = 0.0
        while by_socket:
            for socket, _ in poll.poll(30):
                waiter = by_socket[socket]
                waiter.consume_input()
                if waiter.is_busy():
                    continue
                made = max(made, answered_at(waiter))
                poll.unregister(socket)
                del by_socket[socket]
        return made, time.time()

    def close(self):
        for waiter in self.waiters:
            waiter.finish()
        self.owner.close()


def name_of(statement):
    return b'ours' if statement is OURS[0] else b'rival'


def answered_at(waiter):
    result = waiter.get_result()
    if result.status != pq.ExecStatus.TUPLES_OK or result.get_value(0, 1) != cases.BODY.encode():
        raise SystemExit(f'a waiter got another answer: {result.error_message} {result.get_value(0, 0)}')
    while waiter.get_result():
        pass
    return float(result.get_value(0, 2))


def run(size, rounds):
    """run makes interleaved storms; returns the medians of both sides."""
    crowd = Crowd(size)
    storms = {OURS: [], RIVAL: []}
    for number in range(rounds):
        for side, seen in storms.items():
            seen.append(crowd.storm(side, f'storm-key-number-{number}'))
    crowd.close()
    return tuple(Storm(*(statistics.median(getattr(s, name) for s in seen) for name in Storm.__annotations__))
                 for seen in storms.values())
