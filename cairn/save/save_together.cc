// SPDX-License-Identifier: Apache-2.0
#include "cairn/save/save_together.h"

#include <algorithm>
#include <numeric>
#include <set>
#include <utility>

#include <fmt/format.h>

#include "cairn/base/uri.h"
#include "cairn/commit/open.h"
#include "cairn/commit/rank_files.h"
#include "cairn/coord/agreement.h"
#include "cairn/coord/told_error.h"
#include "cairn/save/divide_work.h"
#include "cairn/save/leaf_lists.h"
#include "cairn/save/replaced_tree.h"
#include "cairn/save/tree_fingerprint.h"

namespace cairn {

namespace {

/// Stages of a save that ranks report, after kWrittenStage.
constexpr std::string_view kGathered = "gathered";  // rank 0: it has all reports of kWrittenStage
constexpr std::string_view kAssembled = "assembled";

/// Rank 0's message to all: the attempt, where it is and what is saved; or why there is none.
struct Opening {
  std::string attempt;
  Uri directory;
  Json fingerprint;
};

std::string dump_opening(const Opening& opening) {
  return dump_json(Json::Object{{"attempt", opening.attempt},
                                {"directory", opening.directory.to_string()},
                                {"fingerprint", opening.fingerprint}},
                   {});
}

Result<Opening> parse_opening(std::string_view text) {
  const auto json = parse_json(text, {});
  const Json* attempt = json ? json->find("attempt") : nullptr;
  const Json* directory = json ? json->find("directory") : nullptr;
  const Json* fingerprint = json ? json->find("fingerprint") : nullptr;
  if (attempt == nullptr || attempt->text() == nullptr || directory == nullptr ||
      directory->text() == nullptr || fingerprint == nullptr) {
    return Error(Code::kInternal, "save/bad-opening",
                 "rank 0 sent a message that this version does not understand");
  }
  CAIRN_TRY_ASSIGN(auto uri, parse_uri(*directory->text()));
  return Opening{*attempt->text(), std::move(uri), *fingerprint};
}

class JointSave final : public SaveSteps {
 public:
  JointSave(Result<std::vector<PreparedTree>> prepared, Uri directory, SaveOptions options,
            Runtime& runtime, SaveInternals internals)
      : trees_(std::move(prepared)),
        directory_(std::move(directory)),
        options_(std::move(options)),
        internals_(std::move(internals)),
        runtime_(runtime),
        deadline_(Deadline::in(options_.timeout)) {}  // coordinators go by the machine's clock

  Result<void> begin() override {
    std::optional<TreeFingerprint> mine;
    if (trees_) mine = TreeFingerprint::of(*trees_, options_);
    CAIRN_TRY_ASSIGN(const Opening opening, open(mine));
    const auto ready_to_go = check(mine, opening);
    CAIRN_TRY(join(opening, ready_to_go));
    // All are here: from now on their clocks run together.
    deadline_ = Deadline::in(options_.timeout, runtime_.clock());
    report_.path = directory_.to_string();
    report_.attempt = opening.attempt;
    const auto ready = ready_to_go ? prepare() : ready_to_go;
    return ready ? ready : fail(ready.error());
  }

  const Writers& writers() const override { return writers_; }

  Result<SaveReport> complete(const Write& write) override {
    auto done = write_all(write);
    if (!done) return fail(done.error());
    return runtime_.rank() == 0 ? commit() : follow();
  }

 private:
  // One broadcast: rank 0 makes the attempt, all hear of it.
  Result<Opening> open(const std::optional<TreeFingerprint>& mine) {
    const auto said = [&]() -> Result<std::string> {
      if (runtime_.rank() > 0) return std::string();
      CAIRN_TRY_ASSIGN(const Opening opening, found(mine));
      return dump_opening(opening);
    }();
    const auto heard = coord::hear_rank_0({runtime_.coordinator(), deadline_}, said, phase_);
    // All ranks get the same error, rank 0 too.
    if (!said && !heard) return as_told(said.error()).in("rank 0");
    CAIRN_TRY(heard);
    return parse_opening(*heard);
  }

  // Each says whether it came in: one that cannot has no other way to tell. One that saves
  // something else adds what, for rank 0 to say where they differ.
  Result<void> join(const Opening& opening, const Result<void>& same) {
    const RankOfAttempt place{opening.attempt, runtime_.rank(), runtime_.ranks()};
    CAIRN_TRY_ASSIGN(const auto destination, open_destination(opening.directory, runtime_));
    auto joined = destination->join(place);
    std::string mine;
    if (!joined) {
      mine = dump_json(error_to_json(joined.error()));
    } else if (!same && trees_) {
      mine = dump_json(
          Json::Object{{"failure", error_to_json(same.error())}, {"leaves", list_leaves(*trees_)}});
    }
    CAIRN_TRY_ASSIGN(const auto said,
                     runtime_.coordinator()->gather(as_bytes(mine), phase_, deadline_));
    if (!joined && runtime_.rank() == 0) {
      CAIRN_TRY(destination->abandon(place, Error(joined.error()).in("rank 0")));
    }
    if (!joined) return std::move(joined).error();
    rank_ = *std::move(joined);
    for (std::size_t rank = 0; rank < said.size(); ++rank) {
      const auto error = complaint_of(as_text(said[rank].bytes()));
      if (error) return rank_->abandon(Error(*error).in(fmt::format("rank {}", rank)));
    }
    return {};
  }

