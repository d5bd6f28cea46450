// SPDX-License-Identifier: Apache-2.0
// Saves that continue in the background after the call has returned.
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

/// A save in progress; copies refer to the same save. Dropping it cancels nothing. In the child of
/// a fork, a save that the parent had not finished has failed, with `failed_precondition`
/// (save/parent-process). Threading: safe.
class SaveHandle {
 public:
  /// The handle of a save that had nothing to write.
  static SaveHandle of_nothing(std::string path);

  const std::string& path() const;
  /// "staging", "waiting for the save before", "writing", "syncing", "committing", "done",
  /// "failed"; with several ranks also the phases of AttemptRank.
  std::string phase() const;
  SaveProgress progress() const;
  bool done() const;
  /// Waits until the checkpoint is durable and visible and SaveOptions::committed has returned.
  /// Every call returns the error of the save, and the first counts as having heard it.
  /// `deadline_exceeded` (async/deadline): the save continues. `failed_precondition`
  /// (save/in-callback): the call comes from a callback of the save, which would wait for itself.
  Result<SaveReport> wait(Deadline deadline = Deadline::never()) const;
  /// Waits at most until then; true if the save has ended, or if wait() cannot be called here. Does
  /// not count as having heard its error.
  bool wait_for_end(Deadline deadline = Deadline::never()) const;
  /// Nobody will ask for its error: it is only logged, and the end of the program does not report
  /// it.
  void forget() const;

  using Listener = std::function<void(const Result<SaveReport>&)>;
  /// Calls `listener` once with the result of wait(): in the background, before wait() returns; or
  /// at once, in this thread, if the save has ended. It must be short and must not wait for the
  /// save. Does not count as having heard the error.
  void on_end(Listener listener) const;

 private:
  friend class AsyncSave;
  struct State;
  explicit SaveHandle(std::shared_ptr<State> state) : state_(std::move(state)) {}
  std::shared_ptr<State> state_;
};

/// Returns once the arrays of the caller have been copied and may be changed or freed; arrays lent
/// as immutable (Buffer::lend) are not copied. Saves their content at the time of the call. The
/// destination exists when it returns. Blocks while the arrays do not fit into the staging memory
/// of `runtime`, and first for another save in flight at this path.
///
/// An error of the call means that nothing visible will change. Later errors are those of the
/// handle; the log of `runtime` gets them as well (save/failed). An error that nobody has heard
/// when the program ends goes to standard error, and turns exit status 0 into 1.
///
/// With several ranks every rank makes the same call; the coordinator is used only until it
/// returns. With `enable_validation`, arrays that may change are hashed before it returns.
///
/// `internals` is for the library itself (save_internals.h).
Result<SaveHandle> save_async(const std::vector<NamedTree>& trees, const std::string& path,
                              const SaveOptions& options, std::shared_ptr<Runtime> runtime,
                              const SaveInternals* internals = nullptr);

}  // namespace cairn
