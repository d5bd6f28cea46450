// SPDX-License-Identifier: Apache-2.0
// Errors that all stores share. `place` is Store::describe() of the key.
#pragma once

#include <cstdint>
#include <string_view>

#include "cairn/base/result.h"

namespace cairn::storage {

/// storage/bad-key unless `key` is a safe relative path.
Result<void> check_key(std::string_view key, std::string_view place);
/// storage/out-of-range unless `size` bytes at `offset` lie within the declared `whole`.
Result<void> check_range(std::uint64_t offset, std::uint64_t size, std::uint64_t whole,
                         std::string_view place);

Error short_read(std::uint64_t offset, std::uint64_t size, std::string_view place);
Error incomplete(std::uint64_t written, std::uint64_t whole, std::string_view place);
Error condition_failed(std::string_view place);

}  // namespace cairn::storage
