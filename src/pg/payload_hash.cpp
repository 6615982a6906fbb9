// payload_hash.cpp: canonical text into a hash or into a text value.
//
// Both are sinks of one CanonicalWriter over a stack buffer. A sink is only called when the buffer is full, so a
// payload whose text fits costs one hash call and no allocation. SHA-256 is the server's own (OpenSSL where it is built
// with it); its context belongs to the resource owner and goes at abort, should an interrupt leave early.
#include "core/canonical.hpp"
#include "core/fingerprint.hpp"

#include "pg/errors.hpp"
#include "pg/jsonb_tokens.hpp"
#include "pg/payload_hash.hpp"
#include "pg/profile_walk.hpp"
#include "pg/sha256.hpp"

namespace idem::pg {
namespace {

using core::Bytes;
using core::CanonicalWriter;
using core::Digest;
using core::HashAlgorithm;

constexpr std::size_t BUFFER_SIZE = 8192;

// --- hashing --------------------------------------------------------------------------------------------------------

// Hasher takes bytes in any number of pieces; a whole text that comes to finish() alone takes the one-shot way.
class Hasher {
public:
    explicit Hasher(HashAlgorithm algorithm) : algorithm_(algorithm) {}

    void update(Bytes data) {
        if (!is_streaming_) {
            start();
        }
        switch (algorithm_) {
        case HashAlgorithm::XXH3_128: xxh3_.update(data); break;
        case HashAlgorithm::SHA256: sha256_add(data); break;
        }
    }

    // finish returns the digest of all updates followed by rest.
    Digest finish(Bytes rest) {
        if (algorithm_ == HashAlgorithm::XXH3_128 && !is_streaming_) {
            return core::xxh3_128(rest);
        }
        update(rest);
        switch (algorithm_) {
        case HashAlgorithm::XXH3_128: return xxh3_.digest();
        case HashAlgorithm::SHA256: return sha256_end();
        }
        pg_unreachable();
    }

private:
    void start() {
        is_streaming_ = true;
        switch (algorithm_) {
        case HashAlgorithm::XXH3_128: xxh3_.reset(); break;
        case HashAlgorithm::SHA256: sha256_begin(); break;
        }
    }

    const HashAlgorithm algorithm_;
    bool is_streaming_ = false;
    core::Xxh3Stream xxh3_;
};

void flush_to_hasher(void* context, const char* text, std::size_t size) {
    CHECK_FOR_INTERRUPTS();
    static_cast<Hasher*>(context)->update(Bytes(text, size));
}

Bytes bytes_of(const varlena* value) {
    return {VARDATA_ANY(value), static_cast<std::size_t>(VARSIZE_ANY_EXHDR(value))};
}

void write_target(const text* target_or_null, CanonicalWriter& writer) {
    if (target_or_null != nullptr) {
        write_string(bytes_of(target_or_null), writer);
        writer.line_break();
    }
}

constexpr Digest NO_PAYLOAD{};

// --- text -----------------------------------------------------------------------------------------------------------

// TextBuilder collects pieces into a text, palloc'd in the context that is current when the builder is made: the walk
// that calls append() may have one of its own. MaxAllocSize bounds it, varlena header included.
class TextBuilder {
public:
    void append(Bytes piece) {
        const std::size_t needed = VARHDRSZ + size_ + piece.size();
        if (needed > MaxAllocSize) {
            error_canonical_too_long();
        }
        if (needed > capacity_) {
            grow(needed);
        }
        std::memcpy(VARDATA(text_) + size_, piece.data(), piece.size());
        size_ += piece.size();
    }

    Bytes bytes() const { return {VARDATA(text_), size_}; }

    text* finish() {
        SET_VARSIZE(text_, VARHDRSZ + size_);
        return text_;
    }

private:
    // grow makes room for needed bytes: exactly those at first, for most texts come as one piece, then by doubling.
    void grow(std::size_t needed) {
        if (text_ == nullptr) {
            capacity_ = needed;
            text_ = static_cast<text*>(MemoryContextAlloc(context_, capacity_));
            return;
        }
        const std::size_t doubled = capacity_ > MaxAllocSize / 2 ? MaxAllocSize : 2 * capacity_;
        capacity_ = doubled > needed ? doubled : needed;
        text_ = static_cast<text*>(repalloc(text_, capacity_));
    }

