// SPDX-License-Identifier: Apache-2.0
#include "cairn/base/sha256.h"

#include <openssl/crypto.h>
#include <openssl/evp.h>

#include "cairn/base/base64.h"

namespace cairn {

struct Sha256::State {
  struct Free {
    void operator()(EVP_MD_CTX* dead) const { EVP_MD_CTX_free(dead); }
  };
  std::unique_ptr<EVP_MD_CTX, Free> context{EVP_MD_CTX_new()};
};

namespace {

// Background threads may hash after the exit handlers of others have run; this library's own would
// take from them what they work with.
void keep_library_until_the_end() {
  static const bool once = OPENSSL_init_crypto(OPENSSL_INIT_NO_ATEXIT, nullptr) == 1;
  (void)once;
}

}  // namespace

Sha256::Sha256() : state_((keep_library_until_the_end(), std::make_unique<State>())) {
  EVP_DigestInit_ex(state_->context.get(), EVP_sha256(), nullptr);
}
Sha256::~Sha256() = default;
Sha256::Sha256(Sha256&&) noexcept = default;
Sha256& Sha256::operator=(Sha256&&) noexcept = default;

void Sha256::update(ByteSpan bytes) {
  EVP_DigestUpdate(state_->context.get(), bytes.data(), bytes.size());
}

Sha256Digest Sha256::digest() {
  Sha256Digest digest{};
  EVP_DigestFinal_ex(state_->context.get(), reinterpret_cast<unsigned char*>(digest.data()),
                     nullptr);
  return digest;
}

std::string Sha256::hex() { return encode_hex(digest()); }

std::string sha256_hex(ByteSpan bytes) {
  Sha256 sum;
  sum.update(bytes);
  return sum.hex();
}

}  // namespace cairn
