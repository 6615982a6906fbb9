"""service.py: a payments API whose clients may retry. Copy from here.

    POST /orders                  order.place: transaction mode. Claim, order and answer commit together, or not at all.
    POST /orders/REF/payments     payment.capture: lease mode. The claim is committed, the payment provider is called,
                                  and the answer is committed.

Both follow the one rule: do the work if and only if `proceed`; in every other case send idem_http_response(result).
The operation_id goes to the provider as our reference, so that its books can tell what became of an operation.

    service.py PORT PROVIDER_PORT [LEASE]      the database comes from PGHOST, PGPORT, ...
"""

import http.client
import http.server
import json
import queue
import re
import sys
import time
from decimal import Decimal

import psycopg
from psycopg.rows import namedtuple_row

CONNECTIONS = 16

# One round trip: the claim, and the response to send unless the work is ours to do. Parameters need no casts.
CLAIM = """
    SELECT c.proceed, c.operation_id, c.token, h.status, h.headers, h.body
      FROM idem_claim(actor => %(actor)s, op => %(op)s, key => coalesce(idem_http_key(%(key)s), ''),
                      payload => %(payload)s, target => %(target)s, wait => %(wait)s, lease => %(lease)s) AS c,
           idem_http_response(c) AS h"""

# idem_complete and idem_fail return what to send now: the answer that every replay will be, or, where the policy's
# on_status stores none, what the client is to do: come back (released) or ask somebody (indeterminate).
COMPLETE = """
    SELECT h.status, h.headers, h.body
      FROM idem_complete(%(operation_id)s, %(token)s, status => %(status)s, body => %(body)s,
                         headers => %(headers)s) AS r,
           idem_http_response(r) AS h"""
FAIL = """
    SELECT h.status, h.headers, h.body
      FROM idem_fail(%(operation_id)s, %(token)s, state => %(state)s, status => %(status)s, body => %(body)s,
                     headers => %(headers)s, evidence => %(evidence)s) AS r,
           idem_http_response(r) AS h"""


def answer(status, location, content):
    """answer is what idem_complete, idem_fail and idem_resolve store: a status, headers, and a body as text."""
    headers = [["Content-Type", "application/json"]] + ([["Location", location]] if location else [])
    return {"status": status, "body": json.dumps(content, ensure_ascii=False), "headers": json.dumps(headers)}


def receipt(charge_id, order, amount, currency):
    """receipt is the answer to a payment that was charged."""
    charge = f"ch_{charge_id}"
    content = {"charge": charge, "order": order, "amount": amount, "currency": currency, "status": "captured"}
    return answer(201, f"/payments/{charge}", content)


def failure(status, content, state=None, evidence=None):
    """failure is what idem_fail takes: an answer, a state (None: the policy decides by the status), what we know."""
    return {**answer(status, None, content), "state": state, "evidence": json.dumps(evidence) if evidence else None}


def place_order(db, claim_of, request):
    """place_order: one transaction. If anything in it fails, the key is free again with everything else undone."""
    with db.transaction():
        claim = claim_of(db, "order.place", request)
        if not claim.proceed:
            return claim.status, claim.headers, claim.body
        order_id, items = db.execute(
            """INSERT INTO shop.orders (merchant, operation_id, content) VALUES (%s, %s, %s)
               RETURNING order_id, jsonb_array_length(content -> 'items')""",
            (request["actor"], claim.operation_id, request["payload"]),
        ).fetchone()
        content = {"order": order_id, "items": items, "status": "placed"}
        return finish(db, COMPLETE, claim, answer(201, f"/orders/{order_id}", content))


def capture_payment(db, claim_of, request):
    """capture_payment: two transactions (the connection is in autocommit) with the provider in between."""
    claim = claim_of(db, "payment.capture", request)
    if not claim.proceed:
        return claim.status, claim.headers, claim.body

    try:
        order = charge_order(claim.operation_id, request)
    except (AttributeError, KeyError, TypeError):
        return finish(db, FAIL, claim, failure(422, {"error": "amount_or_currency_missing"}))

    # From here to the end a crash leaves the key indeterminate: nobody runs it again until somebody has looked.
    try:
        status, charge = call_provider(order)
    except (OSError, http.client.HTTPException) as lost:
        # No status is a timeout to the policy: indeterminate, for the charge may have been made.
        return finish(db, FAIL, claim, failure(None, {"error": "provider_silent"}, evidence={"provider": repr(lost)}))
    if status in (200, 201) and {"id", "amount", "currency"} <= charge.keys():
        stored = receipt(charge["id"], request["target"], charge["amount"], charge["currency"])
        return finish(db, COMPLETE, claim, stored)
    if status < 400:
        # Neither a receipt nor a refusal. Only somebody who looks can tell what it was.
        evidence = {"provider": f"status {status} without a receipt"}
        return finish(db, FAIL, claim, failure(502, {"error": "provider_unclear"}, "indeterminate", evidence))
    # Any other status goes to the policy as it is: a 402 is stored and replayed, after a 429 the key is free for the
    # client's next try, after a 500 it is indeterminate.
    error = {"error": charge.get("error", "provider_error"), "order": request["target"]}
    return finish(db, FAIL, claim, failure(status, error, evidence={"provider": f"status {status}"}))


