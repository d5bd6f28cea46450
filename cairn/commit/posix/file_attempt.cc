// SPDX-License-Identifier: Apache-2.0
#include "cairn/commit/posix/file_attempt.h"

#include <algorithm>
#include <set>
#include <utility>

#include <fmt/format.h>

#include "cairn/base/sha256.h"
#include "cairn/commit/merge.h"
#include "cairn/commit/posix/attempts.h"
#include "cairn/commit/posix/check_entries.h"
#include "cairn/commit/posix/moves.h"
#include "cairn/commit/posix/phase_file.h"
#include "cairn/commit/process_name.h"
#include "cairn/commit/rank_files.h"
#include "cairn/commit/snapshot.h"
#include "cairn/manifest/eformer_index.h"
#include "cairn/manifest/names.h"
#include "cairn/storage/local/local_store.h"

namespace cairn {

namespace {

/// So often a save bears that its directory is removed before it has begun.
constexpr int kMostRemovals = 4;

std::optional<std::string> digest_of(const std::optional<std::string>& text) {
  return text ? std::optional(sha256_hex(as_bytes(*text))) : std::nullopt;
}

Result<Record> read_record(const Directory& dest) {
  CAIRN_TRY_ASSIGN(const auto text, dest.read(std::string(kRecordName), kMaxRecordBytes));
  if (!text) return Record{};
  return parse_record(*text);
}

class FileAttempt final : public Attempt {
 public:
  FileAttempt(Directory dest, Clock& clock, AttemptFile file, const AttemptOptions& options)
      : dest_(std::move(dest)),
        clock_(clock),
        file_(std::move(file)),
        name_(std::string(kAttemptPrefix) + file_.id),
        lock_timeout_(options.lock_timeout),
        guard_(options.guard) {}

  ~FileAttempt() override {
    if (!born_ || decided_) return;
    phase_.reset();
    data_.reset();
    const auto told = read_outcome();
    if (told && told->commit) return;
    if (told) {
      for (const char* const part : {"/new", "/pieces"})
        dest_.remove_tree(name_ + part).ignore_error("the next save removes it");
      return;
    }
    // Where nothing could be told, the others find it here that we are gone.
    if (file_.ranks > 1 && has_live_ranks(dest_, name_)) return;
    const auto lock = DirectoryLock::acquire(dest_, clock_, std::chrono::seconds(1));
    if (lock)
      discard_attempt(dest_, name_).ignore_error("our lock goes with us: the next save removes it");
  }

  /// REQUIRES: the lock is held. A failure leaves nothing.
  Result<void> be_born() {
    auto born = appear();
    if (born) return born;
    if (std::exchange(born_, false))
      discard_attempt(dest_, name_).ignore_error("our lock goes with us: the next save removes it");
    dest_.remove_tree(std::string(kTrashName)).ignore_error("the next save removes it");
    return born;
  }

  const std::string& id() const override { return file_.id; }
  storage::Store& data() override { return *data_; }

  // As the one rank there is.
  void enter(std::string_view phase) override {
    if (!phase_ && file_.ranks == 1) {
      if (auto opened = PhaseFile::open(dest_, name_, 0, clock_)) phase_ = *std::move(opened);
    }
    if (phase_) phase_->enter(phase).ignore_error("no reason to give up a save");
  }
  void count(std::uint64_t done, std::uint64_t total) override {
    if (phase_) phase_->count(done, total);
  }

  Result<void> commit(const CommitRequest& request) override {
    CAIRN_TRY_ASSIGN(const auto allowed, take_guard(guard_));
    CAIRN_TRY_ASSIGN(const auto lock, DirectoryLock::acquire(dest_, clock_, lock_timeout_));
    CAIRN_TRY(settle_others());
    CAIRN_TRY_ASSIGN(const Record before, read_record(dest_));
    CAIRN_TRY(check_versions(file_.prefixes, before));
    CAIRN_TRY(check_entries(dest_, records_of(request), before));
    CAIRN_TRY_ASSIGN(const Outcome outcome, stage(request, before));
    CAIRN_TRY(decide(outcome));
    // The save has happened. What fails now is finished by whoever opens the directory for writing
    // next.
    finish_attempt(dest_, name_, outcome).ignore_error("readers read through the decided attempt");
    return {};
  }

