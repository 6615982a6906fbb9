"""psycopg 3: what README.md's driver table says, on a live server. Behaviour: bodies and identifiers cross unchanged.

Covers the parameters JSON, interval, uuid, bigint, bytea and arrays in both the client's default (server-side binding)
and the binary result format; SQLSTATEs of class ID.
"""

import datetime
import os
import uuid

import psycopg
from psycopg.types.json import Jsonb

ACTOR = os.environ["IDEM_ACTOR"] + "-psycopg"
OP = "drivers.check"
EVERY_BYTE = bytes(range(256))

CLAIM = "SELECT * FROM idem_claim(actor => %s, op => %s, key => %s, payload => %s)"

keys = iter(range(1, 1000))


def check(name, good):
    print(("ok" if good else "not ok") + " psycopg: " + name, flush=True)


def row(cursor, sql, parameters):
    cursor.execute(sql, parameters)
    names = [column.name for column in cursor.description]
    return dict(zip(names, cursor.fetchone()))


def claim(cursor, payload):
    key = f"key-{next(keys)}"
    return key, row(cursor, CLAIM, (ACTOR, OP, key, payload))


def answer(cursor, name, sql, body, expect):
    """Complete a new key with a body and compare the first answer and the replay with `expect`."""
    key, claimed = claim(cursor, Jsonb({"amount": 10}))
    first = row(
        cursor,
        f"SELECT * FROM idem_complete(operation_id => %s, token => %s, status => %s{sql})",
        (claimed["operation_id"], claimed["token"], 201, *body),
    )
    again = row(cursor, CLAIM, (ACTOR, OP, key, Jsonb({"amount": 10})))
    sent = row(
        cursor,
        "SELECT h.* FROM idem_claim(%s, %s, %s, %s) AS r, idem_http_response(r) AS h",
        (ACTOR, OP, key, Jsonb({"amount": 10})),
    )
    text, raw, wire = expect
    check(
        name,
        claimed["proceed"] is True
        and first["outcome"] == "completed"
        and again["outcome"] == "replay"
        and first["status"] == again["status"] == sent["status"] == 201
        and (first["body"], first["body_bytes"]) == (again["body"], again["body_bytes"]) == (text, raw)
        and first["headers"] == again["headers"]
        and sent["body"] == wire,
    )
    return again


def bodies(cursor, where):
    answer(cursor, f"status only{where}", "", (), (None, None, None))
    answer(cursor, f"text body{where}", ", body => %s", ("gr\u00fc\u00dfe \u20ac",), ("gr\u00fc\u00dfe \u20ac", None, "gr\u00fc\u00dfe \u20ac".encode()))
    answer(cursor, f"empty text body{where}", ", body => %s", ("",), ("", None, b""))
    answer(cursor, f"JSON body{where}", ", body_json => %s", (Jsonb({"id": "ch_1"}),), ('{"id": "ch_1"}', None, b'{"id": "ch_1"}'))
    answer(cursor, f"JSON null body{where}", ", body_json => %s", (Jsonb(None),), ("null", None, b"null"))
    answer(cursor, f"binary body{where}", ", body_bytes => %s", (EVERY_BYTE,), (None, EVERY_BYTE, EVERY_BYTE))
    pairs = [["Content-Type", "text/plain"], ["Link", "<a>"], ["Link", "<b>"]]
    again = answer(cursor, f"body with headers{where}", ", body => %s, headers => %s", ("x", Jsonb(pairs)), ("x", None, b"x"))
    check(f"headers are pairs in order{where}", again["headers"] == pairs)


def parameters(connection):
    cursor = connection.cursor()
    check("JSON as Jsonb(...)", claim(cursor, Jsonb({"a": [1, "x", None]}))[1]["proceed"])
    check("JSON as str", claim(cursor, '{"a": 1}')[1]["proceed"])
    check("no JSON as None", claim(cursor, None)[1]["proceed"])
    attempt = uuid.uuid4()
    durations = (
        "SELECT * FROM idem_claim(%s, %s, %s, wait => %s, lease => %s, ttl => %s, attempt_id => %s)"
    )
    arguments = (ACTOR, OP, "durations", datetime.timedelta(0), datetime.timedelta(seconds=30), "2 days", attempt)
    first = row(cursor, durations, arguments)
    second = row(cursor, durations, arguments)
    check("durations as timedelta or str", first["outcome"] == "claimed")
    check("attempt_id as uuid.UUID resumes", second["outcome"] == "resumed" and second["token"] > first["token"])
    check("operation_id is uuid.UUID, token is int", isinstance(first["operation_id"], uuid.UUID) and isinstance(first["token"], int))
    try:
        cursor.execute("SELECT * FROM idem_complete(%s, %s)", (first["operation_id"], first["token"]))
        check("stale token is ID001", False)
    except psycopg.Error as error:
        check("stale token is ID001", error.sqlstate == "ID001")
    cursor.execute("SELECT * FROM idem_complete(%s, %s)", (str(second["operation_id"]), str(second["token"])))
    check("operation_id and token as str", cursor.fetchone()[0] == "completed")
    cursor.execute(
        "SELECT key, outcome FROM idem_claim_many(%s, %s, %s, %s)", (ACTOR, OP, ["m-1", "m-2"], [Jsonb({"a": 1}), Jsonb(2)])
    )
    check("arrays for idem_claim_many", cursor.fetchall() == [("m-1", "claimed"), ("m-2", "claimed")])
    cursor.execute("SELECT outcome FROM idem_claim(%s, %s, %s, payload_bytes => %s)", (ACTOR, OP, "bytes", EVERY_BYTE))
    check("payload as bytes", cursor.fetchone()[0] == "claimed")


def transactions():
    with psycopg.connect() as connection:
        claimed = row(connection.cursor(), CLAIM, (ACTOR, OP, "rolled back", None))
        connection.rollback()
        again = row(connection.cursor(), CLAIM, (ACTOR, OP, "rolled back", None))
        check("a rollback frees the key", claimed["outcome"] == again["outcome"] == "claimed")


with psycopg.connect(autocommit=True) as session:
    parameters(session)
    bodies(session.cursor(), "")
    bodies(session.cursor(binary=True), ", binary results")
    session.prepare_threshold = 1
    bodies(session.cursor(), ", prepared")
transactions()
