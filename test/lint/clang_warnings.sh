#!/bin/bash
# clang_warnings: the second compiler has nothing to say either, and finds no initialiser that runs at load and no
# destructor that runs at exit.
set -eu
shopt -s nullglob
clang=$(command -v clang++ || command -v clang++-14)
check() {
    "$clang" -fsyntax-only -std=c++20 -fno-exceptions -fno-rtti -Isrc -isystem "$(${PG_CONFIG:-pg_config} --includedir-server)" \
        -D_GNU_SOURCE '-DPGDLLEXPORT=__attribute__((visibility("default")))' -Werror -Wall -Wextra -Wshadow -Wconversion \
        -Wno-register -Wglobal-constructors -Wexit-time-destructors "$1"
}
export -f check
export clang
printf '%s\n' src/*.cpp src/*/*.cpp | xargs -P "$(nproc)" -I{} bash -c 'check {}'
