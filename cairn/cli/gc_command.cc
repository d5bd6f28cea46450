// SPDX-License-Identifier: Apache-2.0
#include <algorithm>

#include <fmt/format.h>

#include "cairn/base/human.h"
#include "cairn/cli/commands.h"
#include "cairn/cli/exit_codes.h"
#include "cairn/cli/terminal.h"
#include "cairn/run/apply_retention.h"
#include "cairn/run/leftovers.h"

namespace cairn::cli {

namespace {

Result<std::optional<std::uint64_t>> size_of(const std::string& text) {
  if (text.empty()) return std::optional<std::uint64_t>();
  CAIRN_TRY_ASSIGN(const std::uint64_t bytes, parse_bytes(text));
  return std::optional(bytes);
}

Result<RetentionRules> rules_of(const GcArgs& args) {
  RetentionRules rules;
  rules.keep_last_n = args.keep_last;
  rules.keep_every_n = args.keep_every;
  rules.best_k = args.best_k;
  rules.metric = args.metric;
  rules.mode = args.mode == "max" ? MetricMode::kMax : MetricMode::kMin;
  CAIRN_TRY_ASSIGN(rules.max_bytes, size_of(args.max_bytes));
  CAIRN_TRY_ASSIGN(rules.min_free_bytes, size_of(args.min_free));
  CAIRN_TRY(check_rules(rules));
  return rules;
}

const char* kind_name(Leftover::Kind kind) {
  return kind == Leftover::Kind::kAttempt ? "attempt"
         : kind == Leftover::Kind::kTrash ? "trash"
                                          : "temporary";
}

/// What was done, or would be.
struct Collected {
  std::vector<Verdict> verdicts;
  std::vector<Leftover> leftovers;  ///< without checkpoints, which the verdicts speak of

  std::uint64_t bytes(bool keep) const {
    std::uint64_t sum = 0;
    for (const Verdict& verdict : verdicts) sum += verdict.keep == keep ? verdict.entry.bytes : 0;
    return sum;
  }
  std::uint64_t removed() const {
    return static_cast<std::uint64_t>(
        std::ranges::count_if(verdicts, [](const Verdict& verdict) { return !verdict.keep; }));
  }
  bool failed() const {
    return std::ranges::any_of(
               verdicts,
               [](const Verdict& v) { return std::string_view(v.rule) == "not-removed"; }) ||
           std::ranges::any_of(leftovers, [](const Leftover& l) { return !l.problem.empty(); });
  }
};

Result<Collected> collect(const GcArgs& args, Runtime& runtime) {
  CAIRN_TRY_ASSIGN(const RetentionRules rules, rules_of(args));
  Collected done;
  CAIRN_TRY_ASSIGN(done.leftovers, find_leftovers(args.path, runtime));
  std::erase_if(done.leftovers,
                [](const Leftover& l) { return l.kind == Leftover::Kind::kTemporary; });
  CAIRN_TRY_ASSIGN(
      done.verdicts,
      apply_retention(args.path, {.rules = rules, .dry_run = args.dry_run, .sizes = true},
                      runtime));
  if (args.dry_run) return done;
  CAIRN_TRY_ASSIGN(const auto cleaned, clean_leftovers(args.path, {}, runtime));
  for (Leftover& leftover : done.leftovers) {
    const auto same = std::ranges::find(cleaned, leftover.path, &Leftover::path);
    if (same != cleaned.end()) leftover.problem = same->problem;
  }
  return done;
}

Json to_json(const GcArgs& args, const Collected& done) {
  Json::Array checkpoints;
  for (const Verdict& verdict : done.verdicts) {
    const RunEntry& run = verdict.entry.run;
    checkpoints.emplace_back(Json::Object{{"name", run.name},
                                          {"path", run.path},
                                          {"step", or_null(run.step)},
                                          {"bytes", verdict.entry.bytes},
                                          {"keep", verdict.keep},
                                          {"rule", verdict.rule},
                                          {"reason", verdict.reason}});
  }
  Json::Array leftovers;
  for (const Leftover& leftover : done.leftovers) {
    leftovers.emplace_back(Json::Object{{"kind", kind_name(leftover.kind)},
                                        {"path", leftover.path},
                                        {"problem", text_or_null(leftover.problem)}});
  }
  return Json::Object{{"path", args.path},
                      {"dry_run", args.dry_run},
                      {"checkpoints", std::move(checkpoints)},
                      {"kept_bytes", done.bytes(true)},
                      {"removed_bytes", done.bytes(false)},
                      {"leftovers", std::move(leftovers)}};
}

void print(const GcArgs& args, const Collected& done, const Terminal& terminal) {
  std::vector<std::vector<std::string>> rows{{"", "STEP", "NAME", "BYTES", "RULE", ""}};
  for (const Verdict& verdict : done.verdicts) {
    const RunEntry& run = verdict.entry.run;
    rows.push_back({verdict.keep ? "keep" : "remove", run.step ? fmt::format("{}", *run.step) : "-",
                    run.name, format_bytes(verdict.entry.bytes), verdict.rule, verdict.reason});
  }
  if (rows.size() > 1) terminal.lines(table(std::move(rows), {1, 3}));
  for (const Leftover& leftover : done.leftovers) {
    terminal.line(fmt::format("{}  {} {}{}", leftover.problem.empty() ? "clean" : "KEPT",
                              kind_name(leftover.kind), leftover.path,
                              leftover.problem.empty() ? "" : ": " + leftover.problem));
  }
  terminal.line(fmt::format(
      "{} {} of {}, {}; {} stay; {}", args.dry_run ? "would remove" : "removed", done.removed(),
      counted(done.verdicts.size(), "checkpoint"), format_bytes(done.bytes(false)),
      format_bytes(done.bytes(true)), counted(done.leftovers.size(), "leftover")));
}

}  // namespace

int gc_command(const GcArgs& args, const Terminal& terminal, Runtime& runtime) {
  const auto done = collect(args, runtime);
  if (!done) return terminal.fail(done.error());
  if (terminal.json()) {
    terminal.document(to_json(args, *done));
  } else {
    print(args, *done, terminal);
  }
  return done->failed() ? kFailed : kGood;
}

}  // namespace cairn::cli
