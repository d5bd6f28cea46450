// SPDX-License-Identifier: Apache-2.0
// `Coordinator`: the processes of a job agree, in the foreground. `open.h` makes one from the
// environment; `in_process.h`, `rendezvous.h`, `board.h` and `mpi/mpi_coordinator.h` are the ways
// to meet.
//
// The commit of a save needs none of this: in the background ranks meet in the storage.
#pragma once

#include <chrono>
#include <cstddef>
#include <functional>
#include <string_view>
#include <vector>

#include "cairn/async/deadline.h"
#include "cairn/base/buffer.h"
#include "cairn/base/result.h"

namespace cairn::coord {

/// Which process of the job this is: 0 <= rank < count.
struct Place {
  int rank = 0;
  int count = 1;
};

/// Most ranks of a job (coord/bad-rank), longest phase in bytes (coord/bad-phase), and most bytes
/// that one rank may send in one call (coord/payload-too-large).
constexpr int kMaxRanks = 1 << 16;
constexpr std::size_t kMaxPhase = 200;
constexpr std::size_t kMaxPayload = 16u << 20;

/// Polled while a call waits, in its thread. If it returns true, the call fails as a failure of
/// this rank, and the others are told. Empty: never interrupted.
using Interrupted = std::function<bool()>;

/// The end of one rank. Every rank makes the same calls in the same order with the same phase: a
/// short text that names what the job is doing ("save 100"), used in messages and as a check. A
/// call returns only after all ranks have reached it, so each call is also a barrier.
///
/// Threading: confined; one call at a time; for MPI its header says from which thread. Ownership:
/// bytes passed in are copied; those that come out are immutable.
///
/// Failure: rank 0 judges, and all ranks that it can reach get the same error.
/// - `deadline_exceeded` (coord/late-ranks): some did not come before rank 0's deadline, or that of
///   a rank that waits; names them and the phase in which they were last seen. A call ends at most
///   kGrace after its own deadline: for so long a rank that gives up waits to hear from rank 0 who
///   is late. If it hears nothing, rank 0 itself is named.
/// - `failed_precondition` (coord/phase-mismatch): ranks came with another phase or to another
///   operation; names both.
/// - `cancelled` (coord/rank-failed): a rank could not take part, its storage failed for example;
///   names it and says why.
/// - `invalid_argument` (coord/bad-phase: empty, too long, or not printable UTF-8;
///   coord/payload-too-large) and `resource_exhausted` (base/out-of-memory): refused before
///   anybody hears of it; nothing has happened, and the others still wait.
///
/// After any of the first three errors the coordinator is dead: every later call fails at once with
/// `failed_precondition` (coord/dead) and the first error in it. Other ranks learn of the failure
/// in their current or next call. Make new coordinators to continue. A call that succeeds on some
/// ranks may fail on a rank that learns of the success only after its grace period.
class Coordinator {
 public:
  static constexpr std::chrono::seconds kGrace{1};

  virtual ~Coordinator() = default;

  virtual int rank() const = 0;
  virtual int count() const = 0;

  /// Returns when all ranks are here.
  virtual Result<void> barrier(std::string_view phase, Deadline deadline) = 0;
  /// Rank 0's `bytes`, on every rank; those of the others are not looked at.
  virtual Result<Buffer> broadcast(ByteSpan bytes, std::string_view phase, Deadline deadline) = 0;
  /// On rank 0 the bytes of all ranks, by rank; on the others an empty list.
  virtual Result<std::vector<Buffer>> gather(ByteSpan bytes, std::string_view phase,
                                             Deadline deadline) = 0;
};

}  // namespace cairn::coord
