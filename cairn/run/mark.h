// SPDX-License-Identifier: Apache-2.0
// The mark `metadata.json`, by which discovery finds a run's checkpoint; promotion and pins.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "cairn/base/json.h"
#include "cairn/commit/commit_guard.h"
#include "cairn/run/lineage.h"
#include "cairn/runtime/runtime.h"

namespace cairn {

/// Content of the mark. The reference system and its clients write marks too, with members of their
/// own.
struct Mark {
  std::optional<std::int64_t> step = {};
  std::string timestamp = {};  ///< ISO 8601; without a zone it is local time. Empty: none
  bool is_temporary = false;
  std::optional<Lineage> lineage = {};
  Json extra = {};  ///< every other member, in order: an object, or null for none
};

/// Pure. Members of another type than expected count as absent. NaN and infinities, which Python
/// writes, are read as null. `corrupt` (mark/bad-json) for what is no JSON object.
Result<Mark> parse_mark(std::string_view text);
/// As the reference system writes it: step, timestamp, is_temporary on one line; then the others,
/// and the lineage.
std::string dump_mark(const Mark& mark);
/// Without the lineage, for users.
Json to_json(const Mark& mark);
/// The directory of a step in a run, unless the caller names another: "run-100".
std::string step_directory(std::int64_t step);
/// A mark of this moment, with the time as the reference system writes it: local, without a zone.
Mark make_mark(std::int64_t step, bool is_temporary, Clock::Wall now);

/// The number under `metrics` in the other members of a mark, {"metrics": {"loss": 1.5}}; nothing
/// if there is none.
std::optional<double> metric_of(const Json& extra, std::string_view name);

/// Makes a temporary checkpoint permanent, under its lock, whole or not at all; every other member
/// of its mark stays. False: it was permanent already. `not_found` (mark/none) if it has no mark,
/// `failed_precondition` (mark/torn) for the rest of a save that did not finish.
Result<bool> promote(const std::string& path, Runtime& runtime);

/// Marks a checkpoint in which no save is running, under `guard` and its lock. Members of an
/// existing mark that `mark` lacks stay. `failed_precondition` (mark/busy).
Result<void> write_mark(const std::string& path, const Mark& mark, const CommitGuard& guard,
                        Runtime& runtime);

/// A pinned checkpoint is never removed, neither by retention nor by name. The pin is a file of its
/// own (`.cairn-pin`), so rewriting the mark does not lose it. Pinning again replaces the reason.
/// `not_found` if there is no such directory, `failed_precondition` (pin/not-a-checkpoint).
Result<void> pin(const std::string& path, const std::string& reason, Runtime& runtime);
/// False: it was not pinned. `not_found` as pin().
Result<bool> unpin(const std::string& path, Runtime& runtime);
/// The reason of the pin, which may be empty; nothing: not pinned.
Result<std::optional<std::string>> find_pin(const std::string& path, Runtime& runtime);

}  // namespace cairn
