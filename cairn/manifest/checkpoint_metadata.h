// SPDX-License-Identifier: Apache-2.0
// `CheckpointMetadata`: checkpoint_metadata.json of the reference system: when and by what the last
// tree was saved and, with validation, digests and types of its arrays.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "cairn/base/json.h"
#include "cairn/manifest/manifest.h"

namespace cairn {

struct CheckpointMetadata {
  std::string version = {};    ///< of the writer; empty: this library
  std::string timestamp = {};  ///< local time as Python writes it; empty: when to_dict() is called
  Json::Object checksum = {};  ///< SHA-256 as hex, by key path without the prefix
  Json::Object array_metadata = {};  ///< {"dtype", "shape"}, by the same keys
  std::optional<std::string> framework_version = {};
  Json custom_metadata = {};  ///< the user's; an object, or null
  Json::Object others =
      {};  ///< members that other programs added; kept by from_dict() and to_dict()

  Json to_dict() const;
  /// Missing members get their defaults. `corrupt` (metadata/not-an-object, metadata/bad-member
  /// with its name).
  static Result<CheckpointMetadata> from_dict(const Json& json);

  bool operator==(const CheckpointMetadata&) const = default;
};

/// Longest checkpoint_metadata.json that is read.
constexpr std::size_t kMaxCheckpointMetadataBytes = std::size_t{256} << 20;

/// The description of a tree to be saved; with digests and types of its arrays if `with_arrays`.
CheckpointMetadata describe_checkpoint(const Manifest& manifest, bool with_arrays);

/// As the reference system writes the file: one line.
std::string dump_checkpoint_metadata(const CheckpointMetadata& metadata);
/// Hostile bytes. Errors of parse_json() and from_dict().
Result<CheckpointMetadata> parse_checkpoint_metadata(std::string_view text);

}  // namespace cairn
