# SPDX-License-Identifier: Apache-2.0
"""An opened checkpoint: what is in it, read piece by piece."""

from __future__ import annotations

import math
import operator
import os
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from cairn import _core
from cairn._dtypes import numpy_dtype
from cairn._errors import error_of


def parts_of(key: str | Sequence[str | int]) -> list[str]:
    """The parts of "a.b.0" or of ("a", "b", 0)."""
    if isinstance(key, str):
        return _core.parse_key(key)
    return [str(part) for part in key]


@dataclass(frozen=True)
class Leaf:
    """An array of a checkpoint. Indexing it reads only what is asked for, as a NumPy array.

        >>> import cairn, tempfile
        >>> path = tempfile.mkdtemp() + "/c"
        >>> _ = cairn.save({"w": np.arange(12).reshape(3, 4)}, path)
        >>> cairn.open(path)["w"][1:, ::2]
        array([[ 4,  6],
               [ 8, 10]])
    """

    key: str
    dtype_name: str
    shape: tuple[int, ...]
    name: str
    prefix: str
    parts: tuple[str, ...]
    spec: str | None  # how it lay on a mesh: "P('x', None)"
    _opened: Any
    _place: tuple[int, int]

    @property
    def dtype(self) -> np.dtype[Any]:
        return numpy_dtype(self.dtype_name)

    @property
    def ndim(self) -> int:
        return len(self.shape)

    @property
    def size(self) -> int:
        return math.prod(self.shape)

    @property
    def nbytes(self) -> int:
        return _core.array_nbytes(self.dtype_name, self.shape) or 0

    def __getitem__(self, index: Any) -> Any:
        wanted = _Wanted(self.shape, index)
        return self._opened.read(*self._place, wanted.ranges)[wanted.inside]

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> np.ndarray[Any, Any]:
        array: np.ndarray[Any, Any] = self[...]
        return array if dtype is None else array.astype(dtype)

    def __repr__(self) -> str:
        return f"<{self.key}: {self.dtype_name} {self.shape}>"


class _Wanted:
    """An index of integers, slices and an ellipsis: the box that holds it, and the index inside."""

    def __init__(self, shape: tuple[int, ...], index: Any):
        given = list(index) if isinstance(index, tuple) else [index]
        if Ellipsis not in given:
            given.append(Ellipsis)
        at = given.index(Ellipsis)
        given[at:at + 1] = [slice(None)] * (len(shape) - len(given) + 1)
        if len(given) != len(shape):
            raise IndexError(f"too many indices for an array of shape {shape}")
        self.ranges: list[tuple[int, int]] = []
        inside: list[int | slice] = []
        for size, one in zip(shape, given, strict=True):
            self._add(size, one, inside)
        self.inside = tuple(inside)

    def _add(self, size: int, one: Any, inside: list[int | slice]) -> None:
        if not isinstance(one, slice):
            at = operator.index(one)
            if not -size <= at < size:
                raise IndexError(f"index {at} is out of bounds for a dimension of {size}")
            at %= size
            self.ranges.append((at, at + 1))
            inside.append(0)
            return
        steps = range(*one.indices(size))
        if not steps:
            self.ranges.append((0, 0))
            inside.append(slice(None))
            return
        low, high = min(steps[0], steps[-1]), max(steps[0], steps[-1])
        self.ranges.append((low, high + 1))
        inside.append(slice(None, None, steps.step))


class Checkpoint:
    """What cairn.open() returns. Nothing but metadata has been read.

    `checkpoint["params.w"]` or `checkpoint["params", "w"]` is a Leaf; `leaves` has all of them,
    `values` whatever is no array, and `tree` both, as nested dicts. Printed it is a tree with
    types, shapes, sizes and how arrays lay on a mesh; a notebook shows it in parts that fold.
    """

    def __init__(self, path: str):
        self._opened = _core.Opened(path)
        self.path: str = self._opened.path
        self.kind: str = self._opened.kind
        self.notes: list[str] = self._opened.notes
        self.prefixes: list[str] = []
        self.leaves: list[Leaf] = []
        self.values: dict[str, Any] = {}
        self._by_key: dict[str, list[Leaf]] = {}
        self.tree: Any = {}
        for number, (prefix, leaves, values) in enumerate(self._opened.prefixes()):
            self.prefixes.append(prefix)
            specs = self._opened.specs(number)
            for place, (parts, key, dtype, shape, name) in enumerate(leaves):
                self._add(Leaf(key, dtype, shape, name, prefix, tuple(parts), specs[place],
                               self._opened, (number, place)))
            for parts, key, value in values:
                self.values[f"{prefix}.{key}" if prefix else key] = value
                self._put(prefix, parts, value)

    def _put(self, prefix: str, parts: Sequence[str], thing: Any) -> None:
        path = [prefix, *parts] if prefix else list(parts)
        if not path:
            self.tree = thing
            return
        inside = self.tree
        for part in path[:-1]:
            inside = inside.setdefault(part, {}) if isinstance(inside, dict) else None
        if isinstance(inside, dict):  # or an array of another tree stands there
            inside.setdefault(path[-1], thing)

    def _add(self, leaf: Leaf) -> None:
        self._put(leaf.prefix, leaf.parts, leaf)
        self.leaves.append(leaf)
        names = {leaf.key, ".".join(part for part in (leaf.prefix, leaf.key) if part)}
        for name in names:
            self._by_key.setdefault(name, []).append(leaf)

    def __getitem__(self, key: str | tuple[str | int, ...]) -> Leaf:
        text = key if isinstance(key, str) else _core.key_text(parts_of(key))
        found = self._by_key.get(text, [])
        if len(found) == 1:
            return found[0]
        if found:
            raise error_of("invalid_argument", "load/prefix-ambiguous", "",
                           f"'{text}' is in several trees: put one of "
                           f"{', '.join(leaf.prefix for leaf in found)} in front")
        raise error_of("not_found", "load/key-missing", "", f"there is no array '{text}'")

    def __contains__(self, key: str) -> bool:
        return key in self._by_key

    def __iter__(self) -> Iterator[Leaf]:
        return iter(self.leaves)

    def __len__(self) -> int:
        return len(self.leaves)

    def __repr__(self) -> str:
        from cairn._show import tree_text
        return tree_text(f"{self.path}  {self.kind}", self.tree)

    def _repr_html_(self) -> str:
        from cairn._show import tree_html
        return tree_html(f"{self.path}  {self.kind}", self.tree)


def open(path: str | os.PathLike[str]) -> Checkpoint:
    """Opens a checkpoint of ours or of another system by its metadata alone."""
    return Checkpoint(os.fspath(path))
