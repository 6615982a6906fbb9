#!/usr/bin/python3
"""hash_run.py [FOLDER]: times the payload hash beside what people use instead; prints one Markdown table and writes
build/bench-hash.json. FOLDER holds the npm package @octokit/webhooks-examples.

Environment: BENCH_ROUNDS (5) rounds over all cases; BENCH_ONLY a regular expression on names of cases.

The documents of a case lie in a tuplestore, so nobody reads tables or TOAST. A pass calls each function in turn on all of
them and notes the time in between; a round makes PASSES passes over each case and keeps every function's least disturbed
one. Numbers are medians of the rounds, ratios medians of the rounds' ratios; per document, with the executor.
"""
import json
import os
import pathlib
import re
import statistics
import sys

import psycopg

import hash_documents

ROUNDS = int(os.environ.get('BENCH_ROUNDS', '5'))
ONLY = re.compile(os.environ.get('BENCH_ONLY', ''))
PASSES = 7
OURS, OURS_SHA256, COMPOSED, MD5, SHA256, TEXT_HASH, JSONB_HASH = FUNCTIONS = (
    'idem_hash(j)', "idem_hash(j, 'sha256')", "sha256(convert_to(idem_canonical(j), 'UTF8'))", 'md5(j::text)',
    "sha256(convert_to(j::text, 'UTF8'))", 'hashtextextended(j::text, 0)', 'jsonb_hash_extended(j, 0)')
PARTS = ', '.join(f'extract(epoch FROM clock_timestamp()), (SELECT count({function}) FROM d WHERE pass >= 0)'
                  for function in FUNCTIONS)
SAMPLE = f'''
WITH d AS MATERIALIZED (SELECT doc::jsonb AS j FROM document WHERE name = %s)
SELECT {PARTS}, extract(epoch FROM clock_timestamp()) FROM generate_series(0, %s) AS pass'''


def sample(connection, case):
    """sample returns the microseconds that each function takes per document of case.

    The first pass is not counted: it parses the documents, and wakes what sleeps.
    """
    passes = [row[::2] for row in connection.execute(SAMPLE, (case.name, PASSES)).fetchall()[1:]]
    return {function: min(float(times[i + 1] - times[i]) for times in passes) * 1e6 / len(case.documents)
            for i, function in enumerate(FUNCTIONS)}


def load(connection, cases):
    connection.execute('CREATE TEMP TABLE document (name text, doc text)')
    with connection.cursor().copy('COPY document FROM STDIN') as copy:
        for case in cases:
            for text in case.documents:
                copy.write_row((case.name, text))
    connection.execute("SET work_mem = '256MB'")
    connection.execute('SET jit = off')
    sizes = connection.execute('SELECT name, avg(octet_length(idem_canonical(doc::jsonb))) FROM document GROUP BY 1')
    return {name: float(size) for name, size in sizes}


def measure(connection, cases):
    samples = {(case.name, function): [] for case in cases for function in FUNCTIONS}
    for number in range(ROUNDS):
        print(f'-- round {number + 1} of {ROUNDS}', file=sys.stderr)
        for case in cases:
            for function, time in sample(connection, case).items():
                samples[case.name, function].append(time)
    return samples


def text_rates(connection):
    """text_rates returns how many GB/s of plain text the server's own hashes make here, to compare machines by."""
    rates = {}
    for function in ('md5(t)', "sha256(convert_to(t, 'UTF8'))"):
        times = [float(row[0]) for row in connection.execute(
            f'''WITH d AS MATERIALIZED (SELECT repeat(md5(i::text), 2048) AS t FROM generate_series(1, 16) AS i)
            SELECT extract(epoch FROM clock_timestamp()), (SELECT count({function}) FROM d WHERE pass >= 0)
            FROM generate_series(0, 20) AS pass''')]
        rates[function] = 16 * 65536 / min(b - a for a, b in zip(times[1:], times[2:])) / 1e9
    return rates


def row_of(case, size, samples):
    mine = {function: samples[case.name, function] for function in FUNCTIONS}

    def ratio(rival, ours=OURS):
        return statistics.median(b / a for a, b in zip(mine[ours], mine[rival]))

    row = {'case': case.name, 'documents': len(case.documents), 'bytes': size,
           'us': {function: statistics.median(mine[function]) for function in FUNCTIONS},
           'gb_per_s': size / statistics.median(mine[OURS]) / 1000,
           'ratios': {rival: ratio(rival) for rival in (MD5, SHA256, TEXT_HASH, JSONB_HASH)},
           'sha256_ratio': ratio(COMPOSED, OURS_SHA256)}
    row['missed'] = [text for is_reached, text in (
        (row['ratios'][MD5] >= case.ratio, f'{case.ratio:g} × md5'),
        (row['ratios'][JSONB_HASH] > 1, 'jsonb_hash_extended'),
        (case.rate is None or row['gb_per_s'] >= case.rate, f'{case.rate} GB/s'),
        (row['sha256_ratio'] >= 1, 'SHA-256')) if not is_reached]
    return row


def print_table(rows, rates):
    print(f'Microseconds of `{OURS}` per document, and how many times longer the others take. GB/s of canonical text. '
          'Plain text was hashed here with ' +
          ' and '.join(f'`{function}` at {rate:.2f} GB/s' for function, rate in rates.items()) + '.\n')
    print(f'| case | bytes | µs | GB/s | {MD5} | {SHA256} | {TEXT_HASH} | {JSONB_HASH} | µs of sha256 '
          '| canonical text, then sha256 | missed |')
    print('|---|' + '--:|' * 9 + '---|')
    for row in rows:
        ratios = ' | '.join(f'{ratio:.2f}' for ratio in row['ratios'].values())
        print(f"| {row['case']} | {row['bytes']:,.0f} | {row['us'][OURS]:.2f} | {row['gb_per_s']:.2f} | {ratios} "
              f"| {row['us'][OURS_SHA256]:.2f} | {row['sha256_ratio']:.2f} | {', '.join(row['missed'])} |")


def main():
    cases = hash_documents.synthetic()
    if sys.argv[1:]:
        cases.append(hash_documents.webhooks(sys.argv[1]))
    cases = [case for case in cases if ONLY.search(case.name)]
    with psycopg.connect(autocommit=True) as connection:
        if connection.execute("SELECT to_regproc('idem_hash') IS NULL").fetchone()[0]:
            connection.execute('CREATE EXTENSION idempotency')
        sizes = load(connection, cases)
        samples = measure(connection, cases)
        rates = text_rates(connection)
    rows = [row_of(case, sizes[case.name], samples) for case in cases]
    print_table(rows, rates)
    pathlib.Path('build').mkdir(exist_ok=True)
    pathlib.Path('build/bench-hash.json').write_text(json.dumps({'text_gb_per_s': rates, 'cases': rows}, indent=1, ensure_ascii=False) + '\n')


if __name__ == '__main__':
    main()
