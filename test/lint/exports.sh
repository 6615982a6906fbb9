#!/bin/bash
# exports: the library shows the server exactly what it must: the magic block, _PG_init, idem_* and their records. A
# symbol more could be taken for another library's, one less is found out only at CREATE EXTENSION. Covers F04.
set -eu
symbols=$(nm -D --defined-only idempotency.so | awk '{ print $3 }')
if grep -Evx 'Pg_magic_func|_PG_init|idem_[a-z0-9_]+_v[0-9]+|idem_[a-z]+_main|pg_finfo_idem_[a-z0-9_]+_v[0-9]+' <<<"$symbols"; then
    echo "^ exported, but should be hidden" && exit 1
fi
for symbol in Pg_magic_func _PG_init; do
    grep -qx "$symbol" <<<"$symbols" || { echo "$symbol is not exported" && exit 1; }
done

# Every function of the shipped scripts, and every entry point of a background worker, is there, and every function that is there is used by some script: a symbol, once
# shipped, stays.
wanted=$({
    grep -hoE "'idem_[a-z0-9_]+_v[0-9]+'" sql/idempotency--*.sql
    grep -hoE '"idem_[a-z]+_main"' src/worker/*.cpp
} | tr -d "'\"" | sort -u)
diff <(echo "$wanted") <(grep -x 'idem_.*' <<<"$symbols" | sort) || {
    echo "^ < named in SQL only, > in the library only" && exit 1
}