  // What a rank said in join(), as an error.
  std::optional<Error> complaint_of(std::string_view said) const {
    const auto json = parse_json(said, {});
    const Json* leaves = json ? json->find("leaves") : nullptr;
    if (leaves == nullptr || leaves->text() == nullptr)
      return json ? error_from_json(*json) : std::nullopt;
    auto error = error_from_json(*json->find("failure"));
    const std::string named = trees_ ? name_differences(*leaves->text(), list_leaves(*trees_)) : "";
    if (!error || named.empty()) return error;
    return Error(Code::kFailedPrecondition, "save/ranks-disagree",
                 fmt::format("{}: {}", error->message(), named));
  }

  Result<Opening> found(const std::optional<TreeFingerprint>& mine) {
    if (!trees_) return trees_.error();
    CAIRN_TRY_ASSIGN(const auto destination, open_destination(directory_, runtime_));
    CAIRN_TRY_ASSIGN(auto attempt,
                     destination->begin(attempt_options(*trees_, internals_, runtime_.ranks())));
    if (!options_.overwrite) CAIRN_TRY(check_replaced_trees(*trees_, directory_, runtime_));
    attempt_ = std::move(attempt);
    return Opening{attempt_->id(), directory_, mine->to_json()};
  }

  Result<void> check(const std::optional<TreeFingerprint>& mine, const Opening& opening) {
    if (!trees_) return trees_.error();
    std::string difference = mine->difference(opening.fingerprint);
    if (opening.directory != directory_) {
      difference += fmt::format("{}place ({} here, {} there)", difference.empty() ? "" : ", ",
                                directory_.to_string(), opening.directory.to_string());
    }
    if (difference.empty()) return {};
    return Error(Code::kFailedPrecondition, "save/ranks-disagree",
                 fmt::format("this rank and rank 0 do not save the same: {}", difference));
  }

  void enter(std::string_view phase) {
    rank_->enter(phase);
    if (internals_.phase) internals_.phase(phase);
  }

  Result<void> prepare() {
    std::vector<std::vector<PlannedArray>*> arrays;
    for (PreparedTree& tree : *trees_) arrays.push_back(&tree.arrays);
    CAIRN_TRY(divide_work(arrays, runtime_.rank(), runtime_.ranks()));
    if (internals_.hash_chunks) leave_to_writers(*trees_, runtime_.ranks());
    CAIRN_TRY_ASSIGN(writers_, make_writers(*trees_, options_, runtime_));
    return hash_trees(*trees_, Hash::kChanging, options_, runtime_);
  }

  Result<void> write_all(const Write& write) {
    enter("writing");
    CAIRN_TRY(open_writers(writers_, {&rank_->data(), &rank_->pieces()}));
    CAIRN_TRY(write([this](std::uint64_t done, std::uint64_t total) {
      counted_ = total;
      rank_->count(done, total);
      if (options_.progress) options_.progress(done, total);
    }));
    CAIRN_TRY(hash_trees(*trees_, Hash::kLasting, options_, runtime_));
    return tell(kWrittenStage);
  }

  bool assembles() const {
    return std::ranges::any_of(writers_,
                               [](const auto& writer) { return !writer->late_jobs().empty(); });
  }

  Result<void> assemble() {
    if (!assembles()) return {};
    enter("putting tensors together");
    const ProgressSink late = [this](std::uint64_t done, std::uint64_t total) {
      rank_->count(counted_ + done, counted_ + total);
    };
    CAIRN_TRY(write_jobs(writers_, &ArrayWriter::late_jobs, late, runtime_));
    return tell(kAssembled);
  }

  // Makes durable what was written since the last time, then says so.
  Result<void> tell(std::string_view stage) {
    RankReport told;
    told.rank = runtime_.rank();
    CAIRN_TRY_ASSIGN(told.sums, take_sums(writers_, *trees_));
    enter("syncing");
    CAIRN_TRY(rank_->data().sync());
    for (const WrittenSums& written : told.sums) {
      for (const SummedRange& range : written.ranges)
        report_.written_bytes += range.end - range.begin;
    }
    CAIRN_TRY(rank_->report(stage, told));
    enter("waiting for the others");
    return {};
  }

