// SPDX-License-Identifier: Apache-2.0
// The files below a directory, as keys.
#pragma once

#include <string>
#include <vector>

#include "cairn/storage/local/file_system.h"
#include "cairn/storage/store.h"

namespace cairn::storage {

/// What Store::list() promises, for `directory` below `root`. Links are followed: to files always,
/// to directories once on a way down and never to one that the way came through. What vanishes
/// meanwhile and links to nothing are left out.
Result<std::vector<ListEntry>> list_keys(FileSystem& fs, const File& root,
                                         const std::string& directory, bool recursive);

}  // namespace cairn::storage
