// SPDX-License-Identifier: Apache-2.0
// What all saving calls share.
#pragma once

#include <atomic>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include <nanobind/nanobind.h>

#include "cairn/python/failure.h"
#include "cairn/save/save_async.h"
#include "cairn/save/save_internals.h"

namespace cairn::python {

namespace nb = nanobind;

/// The reason of a save that its caller gave up.
constexpr const char* kInterrupted = "python/interrupted";

/// Refuses the save if its caller was interrupted while its arrays were copied, because they may
/// have changed since.
CommitGuard unless_interrupted(std::shared_ptr<std::atomic<bool>> interrupted);

/// Calls `ask` until it returns something other than the error of an interrupted save: its own
/// caller knows already, and others need not.
template <typename Ask>
auto without_interruptions(const Ask& ask) {
  auto answer = ask();
  while (!answer && answer.error().reason() == kInterrupted) answer = ask();
  return answer;
}

/// Runs `begin(guard)` on another thread; it begins a save that commits only if the guard permits
/// it.
template <typename Begin>
auto begin_apart(Begin begin) {
  const auto interrupted = std::make_shared<std::atomic<bool>>(false);
  try {
    return apart([begin = std::move(begin), interrupted, guard = unless_interrupted(interrupted)] {
      return *interrupted ? begin(guard) : without_interruptions([&] { return begin(guard); });
    });
  } catch (nb::python_error&) {
    *interrupted = true;
    throw;
  }
}

/// The keyword arguments of every saving call in Python, `_SaveOptions` of cairn._core; missing
/// ones and None keep the defaults of SaveOptions. Throws TypeError, and what
/// parse_dtype_argument() and json_of() throw.
SaveOptions save_options_of(const nb::kwargs& given);

using PythonTrees = std::vector<std::pair<std::string, nb::object>>;

/// What is saved.
struct Given {
  std::vector<NamedTree> trees = {};
  SaveInternals internals = {};  ///< structures and refusal
};

/// How a rank passes what it saves.
struct Giving {
  bool alone = true;       ///< errors are thrown; otherwise the save reports them to all ranks
  bool structured = true;  ///< with structures_of()
  Json extras = {};
};
Given give(const PythonTrees& trees, const Giving& how);

}  // namespace cairn::python
