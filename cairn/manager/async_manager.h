// SPDX-License-Identifier: Apache-2.0
// `AsyncCheckpointManager`: saves and loads single checkpoints, the saves in the background, with
// the names and arguments of the reference system.
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "cairn/async/mutex.h"
#include "cairn/coord/agreement.h"
#include "cairn/load/load.h"
#include "cairn/save/save_async.h"

namespace cairn {

/// What a save does while the one before it still runs.
enum class WhileSaving : std::uint8_t {
  kWait,    ///< waits for it to end, then begins
  kRefuse,  ///< `unavailable` (manager/busy)
  kQueue,   ///< copies its arrays now, as far as staging memory goes, and writes them later
};

struct AsyncManagerOptions {
  /// False: saves write nothing and say so in the log; the same on all ranks.
  std::optional<bool> enable = {};
  std::optional<DType> float_dtype = {};  ///< floats are saved as this type; nothing: as they are
  bool verbose = false;                   ///< each save tells the log what it does
  bool enable_validation = false;         ///< SHA-256 is stored by saves and checked by loads
  bool enable_compression = false;        ///< of zarr2 chunks; safetensors has none: no effect
  bool use_tensorstore = true;            ///< zarr2 as JAX reads it; false: safetensors
  /// Saves return after the commit. CAIRN_BLOCKING_SAVES=1 in the environment does the same.
  bool blocking = false;
  WhileSaving while_saving = WhileSaving::kWait;
  std::uint64_t shard_size = 5 * kGiB;  ///< largest safetensors part
  /// SaveOptions::overwrite of its saves: an existing prefix is replaced as a whole.
  bool overwrite = true;
  /// With several ranks: SaveOptions::timeout of its saves, and how long ranks wait for each other
  /// at the start of a save and at decisions. Allow for the slowest rank.
  std::chrono::nanoseconds timeout = std::chrono::minutes(30);
};

/// Called in the background with the path, after the commit.
using SavedCallback = std::function<void(const std::string& path)>;

/// One save by a manager.
struct SaveTreeOptions {
  std::string prefix = {};
  /// The manager's options override layout, compression, SHA-256, part size, timeout and
  /// `overwrite`. Its float type is used unless one is set here.
  SaveOptions save = {};
  /// Called for each array before it is saved; the save takes what it returns, such as a gathered
  /// array.
  LeafCallback gather_fns = {};
  SavedCallback callback = {};  ///< after SaveOptions::committed
};

/// Threading: safe; with several ranks, one caller at a time and the same calls on all ranks.
/// Destroying it does not stop saves.
///
/// A failed save is reported by its handle, and once by the manager: the next call that saves,
/// waits or checks returns the error. If that call was a save, it has not begun.
class AsyncCheckpointManager {
 public:
  AsyncCheckpointManager(AsyncManagerOptions options, std::shared_ptr<Runtime> runtime);

  AsyncManagerOptions options() const;
  /// For later calls; running saves keep the options they began with.
  void set_options(AsyncManagerOptions options);
  bool is_enabled() const { return options().enable.value_or(true); }
  const std::shared_ptr<Runtime>& runtime() const { return runtime_; }
  /// The ranks of the job; they wait for each other up to AsyncManagerOptions::timeout.
  coord::Ranks ranks() const;

  /// Returns as save_async() does.
  Result<SaveHandle> save_tree(const Tree& tree, const std::string& path,
                               const SaveTreeOptions& options = {});
  /// The same under its other name.
  Result<SaveHandle> save(const Tree& tree, const std::string& path,
                          const SaveTreeOptions& options = {}) {
    return save_tree(tree, path, options);
  }
  /// As save_tree(), with a prefix. `invalid_argument` (save/no-prefix) without.
  Result<SaveHandle> save_pytree(const Tree& tree, const std::string& path,
                                 const SaveTreeOptions& options,
                                 const SaveInternals* internals = nullptr);
  /// Several prefixes, one decision; `options.prefix` is not looked at.
  ///
  /// `internals` is for the library itself (save/save_internals.h).
  Result<SaveHandle> save_checkpoint(const std::vector<NamedTree>& trees, const std::string& path,
                                     const SaveTreeOptions& options = {},
                                     const SaveInternals* internals = nullptr);

  /// cairn::load(), with SHA-256 checked if the manager validates.
  Result<Loaded> load(const std::string& path, LoadOptions options = {});
  /// The same of a prefix; rules, shardings and callback see keys with the prefix in front.
  /// `invalid_argument` (load/no-prefix) without one.
  Result<Loaded> load_pytree(const std::string& path, LoadOptions options);
  /// Arrays whose key begins with `prefix_filter`, of safetensors files as of any other layout.
  Result<Loaded> load_tree_parallel(const std::string& path, const std::string& prefix_filter = "",
                                    LoadOptions options = {});

  /// Waits until every save is committed or has failed. Inside a callback of a save it would wait
  /// for itself: `failed_precondition` (manager/in-callback), as for saves.
  Result<void> wait_until_finished();
  /// The error of a save that has ended, without waiting.
  Result<void> check_for_errors();
  /// Running saves, oldest first.
  std::vector<SaveHandle> saves_in_flight() const;

  /// SHA-256 of the elements in C order, as hex.
  static Result<std::string> compute_checksum(const Array& array);

 private:
  Result<std::shared_ptr<const SaveHandle>> make_way(WhileSaving while_saving);
  std::optional<Error> take_error();

  const std::shared_ptr<Runtime> runtime_;
  mutable Mutex mutex_;
  AsyncManagerOptions options_ CAIRN_GUARDED_BY(mutex_);
  std::vector<SaveHandle> saves_ CAIRN_GUARDED_BY(mutex_);  // whose result nobody has seen yet
};

}  // namespace cairn
