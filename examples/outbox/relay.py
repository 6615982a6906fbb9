#!/usr/bin/env python3
"""A relay in Python (psycopg 3): lease, publish in order, ack; one bad message stops its ordering key, not the rest.

    PGHOST=... relay.py [--once]        --once: until nothing is left

publish() stands for your broker: raise, and the message comes again later.
"""
import os
import sys

import psycopg
from psycopg.rows import dict_row

NAME = f"python-{os.getpid()}"


def publish(message):
    if message["attempt"] == 1 and (message["payload"] or {}).get("fail_once"):
        raise RuntimeError("broker says no")
    print(message["topic"], message["ordering_key"], message["headers"]["type"], message["payload"], flush=True)


def turn(connection, wait):
    """One batch: returns how many messages there were."""
    messages = connection.execute(
        "SELECT * FROM idem_outbox_fetch(relay => %s, batch => 100, lease => '30 s', wait => %s)", [NAME, wait]
    ).fetchall()
    done, failed, stopped = [], [], set()
    for message in messages:
        key = (message["actor"], message["topic"], message["ordering_key"])
        if key in stopped:
            continue
        try:
            publish(message)
            done.append(message["id"])
        except Exception as error:
            failed.append((message["id"], message["token"], str(error)))
            if message["ordering_key"] is not None:
                stopped.add(key)
    try:
        if done:
            connection.execute("SELECT idem_outbox_ack(%s, %s)", [done, messages[0]["token"]])
        for message_id, token, error in failed:
            connection.execute("SELECT idem_outbox_nack(%s, %s, error => %s)", [message_id, token, error])
    except psycopg.Error as error:
        if error.sqlstate != "ID001":  # the lease is over: somebody else has them, consumers know the ids
            raise
    return len(messages)


def main():
    once = "--once" in sys.argv[1:]
    # autocommit: the lease must be committed before anything is published.
    with psycopg.connect(autocommit=True, row_factory=dict_row) as connection:
        while turn(connection, "2 s" if once else "5 s") or not once:
            pass


if __name__ == "__main__":
    main()
