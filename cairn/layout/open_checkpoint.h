// SPDX-License-Identifier: Apache-2.0
// Opens the checkpoint at a path, and checks whether it was replaced since.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <type_traits>

#include "cairn/commit/snapshot.h"
#include "cairn/layout/checkpoint.h"
#include "cairn/runtime/runtime.h"

namespace cairn {

/// Limit on the chunks of all arrays of a checkpoint of another system. Its size on disk does not
/// limit them, because a missing chunk is valid and holds the fill value.
constexpr std::uint64_t kMaxUnlistedChunks = std::uint64_t{1} << 23;

/// Opens a checkpoint directory (ours, the reference system's, bare zarr v2 arrays), one array
/// directory, a `.safetensors` file, its index, or a folder with parts. Reads metadata only,
/// follows symbolic links, takes no lock and needs no write permission. Waits for a commit in
/// progress. `not_found` (checkpoint/not-found), `failed_precondition`
/// (checkpoint/not-a-checkpoint, with what was tried), `corrupt` and `unimplemented` from the
/// parsers.
Result<Checkpoint> open_checkpoint(const std::string& path, Runtime& runtime);

/// `unavailable` (kReplaced) if it was saved again or removed since it was opened. Checkpoints of
/// other systems always pass: nothing in them would show it.
Result<void> check_unchanged(const Checkpoint& checkpoint, Runtime& runtime);
/// Why reading an opened checkpoint failed: the error of check_unchanged() if it was replaced
/// (files then read as missing or damaged), else `error`.
Error explain_failure(const Error& error, const Checkpoint& checkpoint, Runtime& runtime);

/// The text of checkpoint_metadata.json, of the commit that was opened; nullopt if there is none.
/// `unavailable` (kReplaced) as check_unchanged(); otherwise as Store::open().
Result<std::optional<std::string>> read_description(const Checkpoint& checkpoint, Runtime& runtime);

/// Calls `read(opened)`. If that fails because the checkpoint was replaced meanwhile, opens the new
/// one and calls it again.
template <typename Read>
std::invoke_result_t<const Read&, const Checkpoint&> read_settled(const Checkpoint& opened,
                                                                  Runtime& runtime,
                                                                  const Read& read) {
  auto answer = read(opened);
  Checkpoint later;
  const Checkpoint* current = &opened;
  for (int reopened = 0; !answer; ++reopened) {
    const Error why = explain_failure(answer.error(), *current, runtime);
    if (why.reason() != kReplaced || reopened == kMostReopenings) return why;
    CAIRN_TRY_ASSIGN(later, open_checkpoint(opened.path, runtime));
    current = &later;
    answer = read(later);
  }
  return answer;
}

}  // namespace cairn
