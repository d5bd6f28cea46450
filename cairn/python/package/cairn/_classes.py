# SPDX-License-Identifier: Apache-2.0
"""Rebuilds containers of user classes from their description in a checkpoint.

A class is only taken from a module that is imported already or belongs to a known package that is
installed (never from the current directory, which may hold files of strangers), and only if it is
a named tuple, a dataclass, an ordered or default dict or a node of JAX's registry. Nothing else is
ever made.
"""

from __future__ import annotations

import dataclasses
import importlib
import inspect
import os
import sys
import threading
from collections import OrderedDict, defaultdict
from collections.abc import Mapping, Sequence
from typing import Any

KNOWN_PACKAGES = ("jax", "flax", "optax", "equinox", "chex", "haiku", "penzai")

# Nodes of JAX's registry that need no JAX.
KNOWN_DICTS = (OrderedDict, defaultdict)


def class_name(found: type) -> str:
    """As a checkpoint has it."""
    return f"{found.__module__}:{found.__qualname__}"


def find_class(name: str) -> type | None:
    """The class of a container; None for whatever else has this name."""
    module_name, _, qualname = name.partition(":")
    module = sys.modules.get(module_name)
    if module is None and module_name.partition(".")[0] in KNOWN_PACKAGES:
        module = _import_installed(module_name)
    if module is None:
        return None
    found: Any = module
    for part in qualname.split("."):
        # A module's own __getattr__ would import whatever it likes.
        found = inspect.getattr_static(found, part, None)
        if not isinstance(found, type):
            return None
    return found if found in KNOWN_DICTS or is_named_tuple(found) or is_plain_dataclass(found) or \
        is_registered(found) else None


_path_lock = threading.Lock()


def _import_installed(name: str) -> Any:
    """The module, if it and all that it imports are found elsewhere than in the current directory;
    None if not, or if it cannot be imported."""
    with _path_lock:
        before = sys.path
        try:
            here = os.path.realpath(os.getcwd())
            sys.path = [place for place in before if os.path.realpath(place or here) != here]
            return importlib.import_module(name)
        except Exception:  # there is no such directory; whatever the module does when imported
            return None
        finally:
            sys.path = before


def is_named_tuple(found: type) -> bool:
    return issubclass(found, tuple) and hasattr(found, "_fields")


def is_plain_dataclass(found: type) -> bool:
    return dataclasses.is_dataclass(found)


def is_registered(found: type) -> bool:
    """With JAX, if that is imported."""
    if "jax" not in sys.modules:
        return False
    try:
        _treedef_of(found, None, 0)
    except RuntimeError as error:
        return "Could not find type" not in str(error)
    except Exception:  # it is there, and cannot do with nothing
        return True
    return True


def make_named_tuple(found: type, values: Sequence[Any]) -> Any:
    """Without asking the class. ValueError if it has other fields."""
    if len(found._fields) != len(values):  # type: ignore[attr-defined]
        raise ValueError(f"{class_name(found)} has other fields")
    return tuple.__new__(found, values)


def make_dataclass(found: type, fields: Mapping[str, Any]) -> Any:
    """Without asking the class. ValueError if it has other fields."""
    names = {field.name for field in dataclasses.fields(found)}
    if names != set(fields):
        raise ValueError(f"{class_name(found)} has other fields")
    thing: Any = object.__new__(found)
    for name, value in fields.items():
        object.__setattr__(thing, name, value)
    return thing


def dict_statics(container: Any) -> Any:
    """What JAX says that one of KNOWN_DICTS holds beside its children."""
    keys = tuple(container)
    return (container.default_factory, keys) if type(container) is defaultdict else keys


def make_dict(found: type, data: Any, values: Sequence[Any]) -> Any:
    """One of KNOWN_DICTS from what dict_statics() gave."""
    if found is OrderedDict:
        return OrderedDict(zip(data, values, strict=True))
    factory, keys = data
    return defaultdict(factory, zip(keys, values, strict=True))


def make_by_jax(found: type, data: Any, values: Sequence[Any]) -> Any:
    """As JAX's registry says. Raises what the class raises."""
    return _treedef_of(found, data, len(values)).unflatten(values)


def _treedef_of(found: type, data: Any, children: int) -> Any:
    from jax import tree_util
    treedefs: Any = tree_util.PyTreeDef
    make = getattr(treedefs, "from_node_data_and_children", None) or \
        treedefs.make_from_node_data_and_children
    leaf = tree_util.tree_structure(0)
    return make(tree_util.default_registry, (found, data), [leaf] * children)
