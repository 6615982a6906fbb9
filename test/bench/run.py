#!/usr/bin/python3
"""run.py: measures the extension beside its rivals, prints one Markdown table and writes build/bench.json.

Environment: BENCH_ROUNDS (7) rounds, interleaved A B A B; BENCH_SECONDS (1) of each stream in a round; BENCH_KEYS (off)
live keys of a database that is compared with one of 10,000; BENCH_ONLY a regular expression on case names.
"""
import json
import os
import re
import statistics
import subprocess
import sys

import cases
import fixture
import meter
import storm

ROUNDS = int(os.environ.get('BENCH_ROUNDS', '7'))
SECONDS = int(os.environ.get('BENCH_SECONDS', '1'))
KEYS = int(os.environ.get('BENCH_KEYS', '0'))
ONLY = re.compile(os.environ.get('BENCH_ONLY', ''))
KEPT = 10_000
CROWD = 200
STORM_ROUNDS = 3
STORED_ROUNDS = 4
HEADINGS = ('case', 'ours', 'rival', 'ours per s', 'rival per s', 'ratio', 'target', 'CPU µs ours', 'CPU µs rival',
            'CPU ratio', 'p95 ms ours', 'p95 ms rival')


def say(text):
    print(f'-- {text}', file=sys.stderr)


def measure(bench, wanted):
    """measure runs the streams of the cases in interleaved rounds; returns {stream: samples}."""
    streams = list(dict.fromkeys(stream for case in wanted for stream in (case.ours, case.rival)))
    samples = {stream: [] for stream in streams}
    for number in range(ROUNDS):
        say(f'round {number + 1} of {ROUNDS}: {len(streams)} streams of {SECONDS} s')
        for stream in streams:
            samples[stream].append(bench.run(stream, SECONDS))
    return samples


def median(samples, name):
    return statistics.median(getattr(sample, name) for sample in samples)


def compare(case, samples):
    """compare returns a row. Ratios above 1: ours is faster, or takes less CPU.

    Rates are medians, and medians of the rounds' ratios. Of CPU times it is the least disturbed round that counts:
    neighbours on the machine only ever add to them.
    """
    ours, rival = samples[case.ours], samples[case.rival]
    row = dict(case=case.name, ours=case.ours.name, rival=case.rival.name, target=case.target,
               ratio=statistics.median(a.rate / b.rate for a, b in zip(ours, rival)))
    for side, seen in (('ours', ours), ('rival', rival)):
        row |= {f'{side}_rate': median(seen, 'rate'), f'{side}_p95_ms': median(seen, 'p95_ms'),
                f'{side}_cpu_us': min(sample.cpu_us for sample in seen), f'{side}_samples': [vars(s) for s in seen]}
    row['cpu_ratio'] = row['rival_cpu_us'] / row['ours_cpu_us']
    return row


def stored_bytes(bench):
    """stored_bytes returns rows: what one completed key with an answer of 200 bytes takes on disk, indexes included.

    The tables start empty and are vacuumed several times on the way, as autovacuum does.
    """
    say('bytes per key')
    fixture.create('stored', 0)
    rows = []
    with fixture.connect('stored') as admin:
        for case in cases.stored_cases('stored'):
            row = dict(case=f'bytes per key: {case.name}', ours=case.ours.name, rival=case.rival.name,
                       target='200–800 B')
            for side, stream in (('ours', case.ours), ('rival', case.rival)):
                admin.execute('TRUNCATE idem_keys, idem_responses, idem_leases, obvious')
                calls = 0
                for _ in range(STORED_ROUNDS):
                    calls += bench.run(stream, 1).calls
                    admin.execute('VACUUM')
                sizes = {name: size / calls for name, size in relation_sizes(admin).items() if size}
                row |= {f'{side}_relations': sizes, f'{side}_bytes': sum(sizes.values())}
            row['ratio'] = row['rival_bytes'] / row['ours_bytes']
            rows.append(row)
    return rows


def relation_sizes(admin):
    return dict(admin.execute("""
        SELECT c.relname, pg_relation_size(c.oid)
          FROM pg_class c
         WHERE relname ~ '^(idem_(keys|responses|leases)|obvious)' AND relkind IN ('r', 'i')""").fetchall())


