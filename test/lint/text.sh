#!/bin/bash
# text: no white space at line ends, no tabs outside Makefiles, no note to ourselves left behind.
set -eu
shopt -s nullglob
files() {
    find src sql test scripts examples docs .ci Makefile CMakeLists.txt ./*.md -type f \
        \( -name '*.[ch]pp' -o -name '*.sql' -o -name '*.py' -o -name '*.pl' -o -name '*.pm' -o -name '*.sh' -o -name '*.md' \
        -o -name '*.spec' -o -path 'scripts/*' -o -path '.ci/*' -o -name Makefile -o -name CMakeLists.txt \) \
        ! -path '*/expected/*' -print0
}
if files | xargs -0 grep -nE '[[:space:]]+$'; then echo "^ white space at the end" && exit 1; fi
if files | xargs -0 grep -nE '\b(TODO|FIXME|XXX)\b' | grep -v '^test/lint/text.sh:'; then echo "^ a note left behind" && exit 1; fi
