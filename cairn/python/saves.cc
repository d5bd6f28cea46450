// SPDX-License-Identifier: Apache-2.0
#include "cairn/python/saves.h"

#include <string>
#include <utility>

#include <nanobind/stl/optional.h>
#include <nanobind/stl/pair.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include "cairn/format/codec_spec.h"
#include "cairn/python/arrays.h"
#include "cairn/python/bindings.h"
#include "cairn/python/runtime.h"
#include "cairn/python/trees.h"
#include "cairn/run/mark.h"

namespace cairn::python {

namespace {

/// What save() of cairn/_front.py takes, as it comes.
struct SaveCall {
  PythonTrees trees;
  std::string path;
  std::string layout;
  bool compress = false;
  nb::object dtype;
  bool validate = false;
  std::optional<std::int64_t> step;
  std::string metadata;
  std::string extras;
  std::optional<std::uint64_t> chunk_bytes;
  std::optional<std::uint64_t> shard_size;
  bool overwrite = false;
  bool write_index = true;
  nb::object committed;
  std::optional<double> timeout = {};
  nb::object progress;
  bool waited_for = false;
};

constexpr const char* kAboutHandles = R"(A save on its way. Dropping it cancels nothing.

    >>> import cairn, tempfile
    >>> handle = cairn.save_async({"step": 100}, tempfile.mkdtemp() + "/c")
    >>> handle.wait()["arrays"]
    0
    >>> handle.done(), handle.phase
    (True, 'done')
)";

SaveOptions options_of(const SaveCall& call) {
  SaveOptions options;
  options.layout = call.layout;
  options.enable_compression = call.compress;
  options.float_dtype = parse_dtype_argument(call.dtype);
  options.enable_validation = call.validate;
  options.step = call.step;
  options.metadata = json_of(call.metadata);
  options.extras = json_of(call.extras);
  if (call.chunk_bytes) options.chunk_bytes = *call.chunk_bytes;
  if (call.shard_size) options.shard_size = *call.shard_size;
  options.overwrite = call.overwrite;
  options.write_index = call.write_index;
  if (call.timeout) options.timeout = span_of(*call.timeout);
  options.progress = progress_of(call.progress);
  return options;
}

SaveHandle begin_save(const SaveCall& call) {
  AsyncSaveOptions options{.save = options_of(call),
                           .committed = after_commit(call.committed),
                           .waited_for = call.waited_for};
  const auto where = runtime();
  // A directory of saves with steps can be listed and resumed as a run.
  if (call.step) options.save.mark = dump_mark(make_mark(*call.step, false, where->clock().wall()));
  const bool indexed = call.write_index && call.layout == kZarr2Layout;
  auto given = give(call.trees, {.alone = where->ranks() == 1,
                                 .structured = indexed && where->rank() == 0,
                                 .extras = call.extras});
  options.save.structures = std::move(given.beside.structures);
  options.save.refusal = std::move(given.beside.refusal);
  return begin_apart([trees = std::move(given.trees), path = call.path,
                      options = std::move(options), where](const CommitGuard& guard) {
    AsyncSaveOptions guarded = options;
    guarded.save.guard = guard;
    return save_async(trees, path, guarded, where);
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

std::function<Result<void>(const SaveReport&)> after_commit(const nb::object& function) {
  if (function.is_none()) return {};
  return [kept = keep(function)](const SaveReport&) { return call_back(kept); };
}

Given give(const PythonTrees& trees, const Giving& how) {
  Given given;
  given.beside.refusal = refusal_of(
      [&] {
        if (how.structured) given.beside.structures = structures_of(trees, how.extras);
        for (const auto& [prefix, object] : trees)
          given.trees.emplace_back(prefix, to_tree(object));
      },
      how.alone);
  return given;
}

void bind_saves(nb::module_& module) {
  nb::class_<SaveHandle>(module, "SaveHandle", kAboutHandles)
      .def_prop_ro("path", &SaveHandle::path, "Where to.")
      .def_prop_ro("phase", &SaveHandle::phase,
                   "What it does now: 'staging', 'writing', 'committing', 'done', 'failed', ...")
      .def_prop_ro("progress", &progress_tuple, "Bytes written, bytes to write, bytes a second.")
      .def("done", &SaveHandle::done, "Has it ended, well or not?")
      .def("wait", &wait_for, nb::arg("timeout") = nb::none(),
           "Until the checkpoint is durable and visible, or so many seconds; the error of the save "
           "every time.")
      .def("forget", &SaveHandle::forget,
           "Nobody wants to hear its error: it is logged, and the end of the program says nothing.")
      .def("__repr__", [](const SaveHandle& handle) {
        return readable("<save to " + handle.path() + ": " + std::string(handle.phase()) + ">");
      });
  module.def(
      "begin_save",
      [](PythonTrees trees, std::string path, std::string layout, bool compress, nb::object dtype,
         bool validate, std::optional<std::int64_t> step, std::string metadata, std::string extras,
         std::optional<std::uint64_t> chunk_bytes, std::optional<std::uint64_t> shard_size,
         bool overwrite, bool write_index, nb::object committed, std::optional<double> timeout,
         nb::object progress, bool waited_for) {
        return begin_save({std::move(trees), std::move(path), std::move(layout), compress,
                           std::move(dtype), validate, step, std::move(metadata), std::move(extras),
                           chunk_bytes, shard_size, overwrite, write_index, std::move(committed),
                           timeout, std::move(progress), waited_for});
      },
      nb::arg("trees"), nb::arg("path"), nb::kw_only(), nb::arg("layout"), nb::arg("compress"),
      nb::arg("dtype").none(), nb::arg("validate"), nb::arg("step").none(), nb::arg("metadata"),
      nb::arg("extras"), nb::arg("chunk_bytes").none(), nb::arg("shard_size").none(),
      nb::arg("overwrite"), nb::arg("write_index") = true, nb::arg("committed") = nb::none(),
      nb::arg("timeout") = nb::none(), nb::arg("progress").none(), nb::arg("waited_for") = false);
}

}  // namespace cairn::python
