// SPDX-License-Identifier: Apache-2.0
#include "cairn/run/leftovers.h"

#include <algorithm>
#include <iterator>
#include <utility>

#include "cairn/commit/open.h"
#include "cairn/run/apply_retention.h"
#include "cairn/run/removal.h"

namespace cairn {

namespace {

std::vector<Leftover> leftovers_of(const Debris& debris) {
  std::vector<Leftover> found;
  found.reserve(debris.attempts.size() + 1);
  for (const std::string& attempt : debris.attempts)
    found.push_back({Leftover::Kind::kAttempt, attempt});
  if (!debris.trash.empty()) found.push_back({Leftover::Kind::kTrash, debris.trash});
  return found;
}

Result<std::vector<Leftover>> find_temporaries(const std::string& base, Runtime& runtime) {
  CAIRN_TRY_ASSIGN(const auto verdicts, apply_retention(base, {.dry_run = true}, runtime));
  std::vector<Leftover> found;
  for (const Verdict& verdict : verdicts) {
    if (!verdict.keep) found.push_back({Leftover::Kind::kTemporary, verdict.entry.run.path});
  }
  return found;
}

/// What became of them.
std::vector<Leftover> clean(RunDirectory& run, const Debris& debris, const CommitGuard& guard) {
  std::vector<Leftover> found = leftovers_of(debris);
  const auto kept = run.clean(debris, guard);
  for (Leftover& leftover : found) {
    if (!kept) {
      leftover.problem = kept.error().to_string();
    } else if (std::ranges::find(*kept, leftover.path) != kept->end()) {
      leftover.problem = "a rank that took part in it still lives";
    }
  }
  return found;
}

}  // namespace

Result<std::vector<Leftover>> find_leftovers(const std::string& base, Runtime& runtime) {
  CAIRN_TRY_ASSIGN(const auto run, open_run(base, runtime));
  CAIRN_TRY_ASSIGN(const auto left, run->find_debris());
  std::vector<Leftover> found;
  for (const Debris& debris : left)
    std::ranges::move(leftovers_of(debris), std::back_inserter(found));
  CAIRN_TRY_ASSIGN(auto temporaries, find_temporaries(base, runtime));
  std::ranges::move(temporaries, std::back_inserter(found));
  return found;
}

Result<std::vector<Leftover>> clean_leftovers(const std::string& base, const CommitGuard& guard,
                                              Runtime& runtime) {
  CAIRN_TRY_ASSIGN(const auto run, open_run(base, runtime));
  CAIRN_TRY_ASSIGN(const auto left, run->find_debris());
  std::vector<Leftover> done;
  for (const Debris& debris : left)
    std::ranges::move(clean(*run, debris, guard), std::back_inserter(done));
  CAIRN_TRY_ASSIGN(const auto temporaries, find_temporaries(base, runtime));
  for (Leftover leftover : temporaries) {
    const auto removed = remove_checkpoint(base, leftover.path,
                                           {.only_if_temporary = true, .guard = guard}, runtime);
    if (!removed) leftover.problem = removed.error().to_string();
    if (removed && *removed == Removal::kNotTemporary) continue;
    done.push_back(std::move(leftover));
  }
  CAIRN_TRY(run->empty_trash());
  return done;
}

}  // namespace cairn
