// SPDX-License-Identifier: Apache-2.0
#include "cairn/save/tree_fingerprint.h"

#include <algorithm>

#include <fmt/format.h>

#include "cairn/base/sha256.h"
#include "cairn/sharding/describe_shardings.h"

namespace cairn {

namespace {

std::string digest(std::string_view text) { return sha256_hex(as_bytes(text)); }

// Names every option, so that a new one does not compile before it is decided here whether ranks
// may differ in it.
std::string options_text(const SaveOptions& options) {
  const auto& [layout, compress, codec, float_dtype, validate, chunk_bytes, shard_size, step,
               metadata, extras, overwrite, write_index, mesh, wishes, timeout, progress,
               committed] = options;
  return fmt::format(
      "{} {} {} {} {} {} {} {}", layout, compress, codec ? dump_json(codec->config(), {}) : "",
      float_dtype ? dtype_name(*float_dtype) : "", validate, chunk_bytes, shard_size, write_index);
}

}  // namespace

TreeFingerprint TreeFingerprint::of(const std::vector<PreparedTree>& trees,
                                    const SaveOptions& options) {
  Sha256 structures;
  Sha256 arrays;
  Sha256 placed;
  ShardingDescriber shardings;
  for (const PreparedTree& tree : trees) {
    structures.update(as_bytes(tree.manifest.prefix + "\n"));
    structures.update(as_bytes(dump_json(tree.manifest.structure, {})));
    for (const PlannedArray& array : tree.arrays) {
      arrays.update(
          as_bytes(fmt::format("{} {} {}\n", array.path.text(), dtype_name(array.stored.dtype),
                               to_string(array.stored.shape))));
      placed.update(as_bytes(shardings.describe(array.sharding, array.stored.shape) + "\n"));
    }
  }
  placed.update(as_bytes(shardings.meshes()));
  TreeFingerprint print;
  print.parts_ = {{"step", options.step ? std::to_string(*options.step) : "none"},
                  {"tree and its values", structures.hex()},
                  {"types and shapes of arrays", arrays.hex()},
                  {"meshes and shardings", placed.hex()},
                  {"options of the save", digest(options_text(options))}};
  return print;
}

Json TreeFingerprint::to_json() const {
  Json::Object object;
  for (const auto& [what, value] : parts_) object.emplace_back(what, value);
  return object;
}

std::string TreeFingerprint::difference(const Json& theirs) const {
  std::string text;
  for (const auto& [what, value] : parts_) {
    const Json* other = theirs.find(what);
    const std::string* said = other != nullptr ? other->text() : nullptr;
    if (said != nullptr && *said == value) continue;
    if (!text.empty()) text += ", ";
    text += what;
    if (what == "step" && said != nullptr)
      text += fmt::format(" ({} here, {} there)", value, *said);
  }
  return text;
}

}  // namespace cairn
