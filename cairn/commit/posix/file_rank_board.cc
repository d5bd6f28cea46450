// SPDX-License-Identifier: Apache-2.0
#include "cairn/commit/posix/file_rank_board.h"

#include <algorithm>
#include <utility>

#include <fmt/format.h>

#include "cairn/commit/posix/attempt_files.h"
#include "cairn/commit/posix/directory.h"
#include "cairn/commit/posix/phase_file.h"
#include "cairn/commit/rank_files.h"
#include "cairn/manifest/names.h"
#include "cairn/manifest/record.h"
#include "cairn/storage/local/local_store.h"

namespace cairn {

namespace {

class FileRankBoard final : public RankBoard {
 public:
  FileRankBoard(Directory dest, Clock& clock, RankOfAttempt place)
      : dest_(std::move(dest)),
        clock_(clock),
        place_(std::move(place)),
        name_(std::string(kAttemptPrefix) + place_.attempt) {}

  Result<void> open() {
    auto opened = [&]() -> Result<void> {
      CAIRN_TRY_ASSIGN(phase_, PhaseFile::open(dest_, name_, place_.rank, clock_));
      const storage::LocalStoreOptions ours{.private_directory = true};
      CAIRN_TRY_ASSIGN(data_,
                       storage::open_local_store(dest_.fs(), dest_.path_of(name_ + "/new"), ours));
      CAIRN_TRY_ASSIGN(
          pieces_, storage::open_local_store(dest_.fs(), dest_.path_of(name_ + "/pieces"), ours));
      return {};
    }();
    if (opened || opened.error().code() != Code::kNotFound) return opened;
    // It may have been abandoned before this rank came.
    const auto decided = ending();
    if (!decided && decided.error().code() != Code::kUnavailable) return decided.error();
    return decided && *decided && !**decided ? **decided : gone();
  }

  storage::Store& data() override { return *data_; }
  storage::Store& pieces() override { return *pieces_; }

  Result<void> enter(std::string_view phase) override {
    if (phase_) return phase_->enter(phase);
    return gone();
  }
  void count(std::uint64_t done, std::uint64_t total) override { phase_->count(done, total); }

  std::optional<SeenPhase> look_at(int rank) const override {
    return look_at_phase(dest_, below(phase_file(rank)));
  }

  bool leader_is_dead() override {
    if (!leader_) leader_ = open_leader();
    return leader_ && *leader_ && !(*leader_)->is_locked_elsewhere().value_or(true);
  }

  Result<void> post(std::string_view stage, int rank, std::string_view text) override {
    const std::string name = below(report_file(rank, stage));
    CAIRN_TRY(dest_.write_synced(name + ".tmp", text));
    return dest_.rename(name + ".tmp", name);
  }

  Result<std::vector<PostedReport>> posted() const override {
    CAIRN_TRY_ASSIGN(const auto entries, dest_.list(below(kRanksDirectory)));
    std::vector<PostedReport> posted;
    for (const storage::DirEntry& entry : entries) {
      if (auto report = report_in(entry.name)) posted.push_back(*std::move(report));
    }
    return posted;
  }

  bool has_posted(int rank, std::string_view stage) const override {
    return dest_.exists(below(report_file(rank, stage))).value_or(false);
  }

  Result<std::optional<std::string>> read(int rank, std::string_view stage) const override {
    return dest_.read(below(report_file(rank, stage)), kMaxRankReportBytes);
  }

  Result<Ending> ending() const override {
    CAIRN_TRY_ASSIGN(const auto text, dest_.read(outcome_file(), kMaxAttemptFileBytes));
    if (text) {
      CAIRN_TRY_ASSIGN(const Outcome outcome, parse_outcome(*text));
      if (outcome.commit) return Ending(Result<void>());
      return Ending(outcome.failure ? *outcome.failure : gone());
    }
    CAIRN_TRY_ASSIGN(const bool there, dest_.exists(below(kAttemptFile)));
    if (there) return Ending();
    CAIRN_TRY_ASSIGN(const auto record, dest_.read(std::string(kRecordName), kMaxRecordBytes));
    if (!record) return Ending(gone());
    CAIRN_TRY_ASSIGN(const Record parsed, parse_record(*record));
    const bool committed =
        std::ranges::find(parsed.committed, place_.attempt) != parsed.committed.end();
    return Ending(committed ? Result<void>() : gone());
  }

