// SPDX-License-Identifier: Apache-2.0
// The arrays of a manifest as JSON columns: one list for each property, checksums as base64 of
// little-endian integers, so that 100,000 arrays take a few megabytes.
#pragma once

#include <string_view>
#include <vector>

#include "cairn/manifest/manifest.h"

namespace cairn {

/// `corrupt` (manifest/bad-member).
Error manifest_member_error(std::string_view name);

/// Adds parts, arrays, block_bytes, lengths, crcs and digests of pieces to `json`.
void columns_to_json(const Manifest& manifest, Json& json);

/// The inverse. `paths` are those of the structure's arrays, in order; manifest.layout is set.
Result<void> columns_from_json(const Json& json, std::vector<KeyPath> paths, Manifest& manifest);

}  // namespace cairn
