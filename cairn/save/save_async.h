// SPDX-License-Identifier: Apache-2.0
// Saves that go on after their call has returned.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "cairn/async/deadline.h"
#include "cairn/runtime/runtime.h"
#include "cairn/save/save_options.h"

namespace cairn {

struct SaveInternals;

struct SaveProgress {
  std::uint64_t done = 0;   ///< bytes of elements that this rank has written
  std::uint64_t total = 0;  ///< that it has to write
  double bytes_per_second = 0;
};

/// A save on its way; copies are the same save. Dropping it cancels nothing. In the child of a fork
/// a save of the parent that was on its way has failed, with `failed_precondition`
/// (save/parent-process). Threading: safe.
class SaveHandle {
 public:
  /// Of a save that was asked to write nothing.
  static SaveHandle of_nothing(std::string path);

  const std::string& path() const;
  /// "staging", "waiting for the save before", "writing", "syncing", "committing", "done",
  /// "failed"; with several ranks also what AttemptRank is told.
  std::string phase() const;
  SaveProgress progress() const;
  bool done() const;
  /// Until the checkpoint is durable and visible and SaveOptions::committed has returned. The error
  /// stays: every call returns it, and from the first on it counts as heard. `deadline_exceeded`
  /// (async/deadline) means that the save goes on; `failed_precondition` (save/in-callback) that a
  /// callback of the save asks, for which it waits.
  Result<SaveReport> wait(Deadline deadline = Deadline::never()) const;
  /// Has it ended by then, or would wait() be wrong here? Says nothing of how: its error is still
  /// to be heard.
  bool wait_for_end(Deadline deadline = Deadline::never()) const;
  /// Nobody wants to hear its error: it is logged when it happens, and the end of the
  /// program does not speak of it.
  void forget() const;

  using Listener = std::function<void(const Result<SaveReport>&)>;
  /// Called once with what wait() will return, in the background and before it does; at once, and
  /// here, if that is known already. It must be short, and must not wait for the save. An error
  /// does not count as heard by it.
  void on_end(Listener listener) const;

 private:
  friend class AsyncSave;
  struct State;
  explicit SaveHandle(std::shared_ptr<State> state) : state_(std::move(state)) {}
  std::shared_ptr<State> state_;
};

/// Returns when the caller's arrays have been copied and may be changed or freed; those lent as
/// immutable (Buffer::lend) are not copied. What is in them at the call is what is saved. The
/// destination exists then. What does not fit into `runtime`'s staging memory is waited for.
/// First waits for another save in flight at this path.
///
/// An error, the one of begin or copy, means that nothing visible will change; later ones are the
/// handle's, and `runtime`'s log gets them as errors (save/failed) when they happen. One that
/// nobody has heard when the program ends goes to standard error, and makes an exit status of 0
/// a 1.
///
/// With several ranks every rank makes the same call; the coordinator is used before it returns and
/// not after. With `enable_validation` arrays that may change are hashed before it returns.
///
/// `internals` is for the library itself (save_internals.h).
Result<SaveHandle> save_async(const std::vector<NamedTree>& trees, const std::string& path,
                              const SaveOptions& options, std::shared_ptr<Runtime> runtime,
                              const SaveInternals* internals = nullptr);

}  // namespace cairn
