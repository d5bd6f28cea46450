// SPDX-License-Identifier: Apache-2.0
#include "cairn/codec/parameters.h"

#include <algorithm>

#include <fmt/format.h>
#include <fmt/ranges.h>

namespace cairn::codec {
namespace {

Error bad_parameter(const Json& config, std::string_view name, std::string_view rule) {
  const Json* id = config.find("id");
  const std::string* codec = id != nullptr ? id->text() : nullptr;
  return Error(
      Code::kInvalidArgument, "codec/bad-parameter",
      fmt::format("compressor {}: '{:.40}' {}", codec != nullptr ? *codec : "", name, rule));
}

}  // namespace

Result<void> check_members(const Json& config, std::initializer_list<std::string_view> names) {
  for (const auto& [name, value] : *config.object()) {
    if (name == "id" || std::ranges::find(names, name) != names.end()) continue;
    return bad_parameter(config, name,
                         fmt::format("is not known; it has: {}", fmt::join(names, ", ")));
  }
  return {};
}

Result<int> integer_parameter(const Json& config, std::string_view name, IntegerRange range,
                              int otherwise) {
  const Json* member = config.find(name);
  if (member == nullptr) return otherwise;
  const auto value = member->integral();
  if (value && range.min <= *value && *value <= range.max) return static_cast<int>(*value);
  return bad_parameter(
      config, name,
      fmt::format("is {}; it must be an integer from {} to {}",
                  value ? std::to_string(*value) : member->kind_name(), range.min, range.max));
}

Result<bool> boolean_parameter(const Json& config, std::string_view name, bool otherwise) {
  const Json* member = config.find(name);
  if (member == nullptr) return otherwise;
  if (const auto value = member->boolean()) return *value;
  return bad_parameter(config, name,
                       fmt::format("is {}; it must be true or false", member->kind_name()));
}

Result<std::string> choice_parameter(const Json& config, std::string_view name,
                                     std::initializer_list<std::string_view> choices) {
  const Json* member = config.find(name);
  if (member == nullptr) return std::string(*choices.begin());
  const std::string* text = member->text();
  if (text != nullptr && std::ranges::find(choices, *text) != choices.end()) return *text;
  return bad_parameter(
      config, name,
      fmt::format("is {:.40}; it must be one of: {}", text != nullptr ? *text : member->kind_name(),
                  fmt::join(choices, ", ")));
}

}  // namespace cairn::codec
