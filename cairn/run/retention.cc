// SPDX-License-Identifier: Apache-2.0
#include "cairn/run/retention.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <tuple>
#include <utility>

#include <fmt/format.h>

#include "cairn/base/checked.h"
#include "cairn/base/human.h"
#include "cairn/run/mark.h"

namespace cairn {

namespace {

Error bad_rule(const std::string& what) {
  return Error(Code::kInvalidArgument, "retention/bad-rule", what);
}

/// Sizes come from files; no sum of them wraps.
std::uint64_t add(std::uint64_t a, std::uint64_t b) {
  return checked_add(a, b).value_or(std::numeric_limits<std::uint64_t>::max());
}

class Planner {
 public:
  Planner(const std::vector<RetentionEntry>& entries, const RetentionRules& rules) : rules_(rules) {
    for (const RetentionEntry& entry : entries) verdicts_.push_back({.entry = entry, .reason = {}});
  }

  std::vector<Verdict> run(std::uint64_t free_bytes) {
    protect();
    if (!rules_.keep_temporary) replace_temporary();
    choose();
    make_room(free_bytes);
    return std::move(verdicts_);
  }

 private:
  static void say(Verdict& verdict, bool keep, const char* rule, std::string reason) {
    verdict.keep = keep;
    verdict.rule = rule;
    verdict.reason = std::move(reason);
  }

  static bool is_good(const RunEntry& run) {
    return run.marked && !run.torn && run.problem.empty() && run.damage.empty();
  }

  /// Abandoned ones come last. Null: there is none.
  const Verdict* latest_good(bool of_run) const {
    const auto found = std::ranges::find_if(verdicts_, [&](const Verdict& verdict) {
      return is_good(verdict.entry.run) && (!of_run || verdict.entry.run.is_of_run());
    });
    return found != verdicts_.end() ? &*found : nullptr;
  }

  void protect() {
    const Verdict* latest = latest_good(false);
    const Verdict* of_run = latest_good(true);
    if (of_run != nullptr) latest_name_ = of_run->entry.run.name;
    for (Verdict& verdict : verdicts_) protect(verdict, &verdict == latest || &verdict == of_run);
  }

  // The first that holds is the reason that is given.
  static void protect(Verdict& verdict, bool latest) {
    const RunEntry& run = verdict.entry.run;
    if (latest) return say(verdict, true, "latest", "the latest good one");
    if (verdict.entry.saved) return say(verdict, true, "saved", "it was just saved");
    if (run.pinned) return say(verdict, true, "pinned", "it is pinned");
    if (verdict.entry.fixed)
      return say(verdict, true, "fixed", "a link, or the run directory itself");
    if (run.busy) return say(verdict, true, "busy", "somebody saves into it");
    if (run.torn) return say(verdict, true, "torn", run.problem);
    if (!run.ours) return say(verdict, true, "foreign", "cairn did not save it");
    if (!run.marked) return say(verdict, true, "unmarked", "it has no metadata.json");
    if (!run.is_of_run())
      return say(verdict, true, "foreign", "no job saved it as one of this run, under this name");
    if (!run.problem.empty()) return say(verdict, true, "damaged", run.problem);
    if (!run.damage.empty())
      return say(verdict, true, "damaged", "a load found it damaged: " + run.damage);
  }

  /// Those about which nothing has been said.
  std::vector<Verdict*> open_ones() {
    std::vector<Verdict*> open;
    for (Verdict& verdict : verdicts_) {
      if (verdict.reason.empty()) open.push_back(&verdict);
    }
    return open;
  }

  void replace_temporary() {
    for (Verdict* verdict : open_ones()) {
      if (verdict->entry.run.is_temporary)
        say(*verdict, false, "temporary", fmt::format("temporary, and {} is newer", latest_name_));
    }
  }

  void choose() {
    if (!rules_.keep_last_n && !rules_.keep_every_n && !rules_.best_k) {
      for (Verdict* verdict : open_ones()) say(*verdict, true, "no-rule", "no rule wants it gone");
      return;
    }
    find_best();
    keep_best();
    keep_last();
    keep_every();
    for (Verdict* verdict : open_ones())
      say(*verdict, false, "unwanted",
          verdict->entry.run.abandoned ? "of an abandoned branch, and no rule keeps it"
                                       : "no rule keeps it");
  }

  /// Those of the run's checkpoints that rules count, the protected ones included: newest first.
  std::vector<Verdict*> counted() {
    std::vector<Verdict*> result;
    for (Verdict& verdict : verdicts_) {
      const RunEntry& run = verdict.entry.run;
      const bool temporary = run.is_temporary && !rules_.keep_temporary;
      if (is_good(run) && run.is_of_run() && !temporary) result.push_back(&verdict);
    }
    return result;
  }

  void keep_last() {
    if (!rules_.keep_last_n) return;
    const std::int64_t most = *rules_.keep_last_n;
    std::vector<std::uint64_t> numbers;  // of the branch that goes on
    std::int64_t rank = 0;
    for (Verdict* verdict : counted()) {
      const RunEntry& run = verdict->entry.run;
      if (run.abandoned) continue;
      numbers.push_back(run.place()->number);
      if (rank++ < most && verdict->reason.empty())
        say(*verdict, true, "keep-last", fmt::format("one of the last {}", most));
    }
    keep_abandoned(most, numbers);
  }