 private:
  Result<void> appear() {
    // Prepared out of sight: nobody meets an attempt without its lock.
    const std::string hidden = std::string(kTrashName) + "/" + file_.id;
    CAIRN_TRY(dest_.make(hidden + "/new"));
    CAIRN_TRY(dest_.make(hidden + "/old"));
    CAIRN_TRY(dest_.make(hidden + "/" + std::string(kRanksDirectory)));
    if (file_.ranks > 1) CAIRN_TRY(dest_.make(hidden + "/pieces"));
    const std::string path = hidden + "/" + std::string(kAttemptFile);
    CAIRN_TRY_ASSIGN(alive_, dest_.open_file(path, true));
    CAIRN_TRY_ASSIGN(const bool locked, alive_->try_lock());
    if (!locked)
      return Error(Code::kInternal, "commit/attempt-locked", "a new attempt is locked by another");
    CAIRN_TRY_ASSIGN(const std::string text, dump_attempt_file(file_));
    CAIRN_TRY(alive_->write_at(0, as_bytes(text)));
    CAIRN_TRY(alive_->sync());
    CAIRN_TRY(dest_.sync(hidden));
    CAIRN_TRY(dest_.rename(hidden, name_));
    born_ = true;
    CAIRN_TRY(dest_.sync());
    dest_.fs()
        .remove_directory(dest_.handle(), std::string(kTrashName))
        .ignore_error("others' leftovers may lie in it");
    CAIRN_TRY_ASSIGN(data_, storage::open_local_store(dest_.fs(), dest_.path_of(name_ + "/new"),
                                                      {.private_directory = true}));
    return {};
  }

  Result<void> settle_others() {
    CAIRN_TRY(recover_locked(dest_));
    return check_here();
  }

  Result<void> check_here() const {
    CAIRN_TRY_ASSIGN(const bool here, dest_.exists(name_ + "/" + std::string(kAttemptFile)));
    if (here) return {};
    return Error(
        Code::kCancelled, "commit/attempt-gone",
        fmt::format("the attempt {} was removed while it was written", dest_.path_of(name_)));
  }

  Result<Outcome> stage(const CommitRequest& request, const Record& before) {
    Outcome outcome;
    outcome.commit = true;
    for (const CommitPrefix& prefix : request.prefixes) {
      outcome.prefixes.push_back(prefix.record.name);
      CAIRN_TRY(add_moves(prefix.record, before, outcome));
    }
    CAIRN_TRY_ASSIGN(const auto index, dest_.read(std::string(kIndexName), kMaxEformerIndexBytes));
    CAIRN_TRY_ASSIGN(const auto merged, merge_eformer_index(index, index_changes(request)));
    if (merged && merged != index) {
      CAIRN_TRY(stage_file(std::string(kIndexName), *merged, index, outcome));
    }
    if (request.checkpoint_metadata) {
      const std::string name(kCheckpointMetadataName);
      CAIRN_TRY_ASSIGN(const auto there, dest_.read(name, kMaxEformerIndexBytes));
      CAIRN_TRY(stage_file(name, *request.checkpoint_metadata, there, outcome));
    }
    if (request.mark) {
      CAIRN_TRY(check_length(kMarkName, request.mark->size(), kMaxMarkBytes));
      CAIRN_TRY_ASSIGN(const auto there, dest_.read(std::string(kMarkName), kMaxMarkBytes));
      outcome.mark =
          ReplacedFile{std::string(kMarkName), digest_of(there), digest_of(request.mark)};
      CAIRN_TRY(dest_.write_synced(name_ + "/new/" + std::string(kStagedMark), *request.mark));
    }
    CAIRN_TRY_ASSIGN(const std::string record,
                     dump_record(merged_record(request, file_.id, file_.run_id, before)));
    CAIRN_TRY(dest_.write_synced(name_ + "/new/" + std::string(kRecordName), record));
    CAIRN_TRY(dest_.sync(name_ + "/new"));
    return outcome;
  }

  Result<void> add_moves(const RecordPrefix& prefix, const Record& before, Outcome& outcome) const {
    const RecordPrefix* replaced = before.find(prefix.name);
    std::set<std::string> out;
    if (replaced != nullptr) out.insert(replaced->entries.begin(), replaced->entries.end());
    for (const std::string& entry : prefix.entries) {
      CAIRN_TRY_ASSIGN(const bool ready, dest_.exists(name_ + "/new/" + entry));
      if (!ready) {
        CAIRN_TRY(check_here());
        return Error(Code::kInternal, "commit/entry-missing",
                     fmt::format("'{}' was not written", entry));
      }
      outcome.in.push_back(entry);
      CAIRN_TRY_ASSIGN(const bool there, dest_.exists(entry));
      if (there) out.insert(entry);
    }
    CAIRN_TRY(add_stale_structure(prefix, out));
    for (const std::string& entry : out) CAIRN_TRY(check_no_link(dest_, entry));
    outcome.out.insert(outcome.out.end(), out.begin(), out.end());
    return {};
  }

  // Another system's description of the tree that goes does not fit the one that comes.
  Result<void> add_stale_structure(const RecordPrefix& prefix, std::set<std::string>& out) const {
    const std::string name = structure_name(prefix.name);
    if (prefix.name.empty() || out.contains(name)) return {};
    CAIRN_TRY_ASSIGN(const bool there, dest_.exists(name));
    if (there && check_replaceable(dest_, name, prefix.name)) out.insert(name);
    return {};
  }

