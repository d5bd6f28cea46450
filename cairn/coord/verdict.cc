// SPDX-License-Identifier: Apache-2.0
#include "cairn/coord/verdict.h"

#include <fmt/format.h>

namespace cairn::coord {
namespace {

constexpr int kMaxRanges = 8;

std::string_view operation_name(Operation operation) {
  switch (operation) {
    case Operation::kBarrier:
      return "barrier";
    case Operation::kBroadcast:
      return "broadcast";
    case Operation::kGather:
      break;
  }
  return "gather";
}

}  // namespace

std::string name_ranks(std::span<const int> ranks) {
  std::string text = ranks.size() == 1 ? "rank " : "ranks ";
  int ranges = 0;
  for (std::size_t begin = 0; begin < ranks.size(); ++ranges) {
    if (ranges == kMaxRanges) {
      return text + fmt::format(" and {} more", ranks.size() - begin);
    }
    std::size_t end = begin + 1;
    while (end < ranks.size() && ranks[end] == ranks[end - 1] + 1) ++end;
    if (begin != 0) text += ", ";
    text += std::to_string(ranks[begin]);
    if (end - begin > 1) text += "-" + std::to_string(ranks[end - 1]);
    begin = end;
  }
  return text;
}

std::string name_call(const Message& message) {
  return fmt::format("{} '{}'", operation_name(message.operation), message.phase);
}

std::string late_text(std::span<const int> late, const Message& call, std::string_view seen,
                      std::string_view whose) {
  const std::string last =
      seen.empty() ? "not seen in this job before" : fmt::format("last seen in '{}'", seen);
  return fmt::format(
      "{} did not come to {} before {}: {}; look at what became of {}, or wait longer",
      name_ranks(late), name_call(call), whose, last, late.size() == 1 ? "it" : "them");
}

std::string mismatch_text(const Message& ours, const Received& theirs) {
  return fmt::format("rank 0 is in {}, rank {} in {}; all ranks must make the same calls",
                     name_call(ours), theirs.from, name_call(theirs.message));
}

Error error_of(const Message& verdict) {
  switch (verdict.outcome) {
    case CallStatus::kLate:
      return Error(Code::kDeadlineExceeded, "coord/late-ranks", verdict.text);
    case CallStatus::kMismatch:
      return Error(Code::kFailedPrecondition, "coord/phase-mismatch", verdict.text);
    case CallStatus::kDone:
    case CallStatus::kFailed:
      break;
  }
  return Error(Code::kCancelled, "coord/rank-failed", verdict.text);
}

}  // namespace cairn::coord
