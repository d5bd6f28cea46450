// SPDX-License-Identifier: Apache-2.0
#include "cairn/base/error.h"

#include <utility>

#include <fmt/format.h>

namespace cairn {

struct Error::State {
  Code code;
  const char* reason;
  std::string message;
  std::string where;
  std::source_location origin;
};

std::string_view code_name(Code code) {
  switch (code) {
    case Code::kInvalidArgument:
      return "invalid_argument";
    case Code::kNotFound:
      return "not_found";
    case Code::kAlreadyExists:
      return "already_exists";
    case Code::kFailedPrecondition:
      return "failed_precondition";
    case Code::kCorrupt:
      return "corrupt";
    case Code::kUnavailable:
      return "unavailable";
    case Code::kDeadlineExceeded:
      return "deadline_exceeded";
    case Code::kCancelled:
      return "cancelled";
    case Code::kPermissionDenied:
      return "permission_denied";
    case Code::kResourceExhausted:
      return "resource_exhausted";
    case Code::kUnimplemented:
      return "unimplemented";
    case Code::kInternal:
      return "internal";
  }
  return "internal";
}

Error::Error(Code code, const char* reason, std::string message, std::source_location origin)
    : state_(std::make_shared<const State>(
          State{code, reason, std::move(message), std::string(), origin})) {}

Code Error::code() const { return state_->code; }
std::string_view Error::reason() const { return state_->reason; }
const std::string& Error::message() const { return state_->message; }
const std::string& Error::where() const { return state_->where; }
const std::source_location& Error::origin() const { return state_->origin; }

std::string Error::to_string() const {
  return state_->where.empty() ? state_->message : state_->where + ": " + state_->message;
}

namespace {

/// Names from outside may be very long: of such a place both ends are kept.
std::string shortened(std::string_view place) {
  constexpr std::size_t kLongest = 8 * 1024;
  if (place.size() <= kLongest) return std::string(place);
  const auto inside_character = [&](std::size_t at) { return (place[at] & 0xC0) == 0x80; };
  std::size_t front = kLongest / 2;
  std::size_t back = place.size() - kLongest / 2;
  while (front > 0 && inside_character(front)) --front;
  while (back + 1 < place.size() && inside_character(back)) ++back;
  return fmt::format("{}...{}", place.substr(0, front), place.substr(back));
}

}  // namespace

Error Error::in(std::string_view place) && {
  State next = *state_;
  next.where = next.where.empty() ? shortened(place) : shortened(place) + ": " + next.where;
  state_ = std::make_shared<const State>(std::move(next));
  return std::move(*this);
}

}  // namespace cairn
