# SPDX-License-Identifier: Apache-2.0
"""Trees that the reference system saved, with their containers: its `<prefix>_structure.json` read
without executing the pickles in it."""

from __future__ import annotations

import base64
import json
import os
import pickle
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from cairn import _core
from cairn._classes import find_class, is_named_tuple, make_by_jax, make_named_tuple
from cairn._log import logger
from cairn._pickles import Call, Name, Undecodable, decode
from cairn._rebuild import Rebuilder

_MAX_FILE = 256 << 20  # bytes
_MAX_DEPTH = 200
_MAX_PLAIN = 100_000  # values that one container may hold beside its children
_KEYS = (bool, int, float, str, bytes)
_LEAF, _NONE, _TUPLE, _NAMED_TUPLE, _LIST, _DICT, _CUSTOM, _DATACLASS = range(8)


@dataclass
class _Node:
    kind: int
    data: Any
    made_by: Any
    children: list[_Node]


def restore(tree: Any, path: str, prefix: str,
            allow_pickle: bool = False) -> tuple[Any, list[str]]:
    """Puts the leaves of a tree that came as nested dicts into the containers that were saved, with
    the values that are no arrays. And sentences on what could not be done, which are logged.

    `allow_pickle` unpickles, which lets whoever wrote the file run anything.
    """
    file = os.path.join(path.removeprefix("file://"), f"{prefix}_structure.json")
    if not prefix or not os.path.isfile(file):
        return tree, []
    try:
        return _Structure(file, prefix, allow_pickle).put_on(tree)
    except (AttributeError, KeyError, TypeError, ValueError, RecursionError) as error:
        if allow_pickle:
            raise
        notes = [f"{file} was not used, the tree is nested dicts: {error!r}"]
        logger.warning("%s", notes[0])
        return tree, notes


class _Structure:
    def __init__(self, file: str, prefix: str, allow_pickle: bool):
        if os.path.getsize(file) > _MAX_FILE:
            raise Undecodable(f"it is longer than {_MAX_FILE} bytes")
        with open(file, encoding="utf-8") as opened:
            content = json.load(opened)
        if content["format"] != "pytree-structure" or content["prefix"] != prefix:
            raise Undecodable("it describes another tree")
        self._prefix = prefix
        self._keys = [str(key) for key in content["leaf_keys_full"]]
        self._mask = [bool(one) for one in content["arr_mask"]]
        self._arrays = [_ours(_core.parse_directory(_below(prefix, str(one))))
                        if str(one) != prefix else [] for one in content["array_relpaths"]]
        self._payload = {int(n): str(text) for n, text in content["nonarray_payload"].items()}
        self._treedef = base64.b64decode(content["treedef_b64"], validate=True)
        self._allow_pickle = allow_pickle
        self._rebuilder = Rebuilder()
        self._notes: list[str] = []
        self._leaves: list[Any] = []
        self._next = 0  # of the leaves
        if len(self._mask) != len(self._keys) or sum(self._mask) != len(self._arrays):
            raise Undecodable("its lists do not fit each other")

    def put_on(self, tree: Any) -> tuple[Any, list[str]]:
        self._leaves = self._collected(tree)
        if self._allow_pickle:
            return pickle.loads(self._treedef).unflatten(self._leaves), self._notes
        try:
            root = _nodes_of(decode(self._treedef), len(self._leaves))
            made = self._build(root, 0)
        except Undecodable as error:
            self._notes.append(f"the tree is nested dicts: {error}")
            made = self._with_values(tree)
        for note in self._notes:
            logger.warning("%s", note)
        return made, self._notes + self._rebuilder.notes()

    def _with_values(self, tree: Any) -> Any:
        for key, is_array, leaf in zip(self._keys, self._mask, self._leaves, strict=True):
            inside, parts = tree, self._parts(key)
            for part in parts[:-1]:
                inside = inside.setdefault(part, {}) if isinstance(inside, dict) else None
            if parts and not is_array and isinstance(inside, dict):
                inside.setdefault(parts[-1], leaf)
        return tree

    def _parts(self, key: str) -> list[str]:
        above = self._prefix + "."
        return _ours(key[len(above):].split(".")) if key.startswith(above) else []

    def _collected(self, tree: Any) -> list[Any]:
        found = _count(tree)
        if found != len(self._arrays):
            raise Undecodable(f"it has {len(self._arrays)} arrays, the checkpoint {found}")
        arrays = iter(self._arrays)
        return [_at(tree, next(arrays)) if is_array else self._value(n)
                for n, is_array in enumerate(self._mask)]

    def _value(self, number: int) -> Any:
        data = base64.b64decode(self._payload[number], validate=True)
        if self._allow_pickle:
            return pickle.loads(data)
        try:
            return _plain(decode(data), _Limit())
        except Undecodable as error:
            self._notes.append(f"the value of {self._keys[number]} was left out: {error}; with "
                               "allow_pickle=True it is unpickled")
            return None

    def _build(self, node: _Node, depth: int) -> Any:
        if depth > _MAX_DEPTH:
            raise Undecodable(f"more than {_MAX_DEPTH} containers inside each other")
        first = self._next
        if node.kind == _LEAF:
            self._next += 1
            return self._leaves[first]
        values, names = [], []
        for n, child in enumerate(node.children):
            begin = self._next
            values.append(self._build(child, depth + 1))
            parts = self._parts(self._keys[begin]) if self._next > begin else []
            names.append(parts[depth] if depth < len(parts) else str(n))
        where = self._parts(self._keys[first])[:depth] if self._next > first else ["(empty)"]
        return self._made(node, values, names, ".".join(where))

    def _made(self, node: _Node, values: list[Any], names: list[str], where: str) -> Any:
        if node.kind == _NONE:
            return None
        if node.kind == _TUPLE:
            return tuple(values)
        if node.kind == _LIST:
            return values
        if node.kind == _DICT:
            return dict(zip(_dict_keys(node), values, strict=True))
        named = node.data if node.kind == _NAMED_TUPLE else node.made_by
        name = named.text if isinstance(named, Name) else ""
        try:
            return _by_class(node, name, values)
        except Exception as error:  # whatever a class does when it is made
            self._rebuilder.lose(name, str(error), where)
            return dict(zip(names, values, strict=True))


