// SPDX-License-Identifier: Apache-2.0
#include "cairn/manager/run_branch.h"

#include <algorithm>
#include <utility>

#include <fmt/format.h>

#include "cairn/base/human.h"

namespace cairn {

namespace {

/// The number of the last save up to `step` on the branch; nothing: there is none.
std::optional<std::uint64_t> last_until(std::int64_t step, const Lineage& branch,
                                        const std::vector<RunEntry>& entries) {
  std::optional<std::uint64_t> last;
  for (const RunEntry& entry : entries) {
    const Lineage* place = entry.place();
    if (place == nullptr || !entry.step || *entry.step > step) continue;
    if (branch.includes(place->number)) last = std::max(last.value_or(0), place->number);
  }
  return last;
}

/// Of copies too: a job may go on from one.
std::uint64_t highest_number(const std::vector<RunEntry>& entries) {
  std::uint64_t highest = 0;
  for (const RunEntry& entry : entries) {
    if (entry.lineage) highest = std::max(highest, entry.lineage->number);
  }
  return highest;
}

std::vector<std::string> left_behind(const std::vector<RunEntry>& entries, const Lineage& mine,
                                     std::int64_t step, const std::string& name) {
  std::vector<std::string> names;
  for (const RunEntry& entry : entries) {
    const Lineage* place = entry.place();
    const bool on_it =
        place != nullptr ? mine.includes(place->number) : entry.step.value_or(step) <= step;
    if (entry.marked && !entry.torn && !entry.abandoned && !on_it && entry.name != name)
      names.push_back(entry.name);
  }
  return names;
}

}  // namespace

void RunBranch::loaded(std::int64_t step, const Lineage& lineage) {
  loaded_.push_back({step, lineage});
}

const RunBranch::Known* RunBranch::last_known_until(std::int64_t step) const {
  for (auto known = loaded_.rbegin(); known != loaded_.rend(); ++known) {
    if (known->step <= step) return &*known;
  }
  return saved_ && saved_->step <= step ? &*saved_ : nullptr;
}

Lineage RunBranch::next(std::int64_t step, const std::string& name, RunOwner& owner) {
  const bool goes_on = saved_ && last_known_until(step) == &*saved_;
  Lineage mine = goes_on ? saved_->lineage.next(owner.next_number(0), saved_->lineage.number)
                         : branch_off(step, name, owner);
  mine.name = name;
  saved_ = Known{step, mine};
  loaded_.clear();
  return mine;
}

Lineage RunBranch::branch_off(std::int64_t step, const std::string& name, RunOwner& owner) const {
  const auto listed = list_run(base_, runtime_);
  const auto entries = listed ? *listed : std::vector<RunEntry>();
  const std::uint64_t number = owner.next_number(highest_number(entries));
  Lineage mine{.number = number};
  if (const Known* from = last_known_until(step)) {
    mine = from->lineage.next(number, from->lineage.number);
  } else if (const auto* branch = saved_ ? &saved_->lineage : latest_branch(entries)) {
    if (const auto last = last_until(step, *branch, entries)) mine = branch->next(number, *last);
  }
  const auto left = left_behind(entries, mine, step, name);
  if (!left.empty()) {
    runtime_.log(
        LogLevel::kWarning, "checkpointer/rewound",
        fmt::format("{} goes on at step {}, behind {}: from now on those are an abandoned branch. "
                    "They stay until they are saved again, or a rule or you remove them, and are "
                    "not resumed from unless you load one of them by its path",
                    base_, step, format_names(left)));
  }
  return mine;
}

}  // namespace cairn
