// SPDX-License-Identifier: Apache-2.0
#include "cairn/python/saves.h"

#include <string>
#include <utility>

#include <nanobind/stl/optional.h>
#include <nanobind/stl/pair.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include "cairn/python/arrays.h"
#include "cairn/python/bindings.h"
#include "cairn/python/options.h"
#include "cairn/python/runtime.h"
#include "cairn/python/trees.h"
#include "cairn/run/mark.h"

namespace cairn::python {

namespace {

constexpr const char* kAboutHandles = R"(A save in progress. Dropping the handle cancels nothing.

    >>> import cairn, tempfile
    >>> handle = cairn.save_async({"step": 100}, tempfile.mkdtemp() + "/c")
    >>> handle.wait()["arrays"]
    0
    >>> handle.done(), handle.phase
    (True, 'done')
)";

std::vector<MeshAxis> axes_of(const std::vector<std::pair<std::string, Index>>& given) {
  std::vector<MeshAxis> axes;
  axes.reserve(given.size());
  for (const auto& [name, size] : given) axes.push_back({name, size});
  return axes;
}

using Wishes = std::vector<std::pair<std::vector<std::string>, std::vector<PartitionSpec::Entry>>>;

SpecTree specs_of(const Wishes& wishes) {
  SpecTree specs;
  for (const auto& [parts, spec] : wishes) specs.emplace(KeyPath(parts), PartitionSpec(spec));
  return specs;
}

std::function<Result<void>(const SaveReport&)> after_commit(const nb::object& function) {
  return [kept = keep(function)](const SaveReport&) { return call_back(kept); };
}

constexpr Option<SaveOptions> kSaveOptions[] = {
    {"layout", take<&SaveOptions::layout>},
    {"compress", take<&SaveOptions::enable_compression>},
    {"dtype",
     [](auto& given, auto& options) { options.float_dtype = parse_dtype_argument(given); }},
    {"validate", take<&SaveOptions::enable_validation>},
    {"chunk_bytes", take<&SaveOptions::chunk_bytes>},
    {"shard_size", take<&SaveOptions::shard_size>},
    {"step", take<&SaveOptions::step>},
    {"metadata",
     [](auto& given, auto& options) { options.metadata = json_of(nb::cast<std::string>(given)); }},
    {"extras",
     [](auto& given, auto& options) { options.extras = json_of(nb::cast<std::string>(given)); }},
    {"overwrite", take<&SaveOptions::overwrite>},
    {"write_index", take<&SaveOptions::write_index>},
    {"mesh",
     [](auto& given, auto& options) {
       options.mesh = axes_of(nb::cast<std::vector<std::pair<std::string, Index>>>(given));
     }},
    {"wishes",
     [](auto& given, auto& options) { options.wishes = specs_of(nb::cast<Wishes>(given)); }},
    {"timeout",
     [](auto& given, auto& options) { options.timeout = span_of(nb::cast<double>(given)); }},
    {"progress", [](auto& given, auto& options) { options.progress = progress_of(given); }},
    {"committed", [](auto& given, auto& options) { options.committed = after_commit(given); }},
};

SaveHandle begin_save(const PythonTrees& trees, const std::string& path, bool waited_for,
                      const nb::kwargs& options) {
  SaveOptions save = save_options_of(options);
  const auto where = runtime();
  const bool indexed = save.write_index && save.layout == kZarr2Layout;
  Given given = give(trees, {.alone = where->ranks() == 1,
                             .structured = indexed && where->rank() == 0,
                             .extras = save.extras});
  // A directory of saves with steps can be listed and resumed as a run.
  if (save.step)
    given.internals.mark = dump_mark(make_mark(*save.step, false, where->clock().wall()));
  given.internals.waited_for = waited_for;
  return begin_apart(
      [given = std::move(given), path, save = std::move(save), where](const CommitGuard& guard) {
        SaveInternals internals = given.internals;
        internals.guard = guard;
        return save_async(given.trees, path, save, where, &internals);
      });
}

nb::dict report_of(const SaveReport& report) {
  nb::dict made;
  made["path"] = report.path;
  made["arrays"] = report.arrays;
  made["bytes"] = report.bytes;
  made["stored_bytes"] = report.stored_bytes;
  return made;
}

nb::object wait_for(const SaveHandle& handle, const nb::object& timeout) {
  const auto seconds = nb::cast<std::optional<double>>(
      nb::module_::import_("cairn._arguments").attr("as_kind")("timeout", "float | None", timeout));
  const Deadline deadline = seconds ? Deadline::in(span_of(*seconds)) : Deadline::never();
  wait_until([&] {
    const Deadline moment = Deadline::in(kMoment);
    return handle.wait_for_end(moment.time() < deadline.time() ? moment : deadline) ||
           deadline.passed();
  });
  return report_of(value_of(handle.wait(deadline)));
}

nb::tuple progress_tuple(const SaveHandle& handle) {
  const SaveProgress progress = handle.progress();
  return nb::make_tuple(progress.done, progress.total, progress.bytes_per_second);
}

}  // namespace

CommitGuard unless_interrupted(std::shared_ptr<std::atomic<bool>> interrupted) {
  return [interrupted = std::move(interrupted)]() -> Result<std::shared_ptr<void>> {
    if (!*interrupted) return std::shared_ptr<void>();
    return Error(Code::kCancelled, kInterrupted,
                 "the call was interrupted before the arrays had been copied");
  };
}

SaveOptions save_options_of(const nb::kwargs& given) {
  SaveOptions options;
  read_options(kSaveOptions, "saves", given, options);
  return options;
}

Given give(const PythonTrees& trees, const Giving& how) {
  Given given;
  given.internals.refusal = refusal_of(
      [&] {
        if (how.structured) given.internals.structures = structures_of(trees, how.extras);
        for (const auto& [prefix, object] : trees)
          given.trees.emplace_back(prefix, to_tree(object));
      },
      how.alone);
  return given;
}

void bind_saves(nb::module_& module) {
  nb::class_<SaveHandle>(module, "SaveHandle", kAboutHandles)
      .def_prop_ro("path", &SaveHandle::path, "The destination.")
      .def_prop_ro(
          "phase", &SaveHandle::phase,
          "The phase of the save: 'staging', 'writing', 'committing', 'done', 'failed', ...")
      .def_prop_ro("progress", &progress_tuple, "Bytes written, bytes to write, bytes per second.")
      .def("done", &SaveHandle::done, "Has it ended, with or without success?")
      .def("wait", &wait_for, nb::arg("timeout") = nb::none(),
           "Waits until the checkpoint is durable and visible, or so many seconds; raises the "
           "error of "
           "the save every time.")
      .def("forget", &SaveHandle::forget,
           "Only log its error: the end of the program does not report it.")
      .def("__repr__", [](const SaveHandle& handle) {
        return readable("<save to " + handle.path() + ": " + std::string(handle.phase()) + ">");
      });
  module.def("begin_save", &begin_save, nb::arg("trees"), nb::arg("path"), nb::kw_only(),
             nb::arg("waited_for") = false, nb::arg("options"));
}

}  // namespace cairn::python
