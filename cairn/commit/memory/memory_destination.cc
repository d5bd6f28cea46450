// SPDX-License-Identifier: Apache-2.0
#include "cairn/commit/memory/memory_destination.h"

#include <algorithm>
#include <set>
#include <utility>

#include <fmt/format.h>

#include "cairn/base/sha256.h"
#include "cairn/commit/memory/memory_attempt.h"
#include "cairn/commit/merge.h"
#include "cairn/manifest/names.h"

namespace cairn {

namespace {

using storage::MemoryChange;

Result<bool> is_there(storage::Store& store, const std::string& name) {
  if (store.stat(name)) return true;
  CAIRN_TRY_ASSIGN(const auto below, store.list(name, false));
  return !below.empty();
}

/// What a commit changes, from what is there.
class Merge {
 public:
  Merge(const MemoryAttempt& attempt, const std::string& run_id, const CommitRequest& request,
        storage::Store& store)
      : attempt_(attempt), run_id_(run_id), request_(request), store_(store) {}

  Result<MemoryChange> run() {
    CAIRN_TRY_ASSIGN(const auto there, read_record(store_));
    const Record before = there.value_or(Record{});
    CAIRN_TRY(check_versions(attempt_.versions, before));
    CAIRN_TRY(check_nesting(records_of(request_), before));
    for (const CommitPrefix& prefix : request_.prefixes) CAIRN_TRY(move(prefix.record, before));
    CAIRN_TRY(put_files());
    CAIRN_TRY_ASSIGN(const std::string record,
                     dump_record(merged_record(request_, attempt_.view.id, run_id_, before)));
    put(kRecordName, record);
    change_.removed.assign(out_.begin(), out_.end());
    return std::move(change_);
  }

 private:
  Result<void> move(const RecordPrefix& prefix, const Record& before) {
    const RecordPrefix* replaced = before.find(prefix.name);
    std::set<std::string> ours;
    if (replaced != nullptr) ours.insert(replaced->entries.begin(), replaced->entries.end());
    for (const std::string& entry : prefix.entries) {
      const std::string staged = attempt_.name + "/new/" + entry;
      CAIRN_TRY_ASSIGN(const bool written, is_there(store_, staged));
      if (!written)
        return Error(Code::kInternal, "commit/entry-missing",
                     fmt::format("'{}' was not written", entry));
      CAIRN_TRY_ASSIGN(const bool taken, is_there(store_, entry));
      if (taken && !ours.contains(entry)) {
        return Error(Code::kAlreadyExists, "commit/foreign-entry",
                     fmt::format("{} is there and is no checkpoint; nothing was touched: save to "
                                 "another place, or remove it",
                                 store_.describe(entry)));
      }
      change_.moved.emplace_back(staged, entry);
    }
    out_.merge(ours);
    // Another system's description of the tree that goes does not fit the one that comes.
    if (!prefix.name.empty()) out_.insert(structure_name(prefix.name));
    return {};
  }

  Result<void> put_files() {
    CAIRN_TRY_ASSIGN(const auto index, read_text(store_, kIndexName, kMaxEformerIndexBytes));
    CAIRN_TRY_ASSIGN(const auto merged, merge_eformer_index(index, index_changes(request_)));
    if (merged) {
      CAIRN_TRY(check_length(kIndexName, merged->size(), kMaxEformerIndexBytes));
      put(kIndexName, *merged);
    }
    if (request_.checkpoint_metadata) {
      CAIRN_TRY(check_length(kCheckpointMetadataName, request_.checkpoint_metadata->size(),
                             kMaxEformerIndexBytes));
      put(kCheckpointMetadataName, *request_.checkpoint_metadata);
    }
    if (request_.mark) {
      CAIRN_TRY(check_length(kMarkName, request_.mark->size(), kMaxMarkBytes));
      put(kMarkName, *request_.mark);
    }
    return {};
  }

  void put(std::string_view name, const std::string& text) {
    change_.put.emplace_back(name, Buffer::own(text));
  }

  const MemoryAttempt& attempt_;
  const std::string& run_id_;
  const CommitRequest& request_;
  storage::Store& store_;
  std::set<std::string> out_;
  MemoryChange change_;
};

class MemorySave final : public Attempt {
 public:
  MemorySave(std::shared_ptr<MemoryAttempt> attempt, const AttemptOptions& options, Clock& clock)
      : attempt_(std::move(attempt)), options_(options), data_(attempt_->open("new")) {
    if (options.ranks == 1) board_ = open_memory_board(attempt_, 0, clock);
  }

  ~MemorySave() override {
    const MutexLock lock(attempt_->mutex);
    attempt_->leader_lives = false;
  }

  const std::string& id() const override { return attempt_->view.id; }
  storage::Store& data() override { return *data_; }
  void enter(std::string_view phase) override {
    if (board_) board_->enter(phase).ignore_error("it cannot fail");
  }
  void count(std::uint64_t done, std::uint64_t total) override {
    if (board_) board_->count(done, total);
  }

  Result<void> commit(const CommitRequest& request) override {
    CAIRN_TRY_ASSIGN(const auto allowed, take_guard(options_.guard));
    MemoryDirectory& place = *attempt_->place;
    const MutexLock lock(place.mutex);
    const auto store = place.open();
    CAIRN_TRY_ASSIGN(const MemoryChange change,
                     Merge(*attempt_, options_.run_id, request, *store).run());
    {
      const MutexLock mine(attempt_->mutex);
      if (attempt_->ending) return *attempt_->ending;  // another rank abandoned it
      attempt_->ending = Result<void>();
    }
    store->change(change);
    return {};
  }

