// SPDX-License-Identifier: Apache-2.0
#include "cairn/coord/told_error.h"

#include <algorithm>

#include <fmt/format.h>

namespace cairn {

namespace {

std::optional<Code> code_from_name(std::string_view name) {
  for (int i = 0; i <= static_cast<int>(Code::kInternal); ++i) {
    if (code_name(static_cast<Code>(i)) == name) return static_cast<Code>(i);
  }
  return std::nullopt;
}

/// Reasons that keep their name on the way: those that callers of a job match on.
constexpr const char* kKnownReasons[] = {
    "ranks/late",          "ranks/died",          "ranks/gone",          "ranks/failed",
    "save/ranks-disagree", "save/other-tree",     "load/ranks-disagree", "reshard/ranks-disagree",
    "storage/no-space",    "load/checksum",       "load/key-missing",    "load/missing-array",
    "load/prefix-missing", "load/shape-mismatch", "load/dtype-mismatch", "run/owned",
    "run/taken-over"};

/// What is told of an error that lists very much.
constexpr std::size_t kLongestMessage = 8 * 1024;

const char* known_reason(std::string_view reason) {
  const auto found = std::ranges::find(kKnownReasons, reason);
  return found != std::end(kKnownReasons) ? *found : nullptr;
}

}  // namespace

Json error_to_json(const Error& error) {
  std::string text = error.to_string();
  if (text.size() > kLongestMessage) text = text.substr(0, kLongestMessage) + " ...";
  if (known_reason(error.reason()) == nullptr) text += fmt::format(" [{}]", error.reason());
  return Json::Object{
      {"code", code_name(error.code())}, {"reason", error.reason()}, {"message", text}};
}

std::optional<Error> error_from_json(const Json& json) {
  const auto text = [&](const char* name) -> const std::string* {
    const Json* member = json.find(name);
    return member != nullptr ? member->text() : nullptr;
  };
  if (text("code") == nullptr || text("reason") == nullptr || text("message") == nullptr)
    return std::nullopt;
  const auto code = code_from_name(*text("code"));
  if (!code) return std::nullopt;
  const char* reason = known_reason(*text("reason"));
  return Error(*code, reason != nullptr ? reason : "ranks/failed", *text("message"));
}

Error as_told(const Error& error) {
  const auto told = error_from_json(error_to_json(error));
  return told ? *told : error;
}

}  // namespace cairn
