#!/usr/bin/python3
"""run.py: measures the extension beside its rivals, prints one Markdown table and writes build/bench.json.

Environment: BENCH_SECONDS (4) of each side of a case, in BENCH_ROUNDS (40) rounds, interleaved A B A B; BENCH_KEYS
(off) live keys of a database that is compared with one of 10,000; BENCH_ONLY a regular expression on case names.
"""
import json
import os
import re
import statistics
import sys

import cases
import fixture
import meter
import storm

ROUNDS = int(os.environ.get('BENCH_ROUNDS', '40'))
SECONDS = int(os.environ.get('BENCH_SECONDS', '4'))
KEYS = int(os.environ.get('BENCH_KEYS', '0'))
ONLY = re.compile(os.environ.get('BENCH_ONLY', ''))
KEPT = 10_000
CROWD = 200
STORM_ROUNDS = 3
REDIS_ROUNDS = 3
STORED_ROUNDS = 4
HEADINGS = ('case', 'ours', 'rival', 'ours per s', 'rival per s', 'ratio', 'target', 'CPU µs ours', 'CPU µs rival',
            'CPU ratio', 'p95 ms ours', 'p95 ms rival')


def say(text):
    print(f'-- {text}', file=sys.stderr)


def measure(bench, redis, case):
    """measure runs the two sides of a case in turns; returns their samples."""
    say(case.name + ': ' + case.ours.name + ' | ' + case.rival.name)
    if not isinstance(case.rival, cases.RedisGet):
        return bench.alternate(case.ours, case.rival, ROUNDS, SECONDS)
    pairs = [(bench.alone(case.ours, 1), redis.alone(case.rival, 1)) for _ in range(REDIS_ROUNDS)]
    return [meter.Sample([turn for sample in side for turn in sample.turns],
                         statistics.median(sample.p95_ms for sample in side)) for side in zip(*pairs)]


def compare(case, ours, rival):
    """compare returns a row: medians of turns, and medians of the ratios of turns. Above 1: ours is better."""
    pairs = list(zip(ours.turns, rival.turns))
    row = dict(case=case.name, ours=case.ours.name, rival=case.rival.name, target=case.target,
               ratio=statistics.median(a.rate / b.rate for a, b in pairs),
               cpu_ratio=statistics.median(b.cpu_us / a.cpu_us for a, b in pairs))
    row['ratio_quartiles'] = statistics.quantiles((a.rate / b.rate for a, b in pairs), n=4)[::2]
    for side, sample in (('ours', ours), ('rival', rival)):
        row |= {f'{side}_rate': sample.median('rate'), f'{side}_cpu_us': sample.median('cpu_us'),
                f'{side}_p95_ms': sample.p95_ms}
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
                    calls += bench.fill(stream, 1)
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


def prepare():
    """prepare makes the databases and returns the meter."""
    say(f'{KEPT:,} answered keys of each size')
    fixture.create('postgres', KEPT)
    if KEYS:
        fixture.create('few', KEPT)
        fixture.create('many', KEPT)
        say(f'{KEYS:,} live keys')
        fixture.fill_directly('many', KEPT + 1, KEYS)
    return meter.Meter(KEPT)


def all_rows(bench, redis):
    rows = [compare(case, *measure(bench, redis, case)) for case in wanted_cases()]
    if ONLY.search('bytes'):
        rows += stored_bytes(bench)
    if ONLY.search('storm'):
        rows += storms()
    return rows


def write_json(bench, rows):
    os.makedirs('build', exist_ok=True)
    with open('build/bench.json', 'w') as file:
        json.dump(dict(server=bench.admin.execute('SELECT version()').fetchone()[0], system=' '.join(os.uname()[::2]),
                       cores=os.cpu_count(), load=os.getloadavg(), rounds=ROUNDS, seconds=SECONDS, keys=KEYS,
                       rows=rows), file, indent=1, ensure_ascii=False)


def main():
    bench = prepare()
    redis = meter.Redis(KEPT)
    try:
        rows = all_rows(bench, redis)
    finally:
        redis.stop()
    print_table(rows)
    write_json(bench, rows)


if __name__ == '__main__':
    main()
