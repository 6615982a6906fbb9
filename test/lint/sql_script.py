#!/usr/bin/python3
"""sql_script: what can only be seen in the text of the shipped scripts. No name is taken over from somebody who made it
first (CREATE OR REPLACE, IF NOT EXISTS), tables name their access method, functions say their volatility and parallel
safety, and nothing binds the extension to one schema."""

import pathlib
import re
import sys

problems = []
for path in sorted(pathlib.Path("sql").glob("idempotency--*.sql")):
    text = re.sub(r"--[^\n]*", "", path.read_text())
    if not re.match(r"\s*\\echo Use \"(CREATE|ALTER) EXTENSION", text):
        problems.append(f"{path}: does not open with the \\echo ... \\quit guard")
    # Strings hide what they hold: comments on objects may speak of anything.
    bare = re.sub(r"E?'(?:[^']|'')*'", "''", text)
    for pattern, why in (
        (r"CREATE\s+OR\s+REPLACE", "could take over an object that is there"),
        (r"IF\s+NOT\s+EXISTS", "could take over an object that is there"),
        (r"@extschema[^@]*@", "binds the extension to one schema"),
        (r"SET\s+(?:LOCAL\s+)?search_path\s*(?:=|TO)\s*@", "binds the extension to one schema"),
    ):
        for match in re.finditer(pattern, bare, re.I):
            problems.append(f"{path}: {match.group(0)}: {why}")
    for name, rest in re.findall(r"CREATE\s+(?:UNLOGGED\s+)?TABLE\s+(\S+)([^;]*);", bare, re.I):
        # A partition takes its access method from its own clause, a partitioned table has none before 17.
        if not re.search(r"USING\s+heap", rest, re.I) and not re.search(r"PARTITION\s+BY", rest, re.I):
            problems.append(f"{path}: table {name} does not say USING heap")
    if re.search(r"CREATE\s+UNLOGGED", bare, re.I):
        problems.append(f"{path}: an unlogged table forgets claims in a crash")
    # Each function reaches up to the next CREATE or COMMENT; a BEGIN ATOMIC body has semicolons of its own.
    for kind, name, rest in re.findall(
        r"CREATE\s+(FUNCTION|PROCEDURE)\s+(\w+)(.*?)(?=\b(?:CREATE|COMMENT|REVOKE|ALTER)\b|\Z)", bare, re.I | re.S
    ):
        if kind.upper() == "FUNCTION":
            head = re.split(r"BEGIN\s+ATOMIC", rest, flags=re.I)[0]
            if not re.search(r"\b(VOLATILE|STABLE|IMMUTABLE)\b", head, re.I):
                problems.append(f"{path}: {name} does not say its volatility")
            if not re.search(r"\bPARALLEL\s+(SAFE|UNSAFE|RESTRICTED)\b", head, re.I):
                problems.append(f"{path}: {name} does not say PARALLEL")

print("\n".join(problems))
sys.exit(bool(problems))
