// SPDX-License-Identifier: Apache-2.0
#include "cairn/commit/memory/memory_attempt.h"

#include <fmt/format.h>

#include "cairn/commit/rank_files.h"
#include "cairn/coord/told_error.h"
#include "cairn/manifest/names.h"

namespace cairn {

namespace {

class MemoryRankBoard final : public RankBoard {
 public:
  MemoryRankBoard(std::shared_ptr<MemoryAttempt> attempt, int rank, Clock& clock)
      : attempt_(std::move(attempt)),
        rank_(rank),
        clock_(clock),
        data_(attempt_->open("new")),
        pieces_(attempt_->open("pieces")) {}

  ~MemoryRankBoard() override {
    const MutexLock lock(attempt_->mutex);
    attempt_->by_rank[rank_].alive = false;
  }

  storage::Store& data() override { return *data_; }
  storage::Store& pieces() override { return *pieces_; }

  Result<void> enter(std::string_view phase) override {
    const MutexLock lock(attempt_->mutex);
    RankPhase& said = attempt_->by_rank[rank_].said;
    said.phase = phase;
    said.since = said.time = format_timestamp(clock_.wall());
    said.writer = this_process();
    return {};
  }

  void count(std::uint64_t done, std::uint64_t total) override {
    const MutexLock lock(attempt_->mutex);
    RankPhase& said = attempt_->by_rank[rank_].said;
    said.done = done;
    said.total = total;
  }

  std::optional<SeenPhase> look_at(int rank) const override {
    const MutexLock lock(attempt_->mutex);
    const auto found = attempt_->by_rank.find(rank);
    if (found == attempt_->by_rank.end()) return std::nullopt;
    return SeenPhase{found->second.said, found->second.alive};
  }

  bool leader_is_dead() override {
    const MutexLock lock(attempt_->mutex);
    return !attempt_->leader_lives;
  }

  Result<void> post(std::string_view stage, int rank, std::string_view text) override {
    const MutexLock lock(attempt_->mutex);
    attempt_->by_rank[rank].reports.insert_or_assign(std::string(stage), std::string(text));
    return {};
  }

  Result<std::vector<PostedReport>> posted() const override {
    const MutexLock lock(attempt_->mutex);
    std::vector<PostedReport> posted;
    for (const auto& [number, rank] : attempt_->by_rank) {
      for (const auto& [stage, text] : rank.reports) posted.push_back({number, stage});
    }
    return posted;
  }

  bool has_posted(int rank, std::string_view stage) const override {
    const auto text = read(rank, stage);
    return text && *text;
  }

  Result<std::optional<std::string>> read(int rank, std::string_view stage) const override {
    const MutexLock lock(attempt_->mutex);
    const auto found = attempt_->by_rank.find(rank);
    if (found == attempt_->by_rank.end()) return std::optional<std::string>();
    const auto report = found->second.reports.find(std::string(stage));
    return report != found->second.reports.end() ? std::optional(report->second) : std::nullopt;
  }

  Result<Ending> ending() const override {
    const MutexLock lock(attempt_->mutex);
    return attempt_->ending;
  }

  Result<void> abandon(const Error& error) override {
    const MutexLock lock(attempt_->mutex);
    if (attempt_->ending) {
      return Error(Code::kAlreadyExists, "commit/decided",
                   fmt::format("the save {} is decided already", attempt_->view.id));
    }
    attempt_->ending = Result<void>(as_told(error));
    return {};
  }

  Result<void> make_outcome_durable() override { return {}; }
  void make_room() override {}
  Error gone() const override {
    return Error(Code::kCancelled, "ranks/gone",
                 fmt::format("the attempt {} is gone: its save was given up", attempt_->view.id));
  }

 private:
  const std::shared_ptr<MemoryAttempt> attempt_;
  const int rank_;
  Clock& clock_;
  const std::unique_ptr<storage::Store> data_;
  const std::unique_ptr<storage::Store> pieces_;
};

SeenAttempt look_at(MemoryAttempt& attempt) {
  SeenAttempt seen{.view = attempt.view};
  const MutexLock lock(attempt.mutex);
  if (attempt.ending) {
    seen.view.state = *attempt.ending ? AttemptState::kDecided : AttemptState::kAbandoned;
    if (!*attempt.ending) seen.failure = attempt.ending->error().to_string();
  } else if (!attempt.leader_lives) {
    seen.view.state = AttemptState::kDead;
  }
  for (int number = 0; number < attempt.ranks; ++number) {
    SeenRank& rank = seen.ranks.emplace_back();
    rank.rank = number;
    const auto found = attempt.by_rank.find(number);
    if (found == attempt.by_rank.end()) continue;
    const RankPhase& said = found->second.said;
    rank.phase = said.phase;
    rank.done = said.done;
    rank.total = said.total;
    rank.since = said.since;
    rank.time = said.time;
    rank.host = said.writer.host;
    rank.process = said.writer.process;
    rank.alive = found->second.alive;
    rank.reported = found->second.reports.contains(std::string(kWrittenStage));
  }
  return seen;
}

}  // namespace

MemoryAttempt::MemoryAttempt(std::shared_ptr<MemoryDirectory> where, AttemptView seen,
                             PrefixVersions before, int count)
    : place(std::move(where)),
      view(std::move(seen)),
      versions(std::move(before)),
      ranks(count),
      name(std::string(kAttemptPrefix) + view.id) {}

MemoryAttempt::~MemoryAttempt() { place->open()->change({.removed = {name}}); }

std::unique_ptr<storage::Store> MemoryAttempt::open(const std::string& directory) const {
  return place->open(name + "/" + directory);
}

std::vector<SeenAttempt> look_at_attempts(MemoryDirectory& place) {
  std::vector<SeenAttempt> seen;
  for (const auto& [id, known] : place.attempts) {
    if (const auto attempt = known.lock()) seen.push_back(look_at(*attempt));
  }
  return seen;
}

Result<Snapshot> take_snapshot(MemoryDirectory& place) {
  Snapshot snapshot;
  const auto store = place.open();
  CAIRN_TRY_ASSIGN(snapshot.record, read_record(*store));
  CAIRN_TRY_ASSIGN(snapshot.mark, read_text(*store, kMarkName, kMaxMarkBytes));
  for (SeenAttempt& attempt : look_at_attempts(place)) {
    if (attempt.view.state == AttemptState::kAlive)
      snapshot.attempts.push_back(std::move(attempt.view));
  }
  return snapshot;
}

std::unique_ptr<RankBoard> open_memory_board(std::shared_ptr<MemoryAttempt> attempt, int rank,
                                             Clock& clock) {
  return std::make_unique<MemoryRankBoard>(std::move(attempt), rank, clock);
}

}  // namespace cairn
