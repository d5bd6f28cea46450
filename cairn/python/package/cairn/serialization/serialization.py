# SPDX-License-Identifier: Apache-2.0
"""Trees of arrays as zarr v2 directories with an index, both ways."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Sequence
from typing import Any

from cairn import _core
from cairn._arguments import checked
from cairn._nodes import children_of, reference_part, with_children
from cairn.serialization import fsspec_utils
from cairn.serialization._dicts import put
from cairn.serialization._targets import Target
from cairn.serialization._wishes import Rules
from cairn.serialization.fsspec_utils import local_path
from cairn.serialization.sharding_utils import everywhere, match_partition_rules

__all__ = ["fsspec_utils", "is_array_like", "join_key", "leaf_key_paths", "match_partition_rules",
           "tree_deserialize_leaves", "tree_serialize_leaves"]

# Seconds; what programs give to a GlobalAsyncCheckpointManager that they make themselves.
GLOBAL_CHECKPOINT_TIMEOUT = int(os.environ.get("GLOBAL_CHECKPOINT_TIMEOUT", "400"))

Parts = tuple[str, ...]


def is_array_like(x: Any) -> bool:
    """Has it a shape and a dtype?"""
    return hasattr(x, "shape") and hasattr(x, "dtype")


def join_key(prefix: str | None, k: str | None) -> str:
    """With a dot; either may be empty.

        >>> join_key("model", "w"), join_key(None, "w"), join_key("model", "")
        ('model.w', 'w', 'model')
    """
    return ".".join(part for part in (prefix, k) if part)


def leaf_key_paths(pytree: Any, prefix: str | None = "", *,
                   is_leaf: Callable[[Any], bool] | None = None) -> Any:
    """The same tree with the dotted key path of each leaf in its place.

        >>> leaf_key_paths({"a.b": 1, "layers": [2, 3]}, "model")
        {'a.b': 'model.a%2Eb', 'layers': ['model.layers.0', 'model.layers.1']}

    Where JAX is imported its registry says what a tree is. A dot or slash inside of a key is
    encoded, so that no two leaves have one path.
    """
    def text(parts: Sequence[str]) -> str:
        return join_key(prefix, _core.key_text(parts) if parts else "")

    jax = sys.modules.get("jax")
    if jax is None:
        return _paths_in(pytree, (), text, is_leaf)
    found, treedef = jax.tree_util.tree_flatten_with_path(pytree, is_leaf=is_leaf)
    return treedef.unflatten([text([*map(reference_part, path)]) for path, _ in found])


# Private names of the reference that programs import.
def _keyentry_to_str(path_elem: Any) -> str:
    return reference_part(path_elem)


def _is_none(x: Any) -> bool:
    return x is None


def _fs_paths_from_key_paths(checkpoint_dir: Any, leaf_path: Any) -> Any:
    """The directory of each array, in a tree of dotted key paths."""
    import jax
    return jax.tree.map(lambda key: fsspec_utils.join_path(checkpoint_dir, key.replace(".", "/")),
                        leaf_path)


def _fully_replicated_sharding(mesh: Any) -> Any:
    """On every device of the mesh, or on the first device without one."""
    import jax
    return everywhere(mesh) if mesh is not None else \
        jax.sharding.SingleDeviceSharding(jax.devices()[0])


def _sharding_from_leaf(leaf: Any, mesh: Any) -> Any:
    """Its own, or every device; None for what is neither an array nor a number."""
    if getattr(leaf, "sharding", None) is not None:
        return leaf.sharding
    is_known = is_array_like(leaf) or isinstance(leaf, (bool, int, float, complex))
    return _fully_replicated_sharding(mesh) if is_known else None


def _paths_in(tree: Any, above: Parts, text: Callable[[Parts], str],
              is_leaf: Callable[[Any], bool] | None) -> Any:
    is_wanted = is_leaf is not None and is_leaf(tree)
    children = None if is_wanted else children_of(tree)
    if children is None:
        return None if tree is None and not is_wanted else text(above)
    return with_children(tree, children, [_paths_in(child, (*above, str(key)), text, is_leaf)
                                          for key, child in children])


@checked
def tree_serialize_leaves(checkpoint_dir: Any, pytree: Any, manager: Any = None, *,
                          prefix: str | None = None,
                          commit_callback: Callable[[], object] | None = None,
                          write_index: bool = True) -> None:
    """Saves a tree into a directory, which keeps other prefixes and files.

    The directory of the array at `a.b` is `<checkpoint_dir>/<prefix>/a/b`. Leaves that are not
    arrays are saved too. Saves the content of the arrays at the time of the call.

    Args:
        manager: JAX's GlobalAsyncCheckpointManager, or a SaveTracker: the call returns as soon as
            the arrays may be changed, and `wait_until_finished` and `check_for_errors` of the
            manager cover the save. None: the call returns when all is durable.
        commit_callback: called once, when the checkpoint is durable and visible.
        write_index: write `tensorstore_index.json`, with which other programs find the arrays.
    """
    def begin(committed: Callable[[], object] | None = None) -> _core.SaveHandle:
        return _core.begin_save([(prefix or "", pytree)], local_path(checkpoint_dir),
                                overwrite=True, write_index=write_index, committed=committed,
                                waited_for=manager is None)

    if manager is None:
        begin().wait()
        if commit_callback is not None:
            commit_callback()
    elif hasattr(manager, "add_save"):
        manager.check_for_errors()
        manager.add_save(begin(commit_callback))
    elif hasattr(manager, "serialize_with_paths"):
        manager.wait_until_finished()
        _hand_to_jax(manager, begin(), commit_callback)
    else:
        raise TypeError(f"no manager of saves: {manager!r}")


def _hand_to_jax(manager: Any, handle: _core.SaveHandle,
                 commit_callback: Callable[[], object] | None) -> None:
    """Lets JAX's manager commit a save without arrays; what it waits for is ours."""
    def committed() -> None:
        handle.wait()
        if commit_callback is not None:
            commit_callback()

    manager.serialize_with_paths([], [], on_commit_callback=committed)


