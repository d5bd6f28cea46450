// SPDX-License-Identifier: Apache-2.0
// SHA-256, whole or in pieces, as 64 lower-case hex digits.
#pragma once

#include <memory>
#include <string>

#include "cairn/base/bytes.h"

namespace cairn::inline base {

/// Threading: confined.
class Sha256 {
 public:
  Sha256();
  ~Sha256();
  Sha256(Sha256&&) noexcept;
  Sha256& operator=(Sha256&&) noexcept;

  void update(ByteSpan bytes);
  /// The digest of everything so far. REQUIRES: called once, last.
  std::string hex();

 private:
  struct State;
  std::unique_ptr<State> state_;
};

std::string sha256_hex(ByteSpan bytes);

}  // namespace cairn::inline base
