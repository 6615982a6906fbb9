# lib.sh: what the scripts share. Sourced, never run; leaves the caller in the root of the checkout.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

# A make that we start is not a part of the make that may have started us.
unset MAKEFLAGS MAKELEVEL MFLAGS

PG_CONFIG=${PG_CONFIG:-pg_config}

# say prints one line about what happens, on stderr, so that a script's answer on stdout stays clean.
say() { printf -- '-- %s\n' "$*" >&2; }

# die says why and ends the script.
die() {
    printf -- '-- %s: %s\n' "${0##*/}" "$*" >&2
    exit 1
}

# as_root runs a command with the rights to install: directly, or through sudo.
as_root() {
    if [ "$(id -u)" = 0 ]; then "$@"; else sudo "$@"; fi
}

# as_owner runs a command as the ordinary user who owns throwaway clusters: the caller, or postgres when root calls,
# because no PostgreSQL server starts as root.
as_owner() {
    if [ "$(id -u)" = 0 ]; then setpriv --reuid=postgres --regid=postgres --init-groups "$@"; else "$@"; fi
}

# private_dir makes a folder that only the cluster owner (and root) can enter, and prints its name. It lives in /tmp
# because the path of a socket may not be longer than 107 bytes.
private_dir() {
    as_owner mktemp -d "/tmp/idempotency.XXXXXX"
}

# copy_tree DIR [as_owner] puts the sources, without anything built, into DIR, which then belongs to the cluster owner.
copy_tree() {
    ${2:-} mkdir -p "$1"
    tar -c --exclude=./.git --exclude=./build --exclude='*.o' --exclude='*.d' --exclude='*.so' --exclude='*.bc' . |
        ${2:-} tar -x --no-same-owner -C "$1"
}

# build_and_install builds the extension and puts it where PG_CONFIG's server looks. make does nothing when all is new.
build_and_install() {
    local libdir
    libdir=$("$PG_CONFIG" --pkglibdir)
    make -s -j"$(nproc)" all PG_CONFIG="$PG_CONFIG"
    if [ -w "$libdir" ]; then
        make -s install PG_CONFIG="$PG_CONFIG"
    else
        as_root make -s install PG_CONFIG="$PG_CONFIG"
    fi >/dev/null
}

# cache_dir prints the folder, outside the checkout, for what is expensive to make: other systems, servers from source.
cache_dir() {
    local base=${XDG_CACHE_HOME:-/var/cache}
    if [ "$(id -u)" != 0 ]; then base=${XDG_CACHE_HOME:-$HOME/.cache}; fi
    echo "${IDEMPOTENCY_CACHE:-$base/idempotency-matrix}"
}

# debian_sources TYPE prints the Debian part of this machine's package sources as `TYPE url suite component` lines, so
# that nothing here names a mirror of its own.
debian_sources() {
    apt-get indextargets --format "$1 [signed-by=/usr/share/keyrings/debian-archive-keyring.gpg] \$(REPO_URI) \$(RELEASE) \$(COMPONENT)" \
        'Created-By: Packages' 'Origin: Debian' | sort -u
}
