// SPDX-License-Identifier: Apache-2.0
#include "cairn/load/process_array.h"

#include <utility>

#include <fmt/format.h>

#include "cairn/array/cast.h"
#include "cairn/load/read_boxes.h"

namespace cairn {

namespace {

Result<Leaf> cast_leaf(Leaf leaf, std::optional<DType> dtype) {
  const auto* array = std::get_if<ShardedArray>(&leaf);
  if (array == nullptr || !dtype) return leaf;
  std::vector<Shard> shards = array->shards();
  DType made = array->dtype();
  for (Shard& shard : shards) {
    CAIRN_TRY_ASSIGN(shard.data, put_dtype(shard.data, dtype));
    made = shard.data.dtype();
  }
  CAIRN_TRY_ASSIGN(auto cast,
                   ShardedArray::make(made, array->shape(), array->sharding(), std::move(shards)));
  return Leaf(std::move(cast));
}

}  // namespace

Result<ProcessedArray> read_process_array(const OpenedPrefix& prefix, const KeyPath& key,
                                          const ProcessOptions& options, Runtime& runtime) {
  ProcessedArray done{key.text(), Leaf(Array()), 0};
  const auto which = prefix.find(key);
  if (!which) {
    return Error(Code::kNotFound, "load/key-missing",
                 fmt::format("there is no array '{}'; `cairn show` lists all", done.key));
  }
  const auto in_leaf = [&] { return "leaf " + done.key; };
  const Box whole = Box::whole(prefix.manifest.arrays[*which].stored.shape);
  CAIRN_TRY_ASSIGN(auto array, load_box(prefix, *which, whole, runtime));
  done.leaf = ShardedArray(std::move(array));
  if (options.shard_fns != nullptr) {
    const auto function = options.shard_fns->find(done.key);
    if (function != options.shard_fns->end()) {
      CAIRN_TRY_ASSIGN(done.leaf, function->second(done.leaf).in(in_leaf));
    } else if (options.mismatch == Mismatch::kAllowed) {
      done.mismatches = 1;
    } else {
      return Error(Code::kInvalidArgument, "tree/missing-function",
                   fmt::format("there is no shard function for leaf '{}'", done.key));
    }
  }
  const auto* sharded = std::get_if<ShardedArray>(&done.leaf);
  if (options.callback && sharded != nullptr) {
    CAIRN_TRY_ASSIGN(done.leaf, options.callback(key, *sharded).in(in_leaf));
  }
  CAIRN_TRY_ASSIGN(done.leaf, cast_leaf(std::move(done.leaf), options.dtype).in(in_leaf));
  return done;
}

}  // namespace cairn