  /// A branch that was left stays until the one that goes on has saved as many as are to be kept: a
  /// job that starts again in an old directory by mistake loses nothing by its first save.
  void keep_abandoned(std::int64_t most, const std::vector<std::uint64_t>& numbers) {
    for (Verdict* verdict : open_ones()) {
      const RunEntry& run = verdict->entry.run;
      if (!run.abandoned) continue;
      const auto since = std::ranges::count_if(
          numbers, [&](std::uint64_t number) { return number > run.place()->number; });
      if (since < most) {
        say(*verdict, true, "keep-last",
            fmt::format("the branch that goes on has saved {} of {} since", since, most));
      }
    }
  }

  void keep_every() {
    if (!rules_.keep_every_n) return;
    for (Verdict* verdict : open_ones()) {
      const auto step = verdict->entry.run.step;
      if (step && *step % *rules_.keep_every_n == 0) {
        say(*verdict, true, "keep-every",
            fmt::format("step {} is a multiple of {}", *step, *rules_.keep_every_n));
      }
    }
  }

  /// Best first, of equals the newer.
  void find_best() {
    if (!rules_.best_k) return;
    std::vector<std::tuple<double, std::size_t, Verdict*>> scores;
    for (Verdict* verdict : counted()) {
      const auto metric = metric_of(verdict->entry.run.extra, rules_.metric);
      if (!metric || std::isnan(*metric)) continue;
      scores.emplace_back(rules_.mode == MetricMode::kMin ? *metric : -*metric, scores.size(),
                          verdict);
    }
    std::ranges::sort(scores);
    for (const auto& [score, age, verdict] : scores) best_.push_back(verdict);
    nobody_has_it_ = best_.empty();
    if (best_.size() > static_cast<std::uint64_t>(*rules_.best_k))
      best_.resize(static_cast<std::size_t>(*rules_.best_k));
  }

  void keep_best() {
    if (!rules_.best_k) return;
    for (Verdict* verdict : open_ones()) {
      if (nobody_has_it_) {
        say(*verdict, true, "best",
            fmt::format("no checkpoint has the metric '{}'", rules_.metric));
      } else if (std::ranges::find(best_, verdict) != best_.end()) {
        say(*verdict, true, "best",
            fmt::format("among the best {} by '{}'", *rules_.best_k, rules_.metric));
      }
    }
  }

  /// Those that may still go, in that order.
  std::vector<Verdict*> order_of_leaving() {
    std::vector<Verdict*> others;
    for (Verdict& verdict : verdicts_) {
      const std::string_view rule = verdict.rule;
      const bool chosen = rule == "no-rule" || rule == "keep-last" || rule == "keep-every" ||
                          (rule == "best" && nobody_has_it_);
      if (chosen) others.push_back(&verdict);
    }
    std::ranges::reverse(others);
    for (auto best = best_.rbegin(); best != best_.rend(); ++best) {
      if (std::string_view((*best)->rule) == "best") others.push_back(*best);
    }
    return others;
  }

  void make_room(std::uint64_t free_bytes) {
    std::uint64_t used = 0;
    for (const Verdict& verdict : verdicts_) {
      std::uint64_t& sum = verdict.keep ? used : free_bytes;
      sum = add(sum, verdict.entry.bytes);
    }
    for (Verdict* verdict : order_of_leaving()) {
      const bool too_much = rules_.max_bytes && used > *rules_.max_bytes;
      const bool too_full = rules_.min_free_bytes && free_bytes < *rules_.min_free_bytes;
      if (!too_much && !too_full) return;
      say(*verdict, false, too_much ? "max-bytes" : "min-free",
          too_much ? fmt::format("all together have {}, {} are allowed", format_bytes(used),
                                 format_bytes(*rules_.max_bytes))
                   : fmt::format("{} are free, {} are wanted", format_bytes(free_bytes),
                                 format_bytes(*rules_.min_free_bytes)));
      used -= std::min(used, verdict->entry.bytes);
      free_bytes = add(free_bytes, verdict->entry.bytes);
    }
  }

  const RetentionRules& rules_;
  std::vector<Verdict> verdicts_;
  std::string latest_name_;
  std::vector<Verdict*> best_;
  bool nobody_has_it_ = false;
};

}  // namespace

Result<void> check_rules(const RetentionRules& rules) {
  for (const auto& [name, value] :
       {std::pair("keep_last_n", rules.keep_last_n), std::pair("keep_every_n", rules.keep_every_n),
        std::pair("best_k", rules.best_k)}) {
    if (value && *value < 1)
      return bad_rule(fmt::format("{} is {}; it is at least 1", name, *value));
  }
  if (rules.best_k && rules.metric.empty()) return bad_rule("best_k needs the name of a metric");
  if (!rules.best_k && !rules.metric.empty())
    return bad_rule(fmt::format("the metric '{}' needs best_k: how many", rules.metric));
  return {};
}

std::vector<Verdict> plan_retention(const std::vector<RetentionEntry>& entries,
                                    const RetentionRules& rules, std::uint64_t free_bytes) {
  return Planner(entries, rules).run(free_bytes);
}

}  // namespace cairn
