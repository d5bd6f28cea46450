// SPDX-License-Identifier: Apache-2.0
// What all calls that load have in common: from Python's wishes to options, and back to its trees.
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include <nanobind/nanobind.h>

#include "cairn/load/load.h"

namespace cairn::python {

namespace nb = nanobind;

using Parts = std::vector<std::string>;
using Prefix = std::optional<std::string>;

/// Python's LoadRequest.
struct LoadCall {
  Prefix prefix;
  std::vector<Parts> keys;
  nb::object dtype = nb::none();
  nb::object like = nb::none();
  bool strict_shapes = true;
  bool like_dtypes = false;
  bool validate = false;
  std::vector<std::pair<Parts, Sharding>> shardings;
  /// Gets the name of the tree, its layout and [(parts, dtype, shape, spec or None)] of its arrays,
  /// and returns a list with a sharding or None for each.
  nb::object choose = nb::none();
  nb::object place = nb::none();  ///< as from_tree()
  bool nested = false;            ///< dicts with texts as keys, whatever was saved
  std::size_t chunk_size = 0;
  bool use_async = true;
  std::optional<double> timeout = {};
  nb::object progress = nb::none();
  bool fill = false;  ///< into the memory of `like`
  bool keep_values = false;
  /// What another system saved: as nested dicts, with the text of its structure file in the report,
  /// for Python to unpickle.
  bool to_unpickle = false;
  bool description = false;  ///< as in LoadOptions, into the report
};

/// Does a load aside; nothing where it finds nothing.
using LoadIt = std::function<Result<std::optional<Loaded>>(const LoadOptions& options)>;

/// (tree, metadata, extras, report), the middle two as JSON; or None.
nb::object load_tree(const LoadCall& call, const LoadIt& load_it);

}  // namespace cairn::python
