// SPDX-License-Identifier: Apache-2.0
// Looking at checkpoints: open, ls, verify, diff.
#include <string>
#include <utility>

#include <fmt/format.h>
#include <nanobind/stl/optional.h>
#include <nanobind/stl/pair.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include "cairn/base/human.h"
#include "cairn/base/uri.h"
#include "cairn/inspect/diff.h"
#include "cairn/inspect/find_leaf.h"
#include "cairn/inspect/stats.h"
#include "cairn/inspect/verify.h"
#include "cairn/layout/open_checkpoint.h"
#include "cairn/load/load.h"
#include "cairn/load/read_boxes.h"
#include "cairn/python/arrays.h"
#include "cairn/python/bindings.h"
#include "cairn/python/failure.h"
#include "cairn/python/loads.h"
#include "cairn/python/runtime.h"
#include "cairn/python/trees.h"
#include "cairn/run/discovery.h"

namespace cairn::python {

namespace {

/// An opened checkpoint in Python's hands.
class Opened {
 public:
  explicit Opened(const std::string& path)
      : checkpoint_(std::make_shared<const Checkpoint>(
            apart([path, where = own_runtime()] { return open_checkpoint(path, *where); }))) {}

  const Checkpoint& operator*() const { return *checkpoint_; }
  std::shared_ptr<const Checkpoint> shared() const { return checkpoint_; }
  const OpenedPrefix& prefix(std::size_t number) const { return checkpoint_->prefixes.at(number); }

