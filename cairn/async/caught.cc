// SPDX-License-Identifier: Apache-2.0
#include "cairn/async/caught.h"

#include <exception>
#include <new>
#include <string>

namespace cairn {

namespace {

const Error& no_memory() {
  static const Error error(Code::kResourceExhausted, "base/out-of-memory",
                           "there was no memory left; free some, or do less at once");
  return error;
}

// Made while there is memory for it.
[[maybe_unused]] const Error& made_early = no_memory();

}  // namespace

Error caught_error() {
  try {
    try {
      std::rethrow_exception(std::current_exception());
    } catch (const std::bad_alloc&) {
      return no_memory();
    } catch (const std::exception& exception) {
      return Error(Code::kInternal, "async/exception",
                   std::string("an exception was thrown; please report: ") + exception.what());
    } catch (...) {
      return Error(Code::kInternal, "async/exception", "an exception was thrown; please report");
    }
  } catch (...) {  // no memory for the sentence
    return no_memory();
  }
}

// Asking how many there are makes the thread's table of them.
void prepare_for_exceptions() {
  // Volatile, or the compiler would see that nobody needs the answer.
  [[maybe_unused]] volatile const int none = std::uncaught_exceptions();
}

}  // namespace cairn
