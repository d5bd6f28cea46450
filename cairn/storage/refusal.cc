// SPDX-License-Identifier: Apache-2.0
#include "cairn/storage/refusal.h"

#include <fmt/format.h>

#include "cairn/base/checked.h"
#include "cairn/base/uri.h"

namespace cairn::storage {

Result<void> check_key(std::string_view key, std::string_view place) {
  if (is_safe_relative_path(key)) return {};
  return Error(Code::kInvalidArgument, "storage/bad-key",
               "a key is a relative path without '.', '..', NUL or empty components")
      .in(place);
}

Result<void> check_range(std::uint64_t offset, std::uint64_t size, std::uint64_t whole,
                         std::string_view place) {
  const auto end = checked_add(offset, size);
  if (end && *end <= whole) return {};
  return Error(Code::kInvalidArgument, "storage/out-of-range",
               fmt::format("{} bytes at {} do not fit into the {} declared", size, offset, whole))
      .in(place);
}

Error short_read(std::uint64_t offset, std::uint64_t size, std::string_view place) {
  return Error(Code::kCorrupt, "storage/short-read",
               fmt::format("it ends before the {} bytes at {} that are needed", size, offset))
      .in(place);
}

Error incomplete(std::uint64_t written, std::uint64_t whole, std::string_view place) {
  return Error(Code::kFailedPrecondition, "storage/incomplete",
               fmt::format("{} of {} bytes were written", written, whole))
      .in(place);
}

Error condition_failed(std::string_view place) {
  return Error(Code::kFailedPrecondition, "storage/condition-failed",
               "somebody else wrote the object; read it and decide again")
      .in(place);
}

}  // namespace cairn::storage
