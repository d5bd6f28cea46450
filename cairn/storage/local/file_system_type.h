// SPDX-License-Identifier: Apache-2.0
// What is known about a kind of file system from its magic number (statfs).
#pragma once

#include <cstdint>
#include <string>

namespace cairn::storage {

struct FileSystemType {
  std::string name;  ///< "ext4"; the number in hex for an unknown one
  /// syncfs waits for the bytes and, from Linux 5.8 on, reports that they were lost. False where
  /// that is not known: a stacked file system does not pass the errors of its layers on, FUSE may
  /// not flush.
  bool batch_sync = false;
  bool in_memory = false;  ///< a power cut or a reboot takes everything, synced or not
};

FileSystemType file_system_type(std::uint64_t magic);

}  // namespace cairn::storage