def storms():
    """storms returns the rows of the hot key."""
    say(f'{CROWD} sessions on one key')
    ours, rival = storm.run(CROWD, STORM_ROUNDS)
    names = dict(ours='idem_claim', rival='in PL/pgSQL')
    return [dict(case=f'{CROWD} wait for one key: commit to last answer', **names, ours_ms=ours.made_ms,
                 rival_ms=rival.made_ms, ratio=rival.made_ms / ours.made_ms, target='≤ 50 ms'),
            dict(case=f'{CROWD} wait for one key: commit to last received', **names, ours_ms=ours.received_ms,
                 rival_ms=rival.received_ms, ratio=rival.received_ms / ours.received_ms),
            dict(case=f'{CROWD} wait for one key: CPU of all while waiting', **names, ours_core=ours.waiting_cpu,
                 rival_core=rival.waiting_cpu, target='< 5 %')]


AMOUNTS = (('rate', ',.0f', ''), ('bytes', ',.0f', ' B'), ('ms', '.1f', ' ms'), ('core', '.2f', ' % of a core'))


def cells(row):
    """cells returns the texts of a row of the table; what a row does not have is empty."""
    def number(name, form):
        return format(row[name], form) if row.get(name) is not None else ''

    def amount(side):
        return ''.join(number(f'{side}_{name}', form) + unit for name, form, unit in AMOUNTS if f'{side}_{name}' in row)

    target = row.get('target') or ''
    return [row['case'], row['ours'], row['rival'], amount('ours'), amount('rival'), number('ratio', '.2f'),
            target if isinstance(target, str) else f'≥ {target:.2f}', number('ours_cpu_us', '.1f'),
            number('rival_cpu_us', '.1f'), number('cpu_ratio', '.2f'), number('ours_p95_ms', '.3f'),
            number('rival_p95_ms', '.3f')]


def print_table(rows):
    print('| ' + ' | '.join(HEADINGS) + ' |')
    print('|---|---|---' + '|--:' * (len(HEADINGS) - 3) + '|')
    for row in rows:
        print('| ' + ' | '.join(cells(row)) + ' |')
    print('\nRatios above 1: ours is faster, or takes less CPU time of the server. '
          'The guide asks for a p95 of 1–5 ms and 200–800 bytes per key.')


def wanted_cases():
    listed = cases.new_key_cases() + cases.replay_cases() + cases.whole_cases() + cases.redis_cases()
    if KEYS:
        listed += cases.size_cases('few', 'many', KEYS)
    return [case for case in listed if ONLY.search(case.name)]


def prepare(wanted):
    say(f'{KEPT:,} answered keys of each size')
    fixture.create('postgres', KEPT)
    if KEYS:
        fixture.create('few', KEPT)
        fixture.create('many', KEPT)
        say(f'{KEYS:,} live keys')
        fixture.fill_directly('many', KEPT + 1, KEYS)
    bench = meter.Meter(KEPT)
    if any(isinstance(case.rival, cases.RedisGet) for case in wanted):
        bench.redis = meter.Redis(KEPT)
    return bench


def main():
    wanted = wanted_cases()
    bench = prepare(wanted)
    try:
        samples = measure(bench, wanted)
        rows = [compare(case, samples) for case in wanted]
        if ONLY.search('bytes'):
            rows += stored_bytes(bench)
        if ONLY.search('storm'):
            rows += storms()
    finally:
        if bench.redis:
            bench.redis.stop()
    print_table(rows)
    version = bench.admin.execute('SELECT version()').fetchone()[0]
    cpu = subprocess.run(['uname', '-srm'], capture_output=True, text=True).stdout.strip()
    os.makedirs('build', exist_ok=True)
    with open('build/bench.json', 'w') as file:
        json.dump(dict(server=version, system=cpu, cores=os.cpu_count(), load=os.getloadavg(), rounds=ROUNDS,
                       seconds=SECONDS, keys=KEYS, rows=rows), file, indent=1, ensure_ascii=False)


if __name__ == '__main__':
    main()