@checked
def tree_deserialize_leaves(checkpoint_dir: Any, mesh: Any, manager: Any = None, *,
                            prefix: str | None = None, partition_rules: Rules | None = None,
                            shardings: Any = None,
                            callback: Callable[[Any, str], Any] | None = None,
                            chunk_size: int | None = None) -> dict[str, Any]:
    """Loads a tree as nested dicts with texts as keys.

    Args:
        mesh: where arrays are placed: by `shardings`, else by `partition_rules`, else replicated,
            which is an error on a mesh of several axes that lists every such leaf. None: arrays of
            NumPy, unless `shardings` say otherwise.
        manager: ignored, for compatibility. The call always waits for saves of ours in flight.
        prefix: which tree; needed if there are several.
        partition_rules: pairs of a regular expression, searched in the key path with slashes, and a
            PartitionSpec. The first match counts.
        shardings: shardings, specs, or functions of an array, in a tree or by dotted key.
        callback: called with each array and its key, without the prefix, in the order of leaves;
            its result replaces the array in the tree.
        chunk_size: batch size, in arrays; the next batch is read after the callbacks of this one.
    """
    opened = _core.Opened(local_path(checkpoint_dir))
    target = Target(mesh=mesh, shardings=shardings, rules=partition_rules, callback=callback,
                    prefix=prefix, mesh_for_safetensors=True)
    number, placed = opened.place(target.request())
    name, leaves, values = opened.prefixes()[number]
    result: dict[str, Any] = {}
    for parts, _, value in values:
        if parts:
            put(result, parts, value)
    homes = {tuple(leaf[0]): home for leaf, home in zip(leaves, placed, strict=True)}
    paths, count = list(homes), chunk_size or len(homes)
    for begin in range(0, len(paths), max(count, 1)):
        read = _read(opened, name, paths[begin:begin + count], homes, target)
        for path, array in read.items():
            put(result, homes[path][0] or [name], array)
    return result


Homes = dict[Parts, tuple[list[str], _core.Sharding]]  # as shown, and where it goes


def _read(opened: _core.Opened, name: str, paths: Sequence[Parts], homes: Homes,
          target: Target) -> dict[Parts, Any]:
    read: dict[Parts, Any] = {}

    def place(parts: list[str], *array: Any) -> None:
        read[tuple(parts)] = target.place(parts, *array)

    opened.load(_core.LoadRequest(
        prefix=name, keys=paths, place=place,
        shardings=[(path or ((name,) if name else ()), homes[path][1]) for path in paths]))
    return read
