"""asyncpg: what README.md's driver table says, on a live server. Behaviour: bodies and identifiers cross unchanged.

Covers its typed parameters (JSON is str, durations are timedelta), the binary format and the statement cache.
"""

import asyncio
import datetime
import json
import os
import uuid

import asyncpg

ACTOR = os.environ["IDEM_ACTOR"] + "-asyncpg"
OP = "drivers.check"
EVERY_BYTE = bytes(range(256))
PAYLOAD = json.dumps({"amount": 10})

CLAIM = "SELECT * FROM idem_claim(actor => $1, op => $2, key => $3, payload => $4)"

keys = iter(range(1, 1000))


def check(name, good):
    print(("ok" if good else "not ok") + " asyncpg: " + name, flush=True)


async def answer(session, name, sql, body, expect):
    """Complete a new key with a body and compare the first answer and the replay with `expect`."""
    key = f"key-{next(keys)}"
    claimed = await session.fetchrow(CLAIM, ACTOR, OP, key, PAYLOAD)
    first = await session.fetchrow(
        f"SELECT * FROM idem_complete(operation_id => $1, token => $2, status => $3{sql})",
        claimed["operation_id"],
        claimed["token"],
        201,
        *body,
    )
    again = await session.fetchrow(CLAIM, ACTOR, OP, key, PAYLOAD)
    sent = await session.fetchrow(
        "SELECT h.* FROM idem_claim($1, $2, $3, $4) AS r, idem_http_response(r) AS h", ACTOR, OP, key, PAYLOAD
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


async def bodies(session):
    await answer(session, "status only", "", (), (None, None, None))
    await answer(session, "text body", ", body => $4", ("gr\u00fc\u00dfe \u20ac",), ("gr\u00fc\u00dfe \u20ac", None, "gr\u00fc\u00dfe \u20ac".encode()))
    await answer(session, "empty text body", ", body => $4", ("",), ("", None, b""))
    await answer(session, "JSON body", ", body_json => $4", ('{"id": "ch_1"}',), ('{"id": "ch_1"}', None, b'{"id": "ch_1"}'))
    await answer(session, "JSON null body", ", body_json => $4", ("null",), ("null", None, b"null"))
    await answer(session, "binary body", ", body_bytes => $4", (EVERY_BYTE,), (None, EVERY_BYTE, EVERY_BYTE))
    pairs = [["Content-Type", "text/plain"], ["Link", "<a>"], ["Link", "<b>"]]
    again = await answer(session, "body with headers", ", body => $4, headers => $5", ("x", json.dumps(pairs)), ("x", None, b"x"))
    check("headers are pairs in order", json.loads(again["headers"]) == pairs)


async def parameters(session):
    attempt = uuid.uuid4()
    durations = "SELECT * FROM idem_claim($1, $2, $3, wait => $4, lease => $5, ttl => $6, attempt_id => $7)"
    arguments = (ACTOR, OP, "durations", datetime.timedelta(0), datetime.timedelta(seconds=30), datetime.timedelta(days=2), attempt)
    first = await session.fetchrow(durations, *arguments)
    second = await session.fetchrow(durations, *arguments)
    check("durations as timedelta", first["outcome"] == "claimed")
    check("attempt_id as uuid.UUID resumes", second["outcome"] == "resumed" and second["token"] > first["token"])
    check("operation_id is uuid.UUID, token is int", isinstance(first["operation_id"], uuid.UUID) and isinstance(first["token"], int))
    try:
        await session.fetchrow("SELECT * FROM idem_complete($1, $2)", first["operation_id"], first["token"])
        check("stale token is ID001", False)
    except asyncpg.PostgresError as error:
        check("stale token is ID001", error.sqlstate == "ID001")
    check("no JSON as None", (await session.fetchrow(CLAIM, ACTOR, OP, "no payload", None))["proceed"])
    many = await session.fetch("SELECT key, outcome FROM idem_claim_many($1, $2, $3, $4)", ACTOR, OP, ["m-1", "m-2"], ['{"a": 1}', "2"])
    check("arrays for idem_claim_many", [tuple(r) for r in many] == [("m-1", "claimed"), ("m-2", "claimed")])
    raw = await session.fetchval("SELECT outcome FROM idem_claim($1, $2, $3, payload_bytes => $4)", ACTOR, OP, "bytes", EVERY_BYTE)
    check("payload as bytes", raw == "claimed")
    # With a codec, JSON is Python objects in both directions.
    await session.set_type_codec("jsonb", encoder=json.dumps, decoder=json.loads, schema="pg_catalog")
    check("JSON as dict with set_type_codec", (await session.fetchrow(CLAIM, ACTOR, OP, "codec", {"a": 1}))["proceed"])


async def main():
    session = await asyncpg.connect(host=os.environ.get("PGHOST"), port=int(os.environ.get("PGPORT", 5432)))
    await bodies(session)
    await parameters(session)
    await session.close()


asyncio.run(main())
