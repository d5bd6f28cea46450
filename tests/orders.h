// SPDX-License-Identifier: Apache-2.0
// How the programs of the tests are told what to do: one JSON object a line, answered by another.
#pragma once

#include <functional>
#include <iostream>
#include <string>

#include "cairn/base/json.h"

namespace cairn::testing {

inline std::string text_of(const Json& order, std::string_view name) {
  const Json* member = order.find(name);
  return member != nullptr && member->text() != nullptr ? *member->text() : std::string();
}

inline std::int64_t number_of(const Json& order, std::string_view name, std::int64_t otherwise) {
  const Json* member = order.find(name);
  return member != nullptr ? member->integer().value_or(otherwise) : otherwise;
}

inline Json describe(const Error& error) {
  return Json::Object{{"reason", error.reason()}, {"message", error.to_string()}};
}

inline void say(const Json& line) { std::cout << dump_json(line) + "\n" << std::flush; }

/// The answer to an order, or what was wrong with either.
inline Json obey(const std::string& line, const std::function<Result<Json>(const Json&)>& act) {
  const auto order = parse_json(line);
  if (!order) return describe(order.error());
  const auto done = act(*order);
  return done ? *done : describe(done.error());
}

}  // namespace cairn::testing
