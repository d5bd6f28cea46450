// SPDX-License-Identifier: Apache-2.0
#include "cairn/base/human.h"

#include <algorithm>
#include <charconv>
#include <optional>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "cairn/base/checked.h"

namespace cairn {
namespace {

constexpr std::string_view kUnits = "KMGTPE";

char to_upper(char c) { return c >= 'a' && c <= 'z' ? static_cast<char>(c - 'a' + 'A') : c; }

// "", "B", "K", "KiB" (2^10) or "KB" (10^3), in any case.
std::optional<std::uint64_t> unit_size(std::string_view unit) {
  if (unit.empty() || unit == "B" || unit == "b") return 1;
  const std::size_t power = kUnits.find(to_upper(unit[0]));
  if (power == std::string_view::npos) return std::nullopt;
  std::uint64_t step = 1024;
  if (unit.size() == 2 && to_upper(unit[1]) == 'B') {
    step = 1000;
  } else if (unit.size() != 1 &&
             !(unit.size() == 3 && to_upper(unit[1]) == 'I' && to_upper(unit[2]) == 'B')) {
    return std::nullopt;
  }
  std::uint64_t size = 1;
  for (std::size_t i = 0; i <= power; ++i) size *= step;
  return size;
}

// ".25" of a unit of `unit` bytes, rounded down.
std::optional<std::uint64_t> fraction_of(std::string_view fraction, std::uint64_t unit) {
  if (fraction.empty()) return 0;
  double share = 0;
  const char* end = fraction.data() + fraction.size();
  const auto parsed = std::from_chars(fraction.data(), end, share, std::chars_format::fixed);
  if (fraction.size() < 2 || parsed.ec != std::errc() || parsed.ptr != end) return std::nullopt;
  return static_cast<std::uint64_t>(share * static_cast<double>(unit));
}

std::optional<std::uint64_t> try_parse_size(std::string_view text) {
  constexpr std::string_view kDigits = "0123456789";
  const std::string_view whole = text.substr(0, text.find_first_not_of(kDigits));
  std::uint64_t count = 0;
  const auto parsed = std::from_chars(whole.data(), whole.data() + whole.size(), count);
  if (parsed.ec != std::errc()) return std::nullopt;
  text.remove_prefix(whole.size());

  std::string_view fraction;
  if (text.starts_with('.')) {
    fraction = text.substr(0, text.find_first_not_of(kDigits, 1));
    text.remove_prefix(fraction.size());
  }
  if (text.size() > 1 && text[0] == ' ') text.remove_prefix(1);
  const auto unit = unit_size(text);
  if (!unit) return std::nullopt;
  const auto part = fraction_of(fraction, *unit);
  const auto size = checked_mul(count, *unit);
  if (!part || !size) return std::nullopt;
  return checked_add(*size, *part);
}

}  // namespace

std::string format_bytes(std::uint64_t bytes) {
  if (bytes < 1024) return fmt::format("{} B", bytes);
  double value = static_cast<double>(bytes) / 1024;
  std::size_t unit = 0;
  // 1023.5 would be written as 1024 of a unit, which is 1.0 of the next.
  while (value >= 1023.5 && unit + 1 < kUnits.size()) {
    value /= 1024;
    ++unit;
  }
  return fmt::format("{:.{}f} {}iB", value, value < 99.95 ? 1 : 0, kUnits[unit]);
}

std::string format_seconds(double seconds) {
  if (seconds < 1) return fmt::format("{:.0f} ms", seconds * 1000);
  if (seconds < 10) return fmt::format("{:.1f} s", seconds);
  if (seconds < 120) return fmt::format("{:.0f} s", seconds);
  if (seconds < 120 * 60) return fmt::format("{:.0f} min", seconds / 60);
  return fmt::format("{:.1f} h", seconds / 3600);
}

std::string format_names(const std::vector<std::string>& names) {
  constexpr std::size_t kMostNamed = 5;
  const std::size_t shown = std::min(names.size(), kMostNamed);
  const auto end = names.begin() + static_cast<std::ptrdiff_t>(shown);
  const std::string text = fmt::format("{}", fmt::join(names.begin(), end, ", "));
  return names.size() > shown ? fmt::format("{} and {} more", text, names.size() - shown) : text;
}

Result<std::uint64_t> parse_bytes(std::string_view text) {
  if (const auto size = try_parse_size(text)) return *size;
  return Error(Code::kInvalidArgument, "size/invalid",
               fmt::format("'{}' is not a size; write 512, 5GB (10^9) or 5GiB (2^30)", text));
}

}  // namespace cairn
