// types.hpp: the small values every layer speaks in.
//
// Purpose: give identity, fencing and time their own types, so that the compiler refuses a token where a time is meant.
// Data layout: all are trivially copyable and hold no pointer but Bytes, which is a view on memory the caller keeps.
// Units: a Timestamp counts microseconds since 2000-01-01 00:00 UTC, the server's own epoch; a Duration counts
// microseconds.
#pragma once

#include <cstdint>
#include <cstring>
#include <string_view>

namespace idem::core {

// Timestamp is a point in time, microseconds since 2000-01-01 UTC.
using Timestamp = std::int64_t;

// Duration is a length of time in microseconds, never negative where it comes from a policy.
using Duration = std::int64_t;

inline constexpr Duration MILLISECOND = 1000;
inline constexpr Duration SECOND = 1000 * MILLISECOND;
inline constexpr Duration MINUTE = 60 * SECOND;
inline constexpr Duration HOUR = 60 * MINUTE;
inline constexpr Duration DAY = 24 * HOUR;

// Bytes is a view on raw bytes; text in the server's encoding travels as Bytes too.
using Bytes = std::string_view;

// OperationId is a version 8 uuid, derived from (actor, op, key) and nothing else.
struct OperationId {
    std::uint8_t bytes[16];

    friend bool operator==(const OperationId& a, const OperationId& b) noexcept {
        return std::memcmp(a.bytes, b.bytes, sizeof a.bytes) == 0;
    }
};

// Digest is a payload hash: 16 bytes (xxh3-128), 32 bytes (sha256), or none (size 0).
struct Digest {
    std::uint8_t bytes[32];
    std::uint8_t size;

    friend bool operator==(const Digest& a, const Digest& b) noexcept {
        return a.size == b.size && std::memcmp(a.bytes, b.bytes, a.size) == 0;
    }
};

// HashAlgorithm names how a payload becomes a Digest.
enum class HashAlgorithm : std::uint8_t { XXH3_128, SHA256 };

// Token is a fencing token: each acquisition of a key gets a greater one. Below 2^53, so that it survives JavaScript.
struct Token {
    std::int64_t value;

    friend constexpr bool operator==(const Token&, const Token&) noexcept = default;
};

} // namespace idem::core
