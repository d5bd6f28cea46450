// SPDX-License-Identifier: Apache-2.0
// What a file system can do for a checkpoint, found out by trying. For `cairn doctor`.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "cairn/storage/local/file_system.h"

namespace cairn::storage {

struct Finding {
  const char* name = "";  ///< token: locks, exclusive-create, directory-rename, directory-sync,
                          ///< batch-sync, hard-links, case-sensitive, direct-io, name-length
  bool good = false;
  std::string value;    ///< "yes", "no", "no (fs/permission)", "512 bytes"
  std::string meaning;  ///< one sentence: what follows for saving here
};

struct FileSystemReport {
  SpaceInfo space;
  std::vector<Finding> findings;  ///< in the order of the tokens above
};

/// Tries each in a new directory ".cairn-probe-*" inside `directory`, and removes it. An error only
/// where that directory cannot be made; whatever else goes wrong is a finding.
Result<FileSystemReport> probe_file_system(FileSystem& fs, const std::string& directory);

}  // namespace cairn::storage
