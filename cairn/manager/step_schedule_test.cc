// SPDX-License-Identifier: Apache-2.0
#include "cairn/manager/step_schedule.h"

#include <gtest/gtest.h>

namespace cairn {
namespace {

using namespace std::chrono_literals;
using std::chrono::nanoseconds;

/// A job whose steps and agreements take as long as it is told.
struct Job {
  StepSchedule schedule{0.02};
  Clock::Mono now{1h};
  std::int64_t step = 0;
  nanoseconds agreeing{0};
  nanoseconds longest{0};  // without an agreement
  Clock::Mono last = now;

  void run(int steps, nanoseconds pace, nanoseconds cost) {
    for (int i = 0; i < steps; ++i) {
      now += pace;
      if (!schedule.is_due(++step)) continue;
      const Clock::Mono began = now;
      longest = std::max(longest, nanoseconds(began - last));
      const std::int64_t next = schedule.plan(step, began);
      now += cost;
      agreeing += cost;
      schedule.agreed(step, next);
      schedule.took(began, now);
      last = now;
    }
  }
};

TEST(StepSchedule, SpendsNoMoreThanItsShareAsFarAsTheStepsAllow) {
  for (const nanoseconds pace : {nanoseconds(50us), nanoseconds(3ms), nanoseconds(200ms)}) {
    for (const nanoseconds cost : {nanoseconds(20us), nanoseconds(1ms), nanoseconds(90ms)}) {
      Job job;
      job.run(1'000, pace, cost);  // it learns
      const Clock::Mono began = job.now;
      job.agreeing = job.longest = {};
      job.run(100'000, pace, cost);
      const nanoseconds share = (job.now - began) / 45;
      const nanoseconds least = cost * (100'000 / StepSchedule::kMost + 1);
      EXPECT_LE(job.agreeing, std::max(share, least)) << pace.count() << " " << cost.count();
      EXPECT_LE(job.longest, StepSchedule::kLongest + 2 * pace);
      EXPECT_LE(job.longest, StepSchedule::kMost * pace);
    }
  }
}

TEST(StepSchedule, AsksSoonAfterStepsHaveBecomeSlow) {
  Job job;
  job.run(100'000, 2us, 1ms);  // as where data is skipped that was seen before
  job.longest = {};
  job.run(200, 1s, 1ms);
  EXPECT_LE(job.longest, 1s * StepSchedule::kMost);
  job.longest = {};
  job.run(100, 1s, 1ms);
  EXPECT_EQ(job.longest, 1s) << "at every step";
}

TEST(StepSchedule, AsksAtEveryStepWhereThatCostsLittle) {
  Job job;
  job.run(100, 1s, 1ms);
  EXPECT_EQ(job.longest, 1s);
  EXPECT_EQ(job.agreeing, 100ms);
}

TEST(StepSchedule, WaitsForNoMoreThanAMoment) {
  Job job;
  job.run(1000, 1s, 10s);
  EXPECT_LE(job.longest, StepSchedule::kLongest + 1s);
}

TEST(StepSchedule, TakesItsTimeBeforeItSkipsMany) {
  Job job;
  job.run(5, 1us, 1s);
  EXPECT_GE(job.agreeing, 3s) << "at 1, 2 and 4, whatever they cost";
}

TEST(StepSchedule, AsksWhereStepsGoBackOrStandStill) {
  StepSchedule schedule(0.02);
  EXPECT_TRUE(schedule.is_due(7));
  schedule.agreed(7, 100);
  EXPECT_FALSE(schedule.is_due(8));
  EXPECT_FALSE(schedule.is_due(106));
  EXPECT_TRUE(schedule.is_due(107));
  EXPECT_TRUE(schedule.is_due(7));
  EXPECT_TRUE(schedule.is_due(0));
  EXPECT_EQ(schedule.plan(3, Clock::Mono(1h)), 1);
}

TEST(StepSchedule, AsksAlwaysIfItMayTakeAllTheTime) {
  Job job{.schedule = StepSchedule(1)};
  job.run(100, 1us, 1s);
  EXPECT_EQ(job.agreeing, 100s);
}

}  // namespace
}  // namespace cairn
