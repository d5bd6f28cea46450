// SPDX-License-Identifier: Apache-2.0
// Reads every stored byte and says what is damaged, all of it, by leaf and place.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "cairn/layout/checkpoint.h"
#include "cairn/runtime/progress.h"
#include "cairn/runtime/runtime.h"

namespace cairn {

struct Damage {
  std::string prefix;
  std::string key;     ///< leaf; empty for a file that belongs to several
  std::string object;  ///< as a person finds it: path of the chunk or file
  std::string chunk;   ///< "0.1"; empty where there is none
  std::string reason;  ///< token
  std::string message;
};

struct VerifyReport {
  std::uint64_t arrays = 0;
  std::uint64_t chunks = 0;
  std::uint64_t bytes = 0;  ///< stored bytes that were read
  std::vector<Damage> damages;
  std::vector<std::string> unchecked;  ///< leaves without checksums: only decoded
};

struct VerifyOptions {
  std::optional<std::string> prefix = {};  ///< nothing: all
  ProgressSink progress = {};
};

/// Arrays with sums: every block against its CRC, array metadata and part headers against the
/// manifest; then, where nothing is wrong with an array, its elements against the SHA-256 if there
/// are any. Arrays of other systems: that every chunk decodes. Damage is no error of the call: it
/// is the answer. A checkpoint that is replaced meanwhile is opened again and verified anew.
Result<VerifyReport> verify(const Checkpoint& checkpoint, const VerifyOptions& options,
                            Runtime& runtime);

}  // namespace cairn
