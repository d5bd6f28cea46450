// SPDX-License-Identifier: Apache-2.0
#include "cairn/base/clock.h"

#include <ctime>
#include <optional>
#include <thread>

#include <fmt/format.h>

namespace cairn {
namespace {

namespace chrono = std::chrono;

class SystemClock final : public Clock {
 public:
  Wall wall() const override { return chrono::system_clock::now(); }
  Mono monotonic() const override { return chrono::steady_clock::now(); }
  void pause(chrono::nanoseconds span) override { std::this_thread::sleep_for(span); }
};

// Reads a time stamp from the front, piece by piece; after a failure everything fails.
class Reader {
 public:
  explicit Reader(std::string_view text) : rest_(text) {}

  bool at_end() const { return rest_.empty(); }
  bool next_is_digit() const { return !rest_.empty() && is_digit(rest_[0]); }

  // The one of `choices` that comes next, or 0.
  char take(std::string_view choices) {
    if (rest_.empty() || choices.find(rest_[0]) == std::string_view::npos) return 0;
    const char c = rest_[0];
    rest_.remove_prefix(1);
    return c;
  }

  // Exactly `width` digits.
  std::optional<int> number(std::size_t width) {
    if (rest_.size() < width) return std::nullopt;
    int value = 0;
    for (const char c : rest_.substr(0, width)) {
      if (!is_digit(c)) return std::nullopt;
      value = value * 10 + (c - '0');
    }
    rest_.remove_prefix(width);
    return value;
  }

  // Digits after the point; what is finer than a nanosecond is dropped.
  std::optional<chrono::nanoseconds> fraction() {
    if (!next_is_digit()) return std::nullopt;
    chrono::nanoseconds::rep value = 0;
    chrono::nanoseconds::rep unit = 100'000'000;
    for (; next_is_digit(); rest_.remove_prefix(1), unit /= 10) value += (rest_[0] - '0') * unit;
    return chrono::nanoseconds(value);
  }

