// SPDX-License-Identifier: Apache-2.0
// What rank 0 knows of a call: who has come, and what they brought.
#pragma once

#include <optional>
#include <span>
#include <string>
#include <vector>

#include "cairn/coord/channel.h"

namespace cairn::coord {

/// Pure: told what was received, says how the call ends. Threading: compatible.
class RollCall {
 public:
  /// `call` is rank 0's own part, `seen` the phase in which all ranks were seen last, or empty.
  RollCall(const Message& call, int count, std::string seen);

  bool complete() const { return missing_.empty(); }
  /// A rank's deadline has passed: the call ends after one more look at everybody.
  bool urgent() const { return !impatient_.empty(); }
  /// Some of those who are missing, other ones each time: a look costs the same for any number.
  std::span<const int> next_to_look_at();
  std::span<const int> missing() const { return missing_; }

  /// A verdict if this ends the call.
  std::optional<Message> take(const Received& received);
  /// The verdict when nobody is waited for any longer.
  Message conclude();
  /// Ends the call because a rank cannot go on.
  Message fail(int rank, const std::string& why) const;

  /// By rank. REQUIRES: complete().
  std::vector<Buffer> payloads() && { return std::move(payloads_); }

 private:
  Message end(Outcome outcome, std::string text) const;

  const Message call_;
  const std::string seen_;
  std::vector<int> missing_;
  std::vector<int> impatient_;
  std::vector<Buffer> payloads_;
};

}  // namespace cairn::coord
