"""meter.py: runs streams with pgbench and redis-benchmark and reads what they cost.

A machine's speed changes within a second: neighbours, clocks, where the scheduler puts whom. So the two sides of a
comparison take turns of a tenth of a second: both pgbench are there all the time, and one is stopped (SIGSTOP) while
the other goes on. Each turn gives a rate, from the times in pgbench's log, and a pair of turns a ratio; the medians of
those are reported.

Throughput over a socket is mostly the client's and the kernel's. So the CPU time of the backends is read too, at both
ends of each turn.
"""
import bisect
import csv
import glob
import hashlib
import itertools
import os
import signal
import statistics
import subprocess
import tempfile
import time
from dataclasses import dataclass

import cases
import fixture

PGBENCH = os.path.join(subprocess.run([os.environ.get('PG_CONFIG', 'pg_config'), '--bindir'], check=True,
                                      capture_output=True, text=True).stdout.strip(), 'pgbench')
REDIS_CALLS_PER_SECOND = 20_000
VARIABLES = dict(actor='tenant-1', payload=cases.PAYLOAD, body=cases.BODY, headers=cases.HEADERS,
                 hash='\\x' + hashlib.sha256(cases.PAYLOAD.encode()).hexdigest())


@dataclass
class Turn:
    """What one turn of a stream showed: calls per second, and CPU µs of the server per call."""
    rate: float
    cpu_us: float


@dataclass
class Sample:
    """A stream's turns, and the p95 of its transactions in ms."""
    turns: list
    p95_ms: float

    def median(self, name):
        return statistics.median(getattr(turn, name) for turn in self.turns)


def cpu_of(pid):
    """cpu_of returns the CPU seconds a process used so far: in ns where the kernel counts them, else in ticks."""
    try:
        with open(f'/proc/{pid}/schedstat') as file:
            return int(file.read().split()[0]) / 1e9
    except FileNotFoundError:
        with open(f'/proc/{pid}/stat') as file:
            fields = file.read().rsplit(')', 1)[1].split()
        return (int(fields[11]) + int(fields[12])) / os.sysconf('SC_CLK_TCK')


class Client:
    """Client is one pgbench that runs a stream for so many seconds, stopped and continued at will."""

    def __init__(self, meter, stream, seconds):
        self.stream = stream
        name = f'bench-{next(meter.numbers)}'
        self.log = os.path.join(meter.folder.name, name)
        command = [PGBENCH, '-n', '-M', 'prepared', '-T', str(seconds), '-c', str(stream.clients), '-l',
                   '--log-prefix', self.log, '-f', meter.script(stream.script)]
        for variable, value in (VARIABLES | {'kept': meter.kept} | dict(stream.variables)).items():
            command += ['-D', f'{variable}={value}']
        self.process = subprocess.Popen(command + [stream.database], stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                                        text=True, env=os.environ | {'PGOPTIONS': stream.settings, 'PGAPPNAME': name})
        self.backends = meter.backends(name, stream.clients, self.process)
        self.turns = []

    def stop(self):
        self.process.send_signal(signal.SIGSTOP)

    def go_on(self):
        self.process.send_signal(signal.SIGCONT)

    def cpu(self):
        return sum(cpu_of(pid) for pid in self.backends)

    def turn(self, seconds):
        """turn lets the client go on for a while. A turn in which its time is over does not count."""
        try:
            cpu, began = self.cpu(), time.time()
            self.go_on()
            time.sleep(seconds)
            self.stop()
            self.turns.append((began, time.time(), self.cpu() - cpu))
        except (FileNotFoundError, ProcessLookupError):
            pass

    def finish(self):
        """finish waits for the end; returns (transactions' ends in seconds since 1970, their latencies in µs)."""
        self.go_on()
        out, err = self.process.communicate()
        if self.process.returncode != 0 or 'failed transactions: 0 ' not in out:
            raise SystemExit(f'{self.stream.name}:\n{self.stream.script}{out}{err}')
        done = []
        for name in glob.glob(self.log + '.*'):
            with open(name) as file:
                done += [(int(line[4]) + int(line[5]) / 1e6, int(line[2])) for line in map(str.split, file)]
            os.remove(name)
        done.sort()
        return [end for end, _ in done], [latency for _, latency in done]

    def sample(self):
        ends, latencies = self.finish()
        turns = []
        for began, ended, cpu in self.turns:
            calls = (bisect.bisect(ends, ended) - bisect.bisect(ends, began)) * self.stream.calls
            turns.append(Turn(calls / (ended - began), cpu / calls * 1e6 if calls else float('nan')))
        return Sample(turns, statistics.quantiles(latencies, n=20)[18] / 1000)


