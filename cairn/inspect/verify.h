// SPDX-License-Identifier: Apache-2.0
// Reads every stored byte and lists all damage, by leaf and place.
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
  std::string object;  ///< path of the chunk or file
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
  std::optional<std::string> prefix = {};  ///< nullopt: all
  ProgressSink progress = {};
};

/// Arrays with sums: checks every block against its CRC, and array metadata and part headers
/// against the manifest; then checks the elements of undamaged arrays against their SHA-256, if
/// there is one. Arrays of other systems: checks that every chunk decodes. Damage is not an error
/// of the call but its answer. Reopens and verifies again a checkpoint that is replaced meanwhile.
Result<VerifyReport> verify(const Checkpoint& checkpoint, const VerifyOptions& options,
                            Runtime& runtime);

}  // namespace cairn
