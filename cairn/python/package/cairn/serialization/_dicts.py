# SPDX-License-Identifier: Apache-2.0
"""Nested dicts and flat ones."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any


class _EmptyNode:
    """Stands for an empty dict among the values of a flat one."""


empty_node = _EmptyNode()


def flatten_dict(xs: Mapping[Any, Any], keep_empty_nodes: bool = False,
                 is_leaf: Callable[[tuple[Any, ...], Any], bool] | None = None,
                 sep: str | None = None, fumap: bool = False) -> dict[Any, Any]:
    """One dict for all levels, with tuples of keys; with `sep`, with their texts joined by it.

        >>> flatten_dict({"a": {"b": 1, 0: 2}, "c": 3}, sep=".")
        {'a.b': 1, 'a.0': 2, 'c': 3}

    Empty dicts are left out unless `keep_empty_nodes`; `is_leaf(path, value)` stops at a dict.
    `fumap` is taken for the sake of old programs and changes nothing.
    """
    if not isinstance(xs, Mapping):
        raise TypeError(f"a dict is needed, not a {type(xs).__qualname__}")
    flat: dict[Any, Any] = {}

    def add(path: tuple[Any, ...], value: Any) -> None:
        key = path if sep is None else sep.join(map(str, path))
        if not isinstance(value, Mapping) or (is_leaf is not None and is_leaf(path, value)):
            flat[key] = value
        elif value:
            for name, child in value.items():
                add((*path, name), child)
        elif keep_empty_nodes and path:
            flat[key] = empty_node

    add((), xs)
    return flat


def unflatten_dict(xs: Mapping[Any, Any], sep: str | None = None) -> dict[Any, Any]:
    """What flatten_dict() was given.

        >>> unflatten_dict({"a.b": 1, "a.c": 2}, sep=".")
        {'a': {'b': 1, 'c': 2}}
    """
    nested: dict[Any, Any] = {}
    for key, value in xs.items():
        put(nested, key if sep is None else key.split(sep), {} if value is empty_node else value)
    return nested


def put(nested: dict[Any, Any], path: Any, value: Any) -> None:
    """Puts a value at a path of keys, with the dicts on the way."""
    for key in path[:-1]:
        nested = nested.setdefault(key, {})
    nested[path[-1]] = value


def is_flatten(tree: Mapping[Any, Any]) -> bool:
    """Is any key a tuple, as flatten_dict() makes them?"""
    return any(isinstance(key, tuple) for key in tree)


def by_text(tree: Mapping[Any, Any]) -> dict[str, Any]:
    """Flat, with dotted texts as keys, however it is given."""
    if not is_flatten(tree):
        return flatten_dict(tree, sep=".")
    return {".".join(map(str, key)) if isinstance(key, tuple) else key: value
            for key, value in tree.items()}
