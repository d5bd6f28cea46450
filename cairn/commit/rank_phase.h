// SPDX-License-Identifier: Apache-2.0
// What a rank says of itself while it saves, in `ranks/<rank>.phase` of the attempt: for ranks that
// wait for it, and for people who look. A save by one process has its rank 0.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "cairn/async/mutex.h"
#include "cairn/base/clock.h"
#include "cairn/commit/directory.h"
#include "cairn/storage/local/file_system.h"

namespace cairn {

/// The phase of a rank that could not even write its report; the error follows.
constexpr std::string_view kFailedPhase = "failed: ";

struct RankPhase {
  std::string phase = {};   ///< in words, such as "writing"
  std::uint64_t done = 0;   ///< bytes of elements that this rank has written
  std::uint64_t total = 0;  ///< that it has to write; 0: not known yet
  std::string since = {};   ///< when the phase began
  std::string time = {};    ///< of the last change
  ProcessName writer = {};
};

/// One line.
std::string dump_rank_phase(const RankPhase& phase);
/// Hostile bytes, of which the first line counts. What is missing in it counts as empty. `corrupt`
/// (ranks/bad-phase) without a phase.
Result<RankPhase> parse_rank_phase(std::string_view text);

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

/// What others see of a rank.
struct SeenPhase {
  RankPhase said;
  /// Is its file locked? Nothing where that cannot be known: locks are known to work between
  /// processes of one host only.
  std::optional<bool> alive;
};
/// `file` is relative to `dest`. Nothing if it is not there or half written.
std::optional<SeenPhase> look_at_phase(const Directory& dest, const std::string& file);

/// Was it written on this host, since it started?
bool is_this_host(const std::string& boot_id);

}  // namespace cairn
