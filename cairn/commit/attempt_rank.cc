// SPDX-License-Identifier: Apache-2.0
#include "cairn/commit/attempt_rank.h"

#include <algorithm>
#include <optional>
#include <set>
#include <utility>

#include <fmt/format.h>

#include "cairn/commit/attempt_files.h"
#include "cairn/commit/directory.h"
#include "cairn/commit/rank_files.h"
#include "cairn/commit/rank_phase.h"
#include "cairn/coord/told_error.h"
#include "cairn/manifest/names.h"
#include "cairn/manifest/record.h"
#include "cairn/storage/local/local_store.h"

namespace cairn {

namespace {

using std::chrono::milliseconds;

constexpr std::size_t kMostNamedRanks = 8;
/// How often those who should live are looked after.
constexpr milliseconds kLookAfter{500};
/// So many of them at once, in turn, so that a storage bears it however many there are.
constexpr std::size_t kMostLookedAfter = 1024;

/// Pauses that grow, up to what a storage bears that all ranks look at.
class Backoff {
 public:
  Backoff(Clock& clock, int ranks) : clock_(clock), longest_(std::clamp<int>(ranks, 100, 2000)) {}
  void pause() {
    clock_.pause(wait_);
    wait_ = std::min<milliseconds>(wait_ * 2, longest_);
  }

 private:
  Clock& clock_;
  const milliseconds longest_;
  milliseconds wait_{1};
};

/// What a rank last said that it does, and whether it is known to be dead.
struct Sighting {
  std::string phase = "not begun";
  bool dead = false;
};

class FileAttemptRank final : public AttemptRank {
 public:
  FileAttemptRank(Directory dest, Clock& clock, Options options)
      : dest_(std::move(dest)),
        clock_(clock),
        options_(std::move(options)),
        name_(std::string(kAttemptPrefix) + options_.attempt) {}

  Result<void> open() {
    const auto opened = [&]() -> Result<void> {
      CAIRN_TRY_ASSIGN(phase_, PhaseFile::open(dest_, name_, options_.rank, clock_));
      const storage::LocalStoreOptions ours{.private_directory = true};
      CAIRN_TRY_ASSIGN(data_,
                       storage::open_local_store(dest_.fs(), dest_.path_of(name_ + "/new"), ours));
      CAIRN_TRY_ASSIGN(
          pieces_, storage::open_local_store(dest_.fs(), dest_.path_of(name_ + "/pieces"), ours));
      return {};
    }();
    if (!opened && opened.error().code() == Code::kNotFound) {
      // It may have been abandoned before this rank came.
      CAIRN_TRY_ASSIGN(const auto decided, look_for_outcome());
      return decided && !*decided ? *decided : gone();
    }
    CAIRN_TRY(opened);
    enter("begin");
    return {};
  }

  storage::Store& data() override { return *data_; }
  storage::Store& pieces() override { return *pieces_; }

  void enter(std::string_view phase) override {
    phase_->enter(phase).ignore_error("no reason to give up a save");
  }
  void count(std::uint64_t done, std::uint64_t total) override { phase_->count(done, total); }

  Result<void> report(std::string_view stage, const RankReport& report) override {
    const std::string name = below(report_file(report.rank, report.failure ? kFailedStage : stage));
    const auto done = [&]() -> Result<void> {
      CAIRN_TRY_ASSIGN(const std::string text, dump_rank_report(report));
      CAIRN_TRY(dest_.write_synced(name + ".tmp", text));
      return dest_.rename(name + ".tmp", name);
    }();
    // On a full disk there is still room in the file that says the phase.
    if (!done && report.failure) return tell_in_phase(*report.failure);
    return done;
  }

  Result<void> wait_reports(std::string_view stage, const std::vector<int>& from, Deadline deadline,
                            const Take& take) override {
    std::set<int> missing(from.begin(), from.end());
    Backoff backoff(clock_, options_.ranks);
    auto look_after = clock_.monotonic() + kLookAfter;
    int last_seen = -1;
    while (true) {
      CAIRN_TRY(collect(stage, missing, take));
      if (missing.empty()) return {};
      CAIRN_TRY_ASSIGN(const auto decided, look_for_outcome());
      if (decided) return *decided;
      const bool late = deadline.passed(clock_);
      if (late || clock_.monotonic() >= look_after) {
        const auto seen = look_at(late ? missing : next_of(missing, last_seen));
        // A rank may have reported, and gone, while it was looked at.
        CAIRN_TRY(collect(stage, missing, take));
        CAIRN_TRY(complain(seen, missing, late));
        look_after = clock_.monotonic() + kLookAfter;
        if (missing.empty()) return {};
      }
      backoff.pause();
    }
  }

  Result<void> wait_leader(std::string_view stage, Deadline deadline) override {
    const std::string report = below(report_file(0, stage));
    return wait_for_rank_0(deadline, [&] { return dest_.exists(report).value_or(false); });
  }

  Result<void> wait_outcome(Deadline deadline) override {
    return wait_for_rank_0(deadline, [] { return false; });
  }

