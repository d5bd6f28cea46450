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
#include "cairn/save/save_async.h"
#include "cairn/save/save_internals.h"

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

/// Python's keyword arguments of every call that saves, `_SaveOptions` of cairn._core; what is
/// missing or None is as SaveOptions says. Throws TypeError, and what parse_dtype_argument() and
/// json_of() throw.
SaveOptions save_options_of(const nb::kwargs& given);

using PythonTrees = std::vector<std::pair<std::string, nb::object>>;

/// What is saved.
struct Given {
  std::vector<NamedTree> trees = {};
  SaveInternals internals = {};  ///< structures and refusal
};

/// How a rank says what it saves.
struct Giving {
  bool alone = true;  ///< what goes wrong is thrown; otherwise the others hear it with the save
  bool structured = true;  ///< with structures_of()
  Json extras = {};
};
Given give(const PythonTrees& trees, const Giving& how);

}  // namespace cairn::python
