// SPDX-License-Identifier: Apache-2.0
// A directory (or a folder in a bucket) being opened: its place and its files.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "cairn/base/uri.h"
#include "cairn/commit/destination.h"
#include "cairn/runtime/runtime.h"
#include "cairn/storage/store.h"

namespace cairn {

struct DirectoryView {
  std::string path;  ///< Uri::to_string()
  /// Where commits happen; null: nothing of ours can be here.
  std::shared_ptr<Destination> destination;
  std::shared_ptr<storage::Store> store;  ///< rooted at it
  std::vector<std::string> files;         ///< names directly in it, sorted
};

/// Lists it. Errors of open_store() and list().
Result<DirectoryView> view_directory(const Uri& uri, Runtime& runtime);

}  // namespace cairn
