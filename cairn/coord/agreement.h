// SPDX-License-Identifier: Apache-2.0
// Ranks proceed together, or all get one error.
#pragma once

#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "cairn/coord/coordinator.h"

namespace cairn::coord {

/// The ranks of a job, and how long they wait for each other. With a null coordinator or one rank,
/// nothing below sends a message.
struct Ranks {
  Coordinator* coordinator = nullptr;
  Deadline deadline = Deadline::never();

  bool alone() const { return coordinator == nullptr || coordinator->count() == 1; }
};

/// Success if `mine` is a success on every rank; otherwise every rank gets the error of the lowest
/// rank that has one, with its number, as told_error.h says. Costs a gather and a broadcast.
/// `last`: what rank 0 does in between if all succeeded so far; every rank gets its error too.
Result<void> agree(const Ranks& ranks, const Result<void>& mine, std::string_view phase,
                   const std::function<Result<void>()>& last = {});

/// On rank 0 the texts of all ranks, by rank; an empty list on the others. Costs one gather.
Result<std::vector<std::string>> gather_texts(const Ranks& ranks, const std::string& mine,
                                              std::string_view phase);

/// Broadcasts what rank 0 passes, a text or an error; what other ranks pass is ignored. Rank 0 gets
/// its own error back unchanged, the others as told_error.h says, with "rank 0". `internal`
/// (coord/bad-text).
Result<std::string> hear_rank_0(const Ranks& ranks, const Result<std::string>& said,
                                std::string_view phase);

}  // namespace cairn::coord
