// SPDX-License-Identifier: Apache-2.0
// Keys in memory, behaving as an object store does: whole objects, generations, conditional writes.
#pragma once

#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "cairn/storage/store.h"

namespace cairn::storage {

/// What changes in one step, in this order. A name stands for the object and for all objects below
/// it.
struct MemoryChange {
  std::vector<std::string> removed = {};
  std::vector<std::pair<std::string, std::string>> moved = {};  ///< from, to
  std::vector<std::pair<std::string, Buffer>> put = {};
};

/// Threading: safe.
class MemoryStore : public Store {
 public:
  /// Nobody sees a part of it. REQUIRES: safe keys; nothing lies where something is moved to.
  virtual void change(const MemoryChange& change) = 0;
  /// The objects below `directory`, by their keys below it, as they are now and stay.
  virtual std::unique_ptr<Store> freeze(std::string_view directory) = 0;
};

/// A store of its own.
std::unique_ptr<Store> make_memory_store();
/// The process-wide store behind memory://<name>/; made at first use, kept for the life of the
/// process.
std::unique_ptr<MemoryStore> open_memory_store(const std::string& name,
                                               const std::string& directory);

}  // namespace cairn::storage