 private:
  const std::shared_ptr<MemoryAttempt> attempt_;
  const AttemptOptions options_;
  const std::unique_ptr<storage::Store> data_;
  std::unique_ptr<RankBoard> board_;
};

class MemoryDestination final : public Destination {
 public:
  MemoryDestination(const Uri& uri, Clock& clock) : place_(memory_directory(uri)), clock_(clock) {}

  const std::string& path() const override { return place_->path; }

  // Keys need no directory.
  Result<void> make() override { return {}; }
  void unmake() override {}

  Result<std::unique_ptr<Attempt>> begin(const AttemptOptions& options) override {
    CAIRN_TRY(check_prefixes(options.prefixes));
    const MutexLock lock(place_->mutex);
    CAIRN_TRY_ASSIGN(const auto record, read_record(*place_->open()));
    const ProcessName self = this_process();
    AttemptView view{.id = new_id(),
                     .state = AttemptState::kAlive,
                     .host = self.host,
                     .process = self.process,
                     .started = format_timestamp(clock_.wall()),
                     .prefixes = options.prefixes};
    const auto attempt = std::make_shared<MemoryAttempt>(
        place_, std::move(view), versions_in(record.value_or(Record{}), options.prefixes),
        options.ranks);
    std::erase_if(place_->attempts, [](const auto& known) { return known.second.expired(); });
    place_->attempts.emplace(attempt->view.id, attempt);
    // A listing of the run finds the place, though nothing is saved there yet.
    place_->open(attempt->name)->change({.put = {{"attempt", Buffer::own(std::string())}}});
    return std::make_unique<MemorySave>(attempt, options, clock_);
  }

  Result<std::unique_ptr<AttemptRank>> join(const RankOfAttempt& place) override {
    const auto attempt = find(place.attempt);
    if (attempt == nullptr) return gone(place);
    {
      const MutexLock lock(attempt->mutex);
      if (attempt->ending && !*attempt->ending) return attempt->ending->error();
    }
    auto joined = std::make_unique<AttemptRank>(open_memory_board(attempt, place.rank, clock_),
                                                clock_, place);
    joined->enter("begin");
    return joined;
  }

  Result<void> abandon(const RankOfAttempt& place, const Error& error) override {
    const auto attempt = find(place.attempt);
    if (attempt == nullptr) return gone(place);
    return AttemptRank(open_memory_board(attempt, place.rank, clock_), clock_, place)
        .abandon(error);
  }

  Result<Snapshot> snapshot() override {
    const MutexLock lock(place_->mutex);
    return take_snapshot(*place_);
  }

  Result<std::vector<SeenAttempt>> look() override {
    const MutexLock lock(place_->mutex);
    return look_at_attempts(*place_);
  }

  Result<std::shared_ptr<storage::Store>> open_below(const std::string& directory) override {
    return std::shared_ptr<storage::Store>(place_->open()->freeze(directory));
  }

  Result<std::vector<Child>> list(const std::string& directory) override {
    CAIRN_TRY_ASSIGN(const auto keys, place_->open(directory)->list("", false));
    if (keys.empty()) return not_there(directory);
    std::vector<Child> children;
    children.reserve(keys.size());
    for (const storage::ListEntry& key : keys)
      children.push_back({key.key, key.directory ? Child::Kind::kDirectory : Child::Kind::kFile});
    return children;
  }

  Result<storage::ObjectInfo> stat(const std::string& name) override {
    return place_->open()->stat(name);
  }

  Result<std::optional<std::string>> read(const std::string& name, std::uint64_t limit) override {
    return read_text(*place_->open(), name, limit);
  }

  Result<std::string> version_of(const std::string& directory) override {
    const auto store = place_->open(directory);
    CAIRN_TRY_ASSIGN(const auto keys, store->list("", true));
    if (keys.empty()) return not_there(directory);
    Sha256 seen;
    for (const storage::ListEntry& key : keys) {
      const auto info = store->stat(key.key);
      seen.update(as_bytes(fmt::format("{} {}\n", key.key, info ? info->generation : "")));
    }
    return seen.hex();
  }

  Result<void> write(const std::string& name, const std::string& text) override {
    CAIRN_TRY(list(""));
    place_->open()->change({.put = {{name, Buffer::own(text)}}});
    return {};
  }

  Result<void> remove(const std::string& name) override {
    place_->open()->change({.removed = {name}});
    return {};
  }

  Result<void> update(const std::string& name, const Change& change) override {
    const MutexLock lock(place_->mutex);
    CAIRN_TRY(list(""));
    CAIRN_TRY_ASSIGN(const Snapshot now, take_snapshot(*place_));
    CAIRN_TRY_ASSIGN(const auto before, read_text(*place_->open(), name, kMaxMarkBytes));
    CAIRN_TRY_ASSIGN(const auto after, change(now, before));
    if (after == before) return {};
    return after ? write(name, *after) : remove(name);
  }

 private:
  std::shared_ptr<MemoryAttempt> find(const std::string& id) {
    const MutexLock lock(place_->mutex);
    const auto found = place_->attempts.find(id);
    return found != place_->attempts.end() ? found->second.lock() : nullptr;
  }

  Error not_there(const std::string& directory) const {
    return Error(Code::kNotFound, "storage/not-found", "nothing lies there")
        .in(place_->open()->describe(directory));
  }

  static Error gone(const RankOfAttempt& place) {
    return Error(Code::kCancelled, "ranks/gone",
                 fmt::format("the attempt {} is gone: its save was given up", place.attempt));
  }

  const std::shared_ptr<MemoryDirectory> place_;
  Clock& clock_;
};

}  // namespace

std::unique_ptr<Destination> open_memory_destination(const Uri& uri, Clock& clock) {
  return std::make_unique<MemoryDestination>(uri, clock);
}

}  // namespace cairn
