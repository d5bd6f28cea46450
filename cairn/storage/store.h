// SPDX-License-Identifier: Apache-2.0
// `Store`: keys to bytes. `open.h` makes one from a URI.
//
// A key is a relative path with '/' between its components. Keys that is_safe_relative_path()
// (base/uri.h) rejects are refused (storage/bad-key).
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "cairn/base/buffer.h"
#include "cairn/base/result.h"

namespace cairn::storage {

struct ObjectInfo {
  std::uint64_t size = 0;
  std::string generation;  ///< changes with every write of the key; opaque
};

/// Capabilities of a store; callers ask before they rely on one.
struct Capabilities {
  bool random_write = false;       ///< ObjectWriter::write_at in any order, from many threads
  bool conditional_write = false;  ///< put() at a generation; `absent` works everywhere
  bool directories = false;        ///< on a file system: FileSystem has rename, links and locks
  bool shared_write = false;       ///< create_shared()
  bool direct_io = false;          ///< aligned transfers bypass the page cache
};

/// Condition for put(). At most one of the two.
struct Condition {
  bool absent = false;                                   ///< only if the key is not there
  std::optional<std::string> generation = std::nullopt;  ///< only if the key is at this generation
};

/// An object open for reading, at one generation. Threading: safe.
class ObjectReader {
 public:
  virtual ~ObjectReader() = default;
  virtual std::uint64_t size() const = 0;
  /// Reads exactly out.size() bytes. `corrupt` (storage/short-read) if the object ends before them.
  virtual Result<void> read_at(std::uint64_t offset, MutableByteSpan out) = 0;
  /// The generation of ObjectInfo, asked again. A different answer means that somebody wrote into
  /// the object itself, as file systems allow; replacing the object does not change the answer.
  virtual Result<std::string> generation() = 0;
};

/// A new object being written; invisible before finish(). Threading: write_at() is safe for
/// disjoint ranges; call finish() once, after all writes. Without finish() nothing remains. The
/// Store must outlive it.
class ObjectWriter {
 public:
  virtual ~ObjectWriter() = default;
  /// Write every byte of the declared size once, and none beyond it (storage/out-of-range). Stores
  /// without random_write accept ascending offsets only (`failed_precondition`,
  /// storage/out-of-order).
  virtual Result<void> write_at(std::uint64_t offset, ByteSpan bytes) = 0;
  /// Makes the object visible under its key, and durable with the next Store::sync().
  /// `failed_precondition` (storage/incomplete) unless all bytes were written.
  virtual Result<void> finish() = 0;
};

struct ListEntry {
  std::string key;         ///< full key
  bool directory = false;  ///< more keys lie below it; for one-level listings only
  std::uint64_t size = 0;
};

/// Threading: safe.
/// Failure: not_found (storage/not-found), permission_denied, resource_exhausted
/// (storage/no-space), unavailable, and storage/symlink for a write or deletion that would go
/// through a symbolic link. Errors name the place by describe().
class Store {
 public:
  virtual ~Store() = default;

  /// The key for messages: "/ckpt/model/w/0.0", "memory://x/y".
  virtual std::string describe(std::string_view key) const = 0;
  virtual Capabilities capabilities() const = 0;

  virtual Result<ObjectInfo> stat(std::string_view key) = 0;
  virtual Result<std::unique_ptr<ObjectReader>> open(std::string_view key) = 0;
  /// Begins an object of `size` bytes. finish() replaces an existing object.
  virtual Result<std::unique_ptr<ObjectWriter>> create(std::string_view key,
                                                       std::uint64_t size) = 0;
  /// An object that several processes fill together, each its own ranges. All pass the same `size`;
  /// the object exists from the first call on. finish() makes durable, with sync(), what this
  /// writer wrote; it does not check the ranges of others. `unimplemented`
  /// (storage/no-shared-write) without shared_write.
  virtual Result<std::unique_ptr<ObjectWriter>> create_shared(std::string_view key,
                                                              std::uint64_t size);
  /// Puts a whole object atomically. `failed_precondition` (storage/condition-failed);
  /// `unimplemented` (storage/no-condition) for a generation if the store has no conditional_write.
  virtual Result<ObjectInfo> put(std::string_view key, ByteSpan bytes,
                                 const Condition& condition = {}) = 0;
  virtual Result<void> remove(std::string_view key) = 0;
  /// Keys below `directory` ("" = all), sorted by bytes: all of them, or one level with
  /// directories. An empty list if there are none. On one level, file systems also list empty
  /// directories.
  virtual Result<std::vector<ListEntry>> list(std::string_view directory, bool recursive) = 0;
  /// After it returns, everything finished or put through this Store is durable, names included.
  virtual Result<void> sync() = 0;
};

/// Reads a whole object. `resource_exhausted` (storage/too-large) above `limit`, without reading.
Result<Buffer> read_all(Store& store, std::string_view key, std::uint64_t limit);

}  // namespace cairn::storage
