// SPDX-License-Identifier: Apache-2.0
// Where Cairn's errors become Python's exceptions, and calls into Cairn let go of Python.
#pragma once

#include <exception>
#include <memory>
#include <utility>

#include <nanobind/nanobind.h>

#include "cairn/async/background.h"
#include "cairn/async/future.h"
#include "cairn/base/result.h"

namespace cairn::python {

namespace nb = nanobind;

/// On its way to Python, where it is one of the classes of cairn._errors.
class Failure : public std::exception {
 public:
  explicit Failure(Error error) : error_(std::move(error)) {}
  const Error& error() const { return error_; }
  const char* what() const noexcept override { return error_.message().c_str(); }

 private:
  Error error_;
};

/// Makes Python see a Failure. Once, by the module.
void translate_failures();

/// The value, or an exception.
template <typename T>
T value_of(Result<T> result) {
  if (!result) throw Failure(std::move(result).error());
  if constexpr (!std::is_void_v<T>) return *std::move(result);
}

/// Waits without holding Python, for `ready`, which waits a moment and says whether it is there.
/// Throws what a signal handler raised: KeyboardInterrupt after Ctrl-C.
template <typename Ready>
void wait_until(const Ready& ready) {
  for (;;) {
    {
      nb::gil_scoped_release release;
      if (ready()) return;
    }
    if (PyErr_CheckSignals() != 0) throw nb::python_error();
  }
}

/// How long a wait looks away from signals.
constexpr std::chrono::milliseconds kMoment{50};

/// Does `work` aside and waits for it; a signal ends the waiting and not the work, which must own
/// all that it needs.
template <typename Work>
auto apart(Work work) {
  using Answer = std::invoke_result_t<Work>;
  struct Shared {
    explicit Shared(Work w) : work(std::move(w)) {}
    Work work;
    std::optional<Answer> answer;
    Promise<bool> done;
  };
  auto shared = std::make_shared<Shared>(std::move(work));
  const Future<bool> done = shared->done.future();
  {
    nb::gil_scoped_release release;
    run_aside([shared] {
      shared->answer.emplace(shared->work());
      shared->done.set(true);
    });
  }
  wait_until([&] { return bool(done.wait(Deadline::in(kMoment))); });
  return value_of(std::move(*shared->answer));
}

/// Keeps a Python object alive; whoever lets go of it last need not hold Python.
std::shared_ptr<const void> keep(nb::object object);

}  // namespace cairn::python
