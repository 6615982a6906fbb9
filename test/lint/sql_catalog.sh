#!/bin/bash
# sql_catalog: what CREATE EXTENSION leaves in the catalogs keeps the rules of the SQL interface; each row is one breach.
set -eu
breaches=$(scripts/cluster run --conf test/idempotency.conf -- psql -XqAt -v ON_ERROR_STOP=1 -f test/lint/sql_catalog.psql)
if [ -n "$breaches" ]; then
    echo "$breaches" && exit 1
fi