def _nodes_of(treedef: Any, leaves: int) -> _Node:
    """From the pickle of a PyTreeDef, whose nodes follow their children."""
    state = treedef.state if isinstance(treedef, Call) and isinstance(treedef.what, Name) and \
        treedef.what.qualname == "PyTreeDef" else None
    if not isinstance(state, tuple) or len(state) != 2 or not isinstance(state[1], list):
        raise Undecodable("it holds no PyTreeDef")
    stack: list[_Node] = []
    found = 0
    for node in state[1]:
        if not isinstance(node, tuple) or len(node) != 6 or type(node[0]) is not int or \
                type(node[1]) is not int or not 0 <= node[1] <= len(stack) or \
                node[0] not in range(8) or (node[0] in (_LEAF, _NONE) and node[1]):
            raise Undecodable("a node of its PyTreeDef makes no sense")
        kind, count, data, made_by, _, _ = node
        found += kind == _LEAF
        children = stack[len(stack) - count:]
        del stack[len(stack) - count:]
        stack.append(_Node(kind, data, made_by, children))
    if len(stack) != 1 or found != leaves:
        raise Undecodable(f"its PyTreeDef has {found} leaves, and {leaves} are named")
    return stack[0]


def _dict_keys(node: _Node) -> list[Any]:
    keys = node.data
    plain = isinstance(keys, list) and all(type(key) in _KEYS for key in keys)
    if not plain or len(keys) != len(node.children) or len(set(keys)) != len(keys):
        raise Undecodable("a dict with keys that are no plain values")
    return list(keys)


def _by_class(node: _Node, name: str, values: list[Any]) -> Any:
    found = find_class(name)
    if found is None:
        raise Undecodable("there is no such class")
    if node.kind == _NAMED_TUPLE:
        if not is_named_tuple(found):
            raise Undecodable("it is no named tuple")
        return make_named_tuple(found, values)
    return make_by_jax(found, _plain(node.data, _Limit()), values)


class _Limit:
    """Of what is walked: values may share their parts, or contain themselves."""

    def __init__(self) -> None:
        self._left = _MAX_PLAIN

    def take(self, depth: int) -> None:
        self._left -= 1
        if self._left < 0 or depth > _MAX_DEPTH:
            raise Undecodable("a value that is too large")


def _plain(value: Any, limit: _Limit, depth: int = 0) -> Any:
    limit.take(depth)
    inside: Callable[[Any], Any] = lambda item: _plain(item, limit, depth + 1)  # noqa: E731
    if isinstance(value, (tuple, list)):
        return type(value)(map(inside, value))
    if isinstance(value, dict):
        return {key: inside(item) for key, item in value.items()}
    if isinstance(value, Name):
        found = find_class(value.text)
        if found is None:
            raise Undecodable(f"there is no class {value.text}")
        return found
    if isinstance(value, Call):
        if value.what != Name("builtins", "complex") or not _is_pair_of_floats(value.arguments):
            raise Undecodable("only execution could make it")
        return complex(*value.arguments)
    return value


def _is_pair_of_floats(arguments: Any) -> bool:
    return isinstance(arguments, tuple) and [type(one) for one in arguments] == [float, float]


def _ours(parts: list[str]) -> list[str]:
    return [*map(_core.part_of_reference, parts)]


def _below(prefix: str, path: str) -> str:
    above = prefix.replace(".", "/") + "/"
    if not path.startswith(above):
        raise Undecodable(f"'{path}' does not lie below the prefix")
    return path[len(above):]


def _at(tree: Any, parts: list[str]) -> Any:
    for part in parts:
        if not isinstance(tree, dict):
            raise Undecodable(f"there is no array at {'/'.join(parts)}")
        tree = tree[part]
    if isinstance(tree, dict):
        raise Undecodable(f"there is no array at {'/'.join(parts)}")
    return tree


def _count(tree: Any) -> int:
    return sum(map(_count, tree.values())) if isinstance(tree, dict) else 1
