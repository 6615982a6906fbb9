# Makefile: build and install with PGXS, and one target for everything a developer or CI does. The work is in scripts/.
#
#   make                   build idempotency.so              make install          into the server of PG_CONFIG
#   make demo              the story, on a throwaway server  make test             every ring of tests
#   make test-RING         lint, unit, regress, isolation or tap alone; drivers, which make test leaves out
#   make test-sanitize     all rings of SQL with assertions, then with sanitizers, in the server too
#   make test-compilers    gcc and clang, -O0 and -O3: the same hashes
#   make test-neighbours   regress and isolation beside other C++ extensions
#   make matrix            PostgreSQL 15, 17 and 18          make bench            tables of speed and size
#   make bench-instructions  instructions per call           make bench-hash       the payload hash beside others
#   make bench-outbox      the outbox beside a hand-written queue and PgQ
#   make fuzz              libFuzzer on src/core, FUZZ_SECONDS (60) a target   make format, lint, clean
#
# Nothing needs to be installed beforehand but make: demo and test install the packages of scripts/packages.txt.

all:

PG_CONFIG ?= pg_config
PGXS := $(shell $(PG_CONFIG) --pgxs 2>/dev/null)
export PG_CONFIG

EXTENSION = idempotency
MODULE_big = idempotency
DATA = $(wildcard sql/idempotency--*.sql)
SOURCES = $(wildcard src/*.cpp src/*/*.cpp)
OBJS = $(SOURCES:.cpp=.o)
EXTRA_CLEAN = build $(OBJS:.o=.d)

# Server headers come by -isystem, so that our warnings are about our code; they use `register`, which C++17 dropped.
# PGDLLEXPORT: before PostgreSQL 16 the server does not mark what a library must show, and everything else is hidden.
PG_CPPFLAGS = -Isrc -isystem $(shell $(PG_CONFIG) --includedir-server 2>/dev/null) \
	'-DPGDLLEXPORT=__attribute__((visibility("default")))'
PG_CXXFLAGS = -std=c++20 -fno-exceptions -fno-rtti -fno-threadsafe-statics -fvisibility=hidden \
	-Wall -Wextra -Wshadow -Wconversion -Wno-register -Werror -MMD -MP $(COPT)

SHLIB_LINK = -lcrypto

# No bitcode: PGXS compiles it with other flags than ours, and the functions are too large to be inlined into a query.
override with_llvm = no

ifneq ($(wildcard $(PGXS)),)
include $(PGXS)
-include $(OBJS:.o=.d)
$(OBJS): Makefile
# One file is for processors with AVX2, and used on no other.
ifeq ($(shell uname -m),x86_64)
src/core/xxh3_avx2.o: override CXXFLAGS += -mavx2
endif
else
all install:
	@echo "PostgreSQL's server headers are not here: scripts/install-packages build" >&2; exit 1
clean:
	rm -rf build
endif

RINGS = lint unit regress isolation tap
FORMATTED = $(wildcard src/*.[ch]pp src/*/*.[ch]pp test/*/*.[ch]pp)

.PHONY: demo test $(RINGS:%=test-%) test-drivers test-sanitize test-compilers test-neighbours matrix bench bench-instructions bench-hash bench-outbox fuzz format lint

demo:
	@scripts/demo
test:
	@scripts/test $(RINGS)
$(RINGS:%=test-%) test-drivers:
	@scripts/test $(@:test-%=%)
lint: test-lint
test-sanitize:
	@scripts/test-sanitize
test-compilers:
	@scripts/test-compilers

test-neighbours:
	@scripts/test-neighbours
matrix:
	@scripts/matrix
bench:
	@scripts/bench
bench-instructions:
	@scripts/bench-instructions
bench-hash:
	@scripts/bench-hash
bench-outbox:
	@scripts/bench-outbox
fuzz:
	@scripts/fuzz
format:
	clang-format -i $(FORMATTED)
