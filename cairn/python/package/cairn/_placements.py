# SPDX-License-Identifier: Apache-2.0
"""Where the arrays of a load go: from the caller's shardings and template to the library's."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from typing import Any

from cairn import _core
from cairn._nodes import children_of
from cairn._opened import Checkpoint

Parts = tuple[str, ...]
Place = Callable[[list[str], str, tuple[int, ...], list[tuple[int, Any]]], Any]


def placements(path: str, prefix: str | None, template: Any,
               sharding: Any) -> tuple[list[tuple[Parts, _core.Sharding]], Place | None]:
    """What _core.load() takes: shardings by key path, and the function that makes arrays of what it
    read."""
    if "jax" not in sys.modules or (template is None and sharding is None):
        return [], None
    from cairn import _jax
    wanted: dict[Parts, Any] = {}
    if template is not None:
        wanted.update((parts, leaf.sharding) for parts, leaf in leaves_of(template)
                      if getattr(leaf, "sharding", None) is not None)
    shardings: list[tuple[Parts, _core.Sharding]] = []
    if sharding is not None:
        shapes = _shapes(path, prefix)
        given = dict.fromkeys(shapes, sharding) if _jax.is_sharding(sharding) else \
            {parts: leaf for parts, leaf in leaves_of(sharding) if parts in shapes}
        shardings = [(parts, _jax.core_sharding(one, shapes[parts]))
                     for parts, one in given.items()]
        wanted.update(given)

    def place(parts: list[str], dtype: str, shape: tuple[int, ...],
              shards: list[tuple[int, Any]]) -> Any:
        where = wanted.get(tuple(parts))
        return shards[0][1] if where is None else _jax.place(where, shape, shards)

    return shardings, place


def _shapes(path: str, prefix: str | None) -> dict[Parts, tuple[int, ...]]:
    return {leaf.parts: leaf.shape for leaf in Checkpoint(path).leaves
            if prefix is None or leaf.prefix == prefix}


def leaves_of(tree: Any, above: Parts = ()) -> Iterator[tuple[Parts, Any]]:
    """Leaves with the parts of their key paths, as the library names them."""
    children = children_of(tree)
    if children is None:
        yield above, tree
        return
    for key, child in children:
        yield from leaves_of(child, (*above, str(key)))
