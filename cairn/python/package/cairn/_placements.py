# SPDX-License-Identifier: Apache-2.0
"""Where the arrays of a load go: from the caller's shardings and template to the library's."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from typing import Any

from cairn import _core
from cairn._errors import error_of
from cairn._log import logger
from cairn._nodes import children_of
from cairn._opened import Checkpoint

Parts = tuple[str, ...]
Place = Callable[[list[str], str, tuple[int, ...], list[tuple[int, Any]]], Any]


def placements(path: str, prefix: str | None, template: Any,
               sharding: Any) -> tuple[list[tuple[Parts, _core.Sharding]], Place | None]:
    """What _core.load() takes: shardings by key path, and the function that makes arrays of what it
    read."""
    if sharding is not None and "jax" not in sys.modules:
        raise error_of("invalid_argument", "load/no-jax", "",
                       "sharding: arrays are spread over devices by JAX, which the program has not "
                       "imported")
    if "jax" not in sys.modules or (template is None and sharding is None):
        return [], None
    from cairn import _jax
    wanted: dict[Parts, Any] = {}
    if template is not None:
        wanted.update((parts, where) for parts, leaf in leaves_of(template)
                      if (where := _jax.wanted_sharding(leaf)) is not None)
    shardings: list[tuple[Parts, _core.Sharding]] = []
    if sharding is not None:
        shapes = _shapes(path, prefix)
        given = _given(sharding, shapes)
        shardings = [(parts, _jax.core_sharding(one, shapes[parts]))
                     for parts, one in given.items()]
        wanted.update(given)

    def place(parts: list[str], dtype: str, shape: tuple[int, ...],
              shards: list[tuple[int, Any]]) -> Any:
        where = wanted.get(tuple(parts))
        if where is None:
            return shards[0][1]
        made = _jax.place(where, shape, shards)
        if made.dtype.name != dtype:
            logger.warning("%s: %s became %s, as JAX does without jax_enable_x64",
                           _core.key_text(parts), dtype, made.dtype.name)
        return made

    return shardings, place


def _given(sharding: Any, shapes: dict[Parts, tuple[int, ...]]) -> dict[Parts, Any]:
    """By key path, from one for all or a tree. Raises with everything that is wrong with it."""
    from cairn import _jax
    one = _jax.sharding_of(sharding)
    if one is not None:
        return dict.fromkeys(shapes, one)
    given: dict[Parts, Any] = {}
    problems: list[str] = []
    for parts, leaf in leaves_of(sharding, is_leaf=_jax.is_spec):
        name = f"'{_core.key_text(list(parts))}'" if parts else "sharding"
        found = _jax.sharding_of(leaf)
        if _jax.is_spec(leaf):
            problems.append(f"{name} is a PartitionSpec, which says nothing without a mesh: give "
                            "a NamedSharding")
        elif leaf is not None and found is None:
            problems.append(f"{name} is a {type(leaf).__qualname__}, neither a sharding nor a "
                            "device of JAX")
        elif found is not None and parts not in shapes:
            problems.append(f"there is no array {name}")
        elif found is not None:
            given[parts] = found
    if problems:
        raise error_of("invalid_argument", "load/bad-sharding", "", "; ".join(problems))
    return given


def _shapes(path: str, prefix: str | None) -> dict[Parts, tuple[int, ...]]:
    return {leaf.parts: leaf.shape for leaf in Checkpoint(path).leaves
            if prefix is None or leaf.prefix == prefix}


def leaves_of(tree: Any, above: Parts = (),
              is_leaf: Callable[[Any], bool] = lambda thing: False) -> Iterator[tuple[Parts, Any]]:
    """Leaves with the parts of their key paths, as the library names them."""
    children = None if is_leaf(tree) else children_of(tree)
    if children is None:
        yield above, tree
        return
    for key, child in children:
        yield from leaves_of(child, (*above, str(key)), is_leaf)
