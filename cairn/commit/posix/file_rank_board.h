// SPDX-License-Identifier: Apache-2.0
// The board of an attempt on a file system, files in its directory:
//
//   ranks/<rank>.phase         one line; the rank holds a lock on the file while it lives
//   ranks/<rank>.<stage>.json  a report, whole by rename
//   pieces/                    what ranks leave for each other
//   outcome.json               linked to its name exclusively
#pragma once

#include <memory>

#include "cairn/base/uri.h"
#include "cairn/commit/attempt_rank.h"
#include "cairn/storage/local/file_system.h"

namespace cairn {

/// Opens the attempt in `dest`, which rank 0 began, and enters the phase "begin". `cancelled`
/// (ranks/gone) if it is not there. `fs` must outlive it.
Result<std::unique_ptr<AttemptRank>> join_attempt(storage::FileSystem& fs, Clock& clock,
                                                  const LocalPath& dest,
                                                  const RankOfAttempt& place);
/// What AttemptRank::abandon() does, for rank 0 when it could not join.
Result<void> abandon_unjoined(storage::FileSystem& fs, Clock& clock, const LocalPath& dest,
                              const RankOfAttempt& place, const Error& error);

}  // namespace cairn
