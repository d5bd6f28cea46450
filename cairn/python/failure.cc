// SPDX-License-Identifier: Apache-2.0
#include "cairn/python/failure.h"

#include <string>

namespace cairn::python {

void translate_failures() {
  nb::register_exception_translator([](const std::exception_ptr& thrown, void*) {
    try {
      std::rethrow_exception(thrown);
    } catch (const Failure& failure) {
      const Error& error = failure.error();
      const nb::object exception =
          nb::module_::import_("cairn._errors")
              .attr("error_of")(std::string(code_name(error.code())).c_str(),
                                std::string(error.reason()).c_str(), error.where().c_str(),
                                error.to_string().c_str());
      PyErr_SetObject(reinterpret_cast<PyObject*>(Py_TYPE(exception.ptr())), exception.ptr());
    }
  });
}

std::shared_ptr<const void> keep(nb::object object) {
  return {object.release().ptr(), [](PyObject* kept) {
            // An interpreter that is gone has let go of everything.
            if (!Py_IsInitialized()) return;
            nb::gil_scoped_acquire acquire;
            Py_DECREF(kept);
          }};
}

}  // namespace cairn::python
