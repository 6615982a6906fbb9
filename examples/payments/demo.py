"""demo.py: the story of `make demo`. Clients of service.py retry, lose connections, misuse keys; one server is killed.

It wants PGHOST, PGPORT and PGUSER of an empty server and rights to create roles there; scripts/demo gives it a
throwaway one. The requests are those of requests.jsonl; what the clients do with them follows from --seed, and who is
faster from the machine. It ends with a table, and with exit status 1 if anything in it is not as it must be.
"""

import argparse
import concurrent.futures
import http.client
import json
import os
import random
import select
import signal
import socket
import struct
import subprocess
import sys
import threading
import time
from collections import Counter, defaultdict
from dataclasses import dataclass, field
from decimal import Decimal
from pathlib import Path

import psycopg
from psycopg.rows import namedtuple_row

import service
from provider import Provider

HERE = Path(__file__).parent
CLIENTS = 12
DECLINED = "pm_card_declined"
FILL = 4000  # keys of each kind that show what one takes on disk


# What clients send ----------------------------------------------------------------------------------------------------


@dataclass
class Request:
    """Request is one line of requests.jsonl: one logical operation, however often and however it is sent."""

    merchant: str
    key: str
    path: str
    body: dict

    @property
    def op(self):
        return "order.place" if self.path == "/orders" else "payment.capture"

    @property
    def identity(self):
        return self.merchant, self.op, self.key

    @property
    def order(self):
        return self.path.split("/")[2]

    @property
    def method(self):
        return self.body.get("method", {}).get("token")


def load_requests():
    with open(HERE / "requests.jsonl", encoding="utf-8") as lines:
        return [Request(**json.loads(line, parse_float=Decimal)) for line in lines]


def plain(value):
    """plain spells a JSON value the usual way; a Decimal keeps its digits, so 10.00 stays 10.00."""
    return spell(value, None)


def spell(value, rng):
    """spell writes the same JSON value in another way: members in any order, 10.00 for 10, spaces, escapes."""
    space = rng.choice(["", "", " ", "\n  "]) if rng else " "
    if isinstance(value, dict):
        members = list(value.items())
        if rng:
            rng.shuffle(members)
        pairs = [spell(name, rng) + ":" + space + spell(item, rng) for name, item in members]
        return "{" + ("," + space).join(pairs) + "}"
    if isinstance(value, list):
        return "[" + ("," + space).join(spell(item, rng) for item in value) + "]"
    if isinstance(value, str):
        return json.dumps(value, ensure_ascii=bool(rng) and rng.random() < 0.5)
    if isinstance(value, bool) or value is None:
        return json.dumps(value)
    digits = str(value)
    if rng is None or "E" in digits:
        return digits
    return rng.choice([digits, digits + ("0" if "." in digits else ".00"), f"{Decimal(value).scaleb(2):f}e-2"])


# A difference takes a request and gives what is really another one under its key: path, body, how it differs; or None.


def other_amount(path, body):
    member = "amount" if "amount" in body else "total"
    return path, {**body, member: body[member] + 1}, f"{member} {body[member]} -> {body[member] + 1}"


def other_currency(path, body):
    currency = "USD" if body["currency"] != "USD" else "EUR"
    return path, {**body, "currency": currency}, f"currency {body['currency']} -> {currency}"


def number_as_string(path, body):
    member = "amount" if "amount" in body else "total"
    return path, {**body, member: str(body[member])}, f'{member} {body[member]} -> "{body[member]}", a string'


def other_order(path, body):
    if path == "/orders":
        return None
    return path.replace("/payments", "X/payments"), body, "the same body for another order"


def items_turned(path, body):
    if len(body.get("items", [])) < 2:
        return None
    return path, {**body, "items": body["items"][::-1]}, "items in another order"


def member_added(path, body):
    return path, {**body, "tip": 0}, 'a new member "tip"'


def last_digit(path, body):
    """last_digit changes an integer so large that a double would not notice."""
    for member in ("cart_id", "device"):
        if member in body.get("metadata", {}):
            old = body["metadata"][member]
            new = old - 1
            return path, {**body, "metadata": {**body["metadata"], member: new}}, f"{member} {old} -> {new}"
    return None


