// SPDX-License-Identifier: Apache-2.0
// The attempts in a destination as a reader sees them.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace cairn {

enum class AttemptState : std::uint8_t {
  kAlive,
  kDead,
  kDecided,    ///< a commit
  kAbandoned,  ///< given up; its outcome may stay for ranks that have not read it yet
};

struct AttemptView {
  std::string id;
  AttemptState state = AttemptState::kDead;
  std::string host;
  std::int64_t process = 0;
  std::string started;
  std::vector<std::string> prefixes;
};

/// By attempt id.
struct RecoveryReport {
  std::vector<std::string> finished;
  std::vector<std::string> removed;
};

}  // namespace cairn