  template <typename IsEnough>
  Result<void> wait_for_rank_0(Deadline deadline, const IsEnough& is_enough) {
    Backoff backoff(clock_, options_.ranks);
    auto look_after = clock_.monotonic() + kLookAfter;
    while (true) {
      if (is_enough()) return {};
      CAIRN_TRY_ASSIGN(const auto decided, look_for_outcome());
      if (decided) return *decided ? make_durable() : *decided;
      if (deadline.passed(clock_)) {
        return abandon(Error(Code::kDeadlineExceeded, "ranks/late",
                             fmt::format("rank 0 did not decide in time; it was last in phase '{}'",
                                         sighting_of(0).phase)));
      }
      if (clock_.monotonic() >= look_after) {
        if (leader_is_dead()) {
          CAIRN_TRY_ASSIGN(const auto just_now, look_for_outcome());
          if (just_now) return *just_now ? make_durable() : *just_now;
          const std::string phase = sighting_of(0).phase;
          return abandon(
              is_failure(phase)
                  ? Error(Code::kCancelled, "ranks/failed", phase.substr(kFailedPhase.size()))
                  : Error(Code::kCancelled, "ranks/died",
                          fmt::format("rank 0 died in phase '{}'", phase)));
        }
        look_after = clock_.monotonic() + kLookAfter;
      }
      backoff.pause();
    }
  }

  Result<void> abandon(const Error& error) override {
    Outcome outcome;
    outcome.failure = error;
    const auto done = put_outcome(outcome);
    if (done) return as_told(error);
    CAIRN_TRY_ASSIGN(const auto decided, look_for_outcome());
    if (decided) return *decided ? make_durable() : *decided;
    if (done.error().code() == Code::kResourceExhausted && options_.rank == 0) {
      // Nothing is decided, and nobody but rank 0 could have committed: the data can make room.
      dest_.remove_tree(name_ + "/new").ignore_error("others may still write there");
      if (put_outcome(outcome)) return as_told(error);
    }
    if (phase_) tell_in_phase(error).ignore_error("then the others notice that this rank is gone");
    return as_told(error);
  }

 private:
  Result<void> tell_in_phase(const Error& error) {
    return phase_->enter(std::string(kFailedPhase) + error.to_string());
  }
  static bool is_failure(std::string_view phase) { return phase.starts_with(kFailedPhase); }

  Result<void> put_outcome(const Outcome& outcome) const {
    const std::string aside = fmt::format("{}/outcome.{}.tmp", name_, options_.rank);
    CAIRN_TRY_ASSIGN(const std::string text, dump_outcome(outcome));
    CAIRN_TRY(dest_.write_synced(aside, text));
    // Where there are no hard links, only rank 0 may decide: what it does instead is not exclusive.
    CAIRN_TRY(options_.rank == 0
                  ? dest_.link_exclusive(aside, outcome_file())
                  : dest_.fs().link(dest_.handle(), aside, dest_.handle(), outcome_file()));
    return dest_.sync(name_);
  }

  // The decision may have been seen before it was durable. If it has moved on, it was.
  Result<void> make_durable() const {
    const auto file = dest_.open_file(outcome_file(), false);
    if (!file && file.error().code() == Code::kNotFound) return {};
    if (!file) return file.error();
    CAIRN_TRY((*file)->sync());
    const auto synced = dest_.sync(name_);
    return synced || synced.error().code() == Code::kNotFound ? Result<void>() : synced;
  }

  std::string below(std::string_view name) const { return fmt::format("{}/{}", name_, name); }
  std::string outcome_file() const { return below(kOutcomeFile); }

  Error gone() const {
    return Error(
        Code::kCancelled, "ranks/gone",
        fmt::format("the attempt {} is gone: its save was given up", dest_.path_of(name_)));
  }

  using Decided = std::optional<Result<void>>;

  // Nothing while it is undecided, or while the storage does not answer; then how the save ended.
  Result<Decided> look_for_outcome() const {
    auto decided = read_outcome();
    if (!decided && decided.error().code() == Code::kUnavailable) return Decided();
    return decided;
  }

  Result<Decided> read_outcome() const {
    CAIRN_TRY_ASSIGN(const auto text, dest_.read(outcome_file(), kMaxAttemptFileBytes));
    if (text) {
      CAIRN_TRY_ASSIGN(const Outcome outcome, parse_outcome(*text));
      if (outcome.commit) return Decided(Result<void>());
      return Decided(outcome.failure ? *outcome.failure : gone());
    }
    CAIRN_TRY_ASSIGN(const bool there, dest_.exists(below(kAttemptFile)));
    if (there) return Decided();
    CAIRN_TRY_ASSIGN(const auto record, dest_.read(std::string(kRecordName), kMaxRecordBytes));
    if (!record) return Decided(gone());
    CAIRN_TRY_ASSIGN(const Record parsed, parse_record(*record));
    const bool committed =
        std::ranges::find(parsed.committed, options_.attempt) != parsed.committed.end();
    return Decided(committed ? Result<void>() : gone());
  }

