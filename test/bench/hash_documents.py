"""hash_documents.py: the documents that the hash benchmark runs on, always the same ones.

A Case is a list of JSON texts of one kind. `repeated` documents have the keys of their kind, as documents of one API
do; in `unique` ones the keys of every object are words of their own, never met again. webhooks() reads real payloads.
"""
import dataclasses
import json
import pathlib
import random

KIB = 1024
BYTES = 1_000_000  # of text per case, roughly


@dataclasses.dataclass(frozen=True)
class Case:
    name: str
    documents: list
    ratio: float = 5.0       # how many times faster than md5(j::text) it is to be
    rate: float | None = None  # GB/s of canonical text it is to reach


SYLLABLES = ('ac ad am an ar as at ba be bi ca ce co cu da de di do ed el em en er es fa fi fo ga ge go ha he ho ic id '
             'il im in is it la le li lo ma me mi mo na ne no of on or pa pe po ra re ri ro sa se si so ta te ti to '
             'un up us ut va ve vi wa we wo').split()
PROSE = ('the order was placed by phone and has to be packed with care because parts of it are fragile please call '
         'before delivery leave nothing at the door and send the invoice to the head office').split()


def word(rng, least=2, most=5):
    return ''.join(rng.choices(SYLLABLES, k=rng.randint(least, most)))


def prose(rng, size):
    text = ''
    while len(text) < size:
        text += rng.choice(PROSE) + ' '
    return text[:size].strip()


def identifier(rng, prefix):
    return f'{prefix}_{rng.getrandbits(96):024x}'


def line(rng):
    return {'id': identifier(rng, 'li'), 'sku': f'{word(rng)}-{rng.randint(100, 9999)}', 'quantity': rng.randint(1, 12),
            'unit_price': rng.randint(99, 99999) / 100, 'description': prose(rng, rng.randint(12, 60)),
            'taxable': rng.random() < 0.8, 'tax_rate': rng.choice([0.19, 0.07, 0.2]), 'discounts': [],
            'options': {'color': word(rng), 'size': rng.choice(['S', 'M', 'L']), 'gift': rng.random() < 0.1}}


def order(rng, lines):
    return {'order_id': identifier(rng, 'ord'), 'currency': rng.choice(['EUR', 'USD', 'GBP']),
            'amount': rng.randint(100, 9_999_999), 'created_at': f'2024-05-{rng.randint(1, 28):02}T12:31:07Z',
            'customer': {'id': identifier(rng, 'cus'), 'name': f'{word(rng).title()} {word(rng).title()}',
                         'email': f'{word(rng)}@example.com', 'vip': rng.random() < 0.1, 'note': None,
                         'address': {'line1': f'{rng.randint(1, 200)} {word(rng).title()} Street', 'line2': None,
                                     'city': word(rng).title(), 'postal_code': f'{rng.randint(10000, 99999)}',
                                     'country': 'DE'}},
            'lines': [line(rng) for _ in range(lines)]}


def small(rng):
    return {'id': identifier(rng, 'pay'), 'amount': rng.randint(100, 999_999), 'currency': 'EUR',
            'confirm': rng.random() < 0.5, 'retries': rng.randint(0, 9)}


def renamed(rng, value, names=None):
    """renamed returns value with keys of no other object; with names, a dict of its own, of no other document."""
    def name(key):
        new = f'{word(rng, 1, 2)}{"_" if rng.random() < 0.5 else ""}{word(rng, 1, 3)}'
        return new if names is None else names.setdefault(key, new)

    if isinstance(value, dict):
        return {name(key): renamed(rng, item, names) for key, item in value.items()}
    if isinstance(value, list):
        return [renamed(rng, item, names) for item in value]
    return value


def documents(make, size=BYTES):
    """documents calls make() until it has size bytes of text, and two documents."""
    texts, total = [], 0
    while total < size or len(texts) < 2:
        texts.append(json.dumps(make(), ensure_ascii=False))
        total += len(texts[-1].encode())
    return texts


def orders(rng, size):
    lines = max(0, round((size - 430) / 245))
    return lambda: order(rng, lines) if size >= KIB else small(rng)


def keyed(rng, count, names=None):
    names = names or [f'{word(rng, 1, 3)}_{word(rng, 1, 3)}{rng.randint(0, 99)}' for _ in range(count)]
    return {name: rng.choice([rng.randint(0, 99999), word(rng), True, rng.randint(0, 9999) / 100]) for name in names}


def with_line_ends(rng, size):
    """with_line_ends is text such as mail: lines of 40 to 75 bytes, some quotes and tabs."""
    text = ''
    while len(text) < size:
        text += prose(rng, rng.randint(40, 75)) + '\n'
        if rng.random() < 0.3:
            text += f'\t"{word(rng)}" '
    return text


def chinese(rng, size):
    return ''.join(chr(rng.randint(0x4E00, 0x9FA5)) if rng.random() < 0.9 else '，' for _ in range(size // 3))


def synthetic():
    """synthetic returns the cases that need no download."""
    cases = []
    for label, size in (('100 B', 100), ('1 KB', KIB), ('8 KB', 8 * KIB), ('64 KB', 64 * KIB), ('1 MB', KIB * KIB)):
        for kind in ('repeated', 'unique'):
            rng = random.Random(f'{label} {kind}')
            make = orders(rng, size)
            build = make if kind == 'repeated' else lambda make=make, rng=rng: renamed(rng, make())
            rate = {('64 KB', 'repeated'): 2.0, ('64 KB', 'unique'): 1.2}.get((label, kind))
            cases.append(Case(f'order {label}, {kind}', documents(build), rate=rate))
    rng = random.Random('64 KB unique per document')
    make = orders(rng, 64 * KIB)
    cases.append(Case('order 64 KB, unique per document', documents(lambda: renamed(rng, make(), {}))))
    for count in (200, 5000):
        rng = random.Random(count)
        names = list(keyed(rng, count))
        cases.append(Case(f'{count} keys, repeated', documents(lambda: keyed(rng, count, names))))
        # So many that the cache does not take them for repeated ones in the next pass.
        cases.append(Case(f'{count} keys, unique', documents(lambda: keyed(rng, count), 6 * BYTES)))
    rng = random.Random(1)
    for label, number in (('integers', lambda: rng.randint(0, 10 ** rng.randint(1, 9))),
                          ('money', lambda: rng.randint(1, 10_000_000) / 100), ('doubles', lambda: rng.uniform(-180, 180))):
        cases.append(Case(f'array of 4,000 {label}', documents(lambda: [number() for _ in range(4000)]), ratio=4.0))
    for label, make in (('long strings', lambda: prose(rng, 4096)), ('text with line ends', lambda: with_line_ends(rng, 4096)),
                        ('JSON in strings', lambda: json.dumps(order(rng, 12))), ('CJK text', lambda: chinese(rng, 4096))):
        cases.append(Case(f'{label}, 64 KB', documents(lambda: {'body': [make() for _ in range(16)]})))
    cases.append(Case('short CJK strings, 64 KB', documents(lambda: {'rows': [
        {'名前': chinese(rng, 24), '住所': chinese(rng, 60), 'id': rng.randint(1, 99999)} for _ in range(500)]})))
    return cases


def webhooks(folder):
    """webhooks returns the example payloads of the npm package @octokit/webhooks-examples, unpacked in folder."""
    events = json.loads((pathlib.Path(folder) / 'api.github.com' / 'index.json').read_text())
    return Case('webhook corpus', [json.dumps(example, ensure_ascii=False) for event in events
                                   for example in event['examples']])