  Result<void> stage_file(const std::string& name, const std::string& content,
                          const std::optional<std::string>& there, Outcome& outcome) const {
    CAIRN_TRY(check_length(name, content.size(), kMaxEformerIndexBytes));
    outcome.files.push_back({name, digest_of(there), digest_of(content)});
    return dest_.write_synced(name_ + "/new/" + name, content);
  }

  Result<void> decide(const Outcome& outcome) {
    const std::string aside = name_ + "/outcome.tmp";
    CAIRN_TRY_ASSIGN(const std::string text, dump_outcome(outcome));
    CAIRN_TRY(dest_.write_synced(aside, text));
    CAIRN_TRY(dest_.sync(name_));
    if (auto linked = dest_.link_exclusive(aside, outcome_name()); !linked) {
      // Another rank may have been first, with the abandonment; or the answer was lost on its way.
      const auto there = read_outcome();
      if (!there || !there->commit)
        return there && there->failure ? *there->failure : std::move(linked).error();
    }
    decided_ = true;
    return dest_.sync(name_).in("the save was decided but may not survive a power cut: save again");
  }

  std::optional<Outcome> read_outcome() const {
    const auto text = dest_.read(outcome_name(), kMaxAttemptFileBytes);
    if (!text || !*text) return std::nullopt;
    auto outcome = parse_outcome(**text);
    return outcome ? std::optional(*std::move(outcome)) : std::nullopt;
  }

  std::string outcome_name() const { return name_ + "/" + std::string(kOutcomeFile); }

  Directory dest_;
  Clock& clock_;
  const AttemptFile file_;
  const std::string name_;
  const std::chrono::nanoseconds lock_timeout_;
  const CommitGuard guard_;
  bool born_ = false;
  bool decided_ = false;
  std::unique_ptr<storage::File> alive_;  // its lock says that we live
  std::unique_ptr<storage::Store> data_;
  std::unique_ptr<PhaseFile> phase_;
};

using LockedDirectory = std::pair<Directory, DirectoryLock>;

/// The directory, made if it is not there, and its lock. One that somebody removes meanwhile is
/// made again.
Result<LockedDirectory> open_locked(storage::FileSystem& fs, Clock& clock, const LocalPath& path,
                                    std::chrono::nanoseconds timeout) {
  for (int tries = 1;; ++tries) {
    const auto locked = [&]() -> Result<LockedDirectory> {
      CAIRN_TRY_ASSIGN(Directory dest, Directory::open(fs, path, true));
      CAIRN_TRY_ASSIGN(DirectoryLock lock, DirectoryLock::acquire(dest, clock, timeout));
      return LockedDirectory(std::move(dest), std::move(lock));
    };
    auto result = locked();
    if (result || result.error().code() != Code::kNotFound || tries == kMostRemovals) return result;
  }
}

}  // namespace

Result<std::unique_ptr<Attempt>> begin_attempt(storage::FileSystem& fs, Clock& clock,
                                               const LocalPath& path,
                                               const AttemptOptions& options) {
  CAIRN_TRY(check_prefixes(options.prefixes));
  CAIRN_TRY_ASSIGN(const auto place, open_locked(fs, clock, path, options.lock_timeout));
  const Directory& dest = place.first;
  CAIRN_TRY(recover_locked(dest));
  CAIRN_TRY_ASSIGN(const Record record, read_record(dest));
  AttemptFile file;
  file.id = new_id();
  file.writer = this_process();
  file.started = format_timestamp(clock.wall());
  file.run_id = options.run_id;
  file.ranks = options.ranks;
  file.generation = record.generation;
  CAIRN_TRY_ASSIGN(const auto mark, dest.read(std::string(kMarkName), kMaxMarkBytes));
  file.mark_sha256 = digest_of(mark);
  file.prefixes = versions_in(record, options.prefixes);
  for (const std::string& prefix : options.prefixes) {
    const std::string directory = prefix_directory(prefix);
    const RecordPrefix* replaced = record.find(prefix);
    if (replaced != nullptr) {
      for (const std::string& entry : replaced->entries) CAIRN_TRY(check_no_link(dest, entry));
    } else if (!directory.empty()) {
      CAIRN_TRY(check_replaceable(dest, directory, prefix));
    }
  }
  auto attempt = std::make_unique<FileAttempt>(dest, clock, std::move(file), options);
  CAIRN_TRY(attempt->be_born());
  return std::unique_ptr<Attempt>(std::move(attempt));
}

Result<RecoveryReport> recover(storage::FileSystem& fs, Clock& clock, const LocalPath& path) {
  CAIRN_TRY_ASSIGN(const Directory dest, Directory::open(fs, path, false));
  CAIRN_TRY_ASSIGN(const auto lock, DirectoryLock::acquire(dest, clock, std::chrono::seconds(60)));
  return recover_locked(dest);
}

}  // namespace cairn
