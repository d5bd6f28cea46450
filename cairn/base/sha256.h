// SPDX-License-Identifier: Apache-2.0
// SHA-256, whole or in pieces, as bytes or as 64 lower-case hex digits.
#pragma once

#include <array>
#include <memory>
#include <string>

#include "cairn/base/bytes.h"

namespace cairn {

using Sha256Digest = std::array<std::byte, 32>;

/// Threading: confined.
class Sha256 {
 public:
  Sha256();
  ~Sha256();
  Sha256(Sha256&&) noexcept;
  Sha256& operator=(Sha256&&) noexcept;

  void update(ByteSpan bytes);
  /// The digest of everything so far. REQUIRES: one of them is called, once, last.
  Sha256Digest digest();
  std::string hex();

 private:
  struct State;
  std::unique_ptr<State> state_;
};

std::string sha256_hex(ByteSpan bytes);

}  // namespace cairn