def finish(db, statement, claim, stored):
    response = db.execute(statement, {"operation_id": claim.operation_id, "token": claim.token, **stored}).fetchone()
    return response.status, response.headers, response.body


def charge_order(operation_id, request):
    """charge_order is what the provider is asked for; raises where the request does not say."""
    payment = json.loads(request["payload"], parse_float=Decimal)
    return {"reference": str(operation_id), "amount": str(payment["amount"]), "currency": payment["currency"],
            "method": payment.get("method", {}).get("token")}


def call_provider(order):
    """call_provider asks for a charge; returns status and answer ({} if it is no JSON object), raises if none comes."""
    provider = http.client.HTTPConnection("127.0.0.1", PROVIDER_PORT, timeout=30)
    try:
        provider.request("POST", "/charges", json.dumps(order))
        reply = provider.getresponse()
        body = reply.read()
    finally:
        provider.close()
    try:
        content = json.loads(body)
    except ValueError:  # such as the page of a proxy on the way
        content = {}
    return reply.status, content if isinstance(content, dict) else {}


class Api(http.server.BaseHTTPRequestHandler):
    wbufsize = -1
    timeout = 30

    def do_POST(self):
        request = {
            # Who asks is known from authentication, never from the request's content.
            "actor": self.headers.get("Authorization", "").removeprefix("Bearer "),
            "key": self.headers.get("Idempotency-Key"),
            "target": None,
            "payload": self.rfile.read(int(self.headers.get("Content-Length", 0))).decode(),
            "wait": None,
            "lease": LEASE,
        }
        # Prefer: wait=N (RFC 7240) is how long the client would like to wait for a rival; without it the policy says.
        if prefer := re.fullmatch(r"wait=(\d{1,2})", self.headers.get("Prefer", "")):
            request["wait"] = prefer[1] + " seconds"

        payment = re.fullmatch(r"/orders/([\w-]+)/payments", self.path)
        if payment:
            request["target"] = payment[1]
        elif self.path != "/orders":
            return self.respond(404, [], b"")

        db = POOL.get()
        try:
            work = capture_payment if payment else place_order
            self.respond(*work(db, self.claim, request))
        except psycopg.errors.InvalidTextRepresentation:
            self.respond(400, [], b"not JSON\n")
        finally:
            POOL.put(db)

    def claim(self, db, op, request):
        start = time.perf_counter()
        claim = db.execute(CLAIM, {"op": op, **request}).fetchone()
        self.claim_ms = (time.perf_counter() - start) * 1000
        return claim

    def respond(self, status, headers, body):
        self.send_response(status)
        for name, value in headers:
            self.send_header(name, value)
        if hasattr(self, "claim_ms"):
            self.send_header("Server-Timing", f"claim;dur={self.claim_ms:.3f}")
        self.send_header("Content-Length", str(len(body or b"")))
        self.end_headers()
        self.wfile.write(body or b"")

    def log_message(self, *args):
        pass


class Server(http.server.ThreadingHTTPServer):
    request_queue_size = 128

    def handle_error(self, request, client_address):
        """handle_error keeps quiet about clients that are gone: their work is done, and a retry gets its answer."""
        if not isinstance(sys.exc_info()[1], ConnectionError):
            super().handle_error(request, client_address)


if __name__ == "__main__":
    PROVIDER_PORT = int(sys.argv[2])
    LEASE = sys.argv[3] if len(sys.argv) > 3 else None

    # A real service takes psycopg_pool here, which also replaces connections that broke.
    POOL = queue.LifoQueue()
    for _ in range(CONNECTIONS):
        POOL.put(psycopg.connect(autocommit=True, row_factory=namedtuple_row))
    server = Server(("127.0.0.1", int(sys.argv[1])), Api)
    print(server.server_port, flush=True)
    server.serve_forever()
