// resource.cpp: idem_lock_resource, a short lock against thundering herds.
//
// Purpose: an advisory lock of the transaction, never of the session, on 64 bits of the resource's hash. Two resources
// may share a lock (one in 2^64), which makes one wait and nothing wrong. It lives in the space of
// pg_advisory_xact_lock(bigint). The wait is bounded and polls: a lock manager's wait would end in an error, not in an
// answer.
#include "core/fingerprint.hpp"
#include "core/policy.hpp"
#include "core/types.hpp"
#include "api/arguments.hpp"
#include "engine/claim.hpp"
#include "pg/server.hpp"
#include "pg/boundary.hpp"
#include "pg/varlena.hpp"

namespace idem::api {

namespace {

constexpr std::size_t RESOURCE_MAX = 1024;
constexpr core::Duration DEFAULT_WAIT = 5 * core::SECOND;
constexpr long FIRST_PAUSE_MS = 1;
constexpr long LONGEST_PAUSE_MS = 50;

std::int64_t lock_key(const text* resource) {
    core::Xxh3Stream hash;
    hash.reset();
    hash.update(core::Bytes{"idempotency resource "});
    hash.update(pg::bytes_of(resource));
    const core::Digest digest = hash.digest();
    std::uint64_t key = 0;
    for (int i = 0; i < 8; ++i)
        key = key << 8 | digest.bytes[i];
    return static_cast<std::int64_t>(key);
}

bool try_lock(std::int64_t key) {
    return DatumGetBool(DirectFunctionCall1(pg_try_advisory_xact_lock_int8, Int64GetDatum(key)));
}

void pause(long milliseconds) {
    (void)WaitLatch(MyLatch, WL_LATCH_SET | WL_TIMEOUT | WL_EXIT_ON_PM_DEATH, milliseconds, PG_WAIT_EXTENSION);
    ResetLatch(MyLatch);
    CHECK_FOR_INTERRUPTS();
}

} // namespace

} // namespace idem::api

using namespace idem;

IDEM_FUNCTION(idem_lock_resource_v1) {
    const std::int64_t key = api::lock_key(api::required_text(fcinfo, 0, "resource", api::RESOURCE_MAX));
    const core::Duration given = api::optional_wait(fcinfo, 1);
    core::Duration wait = given == engine::NOT_GIVEN ? api::DEFAULT_WAIT : given;
    if (LockTimeout > 0 && wait > LockTimeout * core::MILLISECOND)
        wait = LockTimeout * core::MILLISECOND;
    const core::Timestamp deadline = GetCurrentTimestamp() + wait;
    for (long delay = api::FIRST_PAUSE_MS; !api::try_lock(key);) {
        if (GetCurrentTimestamp() >= deadline)
            PG_RETURN_BOOL(false);
        api::pause(delay);
        delay = delay * 2 < api::LONGEST_PAUSE_MS ? delay * 2 : api::LONGEST_PAUSE_MS;
    }
    PG_RETURN_BOOL(true);
}
