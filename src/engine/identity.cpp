// identity.cpp: see identity.hpp.
#include "core/types.hpp"
#include "engine/identity.hpp"
#include "pg/server.hpp"
#include "pg/sha256.hpp"

namespace idem::engine {

namespace {

// Longest texts of an identity: 255 + 128 + 255 characters of up to four bytes, and three lengths.
constexpr std::size_t MESSAGE_MAX = 4 * (255 + 128 + 255) + 3 * 4;

struct Message {
    std::uint8_t bytes[MESSAGE_MAX];
    std::size_t size;
};

void append(Message& message, core::Bytes part) {
    const int size = static_cast<int>(part.size());
    const char* utf8 = GetDatabaseEncoding() == PG_UTF8 ? part.data() : pg_server_to_any(part.data(), size, PG_UTF8);
    const std::size_t length = utf8 == part.data() ? part.size() : std::strlen(utf8);
    if (message.size + 4 + length > MESSAGE_MAX)
        elog(ERROR, "identity is longer than its limits allow");
    for (int shift = 24; shift >= 0; shift -= 8)
        message.bytes[message.size++] = static_cast<std::uint8_t>(length >> shift);
    std::memcpy(message.bytes + message.size, utf8, length);
    message.size += length;
}

} // namespace

core::OperationId derive_operation_id(core::Bytes actor, core::Bytes op, core::Bytes key) {
    Message message;
    message.size = 0;
    append(message, actor);
    append(message, op);
    append(message, key);
    const core::Digest digest = pg::sha256(core::Bytes{reinterpret_cast<const char*>(message.bytes), message.size});
    core::OperationId id;
    std::memcpy(id.bytes, digest.bytes, sizeof id.bytes);
    id.bytes[6] = static_cast<std::uint8_t>(0x80 | (id.bytes[6] & 0x0f));
    id.bytes[8] = static_cast<std::uint8_t>(0x80 | (id.bytes[8] & 0x3f));
    return id;
}

} // namespace idem::engine
