// SPDX-License-Identifier: Apache-2.0
// Keyword arguments of Python, one row of a table for each.
#pragma once

#include <algorithm>
#include <iterator>
#include <string>
#include <type_traits>
#include <typeinfo>

#include <nanobind/nanobind.h>

namespace cairn::python {

namespace nb = nanobind;

/// One option by its Python name, and how it is read.
template <typename Options>
struct Option {
  const char* name;
  void (*read)(const nb::object& given, Options& options);
};

/// A row's `read` for what Python and the member write alike.
template <auto kMember, typename Options>
void take(const nb::object& given, Options& options) {
  auto& member = options.*kMember;
  member = nb::cast<std::remove_reference_t<decltype(member)>>(given);
}

/// Reads `given` into `options`; an option that is missing or None keeps its default. Throws
/// TypeError, which calls what has the options `what`, and what the rows throw.
template <typename Options, std::size_t kCount>
void read_options(const Option<Options> (&rows)[kCount], const char* what, const nb::kwargs& given,
                  Options& options) {
  for (const auto& [key, value] : given) {
    const auto name = nb::cast<std::string>(key);
    const auto row = std::ranges::find(rows, name, &Option<Options>::name);
    if (row == std::end(rows)) nb::raise_type_error("%s have no %s", what, name.c_str());
    if (value.is_none()) continue;
    try {
      row->read(nb::borrow(value), options);
    } catch (const std::bad_cast&) {
      nb::raise_type_error("%s is of the wrong kind", name.c_str());
    }
  }
}

}  // namespace cairn::python
