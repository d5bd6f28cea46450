// SPDX-License-Identifier: Apache-2.0
// Keys in memory, with the behaviour of an object store: whole objects, generations, conditional
// writes.
#pragma once

#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "cairn/storage/store.h"

namespace cairn::storage {

/// Changes applied in one step, in this order. A name stands for the object and for all objects
/// below it.
struct MemoryChange {
  std::vector<std::string> removed = {};
  std::vector<std::pair<std::string, std::string>> moved = {};  ///< from, to
  std::vector<std::pair<std::string, Buffer>> put = {};
};

/// Threading: safe.
class MemoryStore : public Store {
 public:
  /// Applies all changes atomically. REQUIRES: safe keys; nothing exists at the targets of moves.
  virtual void change(const MemoryChange& change) = 0;
  /// A snapshot of the objects below `directory`, by their keys below it.
  virtual std::unique_ptr<Store> freeze(std::string_view directory) = 0;
};

/// A store of its own.
std::unique_ptr<Store> make_memory_store();
/// The process-wide store of memory://<name>/; created on first use, kept until the process ends.
std::unique_ptr<MemoryStore> open_memory_store(const std::string& name,
                                               const std::string& directory);

}  // namespace cairn::storage
