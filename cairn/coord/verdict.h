// SPDX-License-Identifier: Apache-2.0
// The sentences about ranks that are late or disagree, and the errors made of them.
#pragma once

#include <span>
#include <string>
#include <string_view>

#include "cairn/coord/channel.h"

namespace cairn::coord {

/// "rank 3", "ranks 0-2, 7": ascending; beyond eight ranges only how many more.
std::string name_ranks(std::span<const int> ranks);

/// "barrier 'save 100'"
std::string name_call(const Message& message);

/// `late` is ascending and not empty. `seen` is the phase in which they were last seen; empty:
/// they never were. `whose` deadline it was: "the deadline", "the deadline of rank 2".
std::string late_text(std::span<const int> late, const Message& call, std::string_view seen,
                      std::string_view whose);

std::string mismatch_text(const Message& ours, const Received& theirs);

/// REQUIRES: outcome is not kDone.
Error error_of(const Message& verdict);

}  // namespace cairn::coord
