// SPDX-License-Identifier: Apache-2.0
// What all calls that save have in common.
#pragma once

#include <atomic>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include <nanobind/nanobind.h>

#include "cairn/python/failure.h"
#include "cairn/python/trees.h"
#include "cairn/save/save_async.h"

namespace cairn::python {

namespace nb = nanobind;

/// The reason of a save that its caller gave up.
constexpr const char* kInterrupted = "python/interrupted";

/// Refuses the save whose caller was interrupted while its arrays were copied: they may change now.
CommitGuard unless_interrupted(std::shared_ptr<std::atomic<bool>> interrupted);

/// Calls `ask` until it tells of something else than of a save whose caller was interrupted: who
/// was knows, and others need not.
template <typename Ask>
auto without_interruptions(const Ask& ask) {
  auto answer = ask();
  while (!answer && answer.error().reason() == kInterrupted) answer = ask();
  return answer;
}

/// Does `begin(guard)` aside, which begins a save that commits only if the guard lets it.
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

/// Calls a Python function without arguments after the commit; empty for None.
std::function<Result<void>(const SaveReport&)> after_commit(const nb::object& function);

using PythonTrees = std::vector<std::pair<std::string, nb::object>>;

/// What goes with trees that are saved.
struct Beside {
  Structures structures = {};
  std::optional<Error> refusal = {};  ///< why there are no trees
};

/// What is saved.
struct Given {
  std::vector<NamedTree> trees = {};
  Beside beside = {};
};

/// How a rank says what it saves.
struct Giving {
  bool alone = true;  ///< what goes wrong is thrown; otherwise the others hear it with the save
  bool structured = true;  ///< with structures_of()
  std::string extras = {};
};
Given give(const PythonTrees& trees, const Giving& how);

}  // namespace cairn::python
