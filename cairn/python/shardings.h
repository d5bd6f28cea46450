// SPDX-License-Identifier: Apache-2.0
// Shardings for Python, as cairn._jax makes them from those of JAX.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include <nanobind/nanobind.h>

#include "cairn/sharding/partition_rules.h"
#include "cairn/sharding/sharded_array.h"

namespace cairn::python {

namespace nb = nanobind;

/// A spec as Python gives it: the axes of each dimension.
using SpecEntries = std::vector<PartitionSpec::Entry>;
/// Pairs of a pattern and a spec.
using SpecRules = std::vector<std::pair<std::string, SpecEntries>>;

PartitionRules rules_of(SpecRules given);

/// (position, numpy.ndarray, is it lent) of each shard that this process holds.
ShardedArray share_shards(const std::string& dtype, const Shape& shape, const Sharding& sharding,
                          const nb::handle& shards);
/// An array without memory: type, shape and placement only.
ShardedArray outline(DType dtype, const Shape& shape, const Sharding& sharding);
/// Throws for an unknown name.
DType known_dtype(const std::string& name);
/// [(position, numpy.ndarray)], as to_numpy() gives it to others.
nb::list shards_in_numpy(const ShardedArray& array);

}  // namespace cairn::python
