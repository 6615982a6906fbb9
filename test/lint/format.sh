#!/bin/bash
# format: every C++ file is as clang-format writes it. `make format` repairs.
set -eu
shopt -s nullglob
clang-format --dry-run -Werror src/*.[ch]pp src/*/*.[ch]pp test/*/*.[ch]pp
