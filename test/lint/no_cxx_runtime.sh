#!/bin/bash
# no_cxx_runtime: the library needs nothing of the C++ runtime (no new, no exceptions, no type information) and runs
# nothing when it is loaded. So no C++ object can stand in the way when the server leaves a frame by longjmp.
set -eu
# __cxa_finalize is asked for, weakly, by the start-up code of every shared library, C too.
if nm -D --undefined-only idempotency.so | awk '{ print $2 }' | grep -E '^(_Z|__cxa_|__gxx_)' | grep -v '^__cxa_finalize'; then
    echo "^ needs the C++ runtime" && exit 1
fi
if readelf -d idempotency.so | grep -E 'NEEDED.*(stdc\+\+|libc\+\+|libgcc)'; then
    echo "^ is linked" && exit 1
fi
if nm idempotency.so | grep '_GLOBAL__sub_I'; then
    echo "^ runs at load time" && exit 1
fi
