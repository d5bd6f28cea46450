// SPDX-License-Identifier: Apache-2.0
// The phase of a rank in `ranks/<rank>.phase` of its attempt, with a lock that says that the rank
// lives.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "cairn/async/mutex.h"
#include "cairn/base/clock.h"
#include "cairn/commit/posix/directory.h"
#include "cairn/commit/rank_phase.h"

namespace cairn {

/// This process's own, locked for as long as it lives. It is never made durable, and written only
/// at each phase, when the total becomes known, and once a second while bytes are counted.
/// Threading: safe.
class PhaseFile {
 public:
  /// `attempt` is the name of its directory in `dest`. `not_found` if that is not there.
  static Result<std::unique_ptr<PhaseFile>> open(const Directory& dest, const std::string& attempt,
                                                 int rank, Clock& clock);

  /// An error is no reason to give up a save.
  Result<void> enter(std::string_view phase);
  void count(std::uint64_t done, std::uint64_t total);

 private:
  PhaseFile(std::unique_ptr<storage::File> file, Clock& clock);
  Result<void> write() CAIRN_REQUIRES(mutex_);

  const std::unique_ptr<storage::File> file_;
  Clock& clock_;
  Mutex mutex_;
  RankPhase now_ CAIRN_GUARDED_BY(mutex_);
  Clock::Mono written_ CAIRN_GUARDED_BY(mutex_) = {};
  std::size_t length_ CAIRN_GUARDED_BY(mutex_) = 0;  // of the longest line so far
};

/// `file` is relative to `dest`. Nothing if it is not there or half written. A lock tells of a
/// process on this host alone: locks are known to work between processes of one host only.
std::optional<SeenPhase> look_at_phase(const Directory& dest, const std::string& file);

}  // namespace cairn
