// SPDX-License-Identifier: Apache-2.0
#include "cairn/layout/directory_view.h"

#include <utility>

#include "cairn/commit/open.h"
#include "cairn/storage/open.h"

namespace cairn {

Result<DirectoryView> view_directory(const Uri& uri, Runtime& runtime) {
  CAIRN_TRY_ASSIGN(
      std::shared_ptr<storage::Store> store,
      storage::open_store(uri, {.file_system = &runtime.file_system(), .create = false}));
  CAIRN_TRY_ASSIGN(std::shared_ptr<Destination> destination, open_destination(uri, runtime));
  DirectoryView view{uri.to_string(), std::move(destination), store, {}};
  CAIRN_TRY_ASSIGN(const auto entries, store->list("", false));
  for (const storage::ListEntry& entry : entries) {
    if (!entry.directory) view.files.push_back(entry.key);
  }
  return view;
}

}  // namespace cairn
