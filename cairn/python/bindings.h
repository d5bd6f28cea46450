// SPDX-License-Identifier: Apache-2.0
// What puts the parts of cairn._core into the module, each in a source of its own.
#pragma once

#include <nanobind/nanobind.h>

namespace cairn::python {

namespace nb = nanobind;

class PythonCheckpointer;

void bind_runtime(nb::module_& module);
void bind_coordinators(nb::module_& module);
void bind_shardings(nb::module_& module);
void bind_saves(nb::module_& module);
void bind_loads(nb::module_& module);
void bind_checkpoints(nb::module_& module);
void bind_helpers(nb::module_& module);
void bind_trees(nb::module_& module);
void bind_managers(nb::module_& module);
void bind_checkpointers(nb::module_& module);

// Parts of bind_checkpointers(): how a checkpointer is made and asked, how it saves.
void bind_checkpointer_options(nb::class_<PythonCheckpointer>& bound);
void bind_checkpointer_saves(nb::class_<PythonCheckpointer>& bound);

}  // namespace cairn::python
