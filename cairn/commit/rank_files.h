// SPDX-License-Identifier: Apache-2.0
// Names of what ranks leave in an attempt: `ranks/<rank>.phase` and `ranks/<rank>.<stage>.json`.
#pragma once

#include <charconv>
#include <optional>
#include <string>
#include <string_view>

#include "cairn/commit/rank_board.h"

namespace cairn {

constexpr std::string_view kRanksDirectory = "ranks";
constexpr std::string_view kPhaseEnding = ".phase";
/// What the rank wrote is durable.
constexpr std::string_view kWrittenStage = "written";
/// The stage under which every failure is reported, whenever it happens.
constexpr std::string_view kFailedStage = "failed";

/// Below the attempt.
inline std::string phase_file(int rank) {
  return std::string(kRanksDirectory) + "/" + std::to_string(rank) + std::string(kPhaseEnding);
}

inline std::string report_ending(std::string_view stage) {
  return "." + std::string(stage) + ".json";
}

inline std::string report_file(int rank, std::string_view stage) {
  return std::string(kRanksDirectory) + "/" + std::to_string(rank) + report_ending(stage);
}

/// The number in front of `ending` in a name; nothing for another name.
inline std::optional<int> rank_in(std::string_view name, std::string_view ending) {
  if (!name.ends_with(ending)) return std::nullopt;
  const char* const end = name.data() + (name.size() - ending.size());
  int rank = -1;
  const auto [at, problem] = std::from_chars(name.data(), end, rank);
  return at == end && problem == std::errc() && rank >= 0 ? std::optional(rank) : std::nullopt;
}

/// The report that a file `<rank>.<stage>.json` is; nothing for another name.
inline std::optional<PostedReport> report_in(std::string_view name) {
  constexpr std::string_view kEnding = ".json";
  const std::size_t dot = name.find('.');
  if (dot == std::string_view::npos || name.size() < dot + 1 + kEnding.size()) return std::nullopt;
  const auto rank = rank_in(name, name.substr(dot));
  if (!rank || !name.ends_with(kEnding)) return std::nullopt;
  const std::string_view stage = name.substr(dot + 1, name.size() - dot - 1 - kEnding.size());
  return PostedReport{*rank, std::string(stage)};
}

}  // namespace cairn
