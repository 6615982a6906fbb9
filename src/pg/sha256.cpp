// sha256.cpp: see sha256.hpp.
#include <openssl/evp.h>

#include "core/types.hpp"
#include "pg/sha256.hpp"
#include "pg/server.hpp"

namespace idem::pg {

namespace {

constinit EVP_MD_CTX* context = nullptr;
constinit EVP_MD* algorithm = nullptr;

[[noreturn]] void give_up() {
    ereport(ERROR, (errcode(ERRCODE_INTERNAL_ERROR), errmsg("OpenSSL could not compute a SHA-256")));
    pg_unreachable();
}

} // namespace

void sha256_begin() {
    if (algorithm == nullptr)
        algorithm = EVP_MD_fetch(nullptr, "SHA256", nullptr);
    if (context == nullptr)
        context = EVP_MD_CTX_new();
    if (algorithm == nullptr || context == nullptr || EVP_DigestInit_ex2(context, algorithm, nullptr) != 1)
        give_up();
}

void sha256_add(core::Bytes bytes) {
    if (EVP_DigestUpdate(context, bytes.data(), bytes.size()) != 1)
        give_up();
}

core::Digest sha256_end() {
    core::Digest digest{};
    unsigned int size = 0;
    if (EVP_DigestFinal_ex(context, digest.bytes, &size) != 1 || size != SHA256_SIZE)
        give_up();
    digest.size = SHA256_SIZE;
    return digest;
}

core::Digest sha256(core::Bytes bytes) {
    sha256_begin();
    sha256_add(bytes);
    return sha256_end();
}

} // namespace idem::pg
