// SPDX-License-Identifier: Apache-2.0
// Manifests as JSON, the form in which they are stored.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

#include "cairn/manifest/manifest.h"

namespace cairn {

/// Longest manifest that is read.
constexpr std::size_t kMaxManifestBytes = std::size_t{1} << 30;
/// Enough for 6 million arrays of rank 2, in 3.2 GB of memory.
constexpr std::size_t kMaxManifestValues = std::size_t{1} << 26;
/// SHA-256 over structure, types, shapes and sums, but not over time, step or attempt: equal
/// digests mean equal trees.
std::string root_digest(const Manifest& manifest);

/// Linear in arrays. Computes `digest` and ignores the member. `invalid_argument` for a manifest
/// that parse_manifest() would refuse: manifest/too-large, json/too-many-values, json/too-deep (the
/// metadata of the user).
Result<std::string> dump_manifest(const Manifest& manifest);

/// False for text of another program in its place, which is not even a damaged manifest: it lacks
/// at least two of the members that every manifest has.
bool may_be_manifest(std::string_view text);

/// Pure; hostile bytes. `corrupt`: manifest/bad-json, manifest/bad-member, manifest/columns
/// (lengths differ), manifest/checksums, manifest/digest, and what structure and
/// StoredArray::check_sizes() refuse;
/// `unimplemented`: manifest/newer-format.
Result<Manifest> parse_manifest(std::string_view text);

}  // namespace cairn
