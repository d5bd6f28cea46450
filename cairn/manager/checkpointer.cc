// SPDX-License-Identifier: Apache-2.0
#include "cairn/manager/checkpointer.h"

#include <utility>

#include <fmt/format.h>

#include "cairn/base/uri.h"
#include "cairn/commit/open.h"
#include "cairn/coord/agreement.h"
#include "cairn/manager/callback_save.h"
#include "cairn/manager/metrics.h"
#include "cairn/manager/prefixes.h"
#include "cairn/manager/run_branch.h"
#include "cairn/manager/run_cleaner.h"
#include "cairn/manager/run_loader.h"
#include "cairn/manager/run_places.h"
#include "cairn/manager/step_decider.h"
#include "cairn/run/mark.h"
#include "cairn/run/ownership.h"
#include "cairn/run/removal.h"
#include "cairn/runtime/in_flight.h"
#include "cairn/save/save_internals.h"

namespace cairn {

namespace {

Result<void> check_object(const Json& json, std::string_view name) {
  if (json.is_null() || json.object() != nullptr) return {};
  return Error(Code::kInvalidArgument, "checkpointer/not-an-object",
               fmt::format("{} must be a JSON object, not {}", name, json.kind_name()));
}

/// What the mark says beside step, time and kind.
Json mark_members(const Json& extras, const Json& metrics) {
  Json::Object members;
  if (extras.object() != nullptr) {
    for (const auto& [name, value] : *extras.object()) {
      if (name != "metrics") members.emplace_back(name, value);
    }
  }
  if (metrics.object() != nullptr) members.emplace_back("metrics", metrics);
  return members.empty() ? Json() : Json(std::move(members));
}

class RunCheckpointer final : public Checkpointer {
 public:
  RunCheckpointer(CheckpointerOptions options, std::string base, SavePolicy policy)
      : options_(std::move(options)),
        base_(std::move(base)),
        manager_(options_.manager),
        runtime_(*manager_->runtime()),
        decider_(options_, base_, std::move(policy), manager_),
        cleaner_(std::make_shared<RunCleaner>(base_, manager_->runtime())),
        branch_(base_, runtime_),
        loader_(base_, manager_, branch_) {
    if (!options_.metrics_path.empty())
      metrics_ = MetricsFile::make(options_.metrics_path, base_, manager_->runtime());
  }

  Result<std::optional<SaveHandle>> on_step(std::int64_t step, const Trees& trees,
                                            const StepOptions& options,
                                            const SaveInternals* internals) override {
    CAIRN_TRY_ASSIGN(const auto decision, decider_.decide(step, options.force));
    if (decision.kind == SaveKind::kNone) return std::optional<SaveHandle>();
    Saving saving{.save = options.save,
                  .is_temporary = decision.kind == SaveKind::kTemporary,
                  .metrics = options.metrics,
                  .mesh = options.mesh,
                  .callbacks = options.true_callbacks};
    saving.save.step = step;
    const std::string path = join_path(base_, step_directory(step));
    CAIRN_TRY_ASSIGN(auto handle, begin(path, step, [&]() -> Result<SaveHandle> {
                       if (!trees) return have_saved(path, saving);
                       CAIRN_TRY_ASSIGN(const auto named, trees());
                       return save(named, path, saving, internals);
                     }));
    if (decision.stop) {
      decider_.stop();
      CAIRN_TRY(handle.wait(Deadline::in(options_.stop_timeout)));
    }
    return std::optional(std::move(handle));
  }

  Result<bool> is_time(std::int64_t step, bool force) override {
    return decider_.is_time(step, force);
  }

  Result<SaveHandle> save_checkpoint(const Tree& tree, const std::string& destination,
                                     const SaveCheckpointOptions& options,
                                     const SaveInternals* internals) override {
    if (options.structured) CAIRN_TRY(check_prefix_to_save(options.prefix));
    CAIRN_TRY_ASSIGN(const std::string path, place_of(base_, destination));
    return begin(path, options.save.step, [&]() -> Result<SaveHandle> {
      Saving saving{
          .save = options.save, .is_temporary = options.is_temporary, .metrics = options.metrics};
      CAIRN_TRY(add_wishes(tree, options, saving.save));
      return save({{options.prefix, tree}}, path, saving, internals);
    });
  }

  Result<SaveHandle> save_pytree(const Tree& tree, const std::string& destination,
                                 const SaveCheckpointOptions& options,
                                 const SaveInternals* internals) override {
    if (options.save.step) {
      SaveCheckpointOptions structured = options;
      structured.structured = true;
      return save_checkpoint(tree,
                             destination.empty() ? step_directory(*options.save.step) : destination,
                             structured, internals);
    }
    SaveTreeOptions how{.prefix = options.prefix, .save = options.save};
    CAIRN_TRY(add_wishes(tree, options, how.save));
    const std::string path = destination.empty() ? base_ : destination;
    return begin(path, std::nullopt,
                 [&] { return manager_->save_pytree(tree, path, how, internals); });
  }

