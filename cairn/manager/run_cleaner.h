// SPDX-License-Identifier: Apache-2.0
// What is removed after a save of a run: the temporary checkpoint that it replaces, what retention
// does not want, what earlier runs left. Only after the commit, and only what is ours.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "cairn/async/mutex.h"
#include "cairn/async/per_process.h"
#include "cairn/run/removal.h"
#include "cairn/run/retention.h"
#include "cairn/save/save.h"

namespace cairn {

/// Rank 0's. What cannot be removed stays, with a warning in the log. Threading: safe.
class RunCleaner : public std::enable_shared_from_this<RunCleaner> {
 public:
  RunCleaner(std::string base, std::shared_ptr<Runtime> runtime)
      : base_(std::move(base)), runtime_(std::move(runtime)) {}

  /// A checkpoint that has just been committed.
  struct Saved {
    std::string path;
    std::int64_t step = 0;
    bool is_temporary = false;
    RetentionRules rules = {};
    bool leftovers_too = false;  ///< those of earlier runs, the first time
    CommitGuard guard = {};
  };
  void clean_after(const Saved& saved, const SaveReport& report);

  Result<Removal> remove(const std::string& path, const RemovalOptions& options);
  /// In the background.
  void empty_trash_later();
  /// Waits until removed bytes are deleted. In a forked child: only its own removals.
  void wait();

 private:
  void notice_unchanged(const Saved& saved, const SaveReport& report);
  void replace_temporary(const Saved& saved);
  void remove_leftovers(const CommitGuard& guard);
  void apply_rules(const Saved& saved);
  void forget_parents() CAIRN_REQUIRES(mutex_);
  void warn(const std::string& message) const;

  const std::string base_;
  const std::shared_ptr<Runtime> runtime_;
  Mutex mutex_;
  CondVar changed_;
  HomeProcess home_ CAIRN_GUARDED_BY(mutex_);  // of what is being emptied
  int emptying_ CAIRN_GUARDED_BY(mutex_) = 0;
  bool leftovers_removed_ CAIRN_GUARDED_BY(mutex_) = false;
  std::string last_temporary_ CAIRN_GUARDED_BY(mutex_);
  std::int64_t last_step_ CAIRN_GUARDED_BY(mutex_) = 0;
  std::vector<std::string> last_digests_ CAIRN_GUARDED_BY(mutex_);
};

}  // namespace cairn