  // Takes the reports that are there from `missing`.
  Result<void> collect(std::string_view stage, std::set<int>& missing, const Take& take) const {
    const auto entries = dest_.list(below(kRanksDirectory));
    if (!entries) {
      // With the attempt gone, its outcome says more.
      const Code code = entries.error().code();
      const bool later = code == Code::kNotFound || code == Code::kUnavailable;
      return later ? Result<void>() : entries.error();
    }
    CAIRN_TRY(look_for_failures(*entries));
    const std::string ending = report_ending(stage);
    for (const storage::DirEntry& entry : *entries) {
      const auto rank = rank_in(entry.name, ending);
      if (!rank || missing.erase(*rank) == 0) continue;
      CAIRN_TRY_ASSIGN(auto report, read_report(stage, *rank));
      CAIRN_TRY(take(std::move(report)));
    }
    return {};
  }

  Result<void> look_for_failures(const std::vector<storage::DirEntry>& entries) const {
    for (const storage::DirEntry& entry : entries) {
      const auto rank = rank_in(entry.name, report_ending(kFailedStage));
      if (!rank) continue;
      CAIRN_TRY_ASSIGN(auto report, read_report(kFailedStage, *rank));
      if (report.failure) return std::move(*report.failure).in(fmt::format("rank {}", *rank));
    }
    return {};
  }

  Result<RankReport> read_report(std::string_view stage, int rank) const {
    CAIRN_TRY_ASSIGN(const auto text,
                     dest_.read(below(report_file(rank, stage)), kMaxRankReportBytes));
    if (!text) return gone();
    return parse_rank_report(*text).in([&] { return fmt::format("rank {}", rank); });
  }

  Sighting sighting_of(int rank) const {
    auto seen = look_at_phase(dest_, below(phase_file(rank)));
    if (!seen) return {};
    return {std::move(seen->said.phase), rank != options_.rank && seen->alive == false};
  }

  // Those of `ranks` whose turn it is after `last`, round and round.
  static std::set<int> next_of(const std::set<int>& ranks, int& last) {
    std::set<int> next;
    for (auto at = ranks.upper_bound(last); next.size() < kMostLookedAfter; ++at) {
      if (at == ranks.end()) at = ranks.begin();
      if (!next.insert(*at).second) break;
      last = *at;
    }
    return next;
  }

  std::vector<std::pair<int, Sighting>> look_at(const std::set<int>& ranks) const {
    std::vector<std::pair<int, Sighting>> seen;
    for (const int rank : ranks) seen.emplace_back(rank, sighting_of(rank));
    return seen;
  }

  // An error if somebody who is still missing is dead, or if it is late.
  static Result<void> complain(const std::vector<std::pair<int, Sighting>>& seen,
                               const std::set<int>& missing, bool late) {
    std::vector<std::string> dead;
    std::vector<std::string> waited_for;
    for (const auto& [rank, sighting] : seen) {
      if (!missing.contains(rank)) continue;
      if (is_failure(sighting.phase)) {
        return Error(Code::kCancelled, "ranks/failed", sighting.phase)
            .in(fmt::format("rank {}", rank));
      }
      waited_for.push_back(fmt::format("rank {} (phase '{}')", rank, sighting.phase));
      if (sighting.dead) dead.push_back(waited_for.back());
    }
    if (!dead.empty())
      return Error(Code::kCancelled, "ranks/died", fmt::format("died: {}", listed(dead)));
    if (!late || waited_for.empty()) return {};
    return Error(Code::kDeadlineExceeded, "ranks/late",
                 fmt::format("did not finish in time: {}", listed(waited_for)));
  }

  static std::string listed(const std::vector<std::string>& names) {
    const std::size_t shown = std::min(names.size(), kMostNamedRanks);
    std::string text = fmt::format(
        "{}", fmt::join(names.begin(), names.begin() + static_cast<std::ptrdiff_t>(shown), ", "));
    if (shown < names.size()) text += fmt::format(" and {} more", names.size() - shown);
    return text;
  }

  bool leader_is_dead() {
    if (!leader_) leader_ = open_leader();
    return leader_ && *leader_ && !(*leader_)->is_locked_elsewhere().value_or(true);
  }

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
  const Options options_;
  const std::string name_;
  std::unique_ptr<PhaseFile> phase_;  // its lock says that we live
  Leader leader_;
  std::unique_ptr<storage::Store> data_;
  std::unique_ptr<storage::Store> pieces_;
};

}  // namespace

Result<std::unique_ptr<AttemptRank>> AttemptRank::join(storage::FileSystem& fs, Clock& clock,
                                                       Options options) {
  CAIRN_TRY_ASSIGN(Directory dest, Directory::open(fs, options.dest, false));
  auto joined = std::make_unique<FileAttemptRank>(std::move(dest), clock, std::move(options));
  CAIRN_TRY(joined->open());
  return std::unique_ptr<AttemptRank>(std::move(joined));
}

Result<void> AttemptRank::abandon_unjoined(storage::FileSystem& fs, Clock& clock, Options options,
                                           const Error& error) {
  CAIRN_TRY_ASSIGN(Directory dest, Directory::open(fs, options.dest, false));
  return FileAttemptRank(std::move(dest), clock, std::move(options)).abandon(error);
}

}  // namespace cairn
