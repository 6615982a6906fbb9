// fingerprint.hpp: XXH3-128 over bytes.
//
// Purpose: the fast payload hash. Seed 0, no prefix, stored big-endian, so that `xxhsum -H128` over the same bytes
// prints the same 32 hex digits anywhere. Not collision resistant against somebody who picks both inputs: hostile
// payloads need sha256. Data layout: the streaming state lives where the caller puts it (about 600 bytes, usually the
// stack); nothing is allocated. xxHash is compiled into this and xxh3_avx2.cpp only, so the library needs no shared
// libxxhash and exports no name of it.
#pragma once

#include "core/types.hpp"

#include <cstddef>

namespace idem::core {

// xxh3_128 is the digest (16 bytes) of data as one piece.
Digest xxh3_128(Bytes data) noexcept;

// Xxh3Stream takes the same bytes in any pieces and gives the same digest. reset() comes before the first update().
class Xxh3Stream {
public:
    void reset() noexcept;
    void update(Bytes data) noexcept;
    Digest digest() const noexcept;

private:
    static constexpr std::size_t STATE_SIZE = 576;
    static constexpr std::size_t STATE_ALIGN = 64;

    alignas(STATE_ALIGN) unsigned char state_[STATE_SIZE];
};

} // namespace idem::core
