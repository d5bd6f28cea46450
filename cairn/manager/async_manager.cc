// SPDX-License-Identifier: Apache-2.0
#include "cairn/manager/async_manager.h"

#include <algorithm>
#include <cstdlib>
#include <iterator>
#include <string_view>
#include <utility>

#include <fmt/format.h>

#include "cairn/async/background.h"
#include "cairn/base/sha256.h"
#include "cairn/coord/agreement.h"
#include "cairn/layout/open_checkpoint.h"
#include "cairn/manager/prefixes.h"
#include "cairn/save/save_internals.h"
#include "cairn/tree/flatten.h"

namespace cairn {

namespace {

bool blocks(const AsyncManagerOptions& options) {
  const char* const variable = std::getenv("CAIRN_BLOCKING_SAVES");
  return options.blocking || (variable != nullptr && std::string_view(variable) == "1");
}

Result<Tree> gathered(const Tree& tree, const LeafCallback& gather) {
  return map_leaves(tree, [&](const KeyPath& path, const Leaf& leaf) -> Result<Leaf> {
    const auto* array = std::get_if<ShardedArray>(&leaf);
    if (array == nullptr) return leaf;
    return gather(path, *array).in([&] { return "leaf " + path.text(); });
  });
}

SaveOptions save_options(const AsyncManagerOptions& manager, const SaveTreeOptions& options,
                         const std::string& path) {
  SaveOptions save = options.save;
  save.layout = manager.use_tensorstore ? kZarr2Layout : kSafetensorsLayout;
  save.enable_compression = manager.enable_compression && manager.use_tensorstore;
  if (!save.float_dtype) save.float_dtype = manager.float_dtype;
  save.enable_validation = manager.enable_validation;
  save.shard_size = manager.shard_size;
  save.timeout = manager.timeout;
  save.overwrite = manager.overwrite;
  if (options.callback) {
    save.committed = [path, first = save.committed,
                      callback = options.callback](const SaveReport& report) -> Result<void> {
      if (first) CAIRN_TRY(first(report));
      callback(path);
      return {};
    };
  }
  return save;
}

PhaseSink logged(PhaseSink phases, Runtime& runtime) {
  return [&runtime, phases = std::move(phases)](std::string_view phase) {
    runtime.log(LogLevel::kInfo, "save/phase", std::string(phase));
    if (phases) phases(phase);
  };
}

/// In a callback of a save, which would wait for itself.
Result<void> check_may_wait(const std::vector<SaveHandle>& flying) {
  if (!is_background_thread() || flying.empty()) return {};
  return Error(Code::kFailedPrecondition, "manager/in-callback",
               fmt::format("a callback of a save cannot save or wait for saves: it would wait for "
                           "its own, to {}; do it when the save has ended",
                           flying.front().path()));
}

}  // namespace

AsyncCheckpointManager::AsyncCheckpointManager(AsyncManagerOptions options,
                                               std::shared_ptr<Runtime> runtime)
    : runtime_(std::move(runtime)), options_(options) {}

coord::Ranks AsyncCheckpointManager::ranks() const {
  return {runtime_->coordinator(), Deadline::in(options().timeout)};
}

AsyncManagerOptions AsyncCheckpointManager::options() const {
  MutexLock lock(mutex_);
  return options_;
}

void AsyncCheckpointManager::set_options(AsyncManagerOptions options) {
  MutexLock lock(mutex_);
  options_ = options;
}

Result<SaveHandle> AsyncCheckpointManager::save_tree(const Tree& tree, const std::string& path,
                                                     const SaveTreeOptions& options) {
  return save_checkpoint({{options.prefix, tree}}, path, options);
}

Result<SaveHandle> AsyncCheckpointManager::save_pytree(const Tree& tree, const std::string& path,
                                                       const SaveTreeOptions& options,
                                                       const SaveInternals* internals) {
  CAIRN_TRY(check_prefix_to_save(options.prefix));
  return save_checkpoint({{options.prefix, tree}}, path, options, internals);
}

Result<SaveHandle> AsyncCheckpointManager::save_checkpoint(const std::vector<NamedTree>& trees,
                                                           const std::string& path,
                                                           const SaveTreeOptions& options,
                                                           const SaveInternals* internals) {
  const AsyncManagerOptions manager = this->options();
  if (!manager.enable.value_or(true)) {
    CAIRN_TRY(coord::agree(ranks(), {}, "save nothing: saves are switched off"));
    runtime_->log(LogLevel::kInfo, "manager/disabled",
                  fmt::format("saves are switched off: nothing is written to {}", path));
    return SaveHandle::of_nothing(path);
  }
  CAIRN_TRY_ASSIGN(auto before, make_way(manager.while_saving));
  std::vector<NamedTree> saved = trees;
  if (options.gather_fns) {
    for (auto& [prefix, tree] : saved) {
      CAIRN_TRY_ASSIGN(tree, gathered(tree, options.gather_fns));
    }
  }
  SaveInternals inner = internals != nullptr ? *internals : SaveInternals();
  inner.after = std::move(before);
  inner.waited_for = blocks(manager);
  if (manager.verbose) inner.phase = logged(std::move(inner.phase), *runtime_);
  CAIRN_TRY_ASSIGN(SaveHandle handle,
                   save_async(saved, path, save_options(manager, options, path), runtime_, &inner));
  {
    MutexLock lock(mutex_);
    saves_.push_back(handle);
  }
  if (blocks(manager)) CAIRN_TRY(wait_until_finished());
  return handle;
}

// The save that the next one comes after, if it need not be waited for.
Result<std::shared_ptr<const SaveHandle>> AsyncCheckpointManager::make_way(
    WhileSaving while_saving) {
  if (while_saving == WhileSaving::kWait) {
    CAIRN_TRY(check_may_wait(saves_in_flight()));
    for (const SaveHandle& save : saves_in_flight()) save.wait_for_end();
  }
  const std::vector<SaveHandle> flying = saves_in_flight();
  const auto mine = [&]() -> Result<void> {
    if (auto error = take_error()) return *std::move(error);
    if (while_saving != WhileSaving::kRefuse || flying.empty()) return {};
    return Error(Code::kUnavailable, "manager/busy",
                 fmt::format("a save to {} is on its way ({}); wait for it, or let saves queue",
                             flying.front().path(), flying.front().phase()));
  }();
  CAIRN_TRY(coord::agree(ranks(), mine, "begin a save"));
  if (flying.empty()) return std::shared_ptr<const SaveHandle>();
  return std::make_shared<const SaveHandle>(flying.back());
}

std::vector<SaveHandle> AsyncCheckpointManager::saves_in_flight() const {
  MutexLock lock(mutex_);
  std::vector<SaveHandle> flying;
  std::ranges::copy_if(saves_, std::back_inserter(flying),
                       [](const SaveHandle& save) { return !save.done(); });
  return flying;
}

// Forgets what has ended; the first error among it.
std::optional<Error> AsyncCheckpointManager::take_error() {
  MutexLock lock(mutex_);
  while (!saves_.empty() && saves_.front().done()) {
    const auto result = saves_.front().wait();
    saves_.erase(saves_.begin());
    if (!result) return result.error();
  }
  return std::nullopt;
}

Result<void> AsyncCheckpointManager::wait_until_finished() {
  CAIRN_TRY(check_may_wait(saves_in_flight()));
  for (const SaveHandle& save : saves_in_flight()) save.wait_for_end();
  return check_for_errors();
}

Result<void> AsyncCheckpointManager::check_for_errors() {
  if (auto error = take_error()) return *std::move(error);
  return {};
}

Result<Loaded> AsyncCheckpointManager::load(const std::string& path, LoadOptions options) {
  const AsyncManagerOptions manager = this->options();
  options.validate = options.validate || manager.enable_validation;
  return cairn::load(path, options, *runtime_);
}

Result<Loaded> AsyncCheckpointManager::load_pytree(const std::string& path, LoadOptions options) {
  CAIRN_TRY(check_prefix_to_load(options.prefix.value_or("")));
  options.keys_with_prefix = true;
  return load(path, std::move(options));
}

Result<Loaded> AsyncCheckpointManager::load_tree_parallel(const std::string& path,
                                                          const std::string& prefix_filter,
                                                          LoadOptions options) {
  if (!prefix_filter.empty()) {
    CAIRN_TRY_ASSIGN(const Checkpoint checkpoint, open_checkpoint(path, *runtime_));
    CAIRN_TRY_ASSIGN(const OpenedPrefix* prefix, checkpoint.prefix(options.prefix));
    CAIRN_TRY_ASSIGN(options.keys, keys_beginning_with(*prefix, prefix_filter));
  }
  return load(path, std::move(options));
}

Result<std::string> AsyncCheckpointManager::compute_checksum(const Array& array) {
  CAIRN_TRY_ASSIGN(const Array dense, array.to_dense());
  return sha256_hex(dense.bytes());
}

}  // namespace cairn
