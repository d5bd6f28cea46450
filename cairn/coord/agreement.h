// SPDX-License-Identifier: Apache-2.0
// Ranks that go on together, or all get one error.
#pragma once

#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "cairn/coord/coordinator.h"

namespace cairn::coord {

/// The ranks of a job, and how long they wait for each other. Null, or a job of one rank: nothing
/// below sends a message.
struct Ranks {
  Coordinator* coordinator = nullptr;
  Deadline deadline = Deadline::never();

  bool alone() const { return coordinator == nullptr || coordinator->count() == 1; }
};

/// Fine if `mine` is fine on every rank; else, on every rank, the error of the lowest rank that has
/// one, with its number, as told_error.h says. A gather and a broadcast. `last`: what rank 0 does
/// in between if all is fine so far; its error is everybody's too.
Result<void> agree(const Ranks& ranks, const Result<void>& mine, std::string_view phase,
                   const std::function<Result<void>()>& last = {});

/// The text of every rank, by rank, on rank 0; an empty list on the others. One gather.
Result<std::vector<std::string>> gather_texts(const Ranks& ranks, const std::string& mine,
                                              std::string_view phase);

/// What rank 0 says, a text or an error, on every rank; what the others say is not looked at. Rank
/// 0 gets its own error back as it is, the others as told_error.h says, with "rank 0". One
/// broadcast. `internal` (coord/bad-text).
Result<std::string> hear_rank_0(const Ranks& ranks, const Result<std::string>& said,
                                std::string_view phase);

}  // namespace cairn::coord