def null_for_absent(path, body):
    return path, {**body, "reference": None}, 'a new member "reference" that is null'


DIFFERENCES = [
    other_amount, other_order, last_digit, items_turned, other_currency, number_as_string, member_added,
    null_for_absent,
]


def differ(request, start):
    """differ makes a different request with the first difference, from `start` on, that applies."""
    for step in range(len(DIFFERENCES)):
        found = DIFFERENCES[(start + step) % len(DIFFERENCES)](request.path, request.body)
        if found:
            return found
    raise AssertionError("other_amount always applies")


# How they send it -----------------------------------------------------------------------------------------------------


@dataclass
class Send:
    """Send is one HTTP request as it is to be sent, and then what came of it."""

    request: Request
    path: str
    text: str
    phase: str
    variant: str = ""  # "" the request itself, else how it differs
    cut: str = ""  # "" | early: cut while the server works | late: cut when the answer is there, unread
    patience: str = ""  # Prefer: wait=N
    status: int = 0
    headers: dict = field(default_factory=dict)
    body: bytes = b""
    outcome: str = ""  # first | replay | the code of the problem | cut | lost

    @property
    def answer(self):
        """answer is what a replay must repeat byte for byte."""
        return self.status, self.headers.get("Content-Type"), self.headers.get("Location"), self.body


class Clients:
    """Clients sends, and keeps every Send."""

    def __init__(self, rng):
        self.rng = rng
        self.sent = []

    def send(self, port, sending):
        self.sent.append(sending)
        connection = http.client.HTTPConnection("127.0.0.1", port, timeout=60)
        key = sending.request.key
        headers = {
            "Authorization": f"Bearer {sending.request.merchant}",
            "Idempotency-Key": f'"{key}"' if len(sending.text) % 2 else key,  # as the IETF draft writes it, and bare
            "Content-Type": "application/json",
        }
        if sending.patience:
            headers["Prefer"] = f"wait={sending.patience}"
        try:
            connection.request("POST", sending.path, sending.text.encode(), headers)
            if sending.cut:
                if sending.cut == "late":
                    select.select([connection.sock], [], [], 60)
                else:
                    time.sleep(0.002 + len(sending.text) % 20 / 1000)
                # Linger 0: the connection is reset, as when a phone leaves the network or a proxy gives up.
                connection.sock.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
                sending.outcome = "cut"
                return sending
            reply = connection.getresponse()
            sending.status, sending.headers, sending.body = reply.status, dict(reply.getheaders()), reply.read()
        except (ConnectionError, http.client.HTTPException):
            sending.outcome = "lost"
            return sending
        finally:
            connection.close()
        if sending.headers.get("Content-Type") == "application/problem+json":
            sending.outcome = json.loads(sending.body)["code"]
        else:
            sending.outcome = "replay" if "Idempotent-Replayed" in sending.headers else "first"
        return sending

    def send_until_answered(self, port, sending):
        """send_until_answered does as it is told by Retry-After while the answer is in_progress."""
        while self.send(port, sending).outcome == "in_progress":
            time.sleep(int(sending.headers["Retry-After"]))
            sending = Send(sending.request, sending.path, sending.text, sending.phase, sending.variant)
        return sending

    def send_all(self, port, sendings):
        with concurrent.futures.ThreadPoolExecutor(CLIENTS) as pool:
            list(pool.map(lambda sending: self.send_until_answered(port, sending), sendings))


def storm(requests, races, rng):
    """storm: each request several times at once; two different requests race for each key of `races`."""
    sendings = []
    for position, request in enumerate(requests):
        if request in races:
            path, body, variant = other_amount(request.path, request.body)
            group = [Send(request, request.path, spell(request.body, rng), "storm") for _ in range(3)]
            group += [Send(request, path, spell(body, rng), "storm", variant) for _ in range(3)]
        else:
            group = [Send(request, request.path, plain(request.body), "storm")]
            for _ in range(rng.randint(2, 4)):
                text = spell(request.body, rng) if rng.random() < 0.7 else plain(request.body)
                group.append(Send(request, request.path, text, "storm", patience="0" if rng.random() < 0.1 else ""))
            if position % 2:
                cut = "late" if position % 4 == 1 else "early"
                group.insert(0, Send(request, request.path, plain(request.body), "storm", cut=cut))
        sendings += [(position + rng.uniform(0, 2), len(sendings) + n, sending) for n, sending in enumerate(group)]
    return [sending for _, _, sending in sorted(sendings, key=lambda entry: entry[:2])]


