// SPDX-License-Identifier: Apache-2.0
// `Channel`: how messages get from the ranks to rank 0 and back. `meeting.h` makes a coordinator of
// one.
#pragma once

#include <chrono>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "cairn/base/buffer.h"
#include "cairn/base/clock.h"
#include "cairn/coord/coordinator.h"

namespace cairn::coord {

enum class Operation : std::uint8_t { kBarrier, kBroadcast, kGather };
enum class CallStatus : std::uint8_t { kDone, kLate, kMismatch, kFailed };

/// From a rank to rank 0: "I have reached this call", or, with an outcome other than kDone, "I give
/// up". From rank 0 to all: how the call ended.
struct Message {
  std::uint64_t call = 0;  ///< how many calls the rank has made, this one included
  Operation operation = Operation::kBarrier;
  std::string phase = {};
  CallStatus outcome = CallStatus::kDone;
  std::string text = {};  ///< of the error; empty for kDone
  Buffer payload = {};    ///< immutable
};

struct Received {
  int from = 0;
  Message message = {};
};

/// The end of one rank. Threading: confined. `unavailable` errors can be retried; after any other
/// error nothing more arrives.
class Channel {
 public:
  virtual ~Channel() = default;

  virtual Place place() const = 0;
  virtual Clock& clock() = 0;

  /// Rank 0 sends to all others, the others to rank 0. Does not block. Replaces what was sent
  /// before.
  virtual Result<void> send(const Message& message) = 0;
  /// Has everything been sent? If not, it is sent only while the channel is in use.
  virtual Result<bool> settled() { return true; }
  /// What the ranks `from` sent for `call` or a later one, if it has arrived, and messages of any
  /// rank that gives up. May return the same message again. Does not block.
  virtual Result<std::vector<Received>> receive(std::uint64_t call, std::span<const int> from) = 0;
  /// Returns after `span`, or earlier if there may be something new.
  virtual void wait(std::chrono::nanoseconds span) = 0;
};

}  // namespace cairn::coord
