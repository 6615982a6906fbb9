"""provider.py: a pretend payment provider. It charges whatever it is asked to, as often as it is asked.

POST /charges writes one line of provider.charges in a transaction of its own, on a connection of its own, and answers
after a moment, as the internet does. `stalls` makes it hang on a payment method, before or after the charge;
`troubles` makes it answer a payment method once with an error: 429 before the charge, 500 after it.
"""

import http.server
import json
import queue
import random
import threading
import time

import psycopg


class Provider(http.server.ThreadingHTTPServer):
    request_queue_size = 128
    daemon_threads = True

    def __init__(self, connections):
        super().__init__(("127.0.0.1", 0), Charges)
        self.pool = queue.LifoQueue()
        for _ in range(connections):
            self.pool.put(psycopg.connect(autocommit=True))
        self.stalls = {}  # payment method -> "before" or "after" the charge
        self.troubles = {}  # payment method -> 429 or 500, once
        self.stalled = threading.Semaphore(0)  # released once for each that hangs
        self.end = threading.Event()
        threading.Thread(target=self.serve_forever, daemon=True).start()

    def handle_error(self, request, client_address):
        pass  # the shop that asked is gone


class Charges(http.server.BaseHTTPRequestHandler):
    wbufsize = -1

    def do_POST(self):
        order = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        stall = self.server.stalls.get(order["method"])
        if stall == "before":
            return self.hang()
        trouble = self.server.troubles.pop(order["method"], None)
        if trouble == 429:
            return self.respond(429, {"error": "too_many_charges"})
        time.sleep(random.Random(order["reference"]).uniform(0.005, 0.040))
        if order["method"] == "pm_card_declined":
            return self.respond(402, {"error": "declined"})
        db = self.server.pool.get()
        charge = db.execute(
            "INSERT INTO provider.charges (reference, amount, currency) VALUES (%s, %s, %s) RETURNING charge_id",
            (order["reference"], order["amount"], order["currency"]),
        ).fetchone()
        self.server.pool.put(db)
        if stall == "after":
            return self.hang()
        if trouble == 500:
            return self.respond(500, {"error": "out_of_order"})
        self.respond(201, {"id": charge[0], "amount": order["amount"], "currency": order["currency"]})

    def hang(self):
        self.server.stalled.release()
        self.server.end.wait()
        self.close_connection = True

    def respond(self, status, content):
        body = json.dumps(content).encode()
        self.send_response(status)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *args):
        pass