  Result<std::optional<Loaded>> load_checkpoint_if_any(
      const LoadCheckpointOptions& options) override {
    if (options.structured) CAIRN_TRY(check_prefix_to_load(options.load.prefix.value_or("")));
    CAIRN_TRY_ASSIGN(auto loaded, loader_.load(options, options.structured));
    if (!loaded) CAIRN_TRY(loader_.check_for_bad_ones(options));
    return loaded;
  }

  Result<Loaded> load_checkpoint(const LoadCheckpointOptions& options) override {
    CAIRN_TRY_ASSIGN(auto loaded, load_checkpoint_if_any(options));
    if (loaded) return *std::move(loaded);
    return loader_.no_checkpoint(options);
  }

  Result<std::optional<Loaded>> load_pytree(const LoadCheckpointOptions& options) override {
    CAIRN_TRY(check_prefix_to_load(options.load.prefix.value_or("")));
    return loader_.load_pytree(options);
  }

  Result<void> queue_checkpoint_removal(const std::string& path) override {
    wait_for_saves(path, runtime_.rank());
    if (runtime_.rank() > 0) return {};
    CAIRN_TRY(cleaner_->remove(path, {.with_other_files = true, .guard = guard()}));
    cleaner_->empty_trash_later();
    return {};
  }

  Result<void> wait_until_finished() override {
    auto saved = manager_->wait_until_finished();
    cleaner_->wait();
    return saved;
  }
  Result<void> check_for_errors() override { return manager_->check_for_errors(); }
  bool should_stop() const override { return decider_.should_stop(); }
  AsyncCheckpointManager& manager() override { return *manager_; }
  SavePolicy& policy() override { return decider_.policy(); }

 private:
  /// One save, by whatever call.
  struct Saving {
    SaveOptions save = {};
    bool is_temporary = false;
    Json metrics = {};
    const Mesh* mesh = nullptr;
    std::vector<CheckpointCallback> callbacks = {};
  };

  CommitGuard guard() { return owner_ ? owner_->guard() : CommitGuard(); }

  // The first save makes this process the owner of the run; rank 0's word counts.
  Result<void> own() {
    if (is_owner_) return {};
    const auto taken = [&]() -> Result<std::string> {
      if (runtime_.rank() > 0) return std::string();
      const std::string& wanted = options_.run_id.empty() ? loader_.run_id() : options_.run_id;
      CAIRN_TRY_ASSIGN(owner_, take_run(base_, {wanted, options_.take_over}, runtime_));
      return owner_->run_id();
    }();
    CAIRN_TRY_ASSIGN(run_id_, coord::hear_rank_0(manager_->ranks(), taken, "own the run"));
    is_owner_ = true;
    return {};
  }

  // With its place in the run, if rank 0 owns that by now and `path` is of it.
  Mark mark_of(const Saving& saving, const std::string& path) {
    const auto step = saving.save.step;
    Mark mark = make_mark(step.value_or(-1), saving.is_temporary, runtime_.clock().wall());
    mark.extra = mark_members(saving.save.extras, saving.metrics);
    if (owner_ && step && is_of_run(base_, path))
      mark.lineage = branch_.next(*step, path.substr(base_.size() + 1), *owner_);
    return mark;
  }

  static Result<void> add_wishes(const Tree& tree, const SaveCheckpointOptions& options,
                                 SaveOptions& save) {
    if (options.mesh) save.mesh = options.mesh->axes();
    if (options.shardings == nullptr && options.partition_rules == nullptr) return {};
    CAIRN_TRY_ASSIGN(save.wishes, wished_specs(tree, options.shardings, options.partition_rules,
                                               options.mesh ? &*options.mesh : nullptr));
    return {};
  }

  Result<SaveHandle> save(const std::vector<NamedTree>& trees, const std::string& path,
                          const Saving& saving, const SaveInternals* internals) {
    CAIRN_TRY(check_object(saving.save.extras, "extras"));
    CAIRN_TRY(check_object(saving.metrics, "metrics"));
    const bool of_run = is_of_run(base_, path);
    if (of_run) CAIRN_TRY(own());
    const Mark mark = mark_of(saving, path);
    SaveTreeOptions how{.save = saving.save};
    how.save.metadata = to_json(mark);
    how.save.committed = after_commit(path, saving, to_json(mark));
    SaveInternals inner = internals != nullptr ? *internals : SaveInternals();
    inner.mark = dump_mark(mark);
    if (of_run) {
      inner.run_id = run_id_;
      inner.guard = both_guards(std::move(inner.guard), guard());
    }
    CAIRN_TRY_ASSIGN(auto handle, manager_->save_checkpoint(trees, path, how, &inner));
    decider_.saved(saving.save.step.value_or(0));
    return handle;
  }

