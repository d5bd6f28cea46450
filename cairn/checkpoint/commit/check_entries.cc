// SPDX-License-Identifier: Apache-2.0
#include "cairn/checkpoint/commit/check_entries.h"

#include <fmt/format.h>

#include "cairn/checkpoint/layout/eformer_index.h"
#include "cairn/checkpoint/names.h"

namespace cairn::inline checkpoint {

namespace {

/// Does another system's index know the prefix? One that cannot be read knows nothing.
Result<bool> is_indexed(const Directory& dest, const std::string& prefix) {
  CAIRN_TRY_ASSIGN(const auto text, dest.read(std::string(kIndexName), kMaxEformerIndexBytes));
  if (!text) return false;
  const auto index = parse_eformer_index(*text);
  return index && index->find(prefix) != nullptr;
}

}  // namespace

Result<void> check_replaceable(const Directory& dest, const std::string& name,
                               const std::string& prefix) {
  CAIRN_TRY_ASSIGN(const bool there, dest.exists(name));
  if (!there || name.ends_with(".safetensors") || name.ends_with(".safetensors.index.json"))
    return {};
  CAIRN_TRY_ASSIGN(const bool listed, is_indexed(dest, prefix));
  if (listed) return {};
  return Error(
      Code::kAlreadyExists, "commit/foreign-entry",
      fmt::format("{} exists and is no part of a checkpoint; nothing was touched: choose another "
                  "prefix or directory, or move it away",
                  dest.path_of(name)));
}

Result<void> check_no_link(const Directory& dest, const std::string& name) {
  const auto info = dest.stat(name);
  if (!info || info->kind != storage::FileKind::kSymlink) return {};
  return Error(Code::kFailedPrecondition, "commit/symlink",
               fmt::format("{} is a symbolic link, and nothing is written or deleted through one; "
                           "nothing was touched: save to the place it leads to, or remove it",
                           dest.path_of(name)));
}

}  // namespace cairn::inline checkpoint
