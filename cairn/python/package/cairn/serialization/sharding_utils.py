# SPDX-License-Identifier: Apache-2.0
"""Shardings of trees: by rules, from an index, applied and compared. Needs JAX when called."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from typing import Any

from cairn import _core
from cairn._log import logger
from cairn._nodes import key_of
from cairn.serialization._dicts import put
from cairn.serialization._moves import mesh_around, reshard
from cairn.serialization.fsspec_utils import exists, local_path

__all__ = ["apply_sharding_tree", "create_sharding_tree_from_index", "make_itsharded",
           "make_shard_and_gather_fns", "match_partition_rules", "validate_sharding_tree"]

# Leaves with fewer elements are not split where match_partition_rules() is called with None.
MIN_SHARDING_SIZE = 16384


def match_partition_rules(rules: Sequence[tuple[str, Any]], tree: Any, min_size: int | None = 0,
                          strict: bool = True) -> Any:
    """The tree with the PartitionSpec of each leaf: that of the first rule with a regular
    expression found in its key path, joined by slashes. ValueError with the leaf that no rule
    matches.

    Args:
        min_size: smaller leaves get the empty spec.
        strict: scalars get the empty spec without a rule, and a spec that is longer than a leaf has
            dimensions is cut; otherwise rules are followed to the letter, `min_size` included.
    """
    import jax
    leaves, structure = jax.tree_util.tree_flatten_with_path(tree)
    matches = _core.matching_rules(
        [(pattern, len(spec)) for pattern, spec in rules],
        [("/".join(str(key_of(key)) for key in path), getattr(leaf, "shape", None))
         for path, leaf in leaves],
        min_size=MIN_SHARDING_SIZE if min_size is None else min_size, strict=strict)
    make_spec: Any = jax.sharding.PartitionSpec  # JAX has no types for it

    def spec_of(match: tuple[int, int] | None) -> Any:
        if match is None:
            return make_spec()
        spec = rules[match[0]][1]
        return spec if len(spec) == match[1] else make_spec(*tuple(spec)[:match[1]])

    return jax.tree_util.tree_unflatten(structure, [spec_of(match) for match in matches])


def make_shard_and_gather_fns(partition_specs: Any, mesh: Any = None) -> tuple[Any, Any]:
    """Two trees of functions: one shards an array over the mesh (or the one around the call) by its
    spec, the other gathers it on the host."""
    import jax
    where = mesh_around() if mesh is None else mesh
    if where is None:
        raise ValueError("there is no mesh: give one, or call this inside of one")

    def shard(spec: Any) -> Callable[[Any], Any]:
        sharding = jax.sharding.NamedSharding(where, spec)
        return lambda tensor: reshard(tensor, sharding)

    def gather(spec: Any) -> Callable[[Any], Any]:
        return lambda tensor: jax.device_get(_whole(tensor, where))

    def is_spec(thing: Any) -> bool:
        return isinstance(thing, jax.sharding.PartitionSpec)

    return (jax.tree.map(shard, partition_specs, is_leaf=is_spec),
            jax.tree.map(gather, partition_specs, is_leaf=is_spec))


def _whole(tensor: Any, mesh: Any) -> Any:
    """An array that this process can read whole."""
    import jax
    if not isinstance(tensor, jax.Array) or tensor.is_fully_addressable:
        return tensor
    return jax.jit(lambda x: x, out_shardings=everywhere(mesh))(tensor)


def everywhere(mesh: Any) -> Any:
    """On all of its devices, whole."""
    import jax
    make_spec: Any = jax.sharding.PartitionSpec
    return jax.sharding.NamedSharding(mesh, make_spec())


def create_sharding_tree_from_index(checkpoint_dir: Any, mesh: Any = None,
                                    prefix: str | None = None,
                                    default_sharding: Any = None) -> dict[str, Any]:
    """Nested dicts with a sharding for each array of a checkpoint; {} and a warning if there is no
    index.

    Args:
        prefix: which tree; by default the first.
        default_sharding: for every array: a sharding, a PartitionSpec for the mesh, or a function
            of a dict with `path`, `shape` and `dtype`. None: every device of the mesh, or None
            without one.
    """
    if not exists(os.path.join(local_path(checkpoint_dir), "tensorstore_index.json")):
        logger.warning("there is no tensorstore_index.json in %s", checkpoint_dir)
        return {}
    prefixes = _core.Opened(local_path(checkpoint_dir)).prefixes()
    chosen = [found for found in prefixes if found[0] == (prefix or "")] or \
        (prefixes[:1] if not prefix else [])
    if not chosen:
        raise ValueError(f"Prefix '{prefix}' not found. Available: {[one[0] for one in prefixes]}")
    tree: dict[str, Any] = {}
    name, leaves, _ = chosen[0]
    for parts, _, dtype, shape, _ in leaves:
        above = [name.replace(".", "/")] if name else []
        path = "/".join([*above, *(_core.key_text([part]) for part in parts)])
        info = {"path": path, "shape": list(shape), "dtype": dtype}
        put(tree, parts or [name], _default(default_sharding, mesh, info))
    return tree


def _default(default: Any, mesh: Any, info: dict[str, Any]) -> Any:
    import jax
    if default is None:
        return None if mesh is None else everywhere(mesh)
    if isinstance(default, jax.sharding.PartitionSpec):
        if mesh is None:
            raise ValueError("Mesh required when using PartitionSpec as default_sharding")
        return jax.sharding.NamedSharding(mesh, default)
    return default(info) if callable(default) else default


def apply_sharding_tree(arrays: Any, sharding_tree: Any, mesh: Any = None) -> Any:
    """Places the arrays by a tree of shardings. None in that tree means every device of the mesh,
    or the first device without one; functions are called with the array. If the trees differ,
    returns the arrays unchanged, with a warning."""
    import jax
    if sharding_tree is None:
        return arrays

    def move(array: Any, wish: Any) -> Any:
        if wish is None:
            wish = jax.sharding.SingleDeviceSharding(jax.devices()[0]) if mesh is None \
                else everywhere(mesh)
        if callable(wish):
            return wish(array)
        if isinstance(wish, jax.sharding.Sharding):
            return jax.device_put(array, wish) if hasattr(array, "shape") else array
        logger.warning("%r says nothing about where an array goes", wish)
        return array

    def is_leaf(thing: Any) -> bool:
        return not isinstance(thing, dict)

    structures: list[Any] = [jax.tree.structure(tree, is_leaf=is_leaf)
                             for tree in (arrays, sharding_tree)]
    if structures[0] != structures[1]:
        logger.warning("the shardings do not have the structure of the arrays: %s and %s",
                       *structures)
        return arrays
    return jax.tree.map(move, arrays, sharding_tree, is_leaf=is_leaf)


def validate_sharding_tree(sharding_tree: Any, expected_structure: Any) -> bool:
    """Do both trees have the same structure?"""
    import jax
    first: Any = jax.tree.structure(sharding_tree)
    return bool(first == jax.tree.structure(expected_structure))


def make_itsharded(xs: Any, mesh: Any) -> Any:
    """Replicates every array of JAX that this process holds whole on all devices of the mesh; other
    leaves stay unchanged."""
    import jax

    def move(leaf: Any) -> Any:
        is_whole = isinstance(leaf, jax.Array) and leaf.is_fully_addressable
        return jax.device_put(leaf, everywhere(mesh)) if is_whole else leaf

    return jax.tree.map(move, xs)
