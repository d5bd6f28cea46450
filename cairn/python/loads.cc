// SPDX-License-Identifier: Apache-2.0
#include "cairn/python/loads.h"

#include <nanobind/stl/optional.h>
#include <nanobind/stl/pair.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/variant.h>
#include <nanobind/stl/vector.h>

#include "cairn/base/uri.h"
#include "cairn/load/index_shardings.h"
#include "cairn/load/seen_path.h"
#include "cairn/manifest/eformer_structure.h"
#include "cairn/python/arrays.h"
#include "cairn/python/bindings.h"
#include "cairn/python/failure.h"
#include "cairn/python/options.h"
#include "cairn/python/runtime.h"
#include "cairn/python/shardings.h"
#include "cairn/python/trees.h"
#include "cairn/storage/open.h"
#include "cairn/tree/flatten.h"

namespace cairn::python {

namespace {

std::vector<KeyPath> paths_of(const std::vector<Parts>& keys) { return {keys.begin(), keys.end()}; }

ShardingTree tree_of(const std::vector<std::pair<Parts, Sharding>>& shardings) {
  ShardingTree tree;
  for (const auto& [parts, sharding] : shardings) tree.emplace(KeyPath(parts), sharding);
  return tree;
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

nb::list outlines_of(const OpenedPrefix& prefix, const LoadOptions& options) {
  nb::list outlines;
  for (const ManifestArray& array : prefix.manifest.arrays) {
    outlines.append(nb::make_tuple(array.path.parts(),
                                   seen_path(prefix, array.path, options).text(),
                                   nb::tuple(nb::cast(array.stored.shape))));
  }
  return outlines;
}

using Choice = std::optional<std::variant<Sharding, SpecEntries>>;
using Wishes = std::vector<std::optional<ShardingWish>>;

Wishes wishes_of(std::vector<Choice> choices) {
  Wishes wishes;
  for (Choice& choice : choices) {
    if (!choice) {
      wishes.emplace_back();
    } else if (auto* spec = std::get_if<SpecEntries>(&*choice)) {
      wishes.emplace_back(PartitionSpec(std::move(*spec)));
    } else {
      wishes.emplace_back(std::get<Sharding>(*std::move(choice)));
    }
  }
  return wishes;
}

ShardingChooser chooser_of(const nb::object& function, const LoadOptions& options) {
  if (function.is_none()) return {};
  return [kept = keep(function), prefix_name = options.prefix,
          with_prefix = options.keys_with_prefix](const OpenedPrefix& prefix) -> Result<Wishes> {
    const LoadOptions seen{.prefix = prefix_name, .keys_with_prefix = with_prefix};
    Wishes wishes;
    CAIRN_TRY(in_caller([&] {
      wishes = wishes_of(nb::cast<std::vector<Choice>>(object_of(kept)(outlines_of(prefix, seen))));
    }));
    return wishes;
  };
}

Replicate replicate_of(const std::string& name) {
  if (name == "all") return Replicate::kAll;
  return name == "unsharded" ? Replicate::kUnsharded : Replicate::kOnOneAxis;
}

template <auto kMember>
void take_option(const nb::object& given, LoadCall& call) {
  take<kMember>(given, call.options);
}

constexpr Option<LoadCall> kLoadOptions[] = {
    {"prefix", take_option<&LoadOptions::prefix>},
    {"keys", [](auto& given,
                auto& call) { call.options.keys = paths_of(nb::cast<std::vector<Parts>>(given)); }},
    {"dtype", [](auto& given, auto& call) { call.options.dtype = parse_dtype_argument(given); }},
    {"like", take<&LoadCall::like>},
    {"strict_shapes", take_option<&LoadOptions::strict_shapes>},
    {"like_dtypes", take_option<&LoadOptions::like_dtypes>},
    {"validate", take_option<&LoadOptions::validate>},
    {"onto", take<&LoadCall::onto>},
    {"choose", take<&LoadCall::choose>},
    {"shardings",
     [](auto& given, auto& call) {
       call.shardings = tree_of(nb::cast<std::vector<std::pair<Parts, Sharding>>>(given));
     }},
    {"as_saved", take_option<&LoadOptions::as_saved>},
    {"replicate",
     [](auto& given, auto& call) {
       call.options.replicate = replicate_of(nb::cast<std::string>(given));
     }},
    {"mesh_for_safetensors", take_option<&LoadOptions::mesh_for_safetensors>},
    {"mismatch_allowed", take_option<&LoadOptions::mismatch_allowed>},
    {"keys_with_prefix", take_option<&LoadOptions::keys_with_prefix>},
    {"place", take<&LoadCall::place>},
    {"chunk_size", take_option<&LoadOptions::chunk_size>},
    {"use_async", take_option<&LoadOptions::use_async>},
    {"timeout",
     [](auto& given, auto& call) { call.options.timeout = span_of(nb::cast<double>(given)); }},
    {"progress", [](auto& given, auto& call) { call.options.progress = progress_of(given); }},
    {"fill", take_option<&LoadOptions::fill>},
    {"keep_values", take_option<&LoadOptions::keep_values>},
    {"to_unpickle", take<&LoadCall::to_unpickle>},
    {"description", take_option<&LoadOptions::description>},
    {"nested", take<&LoadCall::nested>},
};

/// A call in C++'s words. Movable: what the options point to stands beside them.
struct Request {
  LoadOptions options;
  std::optional<Tree> like;
  std::optional<PartitionRules> rules;
  ShardingTree shardings;

  LoadOptions pointed() const {
    LoadOptions made = options;
    if (like) made.like = &*like;
    if (rules) made.partition_rules = &*rules;
    if (!shardings.empty()) made.shardings = &shardings;
    return made;
  }
};

void take_mesh_and_rules(const LoadCall& call, Request& request) {
  if (call.onto.is_none()) return;
  const nb::object onto = call.onto();
  if (!nb::object(onto[0]).is_none()) request.options.mesh = nb::cast<Mesh>(onto[0]);
  if (!nb::object(onto[1]).is_none()) request.rules = rules_of(nb::cast<SpecRules>(onto[1]));
}

Request request_of(const LoadCall& call) {
  Request request{.options = call.options, .like = {}, .rules = {}, .shardings = call.shardings};
  request.options.choose_shardings = chooser_of(call.choose, request.options);
  // Of several ranks, one whose wishes are wrong says so in the load.
  auto refusal = refusal_of(
      [&] {
        take_mesh_and_rules(call, request);
        if (!call.like.is_none())
          request.like = call.options.fill ? to_filled(call.like) : to_template(call.like);
      },
      own_runtime()->ranks() == 1);
  if (refusal) {
    request.options.choose_shardings = [error = *std::move(refusal)](const OpenedPrefix&) {
      return Result<Wishes>(error);
    };
  }
  return request;
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
  const auto loaded = apart([load_it, request = request_of(call), is_nested = call.nested,
                             to_unpickle = call.to_unpickle] {
    auto found = load_it(request.pointed());
    if (!found || !*found) return found;
    return is_nested || (to_unpickle && (*found)->foreign) ? nested(std::move(found)) : found;
  });
  if (!loaded) return nb::none();
  std::vector<std::string> notes = loaded->report.notes;
  nb::object tree = call.like.is_none()
                        ? from_tree(loaded->tree, call.place, notes)
                        : leaves_from_tree(loaded->tree, call.place, own_runtime()->rank());
  nb::dict report = report_of(*loaded, notes);
  if (call.to_unpickle && loaded->foreign) {
    report["structure"] =
        apart([&, where = own_runtime()] { return structure_text(*loaded, *where); });
  }
  return nb::make_tuple(std::move(tree), dump_json(loaded->metadata), dump_json(loaded->extras),
                        std::move(report));
}

nb::object place_tree(const LoadCall& call, std::shared_ptr<const Checkpoint> checkpoint) {
  using Placed = std::vector<std::pair<Parts, Sharding>>;
  using Found = std::pair<std::size_t, Placed>;
  return nb::cast(
      apart([request = request_of(call), checkpoint = std::move(checkpoint)]() -> Result<Found> {
        const LoadOptions options = request.pointed();
        CAIRN_TRY_ASSIGN(const OpenedPrefix* prefix, checkpoint->prefix(options.prefix));
        CAIRN_TRY_ASSIGN(const auto shardings, load_shardings(*prefix, options));
        Placed placed;
        for (std::size_t i = 0; i < shardings.size(); ++i) {
          const KeyPath& path = prefix->manifest.arrays[i].path;
          placed.emplace_back(seen_path(*prefix, path, options).parts(), shardings[i]);
        }
        return Found(prefix - checkpoint->prefixes.data(), std::move(placed));
      }));
}

void bind_loads(nb::module_& module) {
  nb::class_<LoadCall>(module, "LoadRequest")
      .def(
          "__init__",
          [](LoadCall* self, const nb::kwargs& given) {
            LoadCall call;
            read_options(kLoadOptions, "loads", given, call);
            new (self) LoadCall(std::move(call));
          },
          nb::arg("options"));
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
