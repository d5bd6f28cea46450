// SPDX-License-Identifier: Apache-2.0
// The attempts in a destination and what each rank of them does, for anybody who may
// read the destination.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "cairn/commit/attempt_view.h"

namespace cairn {

struct SeenRank {
  int rank = 0;
  std::string phase = {};   ///< in words; empty: it has not come yet
  std::uint64_t done = 0;   ///< bytes of elements that it has written
  std::uint64_t total = 0;  ///< that it has to write; 0: not known yet
  std::string since = {};   ///< when the phase began
  std::string time = {};    ///< of the last change
  std::string host = {};
  std::int64_t process = 0;
  /// Nothing where that cannot be known: locks are known to work between processes of one host
  /// only.
  std::optional<bool> alive = {};
  bool reported = false;     ///< what it wrote is durable
  std::string failure = {};  ///< why it gave up; empty: it did not
};

struct SeenAttempt {
  AttemptView view;
  /// All that it has, by number, and whoever else left a file there. Of one that says that it has
  /// more than 65,536, only those who did.
  std::vector<SeenRank> ranks = {};
  std::string failure = {};  ///< why it was abandoned; empty: it was not, or nobody said
};

}  // namespace cairn
