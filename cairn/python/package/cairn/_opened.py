# SPDX-License-Identifier: Apache-2.0
"""An opened checkpoint, read piece by piece."""

from __future__ import annotations

import json
import math
import operator
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from cairn import _core
from cairn._arguments import checked
from cairn._dtypes import numpy_dtype
from cairn._paths import PathLike, path_text


def parts_of(key: str | Sequence[str | int]) -> list[str]:
    """The parts of "a.b.0" or of ("a", "b", 0)."""
    if isinstance(key, str):
        return _core.parse_key(key)
    if isinstance(key, int):
        return [str(key)]
    if not isinstance(key, (tuple, list)):
        raise TypeError("a key path is a text or a tuple of its parts, not "
                        f"{type(key).__qualname__}")
    return [str(part) for part in key]


@dataclass(frozen=True)
class Leaf:
    """An array of a checkpoint. Indexing it reads only the requested elements, as a NumPy array;
    with a step also those in between.

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
        """As NumPy has it, or ml_dtypes."""
        return numpy_dtype(self.dtype_name)

    @property
    def ndim(self) -> int:
        """Dimensions."""
        return len(self.shape)

    @property
    def size(self) -> int:
        """Elements."""
        return math.prod(self.shape)

    @property
    def nbytes(self) -> int:
        """Bytes in memory, where an element has one at least."""
        return _core.array_nbytes(self.dtype_name, self.shape, packed=False) or 0

    def __getitem__(self, index: Any) -> Any:
        """Indexing as in NumPy by integers, slices, an ellipsis and None. IndexError for others."""
        wanted = _Wanted(self.shape, index)
        return self._opened.read(*self._place, wanted.ranges)[wanted.inside]

    def __len__(self) -> int:
        if not self.shape:
            raise TypeError("a leaf without dimensions has no length")
        return self.shape[0]

    def __bool__(self) -> bool:
        return True  # it is there, whatever its length

    def __iter__(self) -> Iterator[Any]:
        return map(self.__getitem__, range(len(self)))

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> np.ndarray[Any, Any]:
        if copy is False:
            raise ValueError("a leaf lies in a file: an array of it is always a copy")
        array: np.ndarray[Any, Any] = self[...]
        return array if dtype is None else array.astype(dtype, copy=False)

    def __repr__(self) -> str:
        return f"<{self.key}: {self.dtype_name} {self.shape}>"


class _Wanted:
    """An index of integers, slices, an ellipsis and None: the box that holds it, and the index
    inside."""

    def __init__(self, shape: tuple[int, ...], index: Any):
        given = list(index) if isinstance(index, tuple) else [index]
        places = [at for at, one in enumerate(given) if one is Ellipsis]
        if len(places) > 1:
            raise IndexError("an index can have one ellipsis, not several")
        left = len(shape) - sum(one is not None and one is not Ellipsis for one in given)
        if left < 0:
            raise IndexError(f"too many indices for an array of shape {shape}")
        at = places[0] if places else len(given)
        given[at:at + 1] = [slice(None)] * left
        self.ranges: list[tuple[int, int]] = []
        self._inside: list[Any] = []
        sizes = iter(shape)
        for one in given:
            if one is None:
                self._inside.append(None)
            else:
                self._add(next(sizes), one)
        # With an ellipsis NumPy gives an array where it would give a number.
        self.inside = (*self._inside, Ellipsis) if places else tuple(self._inside)

    def _add(self, size: int, one: Any) -> None:
        if not isinstance(one, slice):
            at = _integer(one)
            if not -size <= at < size:
                raise IndexError(f"index {at} is out of bounds for a dimension of {size}")
            at %= size
            self.ranges.append((at, at + 1))
            self._inside.append(0)
            return
        steps = range(*one.indices(size))
        if not steps:
            self.ranges.append((0, 0))
            self._inside.append(slice(None))
            return
        low, high = min(steps[0], steps[-1]), max(steps[0], steps[-1])
        self.ranges.append((low, high + 1))
        self._inside.append(slice(None, None, steps.step))


def _integer(index: Any) -> int:
    try:
        if not isinstance(index, (bool, np.bool_)):
            return operator.index(index)
    except TypeError:
        pass
    raise IndexError("an index of a leaf is made of integers, slices, an ellipsis and None, not of "
                     f"{type(index).__qualname__}; read a range and index that: leaf[...][index]")


class Checkpoint:
    """The result of cairn.open(), which reads only metadata.

    `checkpoint["params.w"]` or `checkpoint["params", "w"]` is a Leaf; `leaves` has all of them,
    `values` the leaves that are not arrays, and `tree` both, as nested dicts. It prints as a tree
    with types, shapes, sizes and specs on a mesh, which folds in a notebook. about() returns the
    step, the metadata and the extras. Iteration visits the leaves.

        >>> import cairn, tempfile
        >>> path = tempfile.mkdtemp() + "/c"
        >>> _ = cairn.save({"params": {"w": np.ones((2, 3))}, "step": 7}, path)
        >>> checkpoint = cairn.open(path)
        >>> checkpoint["params", "w"][0, :2]
        array([1., 1.])
        >>> [leaf.shape for leaf in checkpoint], "params.w" in checkpoint
        ([(2, 3)], True)
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

    @checked
    def about(self, prefix: str | None = None) -> dict[str, Any]:
        """What was saved with the tree: `step`, `metadata` and `extras` as passed to save(), and
        `time`, `writer` and the number of `ranks`. `prefix` selects one of several trees.

            >>> import cairn, tempfile
            >>> path = tempfile.mkdtemp() + "/c"
            >>> _ = cairn.save({"w": np.ones(3)}, path, step=7, metadata={"loss": 0.5})
            >>> about = cairn.open(path).about()
            >>> about["step"], about["metadata"], about["extras"]
            (7, {'loss': 0.5}, {})
        """
        step, time, writer, ranks, metadata, extras = self._opened.about(prefix)
        return {"step": step, "time": time, "writer": writer, "ranks": ranks,
                "metadata": json.loads(metadata) or {}, "extras": json.loads(extras) or {}}

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
        text = _text_of(key)
        found = self._by_key.get(text, [])
        if len(found) == 1:
            return found[0]
        place = self._opened.find(text)
        return next(leaf for leaf in self.leaves if leaf._place == place)

    def __contains__(self, key: str | tuple[str | int, ...]) -> bool:
        return _text_of(key) in self._by_key

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


def _text_of(key: str | tuple[str | int, ...]) -> str:
    return key if isinstance(key, str) else _core.key_text(parts_of(key))


def open(path: PathLike) -> Checkpoint:
    """Opens a checkpoint of ours or of another system; reads only metadata.

        >>> import cairn, tempfile
        >>> path = tempfile.mkdtemp() + "/c"
        >>> _ = cairn.save({"params": {"w": np.ones(3)}, "step": 7}, path)
        >>> checkpoint = cairn.open(path)
        >>> checkpoint["params.w"]
        <params.w: float64 (3,)>
        >>> checkpoint.values
        {'step': 7}
    """
    return Checkpoint(path_text(path))
