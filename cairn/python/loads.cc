// SPDX-License-Identifier: Apache-2.0
#include "cairn/python/loads.h"

#include <nanobind/stl/optional.h>
#include <nanobind/stl/pair.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include "cairn/base/uri.h"
#include "cairn/manifest/eformer_structure.h"
#include "cairn/python/arrays.h"
#include "cairn/python/bindings.h"
#include "cairn/python/failure.h"
#include "cairn/python/runtime.h"
#include "cairn/python/trees.h"
#include "cairn/storage/open.h"
#include "cairn/tree/flatten.h"

namespace cairn::python {

namespace {

std::vector<KeyPath> paths_of(const std::vector<Parts>& keys) {
  std::vector<KeyPath> paths;
  for (const Parts& parts : keys) paths.emplace_back(parts);
  return paths;
}

nb::dict report_of(const Loaded& loaded, const std::vector<std::string>& notes) {
  const LoadReport& report = loaded.report;
  nb::dict made;
  made["path"] = loaded.path;
  made["prefix"] = loaded.prefix;
  made["foreign"] = loaded.foreign;
  made["loaded"] = report.loaded;
  made["missing"] = report.missing;
  made["unexpected"] = report.unexpected;
  made["mismatched"] = report.mismatched;
  made["kept"] = report.kept;
  made["cast"] = report.cast;
  made["unchecked"] = report.unchecked;
  made["notes"] = notes;
  made["bytes"] = report.bytes;
  made["description"] = nb::none();
  if (const auto& text = loaded.description)
    made["description"] = nb::bytes(text->data(), text->size());
  return made;
}

/// How an array lay on a mesh when it was saved. What lay on one device or on no mesh, and a
/// number, lies on all devices of any mesh. Nothing: another system saved it and does not say.
nb::object saved_spec(const OpenedPrefix& prefix, const ManifestArray& array) {
  if (array.spec) return nb::cast(array.spec->entries());
  if (prefix.foreign && !array.stored.shape.empty()) return nb::none();
  return nb::list();
}

nb::list outlines_of(const OpenedPrefix& prefix) {
  nb::list outlines;
  for (const ManifestArray& array : prefix.manifest.arrays) {
    outlines.append(nb::make_tuple(array.path.parts(), std::string(dtype_name(array.stored.dtype)),
                                   nb::tuple(nb::cast(array.stored.shape)),
                                   saved_spec(prefix, array)));
  }
  return outlines;
}

using Choices = std::vector<std::optional<Sharding>>;

ShardingChooser chooser_of(const nb::object& function) {
  if (function.is_none()) return {};
  return [kept = keep(function)](const OpenedPrefix& prefix) -> Result<Choices> {
    Choices choices;
    CAIRN_TRY(in_caller([&] {
      choices = nb::cast<Choices>(
          object_of(kept)(prefix.name, prefix.manifest.layout, outlines_of(prefix)));
    }));
    return choices;
  };
}

LoadOptions options_of(const LoadCall& call) {
  LoadOptions options{.prefix = call.prefix,
                      .keys = paths_of(call.keys),
                      .dtype = parse_dtype_argument(call.dtype),
                      .choose_shardings = chooser_of(call.choose),
                      .keep_values = call.keep_values,
                      .strict_shapes = call.strict_shapes,
                      .like_dtypes = call.like_dtypes,
                      .fill = call.fill,
                      .chunk_size = call.chunk_size,
                      .use_async = call.use_async,
                      .validate = call.validate,
                      .description = call.description,
                      .progress = progress_of(call.progress)};
  if (call.timeout) options.timeout = span_of(*call.timeout);
  return options;
}

/// Of several ranks, one whose template is wrong says so in the load.
std::optional<Tree> template_of(const LoadCall& call, LoadOptions& options) {
  std::optional<Tree> like;
  if (call.like.is_none()) return like;
  auto refusal =
      refusal_of([&] { like = call.fill ? to_filled(call.like) : to_template(call.like); },
                 own_runtime()->ranks() == 1);
  if (refusal) {
    options.choose_shardings = [error = *std::move(refusal)](const OpenedPrefix&) {
      return Result<Choices>(error);
    };
  }
  return like;
}

Result<std::optional<Loaded>> nested(Result<std::optional<Loaded>> loaded) {
  CAIRN_TRY_ASSIGN(auto leaves, flatten((*loaded)->tree));
  CAIRN_TRY_ASSIGN((*loaded)->tree, nest(std::move(leaves)));
  return loaded;
}

/// Empty where there is none that fits.
Result<std::string> structure_text(const Loaded& loaded, Runtime& where) {
  if (loaded.structure_file.empty()) return std::string();
  CAIRN_TRY_ASSIGN(const Uri uri, parse_uri(loaded.path));
  CAIRN_TRY_ASSIGN(const auto store,
                   storage::open_store(uri, {.file_system = &where.file_system()}));
  CAIRN_TRY_ASSIGN(const Buffer text,
                   storage::read_all(*store, loaded.structure_file, kMaxEformerStructureBytes));
  return std::string(as_text(text.bytes()));
}

}  // namespace

nb::object load_tree(const LoadCall& call, const LoadIt& load_it) {
  LoadOptions options = options_of(call);
  auto like = template_of(call, options);
  ShardingTree shardings;
  for (const auto& [parts, sharding] : call.shardings) shardings.emplace(KeyPath(parts), sharding);
  const auto loaded = apart([load_it, options = std::move(options), like = std::move(like),
                             shardings = std::move(shardings), is_nested = call.nested,
                             to_unpickle = call.to_unpickle]() mutable {
    if (like) options.like = &*like;
    if (!shardings.empty()) options.shardings = &shardings;
    auto found = load_it(options);
    if (!found || !*found) return found;
    return is_nested || (to_unpickle && (*found)->foreign) ? nested(std::move(found)) : found;
  });
  if (!loaded) return nb::none();
  std::vector<std::string> notes = loaded->report.notes;
  nb::object tree = from_tree(loaded->tree, call.place, own_runtime()->rank(),
                              call.like.is_none() ? &notes : nullptr);
  nb::dict report = report_of(*loaded, notes);
  if (call.to_unpickle && loaded->foreign) {
    report["structure"] =
        apart([&, where = own_runtime()] { return structure_text(*loaded, *where); });
  }
  return nb::make_tuple(std::move(tree), dump_json(loaded->metadata), dump_json(loaded->extras),
                        std::move(report));
}

void bind_loads(nb::module_& module) {
  nb::class_<LoadCall>(module, "LoadRequest")
      .def(
          "__init__",
          [](LoadCall* self, Prefix prefix, std::vector<Parts> keys, nb::object dtype,
             nb::object like, bool strict_shapes, bool like_dtypes, bool validate,
             std::vector<std::pair<Parts, Sharding>> shardings, nb::object choose, nb::object place,
             bool is_nested, std::size_t chunk_size, bool use_async, std::optional<double> timeout,
             nb::object progress, bool fill, bool keep_values, bool to_unpickle, bool description) {
            new (self) LoadCall{std::move(prefix),
                                std::move(keys),
                                std::move(dtype),
                                std::move(like),
                                strict_shapes,
                                like_dtypes,
                                validate,
                                std::move(shardings),
                                std::move(choose),
                                std::move(place),
                                is_nested,
                                chunk_size,
                                use_async,
                                timeout,
                                std::move(progress),
                                fill,
                                keep_values,
                                to_unpickle,
                                description};
          },
          nb::kw_only(), nb::arg("prefix") = nb::none(), nb::arg("keys") = std::vector<Parts>(),
          nb::arg("dtype") = nb::none(), nb::arg("like") = nb::none(),
          nb::arg("strict_shapes") = true, nb::arg("like_dtypes") = false,
          nb::arg("validate") = false,
          nb::arg("shardings") = std::vector<std::pair<Parts, Sharding>>(),
          nb::arg("choose") = nb::none(), nb::arg("place") = nb::none(), nb::arg("nested") = false,
          nb::arg("chunk_size") = 0, nb::arg("use_async") = true, nb::arg("timeout") = nb::none(),
          nb::arg("progress") = nb::none(), nb::arg("fill") = false, nb::arg("keep_values") = false,
          nb::arg("to_unpickle") = false, nb::arg("description") = false);
  module.def(
      "load",
      [](std::string path, const LoadCall& call) {
        return load_tree(call,
                         [path = std::move(path), where = runtime()](
                             const LoadOptions& options) -> Result<std::optional<Loaded>> {
                           CAIRN_TRY_ASSIGN(auto loaded, load(path, options, *where));
                           return std::optional(std::move(loaded));
                         });
      },
      nb::arg("path"), nb::arg("request"));
}

}  // namespace cairn::python
