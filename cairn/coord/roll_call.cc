// SPDX-License-Identifier: Apache-2.0
#include "cairn/coord/roll_call.h"

#include <algorithm>
#include <numeric>

#include <fmt/format.h>

#include "cairn/coord/verdict.h"

namespace cairn::coord {
namespace {

constexpr std::size_t kLooks = 16;

}  // namespace

RollCall::RollCall(const Message& call, int count, std::string seen)
    : call_(call),
      seen_(std::move(seen)),
      missing_(static_cast<std::size_t>(count - 1)),
      payloads_(static_cast<std::size_t>(count)) {
  std::iota(missing_.begin(), missing_.end(), 1);
  payloads_[0] = call.payload;
}

std::span<const int> RollCall::next_to_look_at() {
  const std::size_t looks = std::min(kLooks, missing_.size());
  std::ranges::rotate(missing_, missing_.end() - static_cast<std::ptrdiff_t>(looks));
  return missing().first(looks);
}

std::optional<Message> RollCall::take(const Received& received) {
  const auto& [from, message] = received;
  const bool is_new = std::erase(missing_, from) != 0;
  if (message.outcome == CallStatus::kFailed) return fail(from, message.text);
  if (message.operation != call_.operation || message.phase != call_.phase) {
    return end(CallStatus::kMismatch, mismatch_text(call_, received));
  }
  if (message.outcome == CallStatus::kLate) impatient_.assign(1, from);
  if (is_new) payloads_[static_cast<std::size_t>(from)] = message.payload;
  return std::nullopt;
}

Message RollCall::conclude() {
  if (complete()) {
    Message verdict = end(CallStatus::kDone, {});
    if (call_.operation == Operation::kBroadcast) verdict.payload = call_.payload;
    return verdict;
  }
  std::ranges::sort(missing_);
  const std::string whose =
      urgent() ? "the deadline of " + name_ranks(impatient_) : std::string("the deadline");
  return end(CallStatus::kLate, late_text(missing_, call_, seen_, whose));
}

Message RollCall::fail(int rank, const std::string& why) const {
  return end(CallStatus::kFailed, fmt::format("rank {} failed: {}", rank, why));
}

Message RollCall::end(CallStatus outcome, std::string text) const {
  return {.call = call_.call,
          .operation = call_.operation,
          .phase = call_.phase,
          .outcome = outcome,
          .text = std::move(text)};
}

}  // namespace cairn::coord
