// SPDX-License-Identifier: Apache-2.0
#include "cairn/commit/memory/memory_run_directory.h"

#include <algorithm>
#include <utility>

#include <fmt/format.h>

#include "cairn/commit/memory/memory_attempt.h"
#include "cairn/commit/memory/memory_destination.h"
#include "cairn/manifest/names.h"

namespace cairn {

namespace {

using Takes = RemovalPlan::Takes;

Result<std::optional<OwnerFile>> read_owner(const MemoryDirectory& run) {
  CAIRN_TRY_ASSIGN(const auto text, read_text(*run.open(), kOwnerName, kMaxOwnerBytes));
  if (!text) return std::optional<OwnerFile>();
  CAIRN_TRY_ASSIGN(auto owner, parse_owner_file(*text).in(run.path));
  return std::optional(std::move(owner));
}

/// Holds a run; let go by whichever thread destroys it.
class Hold {
 public:
  explicit Hold(std::shared_ptr<MemoryDirectory> run) : run_(std::move(run)) {
    const MutexLock lock(run_->run_mutex);
    while (run_->run_is_held) run_->run_free.wait(run_->run_mutex);
    run_->run_is_held = true;
  }
  ~Hold() {
    const MutexLock lock(run_->run_mutex);
    run_->run_is_held = false;
    run_->run_free.notify_all();
  }
  Hold(const Hold&) = delete;
  Hold& operator=(const Hold&) = delete;

 private:
  const std::shared_ptr<MemoryDirectory> run_;
};

class MemoryOwner final : public RunOwner {
 public:
  MemoryOwner(std::shared_ptr<MemoryDirectory> run, OwnerFile file)
      : run_(std::move(run)), file_(std::move(file)) {}

  const std::string& run_id() const override { return file_.run_id; }
  std::uint64_t epoch() const override { return file_.epoch; }

  std::uint64_t next_number(std::uint64_t known) override {
    const MutexLock lock(mutex_);
    return number_ = std::max(number_, known) + 1;
  }

  Result<std::shared_ptr<void>> hold() override {
    auto hold = std::make_shared<Hold>(run_);
    CAIRN_TRY(check_is_ours());
    return std::shared_ptr<void>(std::move(hold));
  }

  Result<void> check_is_ours() const {
    CAIRN_TRY_ASSIGN(const auto now, read_owner(*run_));
    return check_owner(run_->path, file_, now);
  }

 private:
  const std::shared_ptr<MemoryDirectory> run_;
  const OwnerFile file_;
  Mutex mutex_;
  std::uint64_t number_ CAIRN_GUARDED_BY(mutex_) = 0;
};

class MemoryRunDirectory final : public RunDirectory {
 public:
  MemoryRunDirectory(Uri uri, Clock& clock)
      : uri_(std::move(uri)), run_(memory_directory(uri_)), clock_(clock) {}

  const std::string& path() const override { return run_->path; }

  std::unique_ptr<Destination> checkpoint(const std::string& name) const override {
    return open_memory_destination(place_of(name), clock_);
  }

  Result<std::string> name_of(const std::string& path) const override {
    CAIRN_TRY_ASSIGN(Uri uri, parse_uri(path));
    while (uri.path.ends_with('/')) uri.path.pop_back();
    const auto [parent, name] = split_uri(std::move(uri));
    if (parent == uri_ && !name.empty() && name.front() != '.') return name;
    return Error(Code::kInvalidArgument, "removal/outside",
                 fmt::format("'{}' is no direct child of the run directory {}", path, run_->path));
  }

  Result<std::optional<Space>> space() const override { return std::optional<Space>(); }

  Result<std::shared_ptr<RunOwner>> take(const OwnershipOptions& options) override {
    const Hold hold(run_);
    const MutexLock lock(run_->run_mutex);
    if (auto owner = std::static_pointer_cast<MemoryOwner>(run_->owner.lock());
        owner != nullptr && (!options.take_over || owner->check_is_ours()))
      return std::shared_ptr<RunOwner>(std::move(owner));
    CAIRN_TRY_ASSIGN(auto file, read_owner(*run_));
    std::optional<SeenOwner> before;
    if (file) before = SeenOwner{*std::move(file)};
    CAIRN_TRY_ASSIGN(OwnerFile mine, next_owner(run_->path, before, options, clock_));
    run_->open()->change({.put = {{std::string(kOwnerName), Buffer::own(dump_owner_file(mine))}}});
    std::shared_ptr<RunOwner> owner = std::make_shared<MemoryOwner>(run_, std::move(mine));
    run_->owner = owner;
    return owner;
  }

  Result<std::optional<SeenOwner>> find_owner() const override {
    CAIRN_TRY_ASSIGN(auto file, read_owner(*run_));
    if (!file) return std::optional<SeenOwner>();
    const MutexLock lock(run_->run_mutex);
    return std::optional(SeenOwner{*std::move(file), !run_->owner.expired()});
  }

  Result<std::optional<Takes>> remove(const std::string& name, const RemovalTerms& terms) override {
    CAIRN_TRY_ASSIGN(const auto allowed, take_guard(terms.guard));
    const auto place = memory_directory(place_of(name));
    const MutexLock lock(place->mutex);
    const auto dest = checkpoint(name);
    if (!dest->list("")) return std::optional<Takes>();
    CAIRN_TRY_ASSIGN(const Snapshot now, take_snapshot(*place));
    const bool recorded = now.record && !now.record->prefixes.empty();
    if (!terms.known && !recorded && now.attempts.empty()) {
      return Error(Code::kFailedPrecondition, "removal/foreign",
                   fmt::format("{} was not saved by cairn, and is left alone", place->path));
    }
    CAIRN_TRY_ASSIGN(const RemovalPlan plan, terms.decide(*dest, now));
    if (plan.takes == Takes::kAll) run_->open()->change({.removed = {name}});
    if (plan.takes == Takes::kOurs) CAIRN_TRY(take_out(*place, now, plan));
    return std::optional(plan.takes);
  }

  Result<std::uint64_t> empty_trash() override { return std::uint64_t{0}; }
  Result<std::vector<Debris>> find_debris() const override { return std::vector<Debris>(); }
  Result<std::vector<std::string>> clean(const Debris&, const CommitGuard&) override {
    return std::vector<std::string>();
  }

 private:
  Uri place_of(const std::string& name) const {
    Uri uri = uri_;
    if (!name.empty()) uri.path = join_path(uri.path, name);
    return uri;
  }

  static Result<void> take_out(const MemoryDirectory& place, const Snapshot& now,
                               const RemovalPlan& plan) {
    storage::MemoryChange change{.removed = plan.beside};
    Record record = now.record.value_or(Record{});
    for (const RecordPrefix& prefix : record.prefixes)
      change.removed.insert(change.removed.end(), prefix.entries.begin(), prefix.entries.end());
    record.prefixes.clear();
    record.generation += 1;
    CAIRN_TRY_ASSIGN(const std::string text, dump_record(record));
    change.put.emplace_back(kRecordName, Buffer::own(text));
    place.open()->change(change);
    return {};
  }

  const Uri uri_;
  const std::shared_ptr<MemoryDirectory> run_;
  Clock& clock_;
};

}  // namespace

std::unique_ptr<RunDirectory> open_memory_run(const Uri& uri, Clock& clock) {
  Uri plain = uri;
  while (plain.path.ends_with('/')) plain.path.pop_back();
  return std::make_unique<MemoryRunDirectory>(std::move(plain), clock);
}

}  // namespace cairn
