// SPDX-License-Identifier: Apache-2.0
// A directory of keys below memory://, and what saves of it share in this process.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "cairn/async/mutex.h"
#include "cairn/base/uri.h"
#include "cairn/commit/run_owner.h"
#include "cairn/manifest/record.h"
#include "cairn/storage/memory/memory_store.h"

namespace cairn {

struct MemoryAttempt;

/// Threading: safe.
struct MemoryDirectory {
  std::string path;  ///< as its URI
  std::string bucket;
  std::string directory;
  Mutex mutex;  ///< held while something becomes visible, and while a reader takes its snapshot
  std::map<std::string, std::weak_ptr<MemoryAttempt>> attempts CAIRN_GUARDED_BY(mutex);

  /// Of a run: held while its owner changes, and while one decides a save.
  Mutex run_mutex;
  CondVar run_free;
  bool run_is_held CAIRN_GUARDED_BY(run_mutex) = false;
  std::weak_ptr<RunOwner> owner CAIRN_GUARDED_BY(run_mutex);

  std::unique_ptr<storage::MemoryStore> open(const std::string& below = "") const;
};

/// The one of this process for a place.
std::shared_ptr<MemoryDirectory> memory_directory(const Uri& uri);

/// Destination::read().
Result<std::optional<std::string>> read_text(storage::Store& store, std::string_view name,
                                             std::uint64_t limit);
Result<std::optional<Record>> read_record(storage::Store& store);

}  // namespace cairn
