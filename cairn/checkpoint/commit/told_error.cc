// SPDX-License-Identifier: Apache-2.0
#include "cairn/checkpoint/commit/told_error.h"

#include <fmt/format.h>

namespace cairn::inline checkpoint {

namespace {

std::optional<Code> code_from_name(std::string_view name) {
  for (int i = 0; i <= static_cast<int>(Code::kInternal); ++i) {
    if (code_name(static_cast<Code>(i)) == name) return static_cast<Code>(i);
  }
  return std::nullopt;
}

}  // namespace

Json error_to_json(const Error& error) {
  const std::string text = error.reason() == "ranks/failed"
                               ? error.to_string()
                               : fmt::format("{} [{}]", error.to_string(), error.reason());
  return Json::Object{{"code", code_name(error.code())}, {"message", text}};
}

std::optional<Error> error_from_json(const Json& json) {
  const Json* code = json.find("code");
  const Json* message = json.find("message");
  if (code == nullptr || code->text() == nullptr || message == nullptr ||
      message->text() == nullptr) {
    return std::nullopt;
  }
  const auto known = code_from_name(*code->text());
  if (!known) return std::nullopt;
  return Error(*known, "ranks/failed", *message->text());
}

}  // namespace cairn::inline checkpoint
