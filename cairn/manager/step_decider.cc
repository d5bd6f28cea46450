// SPDX-License-Identifier: Apache-2.0
#include "cairn/manager/step_decider.h"

#include <charconv>
#include <string_view>
#include <system_error>
#include <utility>

#include <fmt/format.h>

#include "cairn/coord/agreement.h"

namespace cairn {

namespace {

struct DecisionOfRank0 {
  StepDecider::Decision decision;
  std::int64_t steps = 1;  ///< until the next agreement
};

Result<DecisionOfRank0> parse_decision(std::string_view text) {
  constexpr int kKinds = static_cast<int>(SaveKind::kPermanent) + 1;
  DecisionOfRank0 heard;
  if (text.size() > 2 && text[0] >= '0' && text[0] < '0' + kKinds) {
    heard.decision = {static_cast<SaveKind>(text[0] - '0'), text[1] == '1'};
    const auto end = std::from_chars(text.data() + 2, text.data() + text.size(), heard.steps);
    if (end.ec == std::errc() && end.ptr == text.data() + text.size()) return heard;
  }
  return Error(Code::kInternal, "run/bad-message",
               "rank 0 sent a message that this version does not understand");
}

}  // namespace

Clock::Wall now_of(const CheckpointerOptions& options, Runtime& runtime) {
  return options.now ? options.now() : runtime.clock().wall();
}

StepDecider::StepDecider(const CheckpointerOptions& options, const std::string& base,
                         SavePolicy policy, std::shared_ptr<AsyncCheckpointManager> manager)
    : options_(options),
      manager_(std::move(manager)),
      runtime_(*manager_->runtime()),
      policy_(std::move(policy)),
      schedule_(options.agreement_share) {
  if (options.watch_requests && runtime_.rank() == 0) watcher_.emplace(base, runtime_);
}

// The same on all ranks, without asking any.
bool StepDecider::must_agree(std::int64_t step, bool force) const {
  return force || policy_.is_step_to_save(step) || schedule_.is_due(step);
}

Result<StepDecider::Decision> StepDecider::decide(std::int64_t step, bool force) {
  if (runtime_.ranks() > 1 && !must_agree(step, force)) return Decision{};
  const Clock::Mono began = runtime_.clock().monotonic();
  CAIRN_TRY_ASSIGN(const Signals signals, look_for_signals(step));
  if (runtime_.ranks() == 1) return decide_here(step, force, signals);
  const auto said = [&]() -> Result<std::string> {
    if (runtime_.rank() > 0) return std::string();
    CAIRN_TRY_ASSIGN(const Decision mine, decide_here(step, force, signals));
    return fmt::format("{}{}{}", static_cast<int>(mine.kind), static_cast<int>(mine.stop),
                       schedule_.plan(step, began));
  }();
  CAIRN_TRY_ASSIGN(const std::string heard,
                   coord::hear_rank_0(manager_->ranks(), said, fmt::format("step {}", step)));
  CAIRN_TRY_ASSIGN(const DecisionOfRank0 agreed, parse_decision(heard));
  schedule_.agreed(step, agreed.steps);
  schedule_.took(began, runtime_.clock().monotonic());
  return agreed.decision;
}

Result<bool> StepDecider::is_time(std::int64_t step, bool force) {
  if (runtime_.ranks() > 1) return must_agree(step, force);
  CAIRN_TRY_ASSIGN(const Decision decision, decide(step, force));
  return decision.kind != SaveKind::kNone;
}

Result<StepDecider::Decision> StepDecider::decide_here(std::int64_t step, bool force,
                                                       const Signals& signals) {
  CAIRN_TRY(manager_->check_for_errors());
  // A signal may come while a save begins, which then counts as the answer to it.
  const bool asked =
      (watcher_ && watcher_->is_requested()) || signals.save || (signals.stop && !stop_);
  return Decision{policy_.decide(step, now_of(options_, runtime_), force || asked), signals.stop};
}

// That have come to any rank, on rank 0.
Result<StepDecider::Signals> StepDecider::look_for_signals(std::int64_t step) {
  if (!options_.signals) return Signals{};
  const std::string mine{options_.signals->is_requested() ? 's' : '-',
                         options_.signals->should_stop() ? 's' : '-'};
  CAIRN_TRY_ASSIGN(const auto said, coord::gather_texts(manager_->ranks(), mine,
                                                        fmt::format("signals at step {}", step)));
  Signals signals;
  for (const std::string& one : said) {
    signals.save = signals.save || one.starts_with('s');
    signals.stop = signals.stop || one.ends_with('s');
  }
  return signals;
}

void StepDecider::saved(std::int64_t step) {
  policy_.saved(step, now_of(options_, runtime_));
  if (watcher_) watcher_->answered();
  if (options_.signals) options_.signals->answered();
}

}  // namespace cairn
