#!/usr/bin/python3
"""instructions.py: instructions per call, counted by callgrind on a single-user server.

Each case is a prepared statement that is executed N and then 2N times on copies of one data directory. The
difference over N is one call with the parsing of its EXECUTE, its transaction and its commit; start and first use
cancel out. Rivals are counted in the same way, so these ratios are free of the noise of clocks, but know nothing of
memory, of system calls and of the wire. Instructions depend on the builds of server and compiler: the baseline is
Debian 12's.

    instructions.py                     count, compare with instructions.txt; exit 1 when ours is more than 3 % worse
    instructions.py --write             count and print what instructions.txt should hold
    instructions.py --profile CASE      where the instructions go, as trees below our entry points
"""
import os
import re
import shutil
import subprocess
import sys
import tempfile
from collections import defaultdict
from dataclasses import dataclass, field

import cases
import fixture
from callgraph import CallGraph

BASELINE = os.path.join(fixture.HERE, 'instructions.txt')
BINDIR = subprocess.run([os.environ.get('PG_CONFIG', 'pg_config'), '--bindir'], check=True, capture_output=True,
                        text=True).stdout.strip()
CALLS = 500
KEPT = 1000
TOLERANCE = 1.03
LITERALS = dict(actor='tenant-1', payload=cases.PAYLOAD, body=cases.BODY, headers=cases.HEADERS, hash='\\x' + 32 * 'a7')
COMPLETE = 'SELECT * FROM idem_complete(:operation_id, :token, 201, :body, headers => :headers);\n'


@dataclass
class Counted:
    """A statement to count: a stream's script, and what differs from one of its calls to the next."""
    script: str
    key: object
    ours: bool = True
    literals: dict = field(default_factory=dict)

    def statement(self):
        """statement returns the script as one statement of one column: a single-user server prints all it gets."""
        text = ' '.join(line for line in self.script.splitlines() if not line.startswith('\\')).rstrip(' ;')
        return re.sub(r'SELECT (r\.)?\*', 'SELECT body' if 'obvious_' in text else 'SELECT outcome', text)


def new_key(n, _):
    """new_key returns a key as unordered as a client's, the same in every run."""
    return dict(k=10**18 + n * 7046029254386353131 % (8 * 10**18))


def kept_key(n, _):
    return dict(k=cases.FIRST_KEPT + 1 + n * 7919 % KEPT)


def open_claim(n, claims):
    return dict(zip(('operation_id', 'token'), claims[n]))


def counted():
    """counted returns all cases; a rival follows what it is compared with."""
    listed = {
        'claim': Counted(cases.CLAIM_ALL, new_key),
        'claim: INSERT ON CONFLICT': Counted(cases.INSERT, new_key, False),
        'complete': Counted(COMPLETE, open_claim),
        'claim + complete': Counted(cases.CLAIM_COMPLETE.replace('r.*', 'r.outcome'), new_key),
        'claim + complete: PL/pgSQL': Counted(cases.OBVIOUS_CLAIM_COMPLETE.replace('r.*', 'r.body'), new_key, False),
        'execute': Counted(cases.EXECUTE, new_key),
    }
    for size, label in cases.ANSWER_SIZES.items():
        op = dict(op=f'bench.replay{size}')
        listed |= {
            f'replay {label}': Counted(cases.REPLAY_ALL, kept_key, literals=op),
            f'replay {label}: SELECT, hash check': Counted(cases.SELECT_CHECKED, kept_key, False, op),
            f'replay {label}: bare SELECT': Counted(cases.SELECT_BARE, kept_key, False, op),
        }
    return listed


def session(case, calls, claims):
    """session returns the input of a single-user server that makes so many calls."""
    statement = case.statement()
    variables = list(dict.fromkeys(re.findall(r'(?<!:):([a-z_]+)', statement)))
    for number, variable in enumerate(variables, 1):
        statement = re.sub(rf'(?<!:):{variable}\b', f'${number}', statement)
    lines = [f'PREPARE call AS {statement}']
    for n in range(calls):
        values = LITERALS | case.literals | case.key(n, claims)
        lines.append('EXECUTE call(' + ', '.join(f"'{values[variable]}'" for variable in variables) + ')')
    return '\n'.join(lines) + '\n'


