# SPDX-License-Identifier: Apache-2.0
"""Places the arrays of a load: translates shardings and templates of the caller for the library."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator, Sequence
from typing import Any

from cairn import _core
from cairn._errors import error_of
from cairn._log import logger
from cairn._nodes import children_of

Parts = tuple[str, ...]

Outline = tuple[Any, ...]  # parts, key, shape


class Placements:
    """Decides where each array goes and puts it there: onto devices of JAX, or into a tensor of
    PyTorch, or nowhere."""

    def __init__(self, template: Any, sharding: Any):
        if sharding is not None and "jax" not in sys.modules:
            raise error_of("invalid_argument", "load/no-jax", "",
                           "sharding: arrays are spread over devices by JAX, which the program has "
                           "not imported")
        self._sharding = sharding
        self._wanted: dict[Parts, Any] = {}  # shardings of JAX
        self._anywhere: set[Parts] = set()  # of those in the template that are not committed
        self._tensors = tensors_of(template)
        if template is not None and "jax" in sys.modules:
            from cairn import _jax
            for parts, leaf in leaves_of(template):
                where = _jax.wanted_sharding(leaf)
                if where is not None:
                    self._wanted[parts] = where
                    if _jax.is_anywhere(leaf):
                        self._anywhere.add(parts)

    @property
    def choose(self) -> Callable[[list[Outline]], list[_core.Sharding | None]] | None:
        """As _core.LoadRequest has it."""
        return None if self._sharding is None else self._choose

    @property
    def place(self) -> Callable[..., Any] | None:
        """Likewise."""
        needed = self._sharding is not None or self._wanted or self._tensors
        return self._place if needed else None

    def _choose(self, outlines: list[Outline]) -> list[_core.Sharding | None]:
        from cairn import _jax
        given = _given(self._sharding, {tuple(parts) for parts, *_ in outlines})
        self._wanted.update(given)
        self._anywhere.difference_update(given)
        return [_jax.core_sharding(given[tuple(parts)], shape) if tuple(parts) in given else None
                for parts, _, shape in outlines]

    def _place(self, parts: list[str], dtype: str, shape: tuple[int, ...],
               shards: list[tuple[int, Any]], sharding: _core.Sharding) -> Any:
        tensor = self._tensors.get(tuple(parts))
        if tensor is not None:
            from cairn import _torch
            return _torch.place(tensor, dtype, shape, shards)
        where = self._wanted.get(tuple(parts))
        if where is None:
            return whole_array(shape, shards)
        from cairn import _jax
        made = _jax.place_anywhere(whole_array(shape, shards)) if tuple(parts) in self._anywhere \
            else _jax.place(where, shape, dtype, shards)
        if made.dtype.name != dtype:
            logger.warning("%s: %s became %s, as JAX does without jax_enable_x64",
                           _core.key_text(parts), dtype, made.dtype.name)
        return made


def tensors_of(template: Any) -> dict[Parts, Any]:
    """PyTorch's, in a template or None."""
    if template is None or "torch" not in sys.modules:
        return {}
    from cairn import _torch
    return {parts: leaf for parts, leaf in leaves_of(template) if _torch.is_tensor(leaf)}


def whole_array(shape: tuple[int, ...], shards: Sequence[tuple[int, Any]]) -> Any:
    """The content of an array that is not sharded. Raises for a part, which must never be taken for
    the whole."""
    array = shards[0][1]
    if tuple(array.shape) != tuple(shape):
        raise error_of("internal", "load/part-of-an-array", "",
                       f"{tuple(array.shape)} of {tuple(shape)} was read here, and nothing says "
                       "where the rest is; give the sharding")
    return array


def filled(out: Any) -> Callable[..., Any]:
    """For `place`: returns the arrays of the caller, which have been filled."""
    leaves = {parts: leaf for parts, leaf in leaves_of(out) if hasattr(leaf, "dtype")}

    def place(parts: list[str], dtype: str, shape: tuple[int, ...],
              shards: list[tuple[int, Any]], sharding: _core.Sharding) -> Any:
        return leaves.get(tuple(parts), shards[0][1])

    return place


def _given(sharding: Any, arrays: set[Parts]) -> dict[Parts, Any]:
    """By key path, from one sharding for all or a tree of them. The error lists all problems."""
    from cairn import _jax
    one = _jax.sharding_of(sharding)
    if one is not None:
        return dict.fromkeys(arrays, one)
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
        elif found is not None and parts not in arrays:
            problems.append(f"there is no array {name}")
        elif found is not None:
            given[parts] = found
    if problems:
        raise error_of("invalid_argument", "load/bad-sharding", "", "; ".join(problems))
    return given


def leaves_of(tree: Any, above: Parts = (),
              is_leaf: Callable[[Any], bool] = lambda thing: False) -> Iterator[tuple[Parts, Any]]:
    """Leaves with the parts of their key paths, as the library names them."""
    _core.check_depth(len(above))
    children = None if is_leaf(tree) else children_of(tree)
    if children is None:
        yield above, tree
        return
    for key, child in children:
        yield from leaves_of(child, (*above, str(key)), is_leaf)
