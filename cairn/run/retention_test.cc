// SPDX-License-Identifier: Apache-2.0
#include "cairn/run/retention.h"

#include <cmath>
#include <random>
#include <set>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "cairn/run/mark.h"
#include "cairn/testing/must.h"

namespace cairn {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using testing::reason;

/// A good permanent checkpoint of ours.
RetentionEntry good(std::int64_t step) {
  RetentionEntry entry;
  entry.run.step = step;
  entry.run.name = "run-" + std::to_string(step);
  entry.run.path = testing::local("/r/" + entry.run.name);
  entry.run.lineage = Lineage{.number = static_cast<std::uint64_t>(step), .name = entry.run.name};
  entry.run.marked = true;
  entry.run.ours = true;
  entry.bytes = 10;
  return entry;
}

RetentionEntry with(RetentionEntry entry, bool RunEntry::* flag, bool value = true) {
  entry.run.*flag = value;
  return entry;
}

RetentionEntry with_problem(std::int64_t step) {
  RetentionEntry entry = good(step);
  entry.run.problem = "leaf w: 0.0 is missing";
  return entry;
}

RetentionEntry with_loss(std::int64_t step, double loss) {
  RetentionEntry entry = good(step);
  entry.run.extra = Json::Object{{"metrics", Json::Object{{"loss", loss}}}};
  return entry;
}

std::vector<std::string> told(const std::vector<RetentionEntry>& entries,
                              const RetentionRules& rules, std::uint64_t free_bytes = 0) {
  std::vector<std::string> result;
  for (const Verdict& verdict : plan_retention(entries, rules, free_bytes)) {
    EXPECT_FALSE(verdict.reason.empty());
    result.push_back((verdict.keep ? "+" : "-") + std::to_string(*verdict.entry.run.step) + " " +
                     verdict.rule);
  }
  return result;
}

TEST(Retention, WithoutRulesEverythingPermanentStays) {
  EXPECT_THAT(told({good(3), good(2), good(1)}, {}),
              ElementsAre("+3 latest", "+2 no-rule", "+1 no-rule"));
}

TEST(Retention, KeepsTheLast) {
  EXPECT_THAT(told({good(5), good(4), good(3), good(2)}, {.keep_last_n = 2}),
              ElementsAre("+5 latest", "+4 keep-last", "-3 unwanted", "-2 unwanted"));
}

TEST(Retention, KeepsMultiplesOfAStep) {
  EXPECT_THAT(told({good(50), good(40), good(30), good(20)}, {.keep_every_n = 20}),
              ElementsAre("+50 latest", "+40 keep-every", "-30 unwanted", "+20 keep-every"));
}

TEST(Retention, KeepsTheBestOfEqualsTheNewer) {
  const std::vector<RetentionEntry> entries{with_loss(6, 9), with_loss(5, 2),
                                            with_loss(4, 1), good(3),
                                            with_loss(2, 2), with_loss(1, std::nan(""))};
  EXPECT_THAT(
      told(entries, {.best_k = 2, .metric = "loss"}),
      ElementsAre("+6 latest", "+5 best", "+4 best", "-3 unwanted", "-2 unwanted", "-1 unwanted"));
  EXPECT_THAT(told(entries, {.best_k = 2, .metric = "loss", .mode = MetricMode::kMax}),
              ElementsAre("+6 latest", "+5 best", "-4 unwanted", "-3 unwanted", "-2 unwanted",
                          "-1 unwanted"))
      << "the latest is one of the two";
}

TEST(Retention, AMetricThatNobodyHasRemovesNothing) {
  EXPECT_THAT(told({with_loss(3, 1), with_loss(2, 2)}, {.best_k = 1, .metric = "los"}),
              ElementsAre("+3 latest", "+2 best"));
}

TEST(Retention, RulesComposeToMore) {
  const std::vector<RetentionEntry> entries{good(60), good(50), with_loss(40, 1),
                                            good(35), good(30), good(25)};
  EXPECT_THAT(told(entries, {.keep_last_n = 2, .keep_every_n = 30, .best_k = 1, .metric = "loss"}),
              ElementsAre("+60 latest", "+50 keep-last", "+40 best", "-35 unwanted",
                          "+30 keep-every", "-25 unwanted"));
}

TEST(Retention, TemporaryOnesAreReplacedByAnythingNewerThatIsGood) {
  const auto temporary = [](std::int64_t step) {
    return with(good(step), &RunEntry::is_temporary);
  };
  EXPECT_THAT(told({good(5), temporary(4), good(3), temporary(2)}, {}),
              ElementsAre("+5 latest", "-4 temporary", "+3 no-rule", "-2 temporary"));
  EXPECT_THAT(told({temporary(5), temporary(4), good(3)}, {.keep_last_n = 1}),
              ElementsAre("+5 latest", "-4 temporary", "+3 keep-last"));
  EXPECT_THAT(told({with_problem(5), temporary(4)}, {}), ElementsAre("+5 damaged", "+4 latest"));
  EXPECT_THAT(
      told({good(5), temporary(4), temporary(3)}, {.keep_last_n = 2, .keep_temporary = true}),
      ElementsAre("+5 latest", "+4 keep-last", "-3 unwanted"));
}

TEST(Retention, SomeStayWhateverTheRulesSay) {
  RetentionEntry fixed = good(3);
  fixed.fixed = true;
  RetentionEntry torn = with(with_problem(8), &RunEntry::torn);
  const std::vector<RetentionEntry> entries{with_problem(9),
                                            torn,
                                            good(7),
                                            with(good(6), &RunEntry::pinned),
                                            with(good(5), &RunEntry::busy),
                                            with(good(4), &RunEntry::ours, false),
                                            fixed,
                                            with(good(2), &RunEntry::marked, false),
                                            good(1)};
  EXPECT_THAT(told(entries, {.keep_last_n = 1, .max_bytes = 0, .min_free_bytes = 1000}),
              ElementsAre("+9 damaged", "+8 torn", "+7 latest", "+6 pinned", "+5 busy",
                          "+4 foreign", "+3 fixed", "+2 unmarked", "-1 unwanted"));
}

TEST(Retention, LinksCopiesAndSavesByHandNeitherCountNorStandForTheRun) {
  RetentionEntry link = with(good(3), &RunEntry::link);
  link.fixed = true;
  RetentionEntry copy = good(4);
  copy.run.name = "best";
  RetentionEntry by_hand = good(9);
  by_hand.run.lineage.reset();
  EXPECT_THAT(told({by_hand, copy, link, good(3), good(2)}, {.keep_last_n = 1}),
              ElementsAre("+9 latest", "+4 foreign", "+3 fixed", "+3 latest", "-2 unwanted"));
  EXPECT_THAT(told({link, good(3), good(2)}, {.max_bytes = 1}),
              ElementsAre("+3 latest", "+3 latest", "-2 max-bytes"));
}

TEST(Retention, WhatWasJustSavedStays) {
  RetentionEntry saved = good(2);
  saved.saved = true;
  EXPECT_THAT(told({good(3), saved, good(1)}, {.keep_last_n = 1}),
              ElementsAre("+3 latest", "+2 saved", "-1 unwanted"));
  EXPECT_THAT(told({good(3), with(saved, &RunEntry::is_temporary)}, {}),
              ElementsAre("+3 latest", "+2 saved"));
}

TEST(Retention, WhatALoadFoundDamagedStaysAndCountsAsNothing) {
  const auto damaged = [](std::int64_t step) {
    RetentionEntry entry = with_loss(step, 0);
    entry.run.damage = "checksum";
    return entry;
  };
  EXPECT_THAT(told({damaged(5), damaged(4), good(3), good(2)}, {.keep_last_n = 1}),
              ElementsAre("+5 damaged", "+4 damaged", "+3 latest", "-2 unwanted"));
  EXPECT_THAT(
      told({good(6), damaged(5), with_loss(4, 1), good(3)}, {.best_k = 1, .metric = "loss"}),
      ElementsAre("+6 latest", "+5 damaged", "+4 best", "-3 unwanted"));
}

TEST(Retention, WhereTheBranchIsDamagedAnAbandonedOneStays) {
  EXPECT_THAT(told({with_problem(2), with(good(9), &RunEntry::abandoned),
                    with(good(8), &RunEntry::abandoned)},
                   {.keep_every_n = 100}),
              ElementsAre("+2 damaged", "+9 latest", "-8 unwanted"));
}

TEST(Retention, AQuotaTakesTheOldestFirstAndTheBestLast) {
  const std::vector<RetentionEntry> entries{with_loss(5, 9), with_loss(4, 8), with_loss(3, 1),
                                            with_loss(2, 2), with_loss(1, 7)};
  const auto at_most = [&](std::uint64_t bytes) {
    return told(entries, {.keep_last_n = 5, .best_k = 2, .metric = "loss", .max_bytes = bytes});
  };
  EXPECT_THAT(at_most(50),
              ElementsAre("+5 latest", "+4 keep-last", "+3 best", "+2 best", "+1 keep-last"));
  EXPECT_THAT(at_most(49),
              ElementsAre("+5 latest", "+4 keep-last", "+3 best", "+2 best", "-1 max-bytes"));
  EXPECT_THAT(at_most(30),
              ElementsAre("+5 latest", "-4 max-bytes", "+3 best", "+2 best", "-1 max-bytes"));
  EXPECT_THAT(at_most(20),
              ElementsAre("+5 latest", "-4 max-bytes", "+3 best", "-2 max-bytes", "-1 max-bytes"));
  EXPECT_THAT(at_most(0), ElementsAre("+5 latest", "-4 max-bytes", "-3 max-bytes", "-2 max-bytes",
                                      "-1 max-bytes"));
}

TEST(Retention, AFloorOfFreeSpaceCountsWhatGoesAnyway) {
  const std::vector<RetentionEntry> entries{good(4), good(3), good(2), good(1)};
  EXPECT_THAT(told(entries, {.keep_last_n = 3, .min_free_bytes = 15}, 5),
              ElementsAre("+4 latest", "+3 keep-last", "+2 keep-last", "-1 unwanted"));
  EXPECT_THAT(told(entries, {.keep_last_n = 3, .min_free_bytes = 16}, 5),
              ElementsAre("+4 latest", "+3 keep-last", "-2 min-free", "-1 unwanted"));
}

TEST(Retention, HugeSizesDoNotWrapAround) {
  std::vector<RetentionEntry> entries{good(3), good(2), good(1)};
  for (RetentionEntry& entry : entries) entry.bytes = ~std::uint64_t{0} / 2 + 1;
  EXPECT_THAT(told(entries, {.max_bytes = 10}),
              ElementsAre("+3 latest", "-2 max-bytes", "-1 max-bytes"));
}

struct Bad {
  RetentionRules rules;
  const char* sentence;
};

TEST(Retention, RefusesRulesThatMakeNoSense) {
  const Bad cases[] = {{{.keep_last_n = 0}, "keep_last_n is 0"},
                       {{.keep_every_n = -4}, "keep_every_n is -4"},
                       {{.best_k = 0, .metric = "loss"}, "best_k is 0"},
                       {{.best_k = 2}, "name of a metric"},
                       {{.metric = "loss"}, "needs best_k"}};
  for (const Bad& c : cases) {
    const auto checked = check_rules(c.rules);
    EXPECT_EQ(reason(checked), "retention/bad-rule");
    EXPECT_THAT(checked.error().message(), HasSubstr(c.sentence));
  }
  EXPECT_TRUE(check_rules({.keep_last_n = 1, .best_k = 1, .metric = "loss"}));
}

// --- properties on random runs ------------------------------------------------------------------

using Random = std::mt19937_64;

bool one_in(Random& random, int n) { return std::uniform_int_distribution<int>(1, n)(random) == 1; }

std::vector<RetentionEntry> random_run(Random& random) {
  std::vector<RetentionEntry> entries;
  for (std::int64_t step = std::uniform_int_distribution<int>(0, 14)(random); step > 0; --step) {
    RetentionEntry entry =
        one_in(random, 2) ? good(step * 5) : with_loss(step * 5, static_cast<double>(random() % 4));
    entry.bytes = random() % 50;
    entry.fixed = one_in(random, 12);
    entry.run.is_temporary = one_in(random, 3);
    entry.run.pinned = one_in(random, 8);
    entry.run.busy = one_in(random, 12);
    entry.run.ours = !one_in(random, 8);
    entry.run.marked = !one_in(random, 12);
    entry.run.torn = one_in(random, 12);
    if (entry.run.torn || one_in(random, 8)) entry.run.problem = "damaged";
    if (one_in(random, 8)) entry.run.damage = "damaged";
    entry.saved = one_in(random, 12);
    entry.run.link = one_in(random, 12);
    if (one_in(random, 12)) entry.run.name += "-copy";
    entries.push_back(std::move(entry));
  }
  return entries;
}

RetentionRules random_rules(Random& random) {
  RetentionRules rules;
  if (one_in(random, 2)) rules.keep_last_n = 1 + static_cast<std::int64_t>(random() % 5);
  if (one_in(random, 3)) rules.keep_every_n = 1 + static_cast<std::int64_t>(random() % 20);
  if (one_in(random, 3)) {
    rules.best_k = 1 + static_cast<std::int64_t>(random() % 4);
    rules.metric = "loss";
    rules.mode = one_in(random, 2) ? MetricMode::kMin : MetricMode::kMax;
  }
  if (one_in(random, 4)) rules.max_bytes = random() % 300;
  if (one_in(random, 4)) rules.min_free_bytes = random() % 300;
  rules.keep_temporary = one_in(random, 5);
  return rules;
}

std::vector<RetentionEntry> kept(const std::vector<Verdict>& verdicts) {
  std::vector<RetentionEntry> entries;
  for (const Verdict& verdict : verdicts) {
    if (verdict.keep) entries.push_back(verdict.entry);
  }
  return entries;
}

std::set<std::string> names(const std::vector<RetentionEntry>& entries) {
  std::set<std::string> result;
  for (const RetentionEntry& entry : entries) result.insert(entry.run.name);
  return result;
}

TEST(RetentionProperty, WhatMustStayStays) {
  Random random(1);
  for (int i = 0; i < 5000; ++i) {
    const auto entries = random_run(random);
    bool latest_seen = false;
    for (const Verdict& verdict : plan_retention(entries, random_rules(random), random() % 100)) {
      const RunEntry& run = verdict.entry.run;
      const bool usable = run.marked && !run.torn && run.problem.empty() && run.damage.empty();
      const bool untouchable =
          run.pinned || run.busy || !run.ours || verdict.entry.fixed || !usable;
      EXPECT_TRUE(verdict.keep || !untouchable) << run.name << " " << verdict.reason;
      EXPECT_TRUE(verdict.keep || latest_seen) << run.name << " was the latest good one";
      EXPECT_TRUE(verdict.keep || !verdict.entry.saved) << run.name << " was just saved";
      latest_seen = latest_seen || (usable && run.is_of_run());
      EXPECT_NE(std::string(verdict.rule), "");
    }
  }
}

TEST(RetentionProperty, WhatStaysPlannedAgainStays) {
  Random random(2);
  int removed = 0;
  for (int i = 0; i < 5000; ++i) {
    const auto entries = random_run(random);
    const RetentionRules rules = random_rules(random);
    std::uint64_t free = random() % 100;
    const auto verdicts = plan_retention(entries, rules, free);
    const auto left = kept(verdicts);
    removed += static_cast<int>(entries.size() - left.size());
    for (const Verdict& verdict : verdicts) {
      if (!verdict.keep) free += verdict.entry.bytes;
    }
    EXPECT_EQ(names(kept(plan_retention(left, rules, free))), names(left));
  }
  EXPECT_GT(removed, 5000);
}

TEST(RetentionProperty, WhoKeepsMoreKeepsWhatOthersKeep) {
  Random random(3);
  for (int i = 0; i < 5000; ++i) {
    const auto entries = random_run(random);
    RetentionRules rules = random_rules(random);
    rules.max_bytes.reset();
    rules.min_free_bytes.reset();
    if (!rules.keep_last_n && !rules.best_k) continue;
    RetentionRules more = rules;
    if (more.keep_last_n) ++*more.keep_last_n;
    if (more.best_k) ++*more.best_k;
    const auto few = names(kept(plan_retention(entries, rules, 0)));
    const auto many = names(kept(plan_retention(entries, more, 0)));
    EXPECT_TRUE(std::ranges::includes(many, few));
  }
}

TEST(RetentionProperty, AQuotaThatFitsRemovesNothingAndOneThatDoesNotIsMetIfItCanBe) {
  Random random(4);
  for (int i = 0; i < 5000; ++i) {
    const auto entries = random_run(random);
    RetentionRules rules = random_rules(random);
    rules.min_free_bytes.reset();
    rules.max_bytes.reset();
    const auto without = names(kept(plan_retention(entries, rules, 0)));
    rules.max_bytes = random() % 300;
    const auto verdicts = plan_retention(entries, rules, 0);
    std::uint64_t bytes = 0;
    bool more_could_go = false;
    for (const Verdict& verdict : verdicts) {
      if (!verdict.keep) continue;
      bytes += verdict.entry.bytes;
      const std::string rule = verdict.rule;
      more_could_go =
          more_could_go || rule.starts_with("keep-") || rule == "best" || rule == "no-rule";
    }
    EXPECT_TRUE(bytes <= *rules.max_bytes || !more_could_go);
    EXPECT_TRUE(std::ranges::includes(without, names(kept(verdicts))));
  }
}

}  // namespace
}  // namespace cairn
