// SPDX-License-Identifier: Apache-2.0
// The manifest: everything about one prefix that is needed to list, plan, load and verify it
// without opening another file. docs/format/manifest.md is the normative text.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "cairn/base/json.h"
#include "cairn/base/sha256.h"
#include "cairn/format/stored_array.h"
#include "cairn/sharding/mesh.h"
#include "cairn/sharding/partition_spec.h"
#include "cairn/tree/key_path.h"

namespace cairn {

/// Bytes of stored data that one CRC covers.
constexpr std::uint64_t kBlockBytes = std::uint64_t{1} << 20;
/// Largest block in manifests of other writers: no single read is larger.
constexpr std::uint64_t kMaxBlockBytes = std::uint64_t{8} << 20;

/// Lengths and CRC-32C sums of the stored chunks of an array. Threading: compatible.
class ChunkSums {
 public:
  ChunkSums() = default;
  /// `corrupt` (manifest/checksums) unless `crcs` has one sum for each block of each length.
  static Result<ChunkSums> make(std::uint64_t block_bytes, std::vector<std::uint64_t> lengths,
                                std::vector<std::uint32_t> crcs);

  bool empty() const { return lengths_.empty(); }
  std::uint64_t block_bytes() const { return block_bytes_; }
  const std::vector<std::uint64_t>& lengths() const { return lengths_; }
  const std::vector<std::uint32_t>& crcs() const { return crcs_; }
  /// Sum of the b-th block of the n-th chunk.
  std::uint32_t crc(std::uint64_t chunk, std::uint64_t block) const {
    return crcs_[first_block_[chunk] + block];
  }

 private:
  std::uint64_t block_bytes_ = kBlockBytes;
  std::vector<std::uint64_t> lengths_;
  std::vector<std::uint32_t> crcs_;
  std::vector<std::size_t> first_block_;
};

/// Blocks of a chunk of `length` stored bytes.
inline std::uint64_t block_count(std::uint64_t length, std::uint64_t block_bytes) {
  return (length + block_bytes - 1) / block_bytes;
}

/// SHA-256 of a part of an array: of its n-th chunk (`end` is n + 1), or, if the array is one
/// object, of the elements in C order from the end of the previous part to `end`.
struct PieceDigest {
  std::uint64_t end = 0;
  Sha256Digest sha256 = {};
  bool operator==(const PieceDigest&) const = default;
};
/// The end of the last piece: a number of chunks, or of elements.
std::uint64_t piece_total(const format::StoredArray& stored);

/// One array of a prefix.
struct ManifestArray {
  KeyPath path;
  /// Keys are relative to the directory of the manifest.
  format::StoredArray stored;
  std::optional<DType> cast_from;  ///< the type in the caller's memory, if the save cast it
  ChunkSums sums;
  std::string
      sha256;  ///< of the C-order bytes in the stored type; empty unless the save asked for it
  std::optional<PartitionSpec> spec = {};  ///< its spec, if it was on a mesh
  std::vector<PieceDigest> pieces = {};    ///< instead of `sha256`, if no rank had the whole array
};

/// A file that holds several arrays (safetensors): its name, size and the CRC of what precedes the
/// data.
struct ManifestPart {
  std::string name;
  std::uint64_t bytes = 0;
  std::uint64_t header_bytes = 0;
  std::optional<std::uint32_t> header_crc;  ///< nullopt: the header holds this manifest itself
};

struct Manifest {
  int format = 1;
  std::string layout;  ///< kZarr2Layout or kSafetensorsLayout
  std::string prefix;
  std::optional<std::int64_t> step;
  std::string attempt;
  std::string run_id;
  std::string time;
  std::string writer;
  int ranks = 1;
  std::vector<MeshAxis> mesh = {};  ///< axes of the mesh of the arrays, if there was one
  Json metadata;                    ///< the user's; object or null
  Json extras;                      ///< the user's; object or null
  Json structure;                   ///< tree/structure.h
  std::string structure_file;       ///< SHA-256 of `<prefix>_structure.json`; empty: there is none
  std::vector<ManifestPart> parts;
  std::vector<ManifestArray> arrays;  ///< in the order of the structure
  std::string digest;                 ///< root digest over arrays and sums; see root_digest()
};

}  // namespace cairn