class Counter:
    """Counter runs sessions under callgrind on copies of a stopped server's data directory."""

    def __init__(self, folder):
        self.folder = folder
        self.claims = prepare()
        self.data = os.path.join(os.environ['CLUSTER_DIR'], 'data')
        subprocess.run([os.path.join(BINDIR, 'pg_ctl'), '-s', '-w', '-D', self.data, 'stop'], check=True)

    def run(self, case, calls):
        """run makes the calls and returns callgrind's output file."""
        copy, out = os.path.join(self.folder, 'data'), os.path.join(self.folder, 'callgrind.out')
        shutil.rmtree(copy, ignore_errors=True)
        shutil.copytree(self.data, copy)
        command = ['valgrind', '-q', '--tool=callgrind', f'--callgrind-out-file={out}',
                   os.path.join(BINDIR, 'postgres'), '--single', '-D', copy, '-c', 'fsync=off', '-c',
                   'shared_preload_libraries=idempotency', 'postgres']
        done = subprocess.run(command, input=session(case, calls, self.claims), capture_output=True, text=True)
        if done.returncode != 0 or re.search('ERROR|FATAL|PANIC', done.stderr):
            raise SystemExit(f'{case.statement()}:\n{done.stderr}')
        return out

    def count(self, case):
        return (total(self.run(case, 2 * CALLS)) - total(self.run(case, CALLS))) / CALLS


def prepare():
    """prepare fills the server's database; returns (operation_id, token) of claims to be completed."""
    with fixture.connect() as admin:
        with open(os.path.join(fixture.HERE, 'setup.sql')) as file:
            admin.execute(file.read())
        for size in cases.ANSWER_SIZES:
            fixture.fill(admin, size, KEPT)
        claims = admin.execute("SELECT operation_id, token FROM generate_series(1, %s) AS n, "
                               "idem_claim('tenant-1', 'bench.lease', 'open-key-number-' || n, %s::jsonb)",
                               [2 * CALLS, cases.PAYLOAD]).fetchall()
        fixture.settle(admin)
    return claims


def total(out):
    with open(out) as file:
        return int(re.search(r'^(?:summary|totals): (\d+)', file.read(), re.M).group(1))


def print_profile(out):
    """print_profile prints where the instructions of our entry points go, per call of each."""
    graph = CallGraph(out)
    called = defaultdict(int)
    for callees in graph.edges.values():
        for callee, (number, _) in callees.items():
            called[callee] += number
    for root in sorted(name for name in called if re.fullmatch(r'idem_\w+_v1', name)):
        print(f'{root}: {called[root]} calls, instructions per call (inclusive, own, times called)')
        least = 0.01 * graph.inclusive(root) / called[root]
        for level, name, times, cost, own in graph.tree(root, called[root], least):
            print(f"{cost:9.0f} {own:8.0f} {times:6.1f}  {'  ' * level}{re.sub('[(].*', '', name)}")


def read_baseline():
    if not os.path.exists(BASELINE):
        return {}
    with open(BASELINE) as file:
        pairs = [line.rsplit(None, 1) for line in file if line.strip() and not line.startswith('#')]
    return {name.strip(): int(number) for name, number in pairs}


def compare(listed, numbers, baseline):
    """compare prints the table and returns the cases of ours that became worse."""
    worse = []
    print('| case | instructions per call | baseline | change | ratio to ours |')
    print('|---|--:|--:|--:|--:|')
    mine = None
    for name, number in numbers.items():
        ours = listed[name].ours
        mine = number if ours else mine
        before = baseline.get(name)
        change = f'{100 * (number / before - 1):+.1f} %' if before else ''
        print(f"| {name} | {number:,.0f} | {format(before, ',') if before else 'none'} | {change} "
              f"| {'' if ours else format(number / mine, '.2f')} |")
        if ours and before and number > before * TOLERANCE:
            worse.append(name)
    return worse


def main():
    os.chdir(tempfile.gettempdir())
    listed = counted()
    with tempfile.TemporaryDirectory() as folder:
        counter = Counter(folder)
        if sys.argv[1:2] == ['--profile']:
            print_profile(counter.run(listed[sys.argv[2]], 2 * CALLS))
            return
        numbers = {name: counter.count(case) for name, case in listed.items()}
    if sys.argv[1:2] == ['--write']:
        print('# Instructions per call on Debian 12, PostgreSQL 15: scripts/bench-instructions --write')
        for name, number in numbers.items():
            print(f'{name:<36}{number:>9.0f}')
        return
    if worse := compare(listed, numbers, read_baseline()):
        raise SystemExit('more than 3 % worse than the baseline: ' + ', '.join(worse))


if __name__ == '__main__':
    main()
