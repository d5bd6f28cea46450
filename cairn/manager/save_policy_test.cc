// SPDX-License-Identifier: Apache-2.0
#include "cairn/manager/save_policy.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "cairn/testing/must.h"

namespace cairn {
namespace {

using namespace std::chrono_literals;
using ::testing::HasSubstr;
using testing::must;

using Intervals = std::vector<CheckpointInterval>;

const Clock::Wall kStart = Clock::Wall(std::chrono::hours(24 * 365 * 56));

SavePolicy policy(std::optional<std::chrono::nanoseconds> interval, Intervals steps) {
  return must(SavePolicy::make(interval, std::move(steps), kStart));
}

struct Refused {
  const char* name;
  std::optional<std::chrono::nanoseconds> interval;
  Intervals steps;
  const char* reason;
  const char* sentence;
};

TEST(SavePolicy, RefusesWhatMakesNoSenseWithTheOffendingPair) {
  const Refused cases[] = {
      {"negative time", -1s, {}, "policy/bad-interval", "below zero"},
      {"every 0", std::nullopt, {{0, 10}}, "policy/bad-interval", "'every 0 until 10'"},
      {"every -3, second", 1s, {{5, 10}, {-3, {}}}, "policy/bad-interval", "'every -3 for ever'"},
      {"open before the last",
       1s,
       {{5, 10}, {7, {}}, {9, 30}},
       "policy/open-interval",
       "'every 7 for ever' before 'every 9 until 30'"},
      {"two open ones", 1s, {{5, {}}, {6, {}}}, "policy/open-interval", "'every 5 for ever'"},
      {"unsorted",
       1s,
       {{5, 10}, {7, 30}, {9, 20}},
       "policy/unsorted",
       "'every 7 until 30' before 'every 9 until 20'"},
      {"equal", 1s, {{5, 10}, {7, 10}}, "policy/unsorted", "'every 7 until 10'"},
  };
  for (const Refused& c : cases) {
    const auto made = SavePolicy::make(c.interval, c.steps, kStart);
    ASSERT_FALSE(made) << c.name;
    EXPECT_EQ(made.error().code(), Code::kInvalidArgument) << c.name;
    EXPECT_EQ(made.error().reason(), c.reason) << c.name;
    EXPECT_THAT(made.error().message(), HasSubstr(c.sentence)) << c.name;
  }
}

/// One call of decide(), a save noted if it says so.
struct Step {
  std::int64_t step;
  std::chrono::nanoseconds at;  ///< since kStart
  bool force;
  SaveKind expected;
};

void play(SavePolicy subject, const std::vector<Step>& steps) {
  for (std::size_t i = 0; i < steps.size(); ++i) {
    const Step& s = steps[i];
    const Clock::Wall now = kStart + s.at;
    const SaveKind kind = subject.decide(s.step, now, s.force);
    EXPECT_EQ(static_cast<int>(kind), static_cast<int>(s.expected))
        << "call " << i << ", step " << s.step;
    if (kind != SaveKind::kNone) subject.saved(s.step, now);
  }
}

constexpr SaveKind kNone = SaveKind::kNone;
constexpr SaveKind kTemporary = SaveKind::kTemporary;
constexpr SaveKind kPermanent = SaveKind::kPermanent;

TEST(SavePolicy, TheFirstIntervalThatReachesTheStepDecides) {
  play(policy({}, {{2, 5}, {3, 9}, {10, {}}}), {{1, 0s, false, kNone},
                                                {2, 0s, false, kPermanent},
                                                {3, 0s, false, kNone},
                                                {4, 0s, false, kPermanent},
                                                {5, 0s, false, kNone},
                                                {6, 0s, false, kPermanent},
                                                {8, 0s, false, kNone},
                                                {9, 0s, false, kPermanent},
                                                {10, 0s, false, kPermanent},
                                                {12, 0s, false, kNone},
                                                {20, 0s, false, kPermanent}});
}

TEST(SavePolicy, BehindTheLastIntervalNothingIsPermanentUnlessForced) {
  play(policy({}, {{2, 5}}),
       {{6, 0s, false, kNone}, {7, 0s, true, kPermanent}, {8, 1000h, false, kNone}});
}

TEST(SavePolicy, StepZeroStartsTheClockAgain) {
  play(policy(60s, {}), {{0, 59s, false, kNone},
                         {1, 60s, false, kNone},
                         {2, 118s, false, kNone},
                         {3, 119s, false, kTemporary}});
}

TEST(SavePolicy, StepZeroIsSavedWhenForced) {
  play(policy(60s, {{1, {}}}), {{0, 0s, false, kNone}, {0, 0s, true, kPermanent}});
}

TEST(SavePolicy, AStepIsNotSavedTwiceUnlessForced) {
  play(policy(60s, {{5, {}}}), {{5, 0s, false, kPermanent},
                                {5, 500s, false, kNone},
                                {5, 500s, true, kPermanent},
                                {6, 561s, false, kTemporary},
                                {6, 700s, false, kNone}});
}

TEST(SavePolicy, StepsOfIntervalsAreWhatTheyAreWhateverWasSaved) {
  SavePolicy steps = policy(1s, {{5, 10}});
  steps.saved(5, kStart);
  for (std::int64_t step = 0; step <= 20; ++step)
    EXPECT_EQ(steps.is_step_to_save(step), step == 5 || step == 10) << step;
}

TEST(SavePolicy, AForcedSaveIsPermanentEvenIfTheClockWantsATemporaryOne) {
  play(policy(60s, {}), {{3, 100s, true, kPermanent}, {4, 130s, false, kNone}});
}

TEST(SavePolicy, EverySaveStartsTheClockAgain) {
  play(policy(60s, {{10, {}}}), {{9, 59s, false, kNone},
                                 {10, 59s, false, kPermanent},
                                 {11, 118s, false, kNone},
                                 {12, 119s, false, kTemporary},
                                 {13, 179s, false, kTemporary}});
}

TEST(SavePolicy, NoTimeOrZeroMeansNoTemporarySaves) {
  for (const auto& interval : {std::optional<std::chrono::nanoseconds>(), std::optional(0ns)})
    play(policy(interval, {}), {{1, 0s, false, kNone}, {2, 100000h, false, kNone}});
}

TEST(SavePolicy, AClockThatJumpsBackTakesNothingAwayAndAddsNothing) {
  play(policy(60s, {}), {{1, 50s, false, kNone},
                         {2, -1000h, false, kNone},
                         {3, 9s - 1000h, false, kNone},
                         {4, 10s - 1000h, false, kTemporary},
                         {5, 11s - 1000h, false, kNone},
                         {6, 69s - 1000h, false, kNone},
                         {7, 70s - 1000h, false, kTemporary}});
}

TEST(SavePolicy, AClockThatKeepsJumpingBackCannotStopSaves) {
  SavePolicy subject = policy(60s, {});
  int saves = 0;
  std::int64_t step = 1;
  for (int minute = 0; minute < 100; ++minute) {
    for (const auto second : {0s, 30s}) {
      const Clock::Wall now = kStart + second;
      if (subject.decide(step, now) == kTemporary) {
        ++saves;
        subject.saved(step, now);
      }
      ++step;
    }
  }
  EXPECT_EQ(saves, 50) << "30 s forwards in each of 100 rounds";
}

TEST(SavePolicy, ClientsSetAndReadWhatWasSavedLast) {
  SavePolicy subject = policy(60s, {{5, {}}});
  EXPECT_EQ(subject.last_save_step(), 0);
  EXPECT_EQ(subject.last_save_time(), kStart);
  subject.set_last_save_step(15);
  EXPECT_EQ(subject.decide(15, kStart), kNone);
  EXPECT_EQ(subject.decide(20, kStart), kPermanent);
  subject.set_last_save_time(kStart - 59s);
  EXPECT_EQ(subject.decide(21, kStart), kNone);
  EXPECT_EQ(subject.decide(21, kStart + 1s), kTemporary);
  subject.saved(21, kStart + 1s);
  EXPECT_EQ(subject.last_save_step(), 21);
  EXPECT_EQ(subject.last_save_time(), kStart + 1s);
}

TEST(SavePolicy, ALastSaveAheadOfTheClockCountsAsNow) {
  SavePolicy subject = policy(60s, {});
  subject.set_last_save_time(kStart + 1000h);
  EXPECT_EQ(subject.decide(1, kStart), kNone);
  EXPECT_EQ(subject.last_save_time(), kStart);
  EXPECT_EQ(subject.decide(1, kStart + 60s), kTemporary);
}

TEST(SavePolicy, BearsTheEndsOfTime) {
  SavePolicy subject = policy(60s, {});
  subject.set_last_save_time(Clock::Wall::min());
  EXPECT_EQ(subject.decide(1, kStart), kTemporary);
  subject.set_last_save_time(Clock::Wall::max());
  EXPECT_EQ(subject.decide(1, Clock::Wall::min()), kNone);
  EXPECT_EQ(subject.last_save_time(), Clock::Wall::min());
}

}  // namespace
}  // namespace cairn