    const MemoryContext context_ = CurrentMemoryContext;
    text* text_ = nullptr;
    std::size_t size_ = 0;
    std::size_t capacity_ = 0;
};

void flush_to_text(void* context, const char* text, std::size_t size) {
    CHECK_FOR_INTERRUPTS();
    static_cast<TextBuilder*>(context)->append(Bytes(text, size));
}

// to_server_encoding returns the text collected by builder, converted from UTF-8 where the server speaks another
// encoding. All of its characters came from that encoding, so each has a place in it.
text* to_server_encoding(TextBuilder& builder) {
    const int encoding = GetDatabaseEncoding();
    if (encoding == PG_UTF8 || encoding == PG_SQL_ASCII) {
        return builder.finish();
    }
    const Bytes utf8 = builder.bytes();
    const char* converted = pg_any_to_server(utf8.data(), static_cast<int>(utf8.size()), PG_UTF8);
    return converted == utf8.data() ? builder.finish() : cstring_to_text(converted);
}

} // namespace

core::Digest hash_payload(const Jsonb* payload_or_null, const text* target_or_null, core::HashAlgorithm algorithm) {
    if (payload_or_null == nullptr && target_or_null == nullptr) {
        return NO_PAYLOAD;
    }
    char buffer[BUFFER_SIZE];
    Hasher hasher(algorithm);
    CanonicalWriter writer(buffer, sizeof buffer, flush_to_hasher, &hasher);
    write_target(target_or_null, writer);
    if (payload_or_null != nullptr) {
        write_jsonb(payload_or_null, writer);
    }
    return hasher.finish(writer.pending());
}

core::Digest hash_payload_with_profile(const Jsonb* payload_or_null, const text* target_or_null,
                                       core::HashAlgorithm algorithm, const core::Profile& profile) {
    if (payload_or_null == nullptr || profile.is_empty()) {
        return hash_payload(payload_or_null, target_or_null, algorithm);
    }
    char buffer[BUFFER_SIZE];
    Hasher hasher(algorithm);
    CanonicalWriter writer(buffer, sizeof buffer, flush_to_hasher, &hasher);
    write_target(target_or_null, writer);
    write_jsonb_under(profile, payload_or_null, writer);
    return hasher.finish(writer.pending());
}

core::Digest hash_payload_bytes(const bytea* payload_or_null, const text* target_or_null,
                                core::HashAlgorithm algorithm) {
    if (payload_or_null == nullptr && target_or_null == nullptr) {
        return NO_PAYLOAD;
    }
    const Bytes payload = payload_or_null == nullptr ? Bytes() : bytes_of(payload_or_null);
    Hasher hasher(algorithm);
    if (target_or_null != nullptr) {
        char buffer[BUFFER_SIZE];
        CanonicalWriter writer(buffer, sizeof buffer, flush_to_hasher, &hasher);
        write_target(target_or_null, writer);
        writer.flush();
    }
    return hasher.finish(payload);
}

text* canonical_text(const Jsonb* payload) {
    char buffer[BUFFER_SIZE];
    TextBuilder builder;
    CanonicalWriter writer(buffer, sizeof buffer, flush_to_text, &builder);
    write_jsonb(payload, writer);
    writer.flush();
    return to_server_encoding(builder);
}

text* canonical_text_with_profile(const Jsonb* payload, const core::Profile& profile) {
    if (profile.is_empty()) {
        return canonical_text(payload);
    }
    char buffer[BUFFER_SIZE];
    TextBuilder builder;
    CanonicalWriter writer(buffer, sizeof buffer, flush_to_text, &builder);
    write_jsonb_under(profile, payload, writer);
    writer.flush();
    return to_server_encoding(builder);
}

bool hash_algorithm_from_name(std::string_view name, core::HashAlgorithm* algorithm) {
    if (name == "xxh3-128") {
        *algorithm = HashAlgorithm::XXH3_128;
        return true;
    }
    if (name == "sha256") {
        *algorithm = HashAlgorithm::SHA256;
        return true;
    }
    return false;
}

} // namespace idem::pg