 private:
  std::shared_ptr<const Checkpoint> checkpoint_;
};

nb::object load_leaves(const Opened& opened, const LoadCall& call) {
  return load_tree(call,
                   [shared = opened.shared(), where = runtime()](
                       const LoadOptions& options) -> Result<std::optional<Loaded>> {
                     CAIRN_TRY_ASSIGN(auto loaded, load(*shared, options, *where));
                     return std::optional(std::move(loaded));
                   })[0];
}

nb::list leaves_of(const OpenedPrefix& prefix) {
  nb::list leaves;
  for (std::size_t i = 0; i < prefix.manifest.arrays.size(); ++i) {
    const ManifestArray& array = prefix.manifest.arrays[i];
    leaves.append(nb::make_tuple(array.path.parts(), array.path.text(),
                                 std::string(dtype_name(array.stored.dtype)),
                                 nb::tuple(nb::cast(array.stored.shape)), prefix.names[i]));
  }
  return leaves;
}

/// Of each array, how it lay on a mesh: "P('x', None)", or None.
nb::list specs_of(const Opened& opened, std::size_t number) {
  nb::list specs;
  for (const ManifestArray& array : opened.prefix(number).manifest.arrays) {
    specs.append(array.spec ? nb::cast(array.spec->to_string()) : nb::none());
  }
  return specs;
}

/// Numbers of the tree and of the array in it.
std::pair<std::size_t, std::size_t> find_array(const Opened& opened, const std::string& key) {
  const FoundLeaf found = value_of(find_leaf(*opened, key, std::nullopt));
  if (found.array) return {found.prefix - (*opened).prefixes.data(), *found.array};
  throw Failure(Error(Code::kNotFound, "load/key-missing",
                      fmt::format("there is no array '{0}'; it is a value: values['{0}']", key)));
}

std::vector<Parts> keys_with(const Opened& opened, const std::string& beginning) {
  std::vector<Parts> keys;
  const OpenedPrefix* prefix = value_of((*opened).prefix(std::nullopt));
  for (const KeyPath& path : value_of(keys_beginning_with(*prefix, beginning)))
    keys.push_back(path.parts());
  return keys;
}

nb::list values_of(const OpenedPrefix& prefix) {
  nb::list values;
  for (const auto& [path, value] : prefix.values)
    values.append(nb::make_tuple(path.parts(), path.text(), from_value(value)));
  return values;
}

nb::list prefixes_of(const Opened& opened) {
  nb::list prefixes;
  for (const OpenedPrefix& prefix : (*opened).prefixes) {
    prefixes.append(nb::make_tuple(prefix.name, leaves_of(prefix), values_of(prefix)));
  }
  return prefixes;
}

/// What stands in the manifest beside the arrays: step, time, writer, ranks, and as JSON the
/// metadata and the extras.
nb::tuple about(const Opened& opened, const Prefix& prefix) {
  const Manifest& manifest = value_of((*opened).prefix(prefix))->manifest;
  return nb::make_tuple(manifest.step, manifest.time, manifest.writer, manifest.ranks,
                        dump_json(manifest.metadata), dump_json(manifest.extras));
}

nb::object read_box(const Opened& opened, std::size_t prefix, std::size_t array,
                    const std::vector<std::pair<Index, Index>>& ranges) {
  Box box;
  for (const auto& [begin, end] : ranges) {
    box.begin.push_back(begin);
    box.end.push_back(end);
  }
  return to_numpy(apart(
      [shared = opened.shared(), prefix, array, box, where = own_runtime()]() -> Result<Array> {
        auto read = load_box(shared->prefixes.at(prefix), array, box, *where);
        if (read) return read;
        return explain_failure(read.error(), *shared, *where);
      }));
}

nb::dict verified(const Opened& opened, const Prefix& prefix, const nb::object& progress) {
  const VerifyReport report =
      apart([shared = opened.shared(), where = own_runtime(),
             options = VerifyOptions{.prefix = prefix, .progress = progress_of(progress)}] {
        return verify(*shared, options, *where);
      });
  nb::list damages;
  for (const Damage& damage : report.damages) {
    damages.append(nb::make_tuple(damage.prefix, damage.key, damage.object, damage.chunk,
                                  damage.reason, damage.message));
  }
  nb::dict made;
  made["arrays"] = report.arrays;
  made["chunks"] = report.chunks;
  made["bytes"] = report.bytes;
  made["damages"] = damages;
  made["unchecked"] = report.unchecked;
  return made;
}

nb::dict compared(const Opened& first, const Opened& second, const Prefix& prefix,
                  const nb::object& progress) {
  const DiffReport report =
      apart([a = first.shared(), b = second.shared(), where = own_runtime(),
             options = DiffOptions{.prefix = prefix, .progress = progress_of(progress)}] {
        return diff(*a, *b, options, *where);
      });
  nb::list differences;
  for (const LeafDifference& leaf : report.differences) {
    differences.append(nb::make_tuple(std::string(difference_name(leaf.kind)), leaf.prefix,
                                      leaf.key, leaf.first, leaf.second, leaf.elements,
                                      leaf.different, leaf.max_absolute, leaf.max_relative));
  }
  nb::dict made;
  made["equal"] = report.equal;
  made["compared"] = report.compared;
  made["bytes"] = report.bytes;
  made["differences"] = differences;
  return made;
}

nb::list run_entries(const std::string& base) {
  nb::list entries;
  for (const RunEntry& entry :
       apart([base, where = own_runtime()] { return list_run(base, *where); })) {
    entries.append(nb::make_tuple(entry.path, entry.name, entry.step, entry.timestamp,
                                  entry.is_temporary, entry.torn, entry.pinned, entry.abandoned,
                                  entry.problem));
  }
  return entries;
}

Prefix latest_in(const std::string& base) {
  return apart([base, where = own_runtime()] { return find_latest_checkpoint(base, *where); });
}

}  // namespace

void bind_checkpoints(nb::module_& module) {
  nb::class_<Opened>(module, "Opened")
      .def(nb::init<const std::string&>(), nb::arg("path"))
      .def_prop_ro("path", [](const Opened& opened) { return (*opened).path; })
      .def_prop_ro("kind", [](const Opened& opened) { return (*opened).kind; })
      .def_prop_ro("notes", [](const Opened& opened) { return (*opened).notes; })
      .def("prefixes", &prefixes_of)
      .def("specs", &specs_of, nb::arg("prefix"))
      .def("about", &about, nb::arg("prefix").none())
      .def("find", &find_array, nb::arg("key"))
      .def("keys_beginning_with", &keys_with, nb::arg("beginning"))
      .def("read", &read_box, nb::arg("prefix"), nb::arg("array"), nb::arg("ranges"))
      .def("load", &load_leaves, nb::arg("request"))
      .def(
          "place",
          [](const Opened& opened, const LoadCall& call) {
            return place_tree(call, opened.shared());
          },
          nb::arg("request"))
      .def("verify", &verified, nb::arg("prefix").none(), nb::arg("progress").none())
      .def("diff", &compared, nb::arg("other"), nb::arg("prefix").none(),
           nb::arg("progress").none());
  module.def("format_bytes", &format_bytes, nb::arg("bytes"));
  module.def("parse_key",
             [](const std::string& text) { return value_of(KeyPath::parse(text)).parts(); });
  module.def("check_path", [](const std::string& text) { value_of(parse_uri(text)); });
  module.def("key_text", [](Parts parts) { return KeyPath(std::move(parts)).text(); });
  module.def("list_run", &run_entries, nb::arg("base"));
  module.def("find_latest_checkpoint", &latest_in, nb::arg("base"));
}

}  // namespace cairn::python