  Result<void> abandon(const Error& error) override {
    Outcome outcome;
    outcome.failure = error;
    const std::string aside = fmt::format("{}/outcome.{}.tmp", name_, place_.rank);
    CAIRN_TRY_ASSIGN(const std::string text, dump_outcome(outcome));
    CAIRN_TRY(dest_.write_synced(aside, text));
    // Where there are no hard links, only rank 0 may decide: what it does instead is not exclusive.
    CAIRN_TRY(place_.rank == 0
                  ? dest_.link_exclusive(aside, outcome_file())
                  : dest_.fs().link(dest_.handle(), aside, dest_.handle(), outcome_file()));
    return dest_.sync(name_);
  }

  // The decision may have been seen before it was durable. If it has moved on, it was.
  Result<void> make_outcome_durable() override {
    const auto file = dest_.open_file(outcome_file(), false);
    if (!file && file.error().code() == Code::kNotFound) return {};
    if (!file) return file.error();
    CAIRN_TRY((*file)->sync());
    const auto synced = dest_.sync(name_);
    return synced || synced.error().code() == Code::kNotFound ? Result<void>() : synced;
  }

  void make_room() override {
    dest_.remove_tree(name_ + "/new").ignore_error("others may still write there");
  }

  Error gone() const override {
    return Error(
        Code::kCancelled, "ranks/gone",
        fmt::format("the attempt {} is gone: its save was given up", dest_.path_of(name_)));
  }

 private:
  std::string below(std::string_view name) const { return fmt::format("{}/{}", name_, name); }
  std::string outcome_file() const { return below(kOutcomeFile); }

  using Leader = std::optional<std::unique_ptr<storage::File>>;

  // The file whose lock says that rank 0 lives; null if that is on another host; nothing if it
  // cannot be found out now.
  Leader open_leader() const {
    const std::string path = below(kAttemptFile);
    const auto text = dest_.read(path, kMaxAttemptFileBytes);
    if (!text || !*text) return std::nullopt;
    const auto attempt = parse_attempt_file(**text);
    if (!attempt || !is_this_host(attempt->writer.boot_id)) return nullptr;
    auto file = dest_.fs().open(dest_.handle(), path, {});
    return file ? Leader(*std::move(file)) : std::nullopt;
  }

  const Directory dest_;
  Clock& clock_;
  const RankOfAttempt place_;
  const std::string name_;
  std::unique_ptr<PhaseFile> phase_;  // its lock says that we live; null before open()
  Leader leader_;
  std::unique_ptr<storage::Store> data_;
  std::unique_ptr<storage::Store> pieces_;
};

}  // namespace

Result<std::unique_ptr<AttemptRank>> join_attempt(storage::FileSystem& fs, Clock& clock,
                                                  const LocalPath& path,
                                                  const RankOfAttempt& place) {
  CAIRN_TRY_ASSIGN(Directory dest, Directory::open(fs, path, false));
  auto board = std::make_unique<FileRankBoard>(std::move(dest), clock, place);
  CAIRN_TRY(board->open());
  auto joined = std::make_unique<AttemptRank>(std::move(board), clock, place);
  joined->enter("begin");
  return joined;
}

Result<void> abandon_unjoined(storage::FileSystem& fs, Clock& clock, const LocalPath& path,
                              const RankOfAttempt& place, const Error& error) {
  CAIRN_TRY_ASSIGN(Directory dest, Directory::open(fs, path, false));
  return AttemptRank(std::make_unique<FileRankBoard>(std::move(dest), clock, place), clock, place)
      .abandon(error);
}

}  // namespace cairn