class Meter:
    """Meter measures streams on the server that the environment names; `kept` is how many answered keys there are."""

    def __init__(self, kept):
        self.kept = kept
        self.admin = fixture.connect()
        self.folder = tempfile.TemporaryDirectory()
        self.scripts = {}
        self.numbers = itertools.count()

    def backends(self, name, count, process):
        """backends waits for a client's connections and returns the process ids of their backends.

        pgbench looks at the server through another connection first, which asks nothing.
        """
        ask = "SELECT pid FROM pg_stat_activity WHERE application_name = %s AND query <> ''"
        while len(found := self.admin.execute(ask, [name]).fetchall()) < count:
            if process.poll() is not None:
                raise SystemExit(process.communicate()[1])
            time.sleep(0.01)
        return [pid for pid, in found]

    def script(self, text):
        """script returns the file that holds a script."""
        if text not in self.scripts:
            name = os.path.join(self.folder.name, f'{len(self.scripts)}.sql')
            with open(name, 'w') as file:
                file.write(text)
            self.scripts[text] = name
        return self.scripts[text]

    def alternate(self, ours, rival, rounds, seconds):
        """alternate runs two streams in turns, each for so many seconds in all; returns their samples."""
        whole = 2 * seconds + 2
        began = time.time()
        clients = []
        for stream in (ours, rival):
            clients.append(Client(self, stream, whole))
            time.sleep(0.1)
            clients[-1].stop()
        for _ in range(rounds):
            for client in clients:
                client.turn(seconds / rounds)
        time.sleep(max(0.0, began + whole + 0.1 - time.time()))
        return [client.sample() for client in clients]

    def fill(self, stream, seconds):
        """fill runs a stream alone; returns how many calls it made."""
        return len(Client(self, stream, seconds).finish()[0]) * stream.calls

    def alone(self, stream, seconds):
        """alone runs a stream of pgbench by itself, as one turn."""
        client = Client(self, stream, seconds + 2)
        client.turn(seconds)
        return client.sample()


class Redis:
    """Redis is a server on a socket in a folder of its own, without persistence, that holds `count` answers."""

    def __init__(self, count):
        self.count = count
        self.folder = tempfile.TemporaryDirectory()
        self.socket = os.path.join(self.folder.name, 'redis')
        self.server = subprocess.Popen(['redis-server', '--port', '0', '--unixsocket', self.socket, '--save', '',
                                        '--appendonly', 'no', '--dir', self.folder.name], stdout=subprocess.DEVNULL)
        while not os.path.exists(self.socket):
            time.sleep(0.02)
        put = "for n = 0, ARGV[1] - 1 do redis.call('SET', string.format('key:%012d', n), ARGV[2]) end"
        subprocess.run(['redis-cli', '-s', self.socket, 'EVAL', put, '0', str(count), cases.BODY], check=True,
                       capture_output=True)

    def alone(self, stream, seconds):
        """alone runs redis-benchmark for about so many seconds, as one turn."""
        before = cpu_of(self.server.pid)
        calls = seconds * REDIS_CALLS_PER_SECOND * (3 if stream.clients > 1 else 1)
        done = subprocess.run(['redis-benchmark', '-s', self.socket, '-c', str(stream.clients), '-n', str(calls), '-r',
                               str(self.count), '--csv', 'GET', 'key:__rand_int__'], check=True, capture_output=True,
                              text=True)
        row = list(csv.DictReader(done.stdout.splitlines()))[-1]
        return Sample([Turn(float(row['rps']), (cpu_of(self.server.pid) - before) / calls * 1e6)],
                      float(row['p95_latency_ms']))

    def stop(self):
        self.server.terminate()
        self.server.wait()
