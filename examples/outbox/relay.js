#!/usr/bin/env node
// A relay in Node (pg): lease, publish in order, ack; one bad message stops its ordering key, not the rest.
//
//     PGHOST=... node relay.js [--once]        --once: until nothing is left
//
// publish() stands for your broker: throw, and the message comes again later.
'use strict';
const { Client } = require('pg');

const NAME = `node-${process.pid}`;

async function publish(message) {
    if (message.attempt === 1 && message.payload && message.payload.fail_once) throw new Error('broker says no');
    console.log(message.topic, message.ordering_key, message.headers.type, JSON.stringify(message.payload));
}

// turn does one batch and returns how many messages there were.
async function turn(client, wait) {
    const { rows } = await client.query(
        "SELECT * FROM idem_outbox_fetch(relay => $1, batch => 100, lease => '30 s', wait => $2)", [NAME, wait]);
    const done = [], failed = [], stopped = new Set();
    for (const message of rows) {
        const key = JSON.stringify([message.actor, message.topic, message.ordering_key]);
        if (stopped.has(key)) continue;
        try {
            await publish(message);
            done.push(message.id);
        } catch (error) {
            failed.push([message.id, message.token, error.message]);
            if (message.ordering_key !== null) stopped.add(key);
        }
    }
    try {
        if (done.length > 0) await client.query('SELECT idem_outbox_ack($1, $2)', [done, rows[0].token]);
        for (const one of failed) await client.query('SELECT idem_outbox_nack($1, $2, error => $3)', one);
    } catch (error) {
        if (error.code !== 'ID001') throw error; // the lease is over: somebody else has them, consumers know the ids
    }
    return rows.length;
}

async function main() {
    const once = process.argv.includes('--once');
    const client = new Client({ host: process.env.PGHOST, database: process.env.PGDATABASE || 'postgres' });
    await client.connect();
    while (await turn(client, once ? '2 s' : '5 s') > 0 || !once);
    await client.end();
}

main().catch((error) => {
    console.error(error);
    process.exit(1);
});
