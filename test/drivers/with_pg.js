// npm pg: what README.md's driver table says, on a live server. Behaviour: bodies and identifiers cross unchanged.
// It sends every parameter as text without a type: objects become JSON, arrays become PostgreSQL arrays, and a bigint
// comes back as a string, which is how the token is to be kept.
'use strict';
const { randomUUID } = require('crypto');
const { Client } = require('pg');

const ACTOR = process.env.IDEM_ACTOR + '-node';
const OP = 'drivers.check';
const EVERY_BYTE = Buffer.from(Array.from({ length: 256 }, (_, i) => i));
const CLAIM = 'SELECT * FROM idem_claim(actor => $1, op => $2, key => $3, payload => $4)';

let keys = 0;

function check(name, good) {
    console.log(`${good ? 'ok' : 'not ok'} node pg: ${name}`);
}

const same = (a, b) => JSON.stringify(a) === JSON.stringify(b);

async function row(client, text, values, name) {
    return (await client.query({ text, values, name })).rows[0];
}

// answer completes a new key with a body and compares the first answer and the replay with what is expected.
async function answer(client, name, sql, body, text, raw, wire, prepared) {
    const key = `key-${++keys}`;
    const payload = { amount: 10 };
    const claimed = await row(client, CLAIM, [ACTOR, OP, key, payload], prepared && 'claim');
    const first = await row(client,
        `SELECT * FROM idem_complete(operation_id => $1, token => $2, status => $3${sql})`,
        [claimed.operation_id, claimed.token, 201, ...body], prepared && `complete${sql}`);
    const again = await row(client, CLAIM, [ACTOR, OP, key, payload], prepared && 'claim');
    const sent = await row(client, 'SELECT h.* FROM idem_claim($1, $2, $3, $4) AS r, idem_http_response(r) AS h',
        [ACTOR, OP, key, payload]);
    check(name, claimed.proceed === true && first.outcome === 'completed' && again.outcome === 'replay' &&
        first.status === 201 && again.status === 201 && sent.status === 201 &&
        same([first.body, first.body_bytes, first.headers], [again.body, again.body_bytes, again.headers]) &&
        same([again.body, again.body_bytes], [text, raw]) && same(sent.body, wire));
    return again;
}

async function bodies(client, where, prepared) {
    const text = 'gr\u00fc\u00dfe \u20ac';
    await answer(client, `status only${where}`, '', [], null, null, null, prepared);
    await answer(client, `text body${where}`, ', body => $4', [text], text, null, Buffer.from(text), prepared);
    await answer(client, `empty text body${where}`, ', body => $4', [''], '', null, Buffer.from(''), prepared);
    await answer(client, `JSON body${where}`, ', body_json => $4', [{ id: 'ch_1' }], '{"id": "ch_1"}', null,
        Buffer.from('{"id": "ch_1"}'), prepared);
    await answer(client, `JSON null body${where}`, ', body_json => $4', ['null'], 'null', null, Buffer.from('null'), prepared);
    await answer(client, `binary body${where}`, ', body_bytes => $4', [EVERY_BYTE], null, EVERY_BYTE, EVERY_BYTE, prepared);
    const pairs = [['Content-Type', 'text/plain'], ['Link', '<a>'], ['Link', '<b>']];
    const again = await answer(client, `body with headers${where}`, ', body => $4, headers => $5', ['x', JSON.stringify(pairs)],
        'x', null, Buffer.from('x'), prepared);
    check(`headers are pairs in order${where}`, same(again.headers, pairs));
}

async function parameters(client) {
    const proceeds = async (key, payload) => (await row(client, CLAIM, [ACTOR, OP, key, payload])).proceed;
    check('JSON object as it is', await proceeds('object', { a: [1, 'x', null] }));
    check('any JSON as JSON.stringify(...)', await proceeds('array', JSON.stringify([1, 2])));
    check('no JSON as null or undefined', (await proceeds('null', null)) && (await proceeds('undefined', undefined)));
    const attempt = randomUUID();
    const durations = 'SELECT * FROM idem_claim($1, $2, $3, wait => $4, lease => $5, ttl => $6, attempt_id => $7)';
    const values = [ACTOR, OP, 'durations', '0 s', '30 seconds', '2 days', attempt];
    const first = await row(client, durations, values);
    const second = await row(client, durations, values);
    check('durations as strings with a unit', first.outcome === 'claimed');
    check('attempt_id as string resumes', second.outcome === 'resumed' && BigInt(second.token) > BigInt(first.token));
    check('operation_id and token are strings, the token is a safe integer',
        typeof first.operation_id === 'string' && typeof first.token === 'string' && Number.isSafeInteger(Number(first.token)));
    const complete = 'SELECT * FROM idem_complete($1, $2)';
    await client.query(complete, [first.operation_id, first.token]).then(
        () => check('stale token is ID001', false), (error) => check('stale token is ID001', error.code === 'ID001'));
    const done = await row(client, complete, [second.operation_id, Number(second.token)]);
    check('token as number', done.outcome === 'completed');
    const many = await client.query('SELECT key, outcome FROM idem_claim_many($1, $2, $3, $4)',
        [ACTOR, OP, ['m-1', 'm-2'], [{ a: 1 }, { b: 2 }]]);
    check('arrays for idem_claim_many',
        same(many.rows, [{ key: 'm-1', outcome: 'claimed' }, { key: 'm-2', outcome: 'claimed' }]));
    const raw = await row(client, 'SELECT outcome FROM idem_claim($1, $2, $3, payload_bytes => $4)', [ACTOR, OP, 'bytes', EVERY_BYTE]);
    check('payload as Buffer', raw.outcome === 'claimed');
}

(async () => {
    const client = new Client();
    await client.connect();
    await parameters(client);
    await bodies(client, '', false);
    await bodies(client, ', named statements', true);
    await client.end();
})().catch((error) => {
    console.error(error);
    process.exit(1);
});
