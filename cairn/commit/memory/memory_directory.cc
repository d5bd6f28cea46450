// SPDX-License-Identifier: Apache-2.0
#include "cairn/commit/memory/memory_directory.h"

#include <utility>

#include "cairn/async/per_process.h"
#include "cairn/manifest/names.h"

namespace cairn {

namespace {

struct Places {
  Mutex mutex;
  std::map<std::string, std::shared_ptr<MemoryDirectory>> by_path CAIRN_GUARDED_BY(mutex);
};

}  // namespace

std::unique_ptr<storage::MemoryStore> MemoryDirectory::open(const std::string& below) const {
  return storage::open_memory_store(bucket, join_path(directory, below));
}

std::shared_ptr<MemoryDirectory> memory_directory(const Uri& uri) {
  Places& places = PerProcess<Places>::get();
  const MutexLock lock(places.mutex);
  std::shared_ptr<MemoryDirectory>& place = places.by_path[uri.to_string()];
  if (place == nullptr) {
    place = std::make_shared<MemoryDirectory>();
    place->path = uri.to_string();
    place->bucket = uri.authority;
    place->directory = uri.path;
  }
  return place;
}

Result<std::optional<std::string>> read_text(storage::Store& store, std::string_view name,
                                             std::uint64_t limit) {
  const auto bytes = storage::read_all(store, name, limit);
  if (bytes) return std::optional(std::string(as_text(bytes->bytes())));
  if (bytes.error().code() == Code::kNotFound) return std::optional<std::string>();
  if (bytes.error().reason() != "storage/too-large") return bytes.error();
  return Error(Code::kCorrupt, "checkpoint/file-too-large", bytes.error().message())
      .in(store.describe(name));
}

Result<std::optional<Record>> read_record(storage::Store& store) {
  CAIRN_TRY_ASSIGN(const auto text, read_text(store, kRecordName, kMaxRecordBytes));
  if (!text) return std::optional<Record>();
  CAIRN_TRY_ASSIGN(auto record, parse_record(*text));
  return std::optional(std::move(record));
}

}  // namespace cairn
