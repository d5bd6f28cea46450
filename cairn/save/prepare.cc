// SPDX-License-Identifier: Apache-2.0
#include "cairn/save/prepare.h"

#include <utility>

#include <fmt/format.h>

#include "cairn/base/uri.h"
#include "cairn/commit/open.h"
#include "cairn/manifest/names.h"
#include "cairn/manifest/record.h"
#include "cairn/tree/flatten.h"
#include "cairn/tree/structure.h"

namespace cairn {

namespace {

Result<format::CodecSpec> codec_of(const SaveOptions& options) {
  const bool compress = options.enable_compression || (options.codec && !options.codec->is_raw());
  if (compress && options.layout == kSafetensorsLayout) {
    return Error(Code::kInvalidArgument, "save/compression-unsupported",
                 "safetensors files are not compressed; use the zarr2 layout to compress");
  }
  if (options.codec) return *options.codec;
  return options.enable_compression ? format::CodecSpec::zstd(1) : format::CodecSpec::raw();
}

Result<void> check_user_json(const Json& json, std::string_view name) {
  if (json.is_null() || json.object() != nullptr) return {};
  return Error(Code::kInvalidArgument, "save/metadata-not-an-object",
               fmt::format("{} must be a JSON object, not {}", name, json.kind_name()));
}

Result<PreparedTree> prepare(const NamedTree& named, const SaveOptions& options,
                             const SaveInternals& internals, Runtime& runtime) {
  const auto& [prefix, tree] = named;
  CAIRN_TRY(check_prefix(prefix));
  CAIRN_TRY_ASSIGN(PlanOptions plan, plan_options(options));
  plan.alone = runtime.ranks() == 1;
  CAIRN_TRY_ASSIGN(const auto leaves, flatten(tree));
  CAIRN_TRY_ASSIGN(auto arrays, plan_arrays(leaves, plan, runtime.rank()));
  CAIRN_TRY_ASSIGN(auto structure, structure_to_json(tree));
  PreparedTree prepared{std::move(arrays),
                        manifest_head(prefix, std::move(structure), options, runtime)};
  prepared.manifest.run_id = internals.run_id;
  for (const auto& [of, text] : internals.structures) {
    if (of == prefix) prepared.structure_text = text;
  }
  return prepared;
}

}  // namespace

Result<void> check_path(const std::string& path, std::size_t trees) {
  CAIRN_TRY_ASSIGN(const Uri uri, parse_uri(path));
  const bool bare = is_bare_file(path);
  if (!bare) CAIRN_TRY(check_destination(uri));
  if (trees == 0) return Error(Code::kInvalidArgument, "save/one-tree", "there is no tree to save");
  if (bare && trees > 1) {
    return Error(Code::kInvalidArgument, "save/one-tree",
                 "one .safetensors file takes one tree; save several into a directory");
  }
  return {};
}

Result<PlanOptions> plan_options(const SaveOptions& options) {
  if (options.layout != kZarr2Layout && options.layout != kSafetensorsLayout) {
    return Error(Code::kInvalidArgument, "save/unknown-layout",
                 fmt::format("unknown layout '{}'; there are: zarr2, safetensors", options.layout));
  }
  if (options.float_dtype && !is_float(*options.float_dtype)) {
    return Error(
        Code::kInvalidArgument, "save/float-dtype",
        fmt::format("float_dtype must be a float type, not {}", dtype_name(*options.float_dtype)));
  }
  CAIRN_TRY(check_user_json(options.metadata, "metadata"));
  CAIRN_TRY(check_user_json(options.extras, "extras"));
  CAIRN_TRY_ASSIGN(auto codec, codec_of(options));
  return PlanOptions{.layout = options.layout,
                     .codec = std::move(codec),
                     .chunk_bytes = options.chunk_bytes,
                     .float_dtype = options.float_dtype};
}

Manifest manifest_head(const std::string& prefix, Json structure, const SaveOptions& options,
                       Runtime& runtime) {
  Manifest manifest;
  manifest.layout = options.layout;
  manifest.prefix = prefix;
  manifest.step = options.step;
  manifest.ranks = runtime.ranks();
  manifest.time = format_timestamp(runtime.clock().wall());
  manifest.writer = writer_name();
  manifest.metadata = options.metadata;
  manifest.extras = options.extras;
  manifest.structure = std::move(structure);
  return manifest;
}

Result<std::vector<PreparedTree>> prepare_trees(const std::vector<NamedTree>& trees,
                                                const std::string& path, const SaveOptions& options,
                                                const SaveInternals& internals, Runtime& runtime) {
  if (internals.refusal) return *internals.refusal;
  CAIRN_TRY(check_path(path, trees.size()));
  std::vector<PreparedTree> prepared;
  for (const NamedTree& tree : trees) {
    CAIRN_TRY_ASSIGN(auto ready, prepare(tree, options, internals, runtime).in([&] {
      return tree.first.empty() ? std::string("tree") : fmt::format("prefix '{}'", tree.first);
    }));
    prepared.push_back(std::move(ready));
  }
  if (runtime.ranks() > 1 && is_bare_file(path)) {
    return Error(Code::kInvalidArgument, "save/one-process",
                 "one .safetensors file is written by one process; several save into a directory, "
                 "with the layout safetensors if you like");
  }
  return prepared;
}

}  // namespace cairn
