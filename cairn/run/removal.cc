// SPDX-License-Identifier: Apache-2.0
#include "cairn/run/removal.h"

#include <optional>
#include <utility>

#include <fmt/format.h>

#include "cairn/commit/open.h"
#include "cairn/manifest/names.h"
#include "cairn/run/mark.h"
#include "cairn/run/own_files.h"

namespace cairn {

namespace {

using Takes = RemovalPlan::Takes;

Result<void> check_not_pinned(Destination& dest) {
  const std::string name(kPinName);
  const auto there = dest.stat(name);
  if (!there) return there.error().code() == Code::kNotFound ? Result<void>() : there.error();
  const auto reason = dest.read(name, 4 * kKiB);
  const bool known = reason && *reason && !(*reason)->empty();
  return Error(Code::kFailedPrecondition, "removal/pinned",
               fmt::format("{} is pinned{}; unpin it first", dest.path(),
                           known ? fmt::format(" ({})", **reason) : std::string()));
}

Result<void> check_not_busy(const Destination& dest, const Snapshot& now) {
  for (const AttemptView& attempt : now.attempts) {
    if (attempt.state != AttemptState::kAlive) continue;
    return Error(
        Code::kFailedPrecondition, "removal/busy",
        fmt::format("process {} on {} saves into {}", attempt.process, attempt.host, dest.path()));
  }
  return {};
}

bool is_temporary(const Snapshot& now) {
  const auto mark = now.mark ? parse_mark(*now.mark) : Mark{};
  return mark && mark->is_temporary;
}

Result<RemovalPlan> plan_removal(Destination& dest, const Snapshot& now,
                                 const RemovalOptions& options) {
  CAIRN_TRY(check_not_pinned(dest));
  CAIRN_TRY(check_not_busy(dest, now));
  if (options.only_if_temporary && !is_temporary(now)) return RemovalPlan{};
  const bool whole = options.with_other_files || is_temporary(now);
  const Record record = now.record.value_or(Record{});
  CAIRN_TRY_ASSIGN(OwnFiles own, find_own_files(dest, record));
  const bool recorded = options.known || !record.prefixes.empty();
  const bool alone = own.other.empty() && !own.shared;
  if (!alone && (!recorded || (own.shared && !whole))) {
    return Error(Code::kFailedPrecondition, "removal/foreign",
                 fmt::format("{} holds what cairn did not save ({}), and is left alone",
                             dest.path(), own.shared ? std::string(kIndexName) : own.other));
  }
  return RemovalPlan{alone || whole ? Takes::kAll : Takes::kOurs, std::move(own.beside)};
}

Removal removal_of(const std::optional<Takes>& took) {
  if (!took) return Removal::kNotThere;
  if (*took == Takes::kNothing) return Removal::kNotTemporary;
  return *took == Takes::kAll ? Removal::kRemoved : Removal::kOthersStay;
}

}  // namespace

Result<Removal> remove_checkpoint(const std::string& base, const std::string& path,
                                  const RemovalOptions& options, Runtime& runtime) {
  CAIRN_TRY_ASSIGN(const auto run, open_run(base, runtime));
  CAIRN_TRY_ASSIGN(const std::string name, run->name_of(path));
  const RemovalTerms terms{.guard = options.guard,
                           .known = options.known,
                           .decide = [&](Destination& dest, const Snapshot& now) {
                             return plan_removal(dest, now, options);
                           }};
  CAIRN_TRY_ASSIGN(const auto took, run->remove(name, terms));
  return removal_of(took);
}

Result<std::uint64_t> empty_trash(const std::string& base, Runtime& runtime) {
  CAIRN_TRY_ASSIGN(const auto run, open_run(base, runtime));
  return run->empty_trash();
}

}  // namespace cairn