 private:
  static bool is_digit(char c) { return c >= '0' && c <= '9'; }
  std::string_view rest_;
};

std::optional<chrono::year_month_day> read_date(Reader& reader) {
  const auto year = reader.number(4);
  if (!year || !reader.take("-")) return std::nullopt;
  const auto month = reader.number(2);
  if (!month || !reader.take("-")) return std::nullopt;
  const auto day = reader.number(2);
  if (!day) return std::nullopt;
  const chrono::year_month_day date(chrono::year(*year),
                                    chrono::month(static_cast<unsigned>(*month)),
                                    chrono::day(static_cast<unsigned>(*day)));
  // What a 64-bit count of nanoseconds holds, with room for any zone.
  const bool fits = *year >= 1678 && *year <= 2261;
  return date.ok() && fits ? std::optional(date) : std::nullopt;
}

std::optional<chrono::nanoseconds> read_time_of_day(Reader& reader) {
  const auto hour = reader.number(2);
  if (!hour || *hour > 23 || !reader.take(":")) return std::nullopt;
  const auto minute = reader.number(2);
  if (!minute || *minute > 59) return std::nullopt;
  chrono::nanoseconds time = chrono::hours(*hour) + chrono::minutes(*minute);
  if (!reader.take(":")) return time;
  const auto second = reader.number(2);
  if (!second || *second > 59) return std::nullopt;
  time += chrono::seconds(*second);
  if (!reader.take(".,")) return time;
  const auto fraction = reader.fraction();
  return fraction ? std::optional(time + *fraction) : std::nullopt;
}

// East of Greenwich is positive: "Z", "+01", "+01:00", "-0330". REQUIRES: !reader.at_end().
std::optional<chrono::minutes> read_zone(Reader& reader) {
  if (reader.take("Zz")) return chrono::minutes(0);
  const char sign = reader.take("+-");
  const auto hours = reader.number(2);
  if (!sign || !hours || *hours > 23) return std::nullopt;
  std::optional<int> minutes = 0;
  if (reader.take(":") || reader.next_is_digit()) minutes = reader.number(2);
  if (!minutes || *minutes > 59) return std::nullopt;
  const chrono::minutes offset = chrono::hours(*hours) + chrono::minutes(*minutes);
  return sign == '-' ? -offset : offset;
}

// How far local time was from UTC at that moment of local time.
std::optional<chrono::seconds> local_offset(chrono::sys_seconds local) {
  const auto day = chrono::floor<chrono::days>(local);
  const chrono::year_month_day date(day);
  const chrono::hh_mm_ss time(local - day);
  std::tm parts{};
  parts.tm_year = static_cast<int>(date.year()) - 1900;
  parts.tm_mon = static_cast<int>(static_cast<unsigned>(date.month())) - 1;
  parts.tm_mday = static_cast<int>(static_cast<unsigned>(date.day()));
  parts.tm_hour = static_cast<int>(time.hours().count());
  parts.tm_min = static_cast<int>(time.minutes().count());
  parts.tm_sec = static_cast<int>(time.seconds().count());
  parts.tm_isdst = -1;
  parts.tm_wday = -1;
  const std::time_t utc = std::mktime(&parts);
  // -1 is also a valid time; mktime sets the day of the week only when it succeeds.
  if (parts.tm_wday < 0) return std::nullopt;
  return local - chrono::sys_seconds(chrono::seconds(utc));
}

std::optional<Clock::Wall> try_parse_time(std::string_view text) {
  Reader reader(text);
  const auto date = read_date(reader);
  if (!date || !reader.take("Tt ")) return std::nullopt;
  const auto time = read_time_of_day(reader);
  if (!time) return std::nullopt;
  const auto local = chrono::sys_time<chrono::nanoseconds>(chrono::sys_days(*date)) + *time;
  const std::optional<chrono::seconds> offset =
      reader.at_end() ? local_offset(chrono::floor<chrono::seconds>(local)) : read_zone(reader);
  if (!offset || !reader.at_end()) return std::nullopt;
  return chrono::time_point_cast<Clock::Wall::duration>(local - *offset);
}

}  // namespace

Clock& system_clock() {
  // Never destroyed: other threads may ask for the time while the program ends.
  static auto* const clock = new SystemClock;
  return *clock;
}

std::string format_timestamp(Clock::Wall time) {
  const auto day = chrono::floor<chrono::days>(time);
  const chrono::year_month_day date(day);
  const chrono::hh_mm_ss clock(chrono::floor<chrono::microseconds>(time - day));
  return fmt::format("{:04}-{:02}-{:02}T{:02}:{:02}:{:02}.{:06}+00:00",
                     static_cast<int>(date.year()), static_cast<unsigned>(date.month()),
                     static_cast<unsigned>(date.day()), clock.hours().count(),
                     clock.minutes().count(), clock.seconds().count(), clock.subseconds().count());
}

std::string format_local_timestamp(Clock::Wall time) {
  const auto second = chrono::floor<chrono::seconds>(time);
  const std::time_t count = second.time_since_epoch().count();
  std::tm parts{};
  ::localtime_r(&count, &parts);
  std::string text =
      fmt::format("{:04}-{:02}-{:02}T{:02}:{:02}:{:02}", parts.tm_year + 1900, parts.tm_mon + 1,
                  parts.tm_mday, parts.tm_hour, parts.tm_min, parts.tm_sec);
  const auto fraction = chrono::floor<chrono::microseconds>(time - second).count();
  if (fraction != 0) text += fmt::format(".{:06}", fraction);
  return text;
}

Result<Clock::Wall> parse_timestamp(std::string_view text) {
  if (const auto time = try_parse_time(text)) return *time;
  return Error(Code::kCorrupt, "clock/bad-timestamp",
               fmt::format("'{}' is not a time stamp such as 2026-01-31T12:34:56.789+00:00",
                           text.substr(0, 64)));
}

}  // namespace cairn
