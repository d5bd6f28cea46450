// SPDX-License-Identifier: Apache-2.0
// Processes that meet in a store that all of them see, such as a directory, and that holds nothing
// else.
//
//   verdict             put by rank 0 alone: its last message to all, and the session
//   rank-<r>-<session>  put by rank r alone: its last message to rank 0
//   alarm-<session>     put by any rank: the last that gave up
//
//  1. Whoever starts as rank 0 draws a session, a random word, puts it into `verdict` as call 0,
//     and removes what earlier sessions left. It thereby takes the directory over: an earlier job
//     that still runs fails in its next call, and rank 0 of it leaves `verdict` alone. If it had
//     looked before and puts its verdict after, rank 0 puts its own again; every verdict says which
//     session it took over, so that ranks wait for that.
//  2. Every other rank draws a word of its own and answers the session that it finds in `verdict`.
//     It may find that of an earlier job, so until it is admitted it goes along with every new one.
//  3. The verdicts of the first two calls list the words of the ranks. A rank believes that a call
//     is done, and is admitted, only if its own is there: a verdict of an earlier job is never
//     taken for one of this, and of two processes with the same rank one alone goes on. That the
//     first call failed it believes unless the verdict was there before it came; then it waits for
//     a new session.
//
// A call costs a rank one put and one read for each poll; it costs rank 0 one put, and one read for
// each rank and poll. There are never more than count + 2 objects; the last rank to leave after a
// success removes them.
#pragma once

#include <memory>

#include "cairn/base/clock.h"
#include "cairn/coord/coordinator.h"
#include "cairn/storage/store.h"

namespace cairn::coord {

/// A store serves one job at a time. `clock` must outlive the coordinator, and deadlines must use
/// it. Does not block. `invalid_argument` (coord/bad-rank), `corrupt` (coord/bad-message: a file of
/// something else), otherwise errors of the store. In a call, `cancelled` (coord/rank-failed) also
/// means that another job took the directory over, or that a rank was restarted or started twice.
Result<std::unique_ptr<Coordinator>> open_rendezvous(std::shared_ptr<storage::Store> store,
                                                     Place place, Clock& clock = system_clock(),
                                                     Interrupted interrupted = {});

}  // namespace cairn::coord
