// SPDX-License-Identifier: Apache-2.0
// Manifests as JSON, by which they lie in a checkpoint.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

#include "cairn/manifest/manifest.h"

namespace cairn {

/// Longest manifest that is read.
constexpr std::size_t kMaxManifestBytes = std::size_t{1} << 30;
/// So many values are 6 million arrays of rank 2, in 3.2 GB of memory.
constexpr std::size_t kMaxManifestValues = std::size_t{1} << 26;
/// SHA-256 over structure, types, shapes and sums, but not over time, step or attempt: equal
/// digests mean equal trees.
std::string root_digest(const Manifest& manifest);

/// Linear in arrays. `digest` is computed, not taken. `invalid_argument` for what parse_manifest()
/// would not read: manifest/too-large, json/too-many-values, json/too-deep (the user's metadata).
Result<std::string> dump_manifest(const Manifest& manifest);

/// False for text that somebody else stored in its place: not even a damaged manifest.
bool may_be_manifest(std::string_view text);

/// Pure; hostile bytes. `corrupt`: manifest/bad-json, manifest/bad-member, manifest/columns
/// (lengths differ), manifest/checksums, manifest/digest, and what structure and
/// StoredArray::check_sizes() refuse;
/// `unimplemented`: manifest/newer-format.
Result<Manifest> parse_manifest(std::string_view text);

}  // namespace cairn
