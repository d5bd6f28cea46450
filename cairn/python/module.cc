// SPDX-License-Identifier: Apache-2.0
// cairn._core: what the Python files of the package call. Users see those.
#include <nanobind/nanobind.h>
#include <nanobind/stl/string.h>

#include "cairn/base/version.h"
#include "cairn/python/bindings.h"
#include "cairn/python/failure.h"

// The macro is nanobind's.
NB_MODULE(_core, module) {
  namespace python = cairn::python;
  if (PyInterpreterState_GetID(PyInterpreterState_Get()) != 0)
    throw nanobind::import_error("cairn can be imported by the main interpreter alone");
  // Daemon threads that the end of a program stops keep what they have: nothing users can mend.
  nanobind::set_leak_warnings(
      nanobind::cast<bool>(nanobind::module_::import_("sys").attr("flags").attr("dev_mode")));
  python::translate_failures();
  python::bind_runtime(module);
  python::bind_coordinators(module);
  python::bind_shardings(module);
  python::bind_saves(module);
  python::bind_loads(module);
  python::bind_checkpoints(module);
  python::bind_helpers(module);
  python::bind_trees(module);
  python::bind_managers(module);
  python::bind_checkpointers(module);
  module.attr("__version__") = std::string(cairn::kVersion);
}
