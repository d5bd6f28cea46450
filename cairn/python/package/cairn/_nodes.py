# SPDX-License-Identifier: Apache-2.0
"""Leaves and containers that are not Python's plainest: what they are made of, and back."""

from __future__ import annotations

import copy
import dataclasses
import re
import sys
from collections.abc import Iterable, Iterator
from typing import Any

import numpy as np

from cairn import _core
from cairn._classes import KNOWN_DICTS, class_name, dict_statics
from cairn._refusals import Refusal
from cairn._statics import NotPlain, dump_statics

Children = list[tuple[str | int, Any]]

# The class that a structure gives to keys of JAX; their kind is its static part.
PRNG_KEY = "jax.random:key"

# The most common ones, which nobody can make a container of JAX.
_LEAVES = {np.ndarray, bool, int, float, complex, str, bytes}

# What a load gives for a leaf that stays the template's.
KEPT = object()

# What JAX writes around a name in the text of a key: .name, ['name'], [0].
_NOT_NAME = re.compile(r"""^\.|^\[['"]?|['"]?\]$""")


def describe(thing: Any) -> tuple[Any, ...] | None:
    """("array", numpy array, is it immutable), ("shards", dtype, shape, sharding, [(position, numpy
    array, is it immutable)]), ("memory", dtype, shape, strides, address, owner, is it immutable),
    ("problem", what it is), or (kind, class name, children, static part); None for what cannot be
    saved."""
    jax = sys.modules.get("jax")
    if jax is not None and isinstance(thing, jax.Array):
        from cairn import _jax
        problem = _jax.problem_of(thing)
        if problem:
            return "problem", problem
        if not _jax.is_key(thing):
            return _jax.describe_array(thing)
    if isinstance(thing, (np.ndarray, np.generic)):
        return _describe_numpy(thing)
    if "torch" in sys.modules:
        from cairn import _torch
        problem = _torch.problem_of(thing)
        if problem:
            return "problem", problem
        if _torch.is_tensor(thing):
            return _torch.describe_tensor(thing)
    children = children_of(thing)
    if children is None:
        if isinstance(thing, Refusal):
            return "problem", thing.problem
        return ("problem", _function_problem(thing)) if callable(thing) else None
    if is_prng_key(thing):
        from cairn import _jax
        return "custom", PRNG_KEY, children, dump_statics(_jax.key_kind(thing))
    kind = _kind_of(thing)
    return kind, class_name(type(thing)), children, _statics(kind, thing, children)


def _function_problem(function: Any) -> str:
    kind = type(function)
    return (f"is a {kind.__module__}.{kind.__qualname__}: functions cannot be saved; leave them "
            "out, as equinox.filter(module, equinox.is_array) does")


def _describe_numpy(thing: Any) -> tuple[Any, ...]:
    masked = sys.modules.get("numpy.ma")
    if masked is not None and isinstance(thing, masked.MaskedArray):
        return "problem", "is a masked array: give its data and its mask, each by itself"
    return "array", np.asarray(thing), False


def describe_template(thing: Any) -> tuple[Any, ...] | None:
    """The same, but ("outline", dtype, shape, sharding) for whatever has a dtype and a shape."""
    if "torch" in sys.modules:
        from cairn import _torch
        if _torch.is_tensor(thing):
            return _torch.describe_outline(thing)
    if not _is_outline(thing):
        described = describe(thing)
        if described is not None or not hasattr(thing, "dtype"):
            return described
    if "jax" in sys.modules:
        from cairn import _jax
        return _jax.describe_outline(thing)
    return "outline", np.dtype(thing.dtype).name, tuple(thing.shape), _core.Sharding()


def describe_out(thing: Any) -> tuple[Any, ...] | None:
    """The same of a tree that is filled: memory of the caller that may be written to."""
    if isinstance(thing, np.ndarray):
        return _describe_numpy(thing)
    if "torch" in sys.modules:
        from cairn import _torch
        if _torch.is_tensor(thing):
            return _torch.describe_out(thing)
    if _is_outline(thing) or is_prng_key(thing):
        return "problem", f"is a {type(thing).__qualname__}, which nobody changes"
    return describe(thing)


def is_prng_key(thing: Any) -> bool:
    """A key of jax.random, which is saved as a container of its numbers."""
    if "jax" not in sys.modules:
        return False
    from cairn import _jax
    return _jax.is_key(thing)


def _is_outline(thing: Any) -> bool:
    jax = sys.modules.get("jax")
    if jax is not None and isinstance(thing, (jax.Array, jax.ShapeDtypeStruct)):
        return not is_prng_key(thing)
    return isinstance(thing, (np.ndarray, np.generic))


