// SPDX-License-Identifier: Apache-2.0
#include "cairn/base/clock.h"

#include <cstdlib>
#include <ctime>
#include <random>
#include <string>
#include <utility>

#include <gtest/gtest.h>

namespace cairn {
namespace {

using std::chrono::nanoseconds;

// Local time, for a scope.
class LocalZone {
 public:
  explicit LocalZone(const char* zone) {
    if (const char* old = std::getenv("TZ")) old_ = old;
    setenv("TZ", zone, 1);
    tzset();
  }
  ~LocalZone() {
    old_.empty() ? unsetenv("TZ") : setenv("TZ", old_.c_str(), 1);
    tzset();
  }

 private:
  std::string old_;
};

Clock::Wall at(std::int64_t since_epoch_ns) { return Clock::Wall(nanoseconds(since_epoch_ns)); }

constexpr std::int64_t kSecond = 1'000'000'000;

TEST(Timestamp, IsWrittenInUtcWithMicroseconds) {
  const std::pair<std::int64_t, const char*> kTable[] = {
      {0, "1970-01-01T00:00:00.000000+00:00"},
      {1'769'862'896 * kSecond + 789'012'345, "2026-01-31T12:34:56.789012+00:00"},
      {951'782'400 * kSecond, "2000-02-29T00:00:00.000000+00:00"},
      {-1, "1969-12-31T23:59:59.999999+00:00"},
  };
  for (const auto& [time, text] : kTable) EXPECT_EQ(format_timestamp(at(time)), text);
}

TEST(Timestamp, IsReadWithAnyZoneAndFraction) {
  constexpr std::int64_t kNoon = 1'769'862'896 * kSecond;
  const std::pair<const char*, std::int64_t> kTable[] = {
      {"2026-01-31T12:34:56Z", kNoon},
      {"2026-01-31t12:34:56z", kNoon},
      {"2026-01-31 12:34:56+00:00", kNoon},
      {"2026-01-31T13:34:56+01:00", kNoon},
      {"2026-01-31T13:34:56+01", kNoon},
      {"2026-01-31T18:04:56+0530", kNoon},
      {"2026-01-31T09:04:56-03:30", kNoon},
      {"2026-02-01T02:34:56+14:00", kNoon},
      {"2026-01-31T12:34:56.5Z", kNoon + kSecond / 2},
      {"2026-01-31T12:34:56,5Z", kNoon + kSecond / 2},
      {"2026-01-31T12:34:56.789012+00:00", kNoon + 789'012'000},
      {"2026-01-31T12:34:56.789012345678Z", kNoon + 789'012'345},
      {"2026-01-31T12:34Z", kNoon - 56 * kSecond},
      {"1969-12-31T23:59:59.999999999Z", -1},
      {"2000-02-29T00:00:00Z", 951'782'400 * kSecond},
  };
  for (const auto& [text, time] : kTable) {
    const Result<Clock::Wall> parsed = parse_timestamp(text);
    ASSERT_TRUE(parsed) << text;
    EXPECT_EQ(*parsed, at(time)) << text;
  }
}

TEST(Timestamp, WithoutAZoneIsLocalTime) {
  const struct {
    const char* zone;
    const char* local;
    const char* utc;
  } kTable[] = {
      {"UTC0", "2026-01-31T12:00:00", "2026-01-31T12:00:00Z"},
      {"XXX-5:30", "2026-01-31T12:00:00.25", "2026-01-31T06:30:00.25Z"},
      {"CET-1CEST,M3.5.0,M10.5.0/3", "2026-01-31T12:00:00", "2026-01-31T11:00:00Z"},
      {"CET-1CEST,M3.5.0,M10.5.0/3", "2026-07-31T12:00:00", "2026-07-31T10:00:00Z"},
      {"EST5EDT,M3.2.0,M11.1.0", "2026-12-31T23:30:00", "2027-01-01T04:30:00Z"},
      {"UTC0", "1969-12-31T23:59:59", "1969-12-31T23:59:59Z"},  // mktime answers -1
  };
  for (const auto& row : kTable) {
    const LocalZone zone(row.zone);
    const Result<Clock::Wall> local = parse_timestamp(row.local);
    ASSERT_TRUE(local) << row.local;
    EXPECT_EQ(*local, *parse_timestamp(row.utc)) << row.zone << " " << row.local;
  }
}

TEST(Timestamp, IsWrittenInLocalTimeAsPythonDoes) {
  const struct {
    const char* zone;
    const char* utc;
    const char* local;
  } kTable[] = {
      {"UTC0", "2026-01-31T12:00:00Z", "2026-01-31T12:00:00"},
      {"XXX-5:30", "2026-01-31T23:30:00.25Z", "2026-02-01T05:00:00.250000"},
      {"CET-1CEST,M3.5.0,M10.5.0/3", "2026-07-31T10:00:00.000001Z", "2026-07-31T12:00:00.000001"},
      {"EST5EDT,M3.2.0,M11.1.0", "1969-12-31T23:59:59.5Z", "1969-12-31T18:59:59.500000"},
  };
  for (const auto& row : kTable) {
    const LocalZone zone(row.zone);
    EXPECT_EQ(format_local_timestamp(*parse_timestamp(row.utc)), row.local) << row.zone;
  }
}

TEST(Timestamp, RefusesWhatIsNoTime) {
  for (const char* text : {"",
                           "now",
                           "2026-01-31",
                           "2026-01-31T",
                           "2026-01-31T12",
                           "2026-01-31T12:",
                           "2026-01-31T12:3Z",
                           "2026-01-31T12:34:5Z",
                           "2026-01-31T12:34:56.Z",
                           "2026-01-31T12:34:56.",
                           "2026-01-31T24:00:00Z",
                           "2026-01-31T12:60:00Z",
                           "2026-01-31T12:34:60Z",
                           "2026-02-29T00:00:00Z",
                           "2026-13-01T00:00:00Z",
                           "2026-00-01T00:00:00Z",
                           "2026-01-00T00:00:00Z",
                           "2026-1-31T12:34:56Z",
                           "26-01-31T12:34:56Z",
                           "2026-01-31T12:34:56 Z",
                           "2026-01-31T12:34:56ZZ",
                           "2026-01-31T12:34:56+",
                           "2026-01-31T12:34:56+1",
                           "2026-01-31T12:34:56+24:00",
                           "2026-01-31T12:34:56+01:60",
                           "2026-01-31T12:34:56+01:",
                           "2026-01-31T12:34:56+01:0",
                           "2026-01-31T12:34:56*01:00",
                           " 2026-01-31T12:34:56Z",
                           "+026-01-31T12:34:56Z",
                           "1677-12-31T00:00:00Z",
                           "2262-01-01T00:00:00Z",
                           "9999-12-31T23:59:59Z"}) {
    const Result<Clock::Wall> parsed = parse_timestamp(text);
    ASSERT_FALSE(parsed) << text;
    EXPECT_EQ(parsed.error().reason(), "clock/bad-timestamp");
    EXPECT_EQ(parsed.error().code(), Code::kCorrupt);
  }
}

TEST(Timestamp, IsReadAsItWasWritten) {
  std::mt19937_64 random(4);
  std::uniform_int_distribution<std::int64_t> years_1900_to_2200(-2'208'988'800, 7'258'118'400);
  for (int i = 0; i < 2000; ++i) {
    const std::int64_t micros = static_cast<std::int64_t>(random() % 1'000'000);
    const Clock::Wall time = at(years_1900_to_2200(random) * kSecond + micros * 1000);
    const Result<Clock::Wall> back = parse_timestamp(format_timestamp(time));
    ASSERT_TRUE(back) << format_timestamp(time);
    EXPECT_EQ(*back, time) << format_timestamp(time);
  }
}

TEST(SystemClock, MovesForward) {
  const Clock::Mono before = system_clock().monotonic();
  system_clock().pause(nanoseconds(1000));
  EXPECT_GE(system_clock().monotonic() - before, nanoseconds(1000));
  EXPECT_GT(system_clock().wall(), *parse_timestamp("2020-01-01T00:00:00Z"));
}

}  // namespace
}  // namespace cairn
