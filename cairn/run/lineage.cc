// SPDX-License-Identifier: Apache-2.0
#include "cairn/run/lineage.h"

#include <algorithm>

namespace cairn {

namespace {

/// No run saves as often: what is above it was not counted.
constexpr std::uint64_t kHighestNumber = std::uint64_t{1} << 53U;

}  // namespace

bool Lineage::includes(std::uint64_t other) const {
  if (other == number) return true;
  const auto interval = std::ranges::lower_bound(history, other, {},
                                                 &std::pair<std::uint64_t, std::uint64_t>::second);
  return interval != history.end() && interval->first <= other;
}

Lineage Lineage::next(std::uint64_t next_number, std::uint64_t last) const {
  Lineage after{.number = next_number};
  auto all = history;
  if (!all.empty() && all.back().second + 1 == number) {
    all.back().second = number;
  } else {
    all.emplace_back(number, number);
  }
  for (const auto& [first, end] : all) {
    if (first <= last) after.history.emplace_back(first, std::min(end, last));
  }
  return after;
}

Json to_json(const Lineage& lineage) {
  Json::Array history;
  for (const auto& [first, last] : lineage.history)
    history.push_back(Json(Json::Array{first, last}));
  return Json::Object{
      {"name", lineage.name}, {"number", lineage.number}, {"history", std::move(history)}};
}

std::optional<Lineage> parse_lineage(const Json& json) {
  const Json* name = json.find("name");
  const Json* number = json.find("number");
  const Json* history = json.find("history");
  if (name == nullptr || name->text() == nullptr || number == nullptr ||
      !number->unsigned_integer() || history == nullptr || history->array() == nullptr)
    return std::nullopt;
  Lineage lineage{.number = *number->unsigned_integer(), .name = *name->text()};
  if (lineage.number > kHighestNumber) return std::nullopt;
  std::optional<std::uint64_t> before;
  for (const Json& interval : *history->array()) {
    if (interval.array() == nullptr || interval.array()->size() != 2) return std::nullopt;
    const auto first = interval.array()->front().unsigned_integer();
    const auto last = interval.array()->back().unsigned_integer();
    if (!first || !last || *first > *last || *last >= lineage.number) return std::nullopt;
    if (before && *first <= *before) return std::nullopt;
    before = last;
    lineage.history.emplace_back(*first, *last);
  }
  return lineage;
}

}  // namespace cairn
