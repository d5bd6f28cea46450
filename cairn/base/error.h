// SPDX-License-Identifier: Apache-2.0
// What went wrong, and what the caller can do about it. `result.h` carries it.
#pragma once

#include <cstdint>
#include <memory>
#include <source_location>
#include <string>
#include <string_view>

namespace cairn {

/// A closed list; each code is defined by the caller's next move.
enum class Code : std::uint8_t {
  kInvalidArgument,     ///< fix the call
  kNotFound,            ///< choose another name, or treat it as the answer
  kAlreadyExists,       ///< choose another name, or treat it as the answer
  kFailedPrecondition,  ///< the state must change first (tree mismatch, not a checkpoint)
  kCorrupt,             ///< stop trusting these bytes; try another copy or step
  kUnavailable,         ///< retry with back-off; the only code worth a retry
  kDeadlineExceeded,    ///< a time limit passed; the message says who was late
  kCancelled,           ///< a participant gave up; the message says which
  kPermissionDenied,    ///< ask a human
  kResourceExhausted,   ///< disk, quota or memory: free some, then retry
  kUnimplemented,       ///< not in this build, or not in this store
  kInternal,            ///< our bug; please report
};

/// `corrupt`, `not_found`, ... as JSON output and Python spell them.
std::string_view code_name(Code code);

/// Code, sentence, reason token and place. Cheap to copy; immutable except for added context.
/// Threading: compatible. Never empty.
class [[nodiscard]] Error {
 public:
  /// `reason` is a static token such as "safetensors/offset-gap": programs match on it, never on
  /// the sentence. `message` says what was wrong and what to do.
  Error(Code code, const char* reason, std::string message,
        std::source_location origin = std::source_location::current());

  Code code() const;
  std::string_view reason() const;
  /// The sentence, without context.
  const std::string& message() const;
  /// The context added on the way up, outermost first: "leaf params.w: chunk 0.1". May be empty.
  const std::string& where() const;
  /// Where in the source the error was made.
  const std::source_location& origin() const;
  /// "<where>: <message>", the text for a person.
  std::string to_string() const;

  /// Prepends `place` to where(), shortening the middle if it is very long. Each layer that knows
  /// something new adds it once.
  Error in(std::string_view place) &&;

 private:
  struct State;
  std::shared_ptr<const State> state_;
};

}  // namespace cairn
