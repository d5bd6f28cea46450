// SPDX-License-Identifier: Apache-2.0
// A coordinator on top of a channel: rank 0 in the middle.
//
//  1. Every rank but 0 sends rank 0 the number of its call, operation, phase and payload.
//  2. Rank 0 collects them, compares, and sends the verdict to all: done, with the payload of a
//     broadcast, or what went wrong. Because every rank waits for the verdict and rank 0 for every
//     rank, one message each way is all that need be kept, with one exception: a call may fail
//     before all have read how the call before it ended. The verdict of a failed call therefore
//     carries the payload of the last one; whoever reads it one call early knows that call is done.
//  3. A rank whose deadline passes says so to rank 0, which then judges at once who is late; the
//     rank waits for that for Coordinator::kGrace.
//  4. A rank that hears nothing, or fails, is dead. It says so in advance for its next call, so
//     that the others need not wait for it.
#pragma once

#include <memory>

#include "cairn/coord/channel.h"

namespace cairn::coord {

/// `invalid_argument` (coord/bad-rank).
Result<void> check_place(Place place);

/// REQUIRES: check_place(channel->place()).
std::unique_ptr<Coordinator> make_coordinator(std::unique_ptr<Channel> channel,
                                              Interrupted interrupted = {});

}  // namespace cairn::coord
