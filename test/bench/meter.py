"""meter.py: runs streams with pgbench and redis-benchmark and reads what they cost.

Throughput over a socket is mostly the client's and the kernel's. So the CPU time of the server is measured too. Of
PostgreSQL: user and system time of the postmaster's finished children (/proc/PID/stat), less what a connection costs
that does nothing. Nothing else may end meanwhile on this server: autovacuum is off and there are no parallel workers.
"""
import csv
import glob
import hashlib
import os
import statistics
import subprocess
import tempfile
import time
from dataclasses import dataclass

import cases
import fixture

TICK = 1 / os.sysconf('SC_CLK_TCK')
PGBENCH = os.path.join(subprocess.run([os.environ.get('PG_CONFIG', 'pg_config'), '--bindir'], check=True,
                                      capture_output=True, text=True).stdout.strip(), 'pgbench')
REDIS_CALLS_PER_SECOND = 20_000
VARIABLES = dict(actor='tenant-1', payload=cases.PAYLOAD, body=cases.BODY, headers=cases.HEADERS,
                 hash='\\x' + hashlib.sha256(cases.PAYLOAD.encode()).hexdigest())


@dataclass
class Sample:
    """What one round of a stream showed: calls, calls per second, CPU µs per call, p95 of a transaction in ms."""
    calls: int
    rate: float
    cpu_us: float
    p95_ms: float


def cpu_of(pid, children=False):
    """cpu_of returns the CPU seconds a process, or its finished children, used so far."""
    with open(f'/proc/{pid}/stat') as file:
        fields = file.read().rsplit(')', 1)[1].split()
    first = 13 if children else 11
    return (int(fields[first]) + int(fields[first + 1])) * TICK


class Meter:
    """Meter measures streams on the server that the environment names; `kept` is how many answered keys there are."""

    def __init__(self, kept):
        self.kept = kept
        self.admin = fixture.connect()
        with open(os.path.join(os.environ['CLUSTER_DIR'], 'data', 'postmaster.pid')) as file:
            self.postmaster = int(file.readline())
        self.folder = tempfile.TemporaryDirectory()
        self.scripts = {}
        self.redis = None
        self.idle_cpu = self.cost_of_connecting()

    def children_cpu(self):
        """children_cpu waits until pgbench's backends are gone and returns the CPU seconds of all that ever ended."""
        count = "SELECT count(*) FROM pg_stat_activity WHERE application_name = 'pgbench'"
        while self.admin.execute(count).fetchone()[0]:
            time.sleep(0.01)
        time.sleep(0.03)
        return cpu_of(self.postmaster, children=True)

    def cost_of_connecting(self):
        before = self.children_cpu()
        for _ in range(20):
            subprocess.run([PGBENCH, '-n', '-M', 'prepared', '-t', '1', '-f', self.script('SELECT 1;\n'), 'postgres'],
                           check=True, capture_output=True)
        return (self.children_cpu() - before) / 20

    def script(self, text):
        """script returns the file that holds a script."""
        if text not in self.scripts:
            name = os.path.join(self.folder.name, f'{len(self.scripts)}.sql')
            with open(name, 'w') as file:
                file.write(text)
            self.scripts[text] = name
        return self.scripts[text]

    def run(self, stream, seconds):
        """run measures one round of a stream; a failed transaction ends the program."""
        if isinstance(stream, cases.RedisGet):
            return self.redis.run(stream, seconds)
        log = os.path.join(self.folder.name, 'log')
        command = [PGBENCH, '-n', '-M', 'prepared', '-T', str(seconds), '-c', str(stream.clients), '-l',
                   '--log-prefix', log, '-f', self.script(stream.script)]
        for name, value in (VARIABLES | {'kept': self.kept} | dict(stream.variables)).items():
            command += ['-D', f'{name}={value}']
        before = self.children_cpu()
        done = subprocess.run(command + [stream.database], capture_output=True, text=True,
                              env=dict(os.environ, PGOPTIONS=stream.settings))
        if done.returncode != 0 or 'failed transactions: 0 ' not in done.stdout:
            raise SystemExit(f'{stream.name}:\n{stream.script}{done.stdout}{done.stderr}')
        cpu = self.children_cpu() - before - self.idle_cpu * stream.clients
        latencies = read_latencies(log)
        calls = len(latencies) * stream.calls
        tps = next(float(line.split()[2]) for line in done.stdout.splitlines() if line.startswith('tps'))
        return Sample(calls, tps * stream.calls, cpu / calls * 1e6, statistics.quantiles(latencies, n=20)[18] / 1000)


def read_latencies(prefix):
    """read_latencies returns the µs of every transaction that pgbench logged, and removes the logs."""
    values = []
    for name in glob.glob(prefix + '.*'):
        with open(name) as file:
            values += [int(line.split()[2]) for line in file]
        os.remove(name)
    return values


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

    def run(self, stream, seconds):
        before = cpu_of(self.server.pid)
        calls = seconds * REDIS_CALLS_PER_SECOND * (3 if stream.clients > 1 else 1)
        done = subprocess.run(['redis-benchmark', '-s', self.socket, '-c', str(stream.clients), '-n', str(calls), '-r',
                               str(self.count), '--csv', 'GET', 'key:__rand_int__'], check=True, capture_output=True,
                              text=True)
        row = list(csv.DictReader(done.stdout.splitlines()))[-1]
        return Sample(calls, float(row['rps']), (cpu_of(self.server.pid) - before) / calls * 1e6,
                      float(row['p95_latency_ms']))

    def stop(self):
        self.server.terminate()
        self.server.wait()
