// SPDX-License-Identifier: Apache-2.0
// What cairn.serialization needs beside saves and loads: rules, sizes, names of parts.
#include <algorithm>
#include <charconv>
#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <nanobind/stl/optional.h>
#include <nanobind/stl/pair.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include "cairn/array/estimate.h"
#include "cairn/base/uri.h"
#include "cairn/format/safetensors/index.h"
#include "cairn/format/safetensors/parts.h"
#include "cairn/python/bindings.h"
#include "cairn/python/failure.h"
#include "cairn/python/runtime.h"
#include "cairn/runtime/in_flight.h"
#include "cairn/runtime/runtime.h"
#include "cairn/sharding/partition_rules.h"
#include "cairn/storage/local/local_store.h"

namespace cairn::python {

namespace {

namespace safetensors = format::safetensors;

/// A pattern, and how many entries its spec has.
using SizedRule = std::pair<std::string, std::size_t>;
/// A rule, and how many entries of its spec count.
using Match = std::pair<std::size_t, std::size_t>;

/// Rules whose specs say in each entry which rule they are: specs of JAX may hold what ours cannot.
PartitionRules numbered(const std::vector<SizedRule>& given) {
  std::vector<PartitionRule> rules;
  for (const auto& [pattern, entries] : given) {
    const PartitionSpec::Entry number{std::to_string(rules.size())};
    rules.push_back({pattern, PartitionSpec(std::vector(entries, number))});
  }
  return value_of(PartitionRules::make(std::move(rules)));
}

std::size_t number_of(const PartitionSpec& spec) {
  const std::string& digits = spec.entries().front().front();
  std::size_t number = 0;
  std::from_chars(digits.data(), digits.data() + digits.size(), number);
  return number;
}

/// Of each leaf, by its key and shape; None: the empty spec.
std::vector<std::optional<Match>> matching_rules(
    const std::vector<SizedRule>& given,
    const std::vector<std::pair<std::string, std::optional<Shape>>>& leaves, std::uint64_t min_size,
    bool strict) {
  const PartitionRules rules = numbered(given);
  std::vector<RuleLeaf> asked;
  asked.reserve(leaves.size());
  for (const auto& [key, shape] : leaves)
    asked.push_back({.key = key, .shape = shape ? &*shape : nullptr});
  std::vector<std::optional<Match>> matches;
  for (const PartitionSpec& spec :
       value_of(match_partition_rules(rules, asked, {.min_size = min_size, .strict = strict}))) {
    matches.push_back(spec.size() == 0 ? std::nullopt
                                       : std::optional(Match(number_of(spec), spec.size())));
  }
  return matches;
}

using Sizes = std::vector<std::pair<std::string, std::uint64_t>>;

std::vector<safetensors::NamedSize> named(const Sizes& sizes) {
  std::vector<safetensors::NamedSize> tensors;
  for (const auto& [name, bytes] : sizes) tensors.push_back({name, bytes});
  return tensors;
}

std::optional<std::uint64_t> array_nbytes(const std::string& dtype, const Shape& shape,
                                          bool packed) {
  const auto known = parse_dtype(dtype);
  if (!known) return std::nullopt;
  return value_of(packed ? estimate_array_nbytes(*known, shape) : dense_nbytes(*known, shape));
}

void wait_for_saves_at(const std::string& path) {
  apart([path, where = own_runtime()]() -> Result<bool> {
    wait_for_saves(path, where->rank());
    return true;
  });
}

/// A small file of a checkpoint: a regular one, and no larger than `limit`.
nb::bytes read_file(const std::string& path, std::uint64_t limit) {
  const auto read = apart([path, limit, where = own_runtime()]() -> Result<Buffer> {
    CAIRN_TRY_ASSIGN(const LocalPath file, LocalPath::parse(path));
    CAIRN_TRY_ASSIGN(const auto store,
                     storage::open_local_store(where->file_system(), file.parent()));
    return storage::read_all(*store, file.name(), limit);
  });
  const std::string_view text = as_text(read.bytes());
  return nb::bytes(text.data(), text.size());
}

}  // namespace

void bind_helpers(nb::module_& module) {
  module.def("matching_rules", &matching_rules, nb::arg("rules"), nb::arg("leaves"), nb::kw_only(),
             nb::arg("min_size"), nb::arg("strict"));
  module.def("group_keys_by_shard_size", [](const Sizes& sizes, std::uint64_t max_bytes) {
    return safetensors::group_keys_by_shard_size(named(sizes), max_bytes);
  });
  module.def("optimize_shard_layout", [](const Sizes& sizes, std::uint64_t max_bytes) {
    return safetensors::optimize_shard_layout(named(sizes), max_bytes);
  });
  module.def("derive_base_prefix_from_path", [](const std::string& path) {
    return safetensors::derive_base_prefix_from_path(path);
  });
  module.def("array_nbytes", &array_nbytes, nb::arg("dtype"), nb::arg("shape"), nb::kw_only(),
             nb::arg("packed"));
  module.def("estimate_available_memory", &estimate_available_memory);
  module.def("read_file", &read_file, nb::arg("path"), nb::arg("limit"));
  module.def("wait_for_saves", &wait_for_saves_at, nb::arg("path"));
}

}  // namespace cairn::python
