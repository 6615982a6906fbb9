// sha256.cpp: see sha256.hpp.
//
// OpenSSL calls these functions deprecated in favour of EVP, which looks the algorithm up and allocates a context for
// each hash; for a message of a hundred bytes that costs more than the hash. They are the same code underneath.
#define OPENSSL_SUPPRESS_DEPRECATED
#include <openssl/sha.h>

#include "core/types.hpp"
#include "pg/sha256.hpp"
#include "pg/server.hpp"

namespace idem::pg {

namespace {

constinit SHA256_CTX context{};

static_assert(SHA256_SIZE == SHA256_DIGEST_LENGTH);

void check(int success) {
    if (success != 1)
        ereport(ERROR, (errcode(ERRCODE_INTERNAL_ERROR), errmsg("OpenSSL could not compute a SHA-256")));
}

} // namespace

void sha256_begin() {
    check(SHA256_Init(&context));
}

void sha256_add(core::Bytes bytes) {
    check(SHA256_Update(&context, bytes.data(), bytes.size()));
}

core::Digest sha256_end() {
    core::Digest digest{};
    check(SHA256_Final(digest.bytes, &context));
    digest.size = SHA256_SIZE;
    return digest;
}

core::Digest sha256(core::Bytes bytes) {
    sha256_begin();
    sha256_add(bytes);
    return sha256_end();
}

} // namespace idem::pg