def children_of(thing: Any) -> Children | None:
    """What a container holds, as JAX sees it where JAX knows it; None for a leaf."""
    if type(thing) is dict:
        return list(thing.items())
    if type(thing) in _LEAVES:
        return None
    if isinstance(thing, tuple) and hasattr(thing, "_fields"):
        return list(zip(thing._fields, thing, strict=True))
    if isinstance(thing, (list, tuple)):
        return list(enumerate(thing))
    jax = sys.modules.get("jax")
    if jax is not None and isinstance(thing, (jax.Array, jax.ShapeDtypeStruct)):
        from cairn import _jax
        return [("key_data", _jax.key_data(thing))] if _jax.is_key(thing) else None
    flat = _flatten_by_jax(thing)
    if flat is not None:
        return [(key_of(path[0]), child) for path, child in flat[0]]
    if isinstance(thing, dict):
        return list(thing.items())
    if dataclasses.is_dataclass(thing) and not isinstance(thing, type):
        return [(field.name, getattr(thing, field.name)) for field in dataclasses.fields(thing)]
    return None


def _flatten_by_jax(thing: Any) -> tuple[list[Any], Any] | None:
    jax = sys.modules.get("jax")
    if jax is None:
        return None
    children, treedef = jax.tree_util.tree_flatten_with_path(thing,
                                                             is_leaf=lambda x: x is not thing)
    is_leaf = len(children) == 1 and not children[0][0]
    return None if is_leaf else (children, treedef)


def key_of(key: Any) -> str | int:
    """The part of a key path that a key of JAX's trees stands for."""
    for name in ("key", "idx", "name"):
        if hasattr(key, name):
            part = getattr(key, name)
            return part if isinstance(part, (str, int)) else str(part)
    return _NOT_NAME.sub("", str(key))


def reference_part(key: Any) -> str:
    """The same as the reference system writes it: another text where a node has no keys."""
    jax = sys.modules.get("jax")
    if jax is not None and isinstance(key, jax.tree_util.FlattenedIndexKey):
        return f"<flat index {key.key}>"
    return str(key_of(key))


def _kind_of(thing: Any) -> str:
    if isinstance(thing, tuple):
        return "named_tuple" if hasattr(thing, "_fields") else "tuple"
    if isinstance(thing, list):
        return "list"
    if isinstance(thing, dict) and type(thing) not in KNOWN_DICTS and \
            (type(thing) is dict or _flatten_by_jax(thing) is None):
        return "dict"
    return "attributes" if dataclasses.is_dataclass(thing) else "custom"


def _statics(kind: str, thing: Any, children: Children) -> str:
    """What the container holds beside its children; empty for what only code can make."""
    try:
        if kind == "attributes":
            known = {key for key, _ in children}
            rest = {field.name: getattr(thing, field.name) for field in dataclasses.fields(thing)
                    if field.name not in known}
            return dump_statics(rest) if rest else ""
        flat = _flatten_by_jax(thing) if kind == "custom" else None
        if flat is None and type(thing) in KNOWN_DICTS:
            return dump_statics(dict_statics(thing))
        return "" if flat is None else dump_statics(flat[1].node_data()[1])
    except (AttributeError, NotPlain):
        return ""


def _with_fields(thing: Any, children: Children) -> Any:
    for key, child in children:
        object.__setattr__(thing, str(key), child)
    return thing


def like(template: Any, leaves: Iterable[Any]) -> Any:
    """What was loaded, in the template's own containers; its own leaves for those that are KEPT."""
    return _like(template, iter(leaves))


def _like(template: Any, leaves: Iterator[Any]) -> Any:
    if template is None:
        return None
    inside = None if isinstance(template, np.ndarray) else children_of(template)
    if inside is not None and not is_prng_key(template):
        return with_children(template, inside, [_like(child, leaves) for _, child in inside])
    loaded = next(leaves)
    if loaded is KEPT:
        return template
    if inside is not None:
        return with_children(template, inside, [loaded])
    if getattr(template, "weak_type", False):
        from cairn import _jax
        return _jax.weak_like(template, loaded)
    return loaded


def with_children(container: Any, inside: Children, values: list[Any]) -> Any:
    """A container of the same kind with other values; `inside` is what children_of() it gives."""
    if type(container) is dict:
        return {key: value for (key, _), value in zip(inside, values, strict=True)}
    if is_prng_key(container):
        from cairn import _jax
        return _jax.wrap_key_like(container, values[0])
    if isinstance(container, tuple):
        try:
            return tuple.__new__(type(container), values)  # whatever its class wants to be made of
        except TypeError:  # a class that is not written in Python
            return type(container)(values)
    flat = _flatten_by_jax(container)
    if flat is not None:
        return flat[1].unflatten(_in_jax_order(flat[0], inside, values))
    if type(container) is list:
        return values
    if isinstance(container, list):
        filled = copy.copy(container)
        filled[:] = values
        return filled
    if isinstance(container, dict):
        changed = copy.copy(container)
        changed.update((key, value) for (key, _), value in zip(inside, values, strict=True))
        return changed
    return _with_fields(copy.copy(container), [(key, value) for (key, _), value
                                               in zip(inside, values, strict=True)])


def _in_jax_order(flat: list[Any], inside: Children, values: list[Any]) -> list[Any]:
    by_key = {str(key): value for (key, _), value in zip(inside, values, strict=True)}
    return [by_key[str(key_of(path[0]))] for path, _ in flat]
