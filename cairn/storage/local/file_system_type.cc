// SPDX-License-Identifier: Apache-2.0
#include "cairn/storage/local/file_system_type.h"

#include <algorithm>
#include <array>

#include <fmt/format.h>

namespace cairn::storage {
namespace {

struct KnownType {
  std::uint64_t magic;
  const char* name;
  bool batch_sync;
  bool in_memory = false;
};

// The kernel's <linux/magic.h> has only some of them.
constexpr auto kKnownTypes = std::to_array<KnownType>({
    {0xEF53, "ext4", true},
    {0x58465342, "xfs", true},
    {0x9123683E, "btrfs", true},
    {0xF2F52010, "f2fs", true},
    {0x01021994, "tmpfs", true, true},
    {0x794C7630, "overlay", false},
    {0x6969, "nfs", false},
    {0x65735546, "fuse", false},
    {0x0BD00BD0, "lustre", false},
    {0x47504653, "gpfs", false},
    {0x19830326, "beegfs", false},
    {0x00C36400, "ceph", false},
    {0xFF534D42, "cifs", false},
    {0xFE534D42, "smb2", false},
    {0x01021997, "9p", false},
    {0x2FC12FC1, "zfs", false},
    {0xCA451A4E, "bcachefs", false},
    {0x4D44, "vfat", false},
    {0x2011BAB0, "exfat", false},
    {0xF15F, "ecryptfs", false},
    {0x858458F6, "ramfs", false, true},
});

}  // namespace

FileSystemType file_system_type(std::uint64_t magic) {
  const auto* row = std::ranges::find(kKnownTypes, magic, &KnownType::magic);
  if (row == kKnownTypes.end()) return {fmt::format("{:#x}", magic), false, false};
  return {row->name, row->batch_sync, row->in_memory};
}

}  // namespace cairn::storage