  Result<SaveReport> commit() {
    SumsByPrefix sums(trees_->size());
    const auto take = [&](RankReport told) -> Result<void> {
      if (told.sums.size() != sums.size())
        return Error(Code::kCorrupt, "ranks/bad-report", "it reports other prefixes")
            .in(fmt::format("rank {}", told.rank));
      for (std::size_t i = 0; i < sums.size(); ++i) sums[i].add(told.sums[i]);
      return {};
    };
    auto done = [&]() -> Result<void> {
      CAIRN_TRY(rank_->wait_reports(kWrittenStage, all_ranks(), deadline_, take));
      const std::vector<int> assemblers = find_assemblers();
      if (!assemblers.empty()) CAIRN_TRY(rank_->report(kGathered, {}));
      CAIRN_TRY(assemble().in("rank 0"));
      CAIRN_TRY(rank_->wait_reports(kAssembled, assemblers, deadline_, take));
      enter("committing");
      CAIRN_TRY_ASSIGN(auto finished, finish_trees(*std::move(trees_), writers_, std::move(sums),
                                                   *attempt_, options_)
                                          .in("rank 0"));
      finished.request.mark = internals_.mark;
      finished.report.path = report_.path;
      finished.report.written_bytes = report_.written_bytes;
      report_ = std::move(finished.report);
      return attempt_->commit(finished.request).in("rank 0");
    }();
    if (done) return report_;
    CAIRN_TRY(rank_->abandon(done.error()));
    return done.error();  // decided after all, but perhaps not durable
  }

  Result<SaveReport> follow() {
    for (const PreparedTree& tree : *trees_) {
      report_.arrays += tree.arrays.size();
      for (const PlannedArray& array : tree.arrays) {
        report_.bytes += Box::whole(array.stored.shape).elements() * item_size(array.stored.dtype);
      }
    }
    if (assembles()) {
      enter("waiting for pieces");
      CAIRN_TRY(rank_->wait_leader(kGathered, patience()));
      const auto done = assemble();
      if (!done) return fail(done.error());
    }
    CAIRN_TRY(rank_->wait_outcome(patience()));
    return report_;
  }

  // Tells the others, and returns what all of them return.
  Error fail(const Error& error) {
    if (runtime_.rank() == 0) {
      const auto outcome = rank_->abandon(std::move(Error(error)).in("rank 0"));
      return outcome ? error : outcome.error();
    }
    RankReport told;
    told.rank = runtime_.rank();
    told.failure = error;
    const Error mine = Error(error).in(fmt::format("rank {}", told.rank));
    // What is gone was taken away by rank 0, which has given up and needs the space to say so.
    const bool heard =
        rank_->report(kWrittenStage, told).has_value() || error.code() == Code::kNotFound;
    const auto outcome = heard ? rank_->wait_outcome(patience()) : rank_->abandon(mine);
    return outcome ? mine : outcome.error();
  }

  // Rank 0 decides first; only if it is silent do the others.
  Deadline patience() const {
    const auto grace =
        std::max<std::chrono::nanoseconds>(options_.timeout / 10, std::chrono::seconds(1));
    const bool far = Clock::Mono::max() - deadline_.time() < grace;
    return far ? Deadline::never() : Deadline::at(deadline_.time() + grace);
  }

  std::vector<int> all_ranks() const {
    std::vector<int> ranks(static_cast<std::size_t>(runtime_.ranks()));
    std::iota(ranks.begin(), ranks.end(), 0);
    return ranks;
  }

  std::vector<int> find_assemblers() const {
    std::set<int> ranks;
    for (const PreparedTree& tree : *trees_) {
      for (const PlannedArray& array : tree.arrays) {
        if (array.work.assembler) ranks.insert(*array.work.assembler);
      }
    }
    return {ranks.begin(), ranks.end()};
  }

  Result<std::vector<PreparedTree>> trees_;
  const Uri directory_;
  const SaveOptions options_;
  const SaveInternals internals_;
  Runtime& runtime_;
  Deadline deadline_;
  const std::string phase_ =
      options_.step ? fmt::format("save of step {}", *options_.step) : std::string("save");
  std::unique_ptr<Attempt> attempt_;  // rank 0's
  std::unique_ptr<AttemptRank> rank_;
  Writers writers_;
  std::uint64_t counted_ = 0;  // of the bytes that this rank had to write at first
  SaveReport report_;
};

}  // namespace

std::unique_ptr<SaveSteps> save_together(Result<std::vector<PreparedTree>> prepared,
                                         const Uri& directory, SaveOptions options,
                                         Runtime& runtime, SaveInternals internals) {
  return std::make_unique<JointSave>(std::move(prepared), directory, std::move(options), runtime,
                                     std::move(internals));
}

}  // namespace cairn
