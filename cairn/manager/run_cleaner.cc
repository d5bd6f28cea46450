// SPDX-License-Identifier: Apache-2.0
#include "cairn/manager/run_cleaner.h"

#include <string_view>
#include <utility>

#include <fmt/format.h>

#include "cairn/async/background.h"
#include "cairn/run/apply_retention.h"
#include "cairn/run/leftovers.h"

namespace cairn {

namespace {

bool has_rules(const RetentionRules& rules) {
  return rules.keep_last_n || rules.keep_every_n || rules.best_k || rules.max_bytes ||
         rules.min_free_bytes;
}

}  // namespace

void RunCleaner::clean_after(const Saved& saved, const SaveReport& report) {
  notice_unchanged(saved, report);
  replace_temporary(saved);
  bool first = false;
  {
    MutexLock lock(mutex_);
    first = !std::exchange(leftovers_removed_, true);
  }
  if (first && saved.leftovers_too) remove_leftovers(saved.guard);
  if (has_rules(saved.rules)) apply_rules(saved);
  empty_trash_later();
}

void RunCleaner::notice_unchanged(const Saved& saved, const SaveReport& report) {
  MutexLock lock(mutex_);
  if (!report.digests.empty() && report.digests == last_digests_ && saved.step != last_step_) {
    runtime_->log(LogLevel::kWarning, "checkpointer/unchanged",
                  fmt::format("{} has the same arrays, bit for bit, as the save of step {}: is the "
                              "state that is saved the one that is trained?",
                              saved.path, last_step_));
  }
  last_digests_ = report.digests;
  last_step_ = saved.step;
}

void RunCleaner::replace_temporary(const Saved& saved) {
  std::string replaced;
  {
    MutexLock lock(mutex_);
    replaced = std::exchange(last_temporary_, saved.is_temporary ? saved.path : std::string());
  }
  if (replaced.empty() || replaced == saved.path) return;
  const auto removed =
      remove(replaced, {.only_if_temporary = true, .known = true, .guard = saved.guard});
  if (!removed) warn(removed.error().to_string());
}

void RunCleaner::remove_leftovers(const CommitGuard& guard) {
  const auto left = clean_leftovers(base_, guard, *runtime_);
  if (!left) return warn(left.error().to_string());
  for (const Leftover& one : *left) {
    if (!one.problem.empty()) warn(fmt::format("{}: {}", one.path, one.problem));
  }
}

void RunCleaner::apply_rules(const Saved& saved) {
  const auto verdicts = apply_retention(
      base_, {.rules = saved.rules, .saved = saved.path, .guard = saved.guard}, *runtime_);
  if (!verdicts) return warn(verdicts.error().to_string());
  for (const Verdict& verdict : *verdicts) {
    if (std::string_view(verdict.rule) == "not-removed")
      warn(fmt::format("{}: {}", verdict.entry.run.path, verdict.reason));
    if (verdict.keep) continue;
    runtime_->log(LogLevel::kInfo, "checkpointer/removed",
                  fmt::format("{}: {}", verdict.entry.run.path, verdict.reason));
  }
}

Result<Removal> RunCleaner::remove(const std::string& path, const RemovalOptions& options) {
  CAIRN_TRY_ASSIGN(const Removal removal, remove_checkpoint(base_, path, options, *runtime_));
  if (removal == Removal::kRemoved || removal == Removal::kOthersStay)
    runtime_->log(LogLevel::kInfo, "checkpointer/removed", path);
  return removal;
}

void RunCleaner::empty_trash_later() {
  {
    MutexLock lock(mutex_);
    forget_parents();
    ++emptying_;
  }
  run_in_background([self = shared_from_this()] {
    const auto emptied = empty_trash(self->base_, *self->runtime_);
    if (!emptied) self->warn(emptied.error().to_string());
    MutexLock lock(self->mutex_);
    --self->emptying_;
    self->changed_.notify_all();
  });
}

void RunCleaner::wait() {
  MutexLock lock(mutex_);
  forget_parents();
  while (emptying_ > 0) changed_.wait(mutex_);
}

void RunCleaner::forget_parents() {
  if (home_.is_here()) return;
  home_ = {};
  emptying_ = 0;
}

void RunCleaner::warn(const std::string& message) const {
  runtime_->log(LogLevel::kWarning, "checkpointer/cleanup", message);
}

}  // namespace cairn
