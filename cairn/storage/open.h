// SPDX-License-Identifier: Apache-2.0
// Makes a store from a URI: one row for each scheme in open.cc.
#pragma once

#include <memory>

#include "cairn/base/uri.h"
#include "cairn/storage/local/file_system.h"
#include "cairn/storage/store.h"

namespace cairn::storage {

struct OpenStoreOptions {
  FileSystem* file_system = nullptr;  ///< null: posix_file_system()
  bool create = false;                ///< make a missing directory
};

/// `unimplemented` (storage/unknown-scheme) with the list of schemes; otherwise errors of the
/// store.
Result<std::unique_ptr<Store>> open_store(const Uri& uri, const OpenStoreOptions& options = {});

}  // namespace cairn::storage
