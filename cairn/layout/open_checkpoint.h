// SPDX-License-Identifier: Apache-2.0
// Opens what lies at a path, and tells whether it was replaced since.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <type_traits>

#include "cairn/commit/snapshot.h"
#include "cairn/layout/checkpoint.h"
#include "cairn/runtime/runtime.h"

namespace cairn {

/// Chunks of all arrays of a checkpoint of another system together. What lies on disk does not
/// bound them: a chunk that is missing holds the fill value.
constexpr std::uint64_t kMaxUnlistedChunks = std::uint64_t{1} << 23;

/// Opens a checkpoint directory (ours, the reference system's, bare zarr v2 arrays), one array
/// directory, a `.safetensors` file, its index, or a folder with parts. Reads metadata only;
/// follows symbolic links; takes no lock and needs no write permission. `not_found`
/// (checkpoint/not-found), `failed_precondition` (checkpoint/not-a-checkpoint, with what was looked
/// for), `corrupt` and `unimplemented` as the parsers say. A commit that goes on meanwhile is
/// waited out.
Result<Checkpoint> open_checkpoint(const std::string& path, Runtime& runtime);

/// `unavailable` (kReplaced) if it was saved again or removed since it was opened. Checkpoints of
/// other systems always pass: nothing in them tells.
Result<void> check_unchanged(const Checkpoint& checkpoint, Runtime& runtime);
/// Why reading an opened checkpoint failed: check_unchanged() says why what is there now reads as
/// missing or damaged; otherwise `error` does.
Error explain_failure(const Error& error, const Checkpoint& checkpoint, Runtime& runtime);

/// The text of checkpoint_metadata.json, of the commit that was opened; nullopt: there is none.
/// `unavailable` (kReplaced) as check_unchanged(); otherwise as Store::open().
Result<std::optional<std::string>> read_description(const Checkpoint& checkpoint, Runtime& runtime);

/// `read(opened)`. If that fails because the checkpoint was replaced meanwhile, opens the new one
/// and reads that instead.
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
