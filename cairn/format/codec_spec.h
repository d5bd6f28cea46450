// SPDX-License-Identifier: Apache-2.0
// Which codec an array's chunks go through, as a value.
#pragma once

#include <string>

#include "cairn/base/json.h"

namespace cairn::format {

/// A zarr v2 compressor object, or null for raw bytes. Not validated before it is used.
class CodecSpec {
 public:
  CodecSpec() = default;  ///< raw
  explicit CodecSpec(Json config) : config_(std::move(config)) {}
  static CodecSpec raw() { return {}; }
  /// {"id":"zstd","level":1}: what JAX writes, and the only spelling that lets JAX save there
  /// again.
  static CodecSpec zstd(int level = 1);
  /// From the text that people type: "raw", "zstd", "zstd:3", "gzip:9", "zlib", "bz2", "blosc",
  /// "blosc:zstd", "blosc:lz4:5". The default level is 1; of blosc, lz4 at level 5 with auto
  /// shuffle. `invalid_argument` (codec/unknown, codec/bad-parameter).
  static Result<CodecSpec> parse(std::string_view text);

  bool is_raw() const { return config_.is_null(); }
  const Json& config() const { return config_; }
  /// The text that parse() takes: "raw", "zstd:1", "blosc:lz4:5". For messages: parameters that the
  /// text cannot express (shuffle, checksum) are missing.
  std::string name() const;
  bool operator==(const CodecSpec&) const = default;

 private:
  Json config_;
};

}  // namespace cairn::format