  // Every save goes through here. Nothing is written where saves are switched off, no owner either;
  // the manager says so.
  template <typename Save>
  Result<SaveHandle> begin(const std::string& path, std::optional<std::int64_t> step,
                           const Save& save) {
    if (!manager_->is_enabled()) {
      if (step) decider_.saved(*step);
      return manager_->save_checkpoint({}, path);
    }
    const Clock::Mono called = runtime_.clock().monotonic();
    auto handle = save();
    if (!metrics_) return handle;
    if (handle) {
      metrics_->began(*handle, step, runtime_.clock().monotonic() - called);
    } else {
      metrics_->failed();
    }
    return handle;
  }

  // In the background; keeps what it needs, the checkpointer itself may be gone.
  std::function<Result<void>(const SaveReport&)> after_commit(const std::string& path,
                                                              const Saving& saving,
                                                              const Json& mark) {
    const bool leads = runtime_.rank() == 0 && is_of_run(base_, path);
    RunCleaner::Saved saved{.path = path,
                            .step = saving.save.step.value_or(0),
                            .is_temporary = saving.is_temporary,
                            .rules = options_.retention,
                            .leftovers_too = options_.delete_old_temp_checkpoints,
                            .guard = guard()};
    const std::shared_ptr<const Mesh> mesh =
        saving.mesh != nullptr ? std::make_shared<const Mesh>(*saving.mesh) : nullptr;
    return [cleaner = cleaner_, saved = std::move(saved), leads, mesh, mark,
            first = saving.save.committed,
            callbacks = saving.callbacks](const SaveReport& report) -> Result<void> {
      if (first) CAIRN_TRY(first(report));
      for (const CheckpointCallback& callback : callbacks)
        CAIRN_TRY(callback(saved.path, mesh.get(), mark));
      if (leads) cleaner->clean_after(saved, report);
      return {};
    };
  }

  Result<SaveHandle> have_saved(const std::string& path, const Saving& saving) {
    CAIRN_TRY(own());
    const Mark mark = mark_of(saving, path);
    CAIRN_TRY_ASSIGN(const bool marked, save_by_callbacks({.path = path,
                                                           .callbacks = saving.callbacks,
                                                           .mesh = saving.mesh,
                                                           .mark = mark,
                                                           .guard = guard()},
                                                          *manager_));
    decider_.saved(*saving.save.step);
    if (marked) {
      Saving done = saving;
      done.callbacks.clear();
      CAIRN_TRY(after_commit(path, done, to_json(mark))(SaveReport{}));
    }
    return SaveHandle::of_nothing(path);
  }

  const CheckpointerOptions options_;
  const std::string base_;
  const std::shared_ptr<AsyncCheckpointManager> manager_;
  Runtime& runtime_;
  StepDecider decider_;
  const std::shared_ptr<RunCleaner> cleaner_;
  RunBranch branch_;  // rank 0's
  RunLoader loader_;
  std::shared_ptr<MetricsFile> metrics_;  // null: nobody wants any
  std::shared_ptr<RunOwner> owner_;       // rank 0's
  bool is_owner_ = false;
  std::string run_id_;
};

}  // namespace

Result<std::unique_ptr<Checkpointer>> Checkpointer::make(CheckpointerOptions options,
                                                         std::shared_ptr<Runtime> runtime) {
  CAIRN_TRY_ASSIGN(const auto run, open_run(options.base_path, *runtime));
  std::string base = run->path();
  CAIRN_TRY(check_rules(options.retention));
  if (!(options.agreement_share > 0)) {
    return Error(Code::kInvalidArgument, "checkpointer/agreement-share",
                 fmt::format("agreement_share must be above 0, such as 0.02; not {}",
                             options.agreement_share));
  }
  CAIRN_TRY_ASSIGN(auto policy, SavePolicy::make(options.save_interval, options.step_policies,
                                                 now_of(options, *runtime)));
  if (!options.manager) {
    options.manager =
        std::make_shared<AsyncCheckpointManager>(AsyncManagerOptions{}, std::move(runtime));
  }
  return std::unique_ptr<Checkpointer>(
      std::make_unique<RunCheckpointer>(std::move(options), std::move(base), std::move(policy)));
}

Result<std::optional<SaveHandle>> Checkpointer::on_step(std::int64_t step, const OneTree& tree,
                                                        const StepOptions& options) {
  return on_step(step, Trees([&]() -> Result<std::vector<NamedTree>> {
                   CAIRN_TRY_ASSIGN(Tree made, tree());
                   return std::vector<NamedTree>{{"", std::move(made)}};
                 }),
                 options);
}

Result<std::optional<SaveHandle>> Checkpointer::on_step(std::int64_t step, const Tree& tree,
                                                        const StepOptions& options) {
  return on_step(step, OneTree([&] { return tree; }), options);
}

Result<std::optional<SaveHandle>> Checkpointer::on_step(std::int64_t step,
                                                        const StepOptions& options) {
  return on_step(step, Trees(), options);
}

}  // namespace cairn
