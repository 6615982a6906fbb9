#!/usr/bin/python3
"""includes: the folders of src/ are layers, and an include points down only. Server headers come through pg/server.hpp
alone; C++ headers and core/ come before it, because the server turns names such as printf into macros; and the headers
of what shipped code does without (containers, streams, memory management) come nowhere."""

import pathlib
import re
import sys

MAY_INCLUDE = {
    "core": {"core"},
    "pg": {"core", "pg"},
    "metrics": {"core", "pg", "metrics"},
    "engine": {"core", "pg", "metrics", "engine"},
    "worker": {"core", "pg", "metrics", "engine", "worker"},
    "api": {"core", "pg", "metrics", "engine", "worker", "api"},
}
NOT_SHIPPED = set(
    "any deque exception filesystem format forward_list fstream functional future iomanip ios iostream istream list "
    "locale map memory memory_resource mutex new optional ostream queue regex set sstream stack stdexcept streambuf "
    "string system_error thread unordered_map unordered_set vector".split()
)
# The server's hash table is a template: whoever wants one includes it, after saying what it is to hold.
TEMPLATES = {"lib/simplehash.h"}
# xxHash is compiled into the files that use it, and one header speaks the machine's vector instructions.
ALSO = {
    "src/core/fingerprint.cpp": {"xxhash.h"},
    "src/core/xxh3_avx2.cpp": {"xxhash.h"},
    "src/core/simd.hpp": {"emmintrin.h"},
    "src/pg/sha256.cpp": {"openssl/sha.h"},
}
INCLUDE = re.compile(r'^\s*#\s*include\s*([<"])([^>"]+)[>"]', re.M)

src = pathlib.Path("src")
problems = []
for path in sorted(src.rglob("*.[ch]pp")):
    layer = path.relative_to(src).parts[0]
    if layer not in MAY_INCLUDE:
        layer = None
        if path != src / "idempotency.cpp":
            problems.append(f"{path}: is in no layer")
    above_core = False
    for bracket, name in INCLUDE.findall(path.read_text()):
        def problem(text):
            problems.append(f"{path}: {name}: {text}")

        first = name.split("/")[0]
        if bracket == "<":
            if name in NOT_SHIPPED:
                problem("is not for shipped code")
            elif not re.fullmatch(r"[a-z_]+", name) and name not in ALSO.get(str(path), ()):
                problem("only headers of the C++ standard come in angle brackets")
            elif above_core:
                problem("a C++ header comes before everything that includes the server's")
        elif (src / name).exists():
            if layer and first not in MAY_INCLUDE[layer]:
                problem(f"{layer} does not include {first}")
            if first != "core":
                above_core = True
            elif above_core:
                problem("a core header comes before everything that includes the server's")
        elif path != src / "pg" / "server.hpp" and not (layer == "pg" and name in TEMPLATES):
            problem("not found under src/; server headers come through pg/server.hpp")

print("\n".join(problems))
sys.exit(bool(problems))
