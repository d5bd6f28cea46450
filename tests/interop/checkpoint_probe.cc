// SPDX-License-Identifier: Apache-2.0
// cairn_checkpoint_probe write CHECKPOINT DUMP OPTIONS: saves random trees and dumps their arrays.
// cairn_checkpoint_probe read CHECKPOINT DUMP: loads every prefix and dumps its arrays.
//
// A dump is DUMP.json, a list of {prefix, key, path, dtype, shape, offset}, and DUMP.bin, the
// C-order bytes of all arrays one after the other. OPTIONS is a JSON object, see Options.
#include <fstream>
#include <iostream>

#include "cairn/format/safetensors/header.h"
#include "cairn/format/zarr2/dtype.h"
#include "cairn/format/zarr2/metadata.h"
#include "cairn/layout/open_checkpoint.h"
#include "cairn/load/load.h"
#include "cairn/save/save.h"
#include "cairn/testing/must.h"
#include "cairn/testing/random_tree.h"
#include "cairn/tree/flatten.h"

namespace cairn {
namespace {

using testing::must;

struct Options {
  std::uint64_t seed = 0;
  std::vector<std::string> prefixes;  // one tree each
  std::vector<DType> dtypes;          // empty: all that the layout has
  bool odd_keys = true;
  SaveOptions save;
};

Options parse_options(const Json& json) {
  Options options;
  for (const auto& [name, value] : *json.object()) {
    if (name == "seed") options.seed = *value.unsigned_integer();
    if (name == "odd_keys") options.odd_keys = *value.boolean();
    if (name == "layout") options.save.layout = *value.text();
    if (name == "codec") options.save.codec = must(format::CodecSpec::parse(*value.text()));
    if (name == "chunk_bytes") options.save.chunk_bytes = *value.unsigned_integer();
    if (name == "shard_size") options.save.shard_size = *value.unsigned_integer();
    if (name == "enable_validation") options.save.enable_validation = *value.boolean();
    if (name == "metadata") options.save.metadata = value;
    if (name == "dtypes") {
      for (const Json& item : *value.array()) options.dtypes.push_back(*parse_dtype(*item.text()));
    }
    if (name == "prefixes") {
      for (const Json& item : *value.array()) options.prefixes.push_back(*item.text());
    }
  }
  if (options.prefixes.empty()) options.prefixes = {""};
  return options;
}

bool has_dtype(std::string_view layout, DType dtype) {
  return layout == kZarr2Layout ? format::zarr2::dtype_string(dtype).has_value()
                                : format::safetensors::dtype_string(dtype).has_value();
}

// A safetensors tensor takes whole bytes, so packed types need a size that gives them.
bool packs(std::string_view layout, DType dtype) {
  return layout == kSafetensorsLayout && dtype != DType::kBool && bit_width(dtype) < 8;
}

// A random tree beside one array of each type.
Tree make_tree(const Options& options, std::uint64_t seed) {
  testing::Random random(seed);
  testing::RandomTreeOptions grow;
  grow.odd_keys = options.odd_keys;
  Tree::Children each;
  for (const DType dtype : options.dtypes.empty() ? all_dtypes() : std::span(options.dtypes)) {
    if (!has_dtype(options.save.layout, dtype)) continue;
    Shape shape = testing::random_shape(random, grow);
    if (packs(options.save.layout, dtype)) {
      shape.push_back(4);
    } else {
      grow.dtypes.push_back(dtype);
    }
    each.emplace_back(std::string(dtype_name(dtype)), testing::random_array(random, dtype, shape));
  }
  return Tree::dict({{"each", Tree::dict(std::move(each))}, {"grown", random_tree(seed, grow)}});
}

class Dump {
 public:
  explicit Dump(const std::string& path)
      : path_(path), bytes_(path + ".bin", std::ios::binary | std::ios::trunc) {}

  void add(const std::string& prefix, const Tree& tree) {
    for (const NamedLeaf& leaf : must(flatten(tree))) {
      if (!is_array_like(leaf.leaf)) continue;
      const Array array = must(std::get<ShardedArray>(leaf.leaf).array().to_dense());
      const auto& parts = leaf.path.parts();
      leaves_.emplace_back(
          Json::Object{{"prefix", prefix},
                       {"key", leaf.path.text()},
                       {"path", Json::Array(parts.begin(), parts.end())},
                       {"dtype", dtype_name(array.dtype())},
                       {"shape", Json::Array(array.shape().begin(), array.shape().end())},
                       {"offset", offset_}});
      bytes_ << as_text(array.bytes());
      offset_ += array.nbytes();
    }
  }

  bool finish() {
    std::ofstream list(path_ + ".json", std::ios::binary | std::ios::trunc);
    list << dump_json(leaves_);
    list.close();
    bytes_.close();
    return list.good() && bytes_.good();
  }

 private:
  std::string path_;
  std::ofstream bytes_;
  std::uint64_t offset_ = 0;
  Json::Array leaves_;
};

void write(const std::string& path, Dump& dump, const Options& options) {
  Runtime runtime;
  std::vector<NamedTree> trees;
  for (const std::string& prefix : options.prefixes) {
    trees.emplace_back(prefix, make_tree(options, options.seed + trees.size()));
    dump.add(prefix, trees.back().second);
  }
  must(save_checkpoint(trees, path, options.save, runtime));
}

void read(const std::string& path, Dump& dump) {
  Runtime runtime;
  const Checkpoint checkpoint = must(open_checkpoint(path, runtime));
  for (const OpenedPrefix& prefix : checkpoint.prefixes) {
    const LoadOptions options{.prefix = prefix.name, .validate = true};
    dump.add(prefix.name, must(load(checkpoint, options, runtime)).tree);
  }
}

int run(const std::vector<std::string>& arguments) {
  if (arguments.size() < 3) {
    std::cerr
        << "usage: cairn_checkpoint_probe write CHECKPOINT DUMP OPTIONS | read CHECKPOINT DUMP\n";
    return 2;
  }
  Dump dump(arguments[2]);
  if (arguments[0] == "read") {
    read(arguments[1], dump);
  } else {
    write(arguments[1], dump, parse_options(must(parse_json(arguments.at(3)))));
  }
  return dump.finish() ? 0 : 1;
}

}  // namespace
}  // namespace cairn

int main(int argc, char** argv) {
  try {
    return cairn::run({argv + 1, argv + argc});
  } catch (const std::exception& error) {
    std::cerr << error.what() << '\n';
    return 1;
  }
}
