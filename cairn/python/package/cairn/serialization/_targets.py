# SPDX-License-Identifier: Apache-2.0
"""What callers ask of a load, in the library's words, and what becomes of its arrays."""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from cairn import _core
from cairn._nodes import like
from cairn._placements import leaves_of
from cairn._unpickle import unpickled
from cairn.serialization._casts import put_dtype
from cairn.serialization._wishes import (
    Rules,
    Spec,
    core_mesh,
    core_rules,
    core_wish,
    made_array,
    wishes_by_key,
)

Parts = tuple[str, ...]
Callback = Callable[[Any, str], Any]


@dataclass
class Target:
    """The wishes of one call that loads.

    `structured`: containers as they were saved; rules, shardings and the callback see keys with the
    prefix in front.
    `as_saved`, `replicate`, `mesh_for_safetensors`, `mismatch_allowed`: as _core.LoadRequest.
    `in_jax`: arrays without a sharding are JAX's where it is imported.
    `cast`: floats become of this type, after functions and the callback.
    """

    mesh: Any = None
    shardings: Any = None
    rules: Rules | None = None
    callback: Callback | None = None
    prefix: str | None = None
    mismatch_allowed: bool = True
    structured: bool = False
    as_saved: bool = False
    replicate: str = "one-axis"
    mesh_for_safetensors: bool = False
    in_jax: bool = False
    template: Any = None
    strict_shapes: bool = True
    cast: Any = None
    _keys: dict[Parts, str] = field(default_factory=dict)
    _given: dict[Parts, Any] = field(default_factory=dict)  # shardings, specs, functions
    _leaves: dict[Parts, Any] = field(default_factory=dict)  # of the template

    def request(self, *, allow_pickle: bool = False, **options: Any) -> _core.LoadRequest:
        return _core.LoadRequest(
            prefix=self.prefix or None, like=self.template, strict_shapes=self.strict_shapes,
            onto=lambda: (core_mesh(self.mesh), core_rules(self.rules)), choose=self.choose,
            as_saved=self.as_saved, replicate=self.replicate,
            mesh_for_safetensors=self.mesh_for_safetensors,
            mismatch_allowed=self.mismatch_allowed or self.shardings is None,
            keys_with_prefix=self.structured, place=self.place, keep_values=True,
            to_unpickle=allow_pickle and self.structured and self.template is None, **options)

    def choose(self, outlines: Sequence[tuple[Sequence[str], str, Sequence[int]]]
               ) -> list[_core.Sharding | Spec | None]:
        """What the caller says about each array, once it is known which there are."""
        self._keys = {tuple(parts): key for parts, key, _ in outlines}
        self._leaves = {} if self.template is None else dict(leaves_of(self.template))
        given = {} if self.shardings is None else \
            wishes_by_key(self.shardings, list(self._keys.values()))
        self._given = {parts: given[key] for parts, key in self._keys.items()
                       if given.get(key) is not None}
        return [self._wish(tuple(parts), tuple(shape)) for parts, _, shape in outlines]

    def place(self, parts: list[str], dtype: str, shape: tuple[int, ...],
              shards: list[tuple[int, Any]], sharding: _core.Sharding) -> Any:
        """What becomes of an array that was read."""
        where = tuple(parts)
        key, leaf, wish = self._keys[where], self._leaves.get(where), self._given.get(where)
        if _is_tensor(leaf):
            from cairn import _torch
            tensor = _torch.place(leaf, dtype, shape, shards)
            return tensor if self.callback is None else self.callback(tensor, key)
        function = wish if callable(wish) else None
        home = None if function is not None else self._home(leaf, wish, shape, sharding)
        array = made_array(home, shape, dtype, shards,
                           self.in_jax or function is not None or _is_anywhere(leaf))
        array = array if function is None else function(array)
        array = array if self.callback is None else self.callback(array, key)
        return put_dtype(array, self.cast)

    def finish(self, tree: Any, report: dict[str, Any]) -> Any:
        """The tree in the template's containers, or in those that were saved; or else as nested
        dicts, without a prefix that is part of the paths, and with a name for a tree that is one
        leaf."""
        if self.template is not None:
            return like(self.template, tree)
        if self.structured:
            return unpickled(tree, report)
        if not isinstance(tree, dict):
            return {self.prefix or "": tree}
        inside = tree.get(self.prefix) if self.prefix and not report["prefix"] else None
        return inside if isinstance(inside, dict) and len(tree) == 1 else tree

    def _wish(self, parts: Parts, shape: tuple[int, ...]) -> _core.Sharding | Spec | None:
        leaf, wish = self._leaves.get(parts), self._given.get(parts)
        if _is_tensor(leaf):
            from cairn import _torch
            sharding: _core.Sharding = _torch.describe_outline(leaf)[3]
            return sharding
        return None if wish is None else core_wish(wish, tuple(getattr(leaf, "shape", shape)))

    def _home(self, leaf: Any, wish: Any, shape: tuple[int, ...], decided: _core.Sharding) -> Any:
        """The library's decision as a sharding of JAX: the caller's own where it is one, or the
        template's; None if nothing places the array."""
        if wish is None and "jax" not in sys.modules:
            return None
        from cairn import _jax
        if wish is not None:
            return _jax.on_mesh(self.mesh, wish) if _jax.is_spec(wish) else wish
        theirs = None if _is_anywhere(leaf) else _jax.sharding_of(getattr(leaf, "sharding", None))
        if decided.spec is None:
            return theirs
        if theirs is not None and _jax.core_sharding(theirs, shape) == decided:
            return theirs
        return _jax.on_mesh(self.mesh, _jax.spec_of(decided.spec))


def _is_tensor(leaf: Any) -> bool:
    if "torch" not in sys.modules:
        return False
    from cairn import _torch
    return _torch.is_tensor(leaf)


def _is_anywhere(leaf: Any) -> bool:
    if "jax" not in sys.modules:
        return False
    from cairn import _jax
    return _jax.is_anywhere(leaf)


def with_kept(about: Mapping[str, Any], report: dict[str, Any]) -> dict[str, Any]:
    """What is stored about a tree, and which leaves stayed as the template has them."""
    return {**about, **({"kept_from_template": report["kept"]} if report["kept"] else {})}