def day_after(requests, rng):
    """day_after: retries of what has its answer, and different requests under the same keys."""
    sendings = []
    for position, request in enumerate(requests):
        for _ in range(rng.randint(1, 3)):
            sendings.append(Send(request, request.path, spell(request.body, rng), "later"))
        path, body, variant = differ(request, position)
        sendings.append(Send(request, path, spell(body, rng), "later", variant))
    rng.shuffle(sendings)
    return sendings


# The story ------------------------------------------------------------------------------------------------------------


class Story:
    def __init__(self, seed):
        self.failures = []
        self.rng = random.Random(seed)
        self.clients = Clients(self.rng)
        self.processes = []
        self.db = psycopg.connect(autocommit=True, row_factory=namedtuple_row)
        self.db.execute((HERE / "schema.sql").read_text(encoding="utf-8"))
        self.provider = Provider(service.CONNECTIONS)

    def check(self, right, what):
        if not right:
            self.failures.append(what)
            print(f"   WRONG: {what}")

    def start_server(self, *lease):
        """start_server starts a process of service.py and gives it and its port."""
        command = [sys.executable, str(HERE / "service.py"), "0", str(self.provider.server_port), *lease]
        environment = {**os.environ, "PGUSER": "payments_api"}
        # In a session of its own, so that Ctrl-C reaches the demo, which then stops it.
        process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True, env=environment, start_new_session=True)
        self.processes.append(process)
        return process, int(process.stdout.readline())

    def charges(self, operation_id):
        return self.db.execute("SELECT * FROM provider.charges WHERE reference = %s", (str(operation_id),)).fetchall()

    def run(self):
        requests = load_requests()
        payments = [request for request in requests if request.op == "payment.capture"]
        version = self.db.info.parameter_status("server_version").split()[0]
        print(f"""A payments API whose clients retry
{len(requests)} requests of examples/payments/requests.jsonl: {len(payments)} payments (lease mode), \
{len(requests) - len(payments)} orders (one transaction)
PostgreSQL {version}, {CLIENTS} clients at once, a payment provider that charges as often as it is asked""")

        # Two payments are kept for the server that dies and two for the provider's errors; for three keys two different
        # payments race.
        doomed, troubled = payments[-8:-6], payments[-6:-4]
        requests = [request for request in requests if request not in doomed + troubled]
        races = self.rng.sample([r for r in payments if r not in doomed + troubled and r.method != DECLINED], 3)

        _, port = self.start_server()
        self.tell_storm(port, requests, races)
        self.tell_day_after(port, requests)
        self.tell_kill(port, doomed)
        self.tell_troubles(port, troubled)
        self.tell_quickstart()
        self.verify(requests + doomed + troubled)
        self.table()
        return self.failures

    def tell_storm(self, port, requests, races):
        print("""
1. Every request is sent by several clients at once: members in another order, 10.00 for 10,
   connections cut before the answer. For 3 keys two different payments race.""")
        self.clients.send_all(port, storm(requests, races, self.rng))
        # What a client had started before it was cut off may still run.
        deadline = time.monotonic() + 30
        while self.db.execute("SELECT 1 FROM idem_unfinished LIMIT 1").fetchone() and time.monotonic() < deadline:
            time.sleep(0.05)
        count = Counter(sending.outcome for sending in self.clients.sent)
        cuts = Counter(sending.cut for sending in self.clients.sent)
        print(f"""   {len(self.clients.sent)} sent: {count['first']} first answers, {count['replay']} replays, \
{count['in_progress']} told to come back in a second,
   {cuts['early']} cut while the server worked, {cuts['late']} cut with the answer unread, \
{count['conflict']} conflicts, all of the races:""")
        for request in races:
            self.tell_race(request, [sending for sending in self.clients.sent if sending.request == request])

    def tell_race(self, request, sendings):
        """tell_race checks that one of two won. The winner is the request from then on, and the other what differs."""
        in_file = request.body["amount"]
        outcomes = Counter((bool(sending.variant), sending.outcome == "conflict") for sending in sendings)
        one_won = outcomes in ({(False, False): 3, (True, True): 3}, {(True, False): 3, (False, True): 3})
        self.check(one_won, f"key {request.key}: one of two different payments must win and the other conflict")
        answered = [sending for sending in sendings if sending.outcome in ("first", "replay")]
        if not answered:
            return
        if answered[0].variant:
            for sending in sendings:
                sending.variant = "" if sending.variant else f"amount {in_file + 1} -> {in_file}"
            request.path, request.body, _ = other_amount(request.path, request.body)
        charge = json.loads(answered[0].body)["charge"]
        print(f"     {in_file} against {in_file + 1}: {request.body['amount']} won ({charge}), the other did not")

    def tell_day_after(self, port, requests):
        print("\n2. Later: more retries of everything, and really different requests under the same keys.")
        before = len(self.clients.sent)
        self.clients.send_all(port, day_after(requests, self.rng))
        later = self.clients.sent[before:]
        count = Counter(sending.outcome for sending in later)
        print(f"   {len(later)} sent: {count['replay']} replays, {count['conflict']} conflicts. "
              "One of each kind, and what the client is told that won:")
        kinds = {}
        for sending in later:
            if sending.outcome == "conflict":
                kind = "".join(letter for letter in sending.variant if not letter.isdigit())[:9]
                kinds.setdefault((sending.request.op, kind), sending)
        for (op, _), sending in sorted(kinds.items(), key=lambda entry: entry[0]):
            print(f"     {op:15}  {sending.variant[:52]:52}  {self.winner(sending)}")

        print("   And every request once more, by one client alone.")
        for request in requests:
            self.clients.send(port, Send(request, request.path, spell(request.body, self.rng), "alone"))

    @staticmethod
    def winner(sending):
        """winner says in a word what the conflict told about the request that has the key."""
        content = json.loads(json.loads(sending.body)["winner"]["body"])
        if "charge" in content:
            return f"{content['charge']} for {content['amount']} {content['currency']}"
        return f"order {content['order']}" if "items" in content else content["error"]

    def tell_kill(self, port, doomed):
        print("""
3. A second API server takes two payments and is killed (SIGKILL) in the middle. Its lease is 2 seconds instead of the
   preset's 3 minutes, to keep this short.""")
        self.provider.stalls = {doomed[0].method: "after", doomed[1].method: "before"}
        process, doomed_port = self.start_server("2 seconds")
        sendings = [Send(request, request.path, plain(request.body), "killed") for request in doomed]
        threads = [threading.Thread(target=self.clients.send, args=(doomed_port, sending)) for sending in sendings]
        for thread in threads:
            thread.start()
        reached = [self.provider.stalled.acquire(timeout=20) for _ in doomed]
        process.kill()
        process.wait()
        for thread in threads:
            thread.join()
        self.provider.stalls = {}
        self.check(all(reached), "both payments must have reached the provider")
        self.check([sending.outcome for sending in sendings] == ["lost"] * 2, "both clients must lose their connection")
        print("""   Both clients lost their connection. One payment was charged just before, the other was not: they
   cannot know. They retry, and nothing runs a second time:""")
        for request in doomed:
            self.tell_retries(port, request)

        print("   An operator reads idem_unfinished, looks each operation_id up in the provider's books, and resolves:")
        self.resolve_all(port, doomed)

    def resolve_all(self, port, requests):
        """resolve_all resolves what is indeterminate, which must be these requests."""
        unfinished = self.db.execute(
            "SELECT operation_id, key FROM idem_unfinished WHERE state = 'indeterminate' ORDER BY key"
        ).fetchall()
        by_key = {request.key: request for request in requests}
        self.check({entry.key for entry in unfinished} == set(by_key), f"idem_unfinished must show {sorted(by_key)}")
        for entry in unfinished:
            if entry.key in by_key:
                self.resolve(port, by_key[entry.key], entry.operation_id)

    def tell_troubles(self, port, troubled):
        print("""
4. The provider answers one payment with 429 and did nothing; another with 500, although it was charged.
   service.py hands both statuses to idem_fail; the policy's on_status decides:""")
        refused, broken = troubled
        self.provider.troubles = {refused.method: 429, broken.method: 500}
        answers = [self.retry(port, refused) for _ in range(3)]
        outcomes = [f"{sending.outcome} ({sending.status})" for sending in answers]
        right = [(answers[0].outcome, answers[0].status), answers[1].outcome, answers[2].outcome]
        self.check(right == [("released", 429), "first", "replay"], f"429, then the charge, then a replay; got {outcomes}")
        self.check("Retry-After" in answers[0].headers, "a 429 must say when to come back")
        print(f"     order {refused.order}: " + ", ".join(outcomes))
        answers = [self.retry(port, broken) for _ in range(2)]
        outcomes = [f"{sending.outcome} ({sending.status})" for sending in answers]
        self.check([sending.outcome for sending in answers] == ["indeterminate"] * 2, f"500 is unknown; got {outcomes}")
        print(f"     order {broken.order}: " + ", ".join(outcomes))
        self.resolve_all(port, [broken])

    def retry(self, port, request, patience=""):
        text = spell(request.body, self.rng)
        return self.clients.send(port, Send(request, request.path, text, "killed", patience=patience))

    def tell_retries(self, port, request):
        heard = []
        while (sending := self.retry(port, request, patience="0")).outcome == "in_progress":
            heard.append("in_progress, " + sending.headers["Retry-After"] + " s later")
            time.sleep(int(sending.headers["Retry-After"]))
        again = self.retry(port, request)
        right = sending.outcome == again.outcome == "indeterminate"
        self.check(right, f"retries after the kill must be indeterminate, got {sending.outcome}, {again.outcome}")
        path, body, variant = other_amount(request.path, request.body)
        different = self.clients.send(port, Send(request, path, plain(body), "killed", variant))
        heard += [sending.outcome, again.outcome, f"with another amount {different.outcome}"]
        print(f"     order {request.order}: " + ", ".join(heard))

    def resolve(self, port, request, operation_id):
        """resolve does what docs/indeterminate.md tells people to do: look, then decide with what was seen."""
        charges = self.charges(operation_id)
        numbers = [charge.charge_id for charge in charges]
        stored = {"status": None, "body": None, "headers": None}
        if charges:
            stored = service.receipt(numbers[0], request.order, str(charges[0].amount), charges[0].currency)
        resolved = self.db.execute(
            """SELECT state FROM idem_resolve(%(id)s, %(state)s, %(evidence)s, status => %(status)s,
                                              body => %(body)s, headers => %(headers)s)""",
            {"id": operation_id, "state": "completed" if charges else "released",
             "evidence": json.dumps({"looked_at": "provider.charges", "by": "operator", "charges": numbers}), **stored},
        ).fetchone()
        answers = [self.retry(port, request) for _ in range(3)]
        outcomes = [sending.outcome for sending in answers]
        if charges:
            self.check(outcomes == ["replay"] * 3, f"every retry after resolve(completed) must replay, got {outcomes}")
            self.check(answers[0].body == stored["body"].encode(), "the replay must be the answer of resolve")
            found = f"ch_{numbers[0]} is there"
        else:
            self.check(outcomes == ["first", "replay", "replay"], f"one retry after resolve(released), got {outcomes}")
            found = "no charge is there"
        charge = json.loads(answers[0].body).get("charge")
        print(f"     order {request.order}: {found}: {resolved.state}; retries: {', '.join(outcomes)} ({charge})")

    def tell_quickstart(self):
        print("\n5. The same in plain SQL: examples/sql/quickstart.sql")
        self.db.execute("CREATE DATABASE quickstart")
        script = HERE.parent / "sql" / "quickstart.sql"
        psql = ["psql", "-X", "-q", "-v", "ON_ERROR_STOP=1", "-d", "quickstart", "-f", str(script)]
        ran = subprocess.run(psql, capture_output=True, text=True)
        for line in ran.stdout.splitlines():
            if line.strip():
                print("   " + line[:112])
        words = Counter(ran.stdout.split())
        expected = {"claimed": 1, "completed": 2, "replay": 1, "conflict": 1}
        self.check(ran.returncode == 0, f"quickstart.sql must run: {ran.stderr}")
        self.check(expected.items() <= words.items(), f"quickstart.sql must show {expected}")

    # Is it as it must be? ---------------------------------------------------------------------------------------------

    def verify(self, requests):
        """verify holds the answers against each other and against the books of shop and provider."""
        sent = defaultdict(list)
        for sending in self.clients.sent:
            sent[sending.request.identity].append(sending)
        rows = self.db.execute("SELECT actor, op, key, operation_id FROM idem_keys").fetchall()
        ids = {(row.actor, row.op, row.key): row.operation_id for row in rows}
        wanted = {request.identity for request in requests}
        self.check(set(ids) == wanted and len(rows) == len(wanted), "each request must have one key, nothing else")

        self.compared_with_first = self.compared_with_stored = self.conflicts = self.winners_named = 0
        charged, placed = set(), set()
        for request in requests:
            operation_id = ids.get(request.identity)
            answer = self.verify_answers(request, operation_id, sent[request.identity])
            if answer is None or operation_id is None:
                self.check(False, f"{request.op} {request.key}: must have an answer")
            elif request.op == "order.place":
                placed.add(operation_id)
                self.verify_order(request, operation_id, answer)
            elif request.method == DECLINED:
                self.check(answer[0] == 402 and not self.charges(operation_id), f"{request.key}: declined, not charged")
            else:
                charged.add(str(operation_id))
                self.verify_charge(request, operation_id, answer)

        # What no answer speaks of must not be in the books either.
        books = self.db.execute("SELECT reference, count(*) AS times FROM provider.charges GROUP BY 1").fetchall()
        orders = self.db.execute("SELECT operation_id, count(*) AS times FROM shop.orders GROUP BY 1").fetchall()
        self.charged, self.charged_twice = len(books), sum(row.times > 1 for row in books)
        self.placed, self.placed_twice = len(orders), sum(row.times > 1 for row in orders)
        self.declined = sum(request.method == DECLINED for request in requests)
        self.check({row.reference for row in books} == charged, "the provider's books must hold what was answered")
        self.check({row.operation_id for row in orders} == placed, "the shop's books must hold what was answered")
        self.check(self.charged_twice == self.placed_twice == 0, "nothing may be charged or placed twice")
        left = self.db.execute("SELECT count(*) FROM idem_unfinished").fetchone()[0]
        self.check(left == 0, f"nothing may be unfinished at the end, {left} claims are")

    def verify_answers(self, request, operation_id, sendings):
        """verify_answers checks what the clients of one key got, and gives its stored answer, or None."""
        name = f"{request.op} {request.key}"
        row = self.db.execute(
            """SELECT h.status, h.headers, h.body
                 FROM idem_lookup(%s, %s, %s) AS r,
                      idem_http_response(r) AS h
                WHERE r.outcome IN ('completed', 'replay')""",
            request.identity,
        ).fetchone()
        if row is None:
            return None
        headers = dict(row.headers)
        stored = row.status, headers.get("Content-Type"), headers.get("Location"), row.body

        # The first answer; where its client was cut off or killed, what is stored. Each replay: the same bytes.
        firsts = [sending.answer for sending in sendings if sending.outcome == "first"]
        self.check(len(firsts) <= 1, f"{name}: {len(firsts)} answers as the first")
        self.check(firsts[:1] in ([], [stored]), f"{name}: what is stored differs from the first answer")
        for sending in sendings:
            if sending.variant:
                self.verify_conflict(name, sending, stored)
            elif sending.outcome == "replay":
                self.compared_with_first += bool(firsts)
                self.compared_with_stored += not firsts
                self.check(sending.answer == (firsts or [stored])[0], f"{name}: a replay differs from the first answer")
                right_id = sending.headers["Idempotency-Operation-Id"] == str(operation_id)
                self.check(right_id, f"{name}: a replay with another operation_id")
            else:
                may_be = {"first", "cut", "in_progress"}
                if sending.phase == "killed":
                    may_be |= {"lost", "indeterminate", "released"}
                self.check(sending.outcome in may_be, f"{name}: got {sending.outcome} ({sending.phase})")
        return stored

    def verify_conflict(self, name, sending, stored):
        """verify_conflict: refused, and told the answer of what won, if there was one yet."""
        self.conflicts += 1
        self.check(sending.outcome == "conflict", f"{name}: {sending.variant} must conflict, got {sending.outcome}")
        winner = json.loads(sending.body).get("winner", {}) if sending.outcome == "conflict" else {}
        if "body" in winner:
            self.winners_named += 1
            right = (winner["status"], winner["body"].encode()) == (stored[0], stored[3])
            self.check(right, f"{name}: the conflict names another winner")

    def verify_order(self, request, operation_id, answer):
        rows = self.db.execute("SELECT order_id, content = %s::jsonb FROM shop.orders WHERE operation_id = %s",
                               (plain(request.body), operation_id)).fetchall()
        right = [(json.loads(answer[3]).get("order"), True)]
        self.check(rows == right, f"{request.key}: must be placed once, as asked for; is {rows}")

    def verify_charge(self, request, operation_id, answer):
        rows = [(f"ch_{row.charge_id}", row.amount, row.currency) for row in self.charges(operation_id)]
        right = [(json.loads(answer[3]).get("charge"), Decimal(request.body["amount"]), request.body["currency"])]
        self.check(rows == right, f"{request.key}: must be charged once, as asked for; is {rows}")

    def stored_per_key(self):
        """stored_per_key gives the bytes that a payment's and an order's key take, with their answers and indexes.

        It writes FILL keys of each kind, with the bodies and an answer of the story, into a database of their own: here
        there are so few keys that one would measure empty pages.
        """
        self.db.execute("CREATE DATABASE measure")
        size = """SELECT sum(pg_total_relation_size(oid))::bigint FROM pg_class
                   WHERE oid = ANY ('{idem_keys, idem_responses, idem_leases}'::regclass[])"""
        taken = []
        with psycopg.connect(dbname="measure", autocommit=True) as db:
            db.execute("""
                CREATE EXTENSION idempotency;
                CREATE TABLE answer (status int, headers jsonb, body text);
                CREATE FUNCTION answered(payload jsonb) RETURNS idem_response
                LANGUAGE sql AS 'SELECT status, headers, body, NULL::jsonb, NULL::bytea FROM answer'""")
            for op, preset in ("payment.capture", "payment"), ("order.place", "order"):
                answer = self.db.execute(
                    """SELECT r.status, r.headers::text, r.body
                         FROM idem_responses r JOIN idem_keys k USING (operation_id)
                        WHERE k.op = %s AND r.status = 201 ORDER BY length(r.body) DESC LIMIT 1""", (op,)).fetchone()
                db.execute("TRUNCATE answer")
                db.execute("INSERT INTO answer VALUES (%s, %s, %s)", answer)
                db.execute("SELECT idem_set_policy(%s, %s, '{\"mode\": \"transaction\"}')", (op, preset))
                bodies = [plain(request.body) for request in load_requests() if request.op == op]
                before = db.execute(size).fetchone()[0]
                filled = db.execute(
                    """SELECT count(*) FILTER (WHERE r.outcome = 'completed')
                         FROM generate_series(1, %(keys)s) AS n,
                              idem_execute(actor => 'merchant-' || n %% 7, op => %(op)s, handler => 'answered',
                                           key => to_char(n, 'FM"key-of-36-bytes-long-"000000000000000'),
                                           payload => (%(bodies)s::text[])[1 + n %% %(kinds)s]::jsonb) AS r""",
                    {"keys": FILL, "op": op, "bodies": bodies, "kinds": len(bodies)},
                ).fetchone()[0]
                self.check(filled == FILL, f"{FILL} keys of {op} must complete, {filled} did")
                taken.append(round((db.execute(size).fetchone()[0] - before) / FILL))
        return taken

    # The table --------------------------------------------------------------------------------------------------------

    def times(self):
        """times gives, for each kind of claim, the milliseconds that service.py measured around the call, sorted."""
        kinds = {
            "new payment (with the claim's commit)": lambda s: s.outcome == "first" and s.request.path != "/orders",
            "new order (its commit comes later)": lambda s: s.outcome == "first" and s.request.path == "/orders",
            "answer is there: replay or conflict": lambda s: s.phase == "later",
            "the same, one client alone": lambda s: s.phase == "alone",
            "had to wait for a rival's provider": lambda s: s.phase == "storm" and s.outcome in ("replay", "conflict"),
        }
        timed = [sending for sending in self.clients.sent if "Server-Timing" in sending.headers]
        return {
            kind: sorted(float(s.headers["Server-Timing"].split("=")[1]) for s in timed if belongs(s))
            for kind, belongs in kinds.items()
        }

    def table(self):
        count = Counter(sending.outcome for sending in self.clients.sent)
        line = "-" * 112
        print(f"\n{line}")

        def row(name, number, remark=""):
            print(f"{name:40}{number:>9}   {remark}")

        row("requests sent", len(self.clients.sent),
            f"{count['cut']} cut off before the answer, {count['lost']} lost with the server that was killed")
        def books(twice):
            return "each exactly once, 0 twice" if twice == 0 else f"{twice} TWICE"

        row("charges that happened", self.charged, f"{books(self.charged_twice)} ({self.declined} more were declined)")
        row("orders that were placed", self.placed, books(self.placed_twice))
        row("replays", count["replay"],
            f"all the same bytes: {self.compared_with_first} as the first answer, {self.compared_with_stored} as "
            "stored (the first was cut off)")
        row("conflicts", self.conflicts,
            f"none charged; {self.winners_named} told the answer that won, {self.conflicts - self.winners_named} came "
            "before there was one")
        row("in_progress", count["in_progress"], "came back after Retry-After")
        row("released", count["released"], "the provider said 429; the client's next try was charged")
        row("indeterminate", count["indeterminate"], "3 keys: 2 charges found (completed), 1 not (released, charged)")
        print(f"\n{'time per claim, ms, in service.py':40}{'n':>9}{'p50':>10}{'p95':>10}{'p99':>10}")
        for kind, values in self.times().items():
            self.check(values, f"no time was measured: {kind}")
            if values:
                at = [values[min(len(values) - 1, int(len(values) * share))] for share in (0.50, 0.95, 0.99)]
                print(f"  {kind:38}{len(values):>9}" + "".join(f"{value:10.2f}" for value in at))
        payment, order = self.stored_per_key()
        print("\nbytes stored per key, with indexes")
        row("  payment and its answer", payment, f"measured on {FILL} keys")
        row("  order, its answer and its payload", order, "the preset keeps the payload, to show what won")
        print(line)
        result = f"{len(self.failures)} things are WRONG" if self.failures else "all as it must be"
        print(f"{len(self.clients.sent)} requests, {self.charged} charges, {self.charged_twice} twice: {result}")

    def stop(self):
        self.provider.end.set()
        for process in self.processes:
            process.kill()
            process.wait()


def main():
    parser = argparse.ArgumentParser(description="A payments API whose clients retry.")
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))
    parser.add_argument("--seed", type=int, default=1, help="what the clients do follows from it (default 1)")
    story = Story(parser.parse_args().seed)
    try:
        failures = story.run()
    finally:
        story.stop()
    for failure in failures:
        print(f"WRONG: {failure}", file=sys.stderr)
    sys.exit(1 if failures else 0)


if __name__ == "__main__":
    sys.stdout.reconfigure(line_buffering=True)
    main()
