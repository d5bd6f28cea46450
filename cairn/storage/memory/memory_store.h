// SPDX-License-Identifier: Apache-2.0
// Keys in memory, behaving as an object store does: whole objects, generations, conditional writes.
#pragma once

#include <memory>
#include <string>

#include "cairn/storage/store.h"

namespace cairn::storage {

/// A store of its own.
std::unique_ptr<Store> make_memory_store();
/// The process-wide store behind memory://<name>/; made at first use, kept for the life of the
/// process.
std::unique_ptr<Store> open_memory_store(const std::string& name, const std::string& directory);

}  // namespace cairn::storage
