// SPDX-License-Identifier: Apache-2.0
// The Checkpointer for Python. Its work runs on another thread; the waiting thread calls its clock
// and the callbacks of saves.
#pragma once

#include <cstdint>
#include <memory>
#include <utility>

#include <nanobind/nanobind.h>

#include "cairn/manager/checkpointer.h"
#include "cairn/python/loads.h"
#include "cairn/python/managers.h"
#include "cairn/python/turns.h"

namespace cairn::python {

namespace nb = nanobind;

/// Python's RunCheckpointer.
class PythonCheckpointer {
 public:
  PythonCheckpointer(CheckpointerOptions options, std::shared_ptr<PythonManager> manager);
  ~PythonCheckpointer();

  template <typename Work>
  auto call(Work work) const {
    return in_turn(turns_, [&](const auto& wrap) {
      return apart(wrap([run = run_, work = std::move(work)] { return work(*run); }));
    });
  }

  /// Does this step save nothing? Then the call needs no other thread. false: not known yet.
  bool is_idle(std::int64_t step, bool force);

  /// `begin(run, guard)` begins a save that commits only if the guard lets it.
  template <typename Begin>
  auto save(Begin begin) {
    check_not_in_callback();
    return in_turn(turns_, [&](const auto& wrap) {
      return begin_apart(wrap([run = at_work(), begin = std::move(begin)](
                                  const CommitGuard& guard) { return begin(*run, guard); }));
    });
  }

  /// `load_it(run, options)` loads something, or returns nullopt.
  template <typename Load>
  nb::object load(const LoadCall& call, Load load_it) {
    return in_turn(turns_, [&](const auto& wrap) {
      return load_tree(call, wrap([run = at_work(), load_it](const LoadOptions& options) {
                         return load_it(*run, options);
                       }));
    });
  }

  /// As PythonManager::at_work().
  const std::shared_ptr<Checkpointer>& at_work();

  const std::shared_ptr<AsyncCheckpointManager>& manager() const { return options_.manager; }
  const std::shared_ptr<Checkpointer>& run() const { return run_; }

 private:
  std::shared_ptr<Checkpointer> make_run();

  CheckpointerOptions options_;
  const std::shared_ptr<PythonManager> manager_;
  std::shared_ptr<Checkpointer> run_;
  const std::shared_ptr<Turns> turns_ = std::make_shared<Turns>();
};

}  // namespace cairn::python
