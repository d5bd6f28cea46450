// SPDX-License-Identifier: Apache-2.0
// What rank 0 knows about a call: which ranks have arrived, and what they sent.
#pragma once

#include <optional>
#include <span>
#include <string>
#include <vector>

#include "cairn/coord/channel.h"

namespace cairn::coord {

/// Pure: gets the received messages and says how the call ends. Threading: compatible.
class RollCall {
 public:
  /// `call` is rank 0's own part, `seen` the phase in which all ranks were seen last, or empty.
  RollCall(const Message& call, int count, std::string seen);

  bool complete() const { return missing_.empty(); }
  /// A rank's deadline has passed: the call ends after one more poll of all ranks.
  bool urgent() const { return !impatient_.empty(); }
  /// Some of the missing ranks, different ones each time, so that a poll costs the same for any
  /// number of ranks.
  std::span<const int> next_to_look_at();
  std::span<const int> missing() const { return missing_; }

  /// A verdict if this ends the call.
  std::optional<Message> take(const Received& received);
  /// The verdict when the waiting is over.
  Message conclude();
  /// Ends the call because a rank cannot go on.
  Message fail(int rank, const std::string& why) const;

  /// By rank. REQUIRES: complete().
  std::vector<Buffer> payloads() && { return std::move(payloads_); }

 private:
  Message end(CallStatus outcome, std::string text) const;

  const Message call_;
  const std::string seen_;
  std::vector<int> missing_;
  std::vector<int> impatient_;
  std::vector<Buffer> payloads_;
};

}  // namespace cairn::coord
