# SPDX-License-Identifier: Apache-2.0
"""Where the arrays of a load go, and what becomes of them on the way."""

from __future__ import annotations

import math
import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from cairn import _core
from cairn._nodes import like
from cairn._placements import leaves_of, tensors_of
from cairn._unpickle import unpickled
from cairn.serialization._casts import put_dtype
from cairn.serialization._wishes import Rules, Wishes, core_sharding, is_anywhere, made_array

Parts = tuple[str, ...]
Callback = Callable[[Any, str], Any]


@dataclass
class Target:
    """The wishes of one call that loads.

    `structured`: containers as they were saved; rules, shardings and the callback see keys with the
    prefix in front.
    `as_saved`: what nothing is said about lies as the template's on the mesh, or as it lay when it
    was saved, where the mesh can.
    `everywhere`: and otherwise on all devices; else that is refused on a mesh of several axes.
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
    everywhere: bool = False
    in_jax: bool = False
    template: Any = None
    strict_shapes: bool = True
    cast: Any = None
    layout: str = ""
    _wishes: Wishes | None = None
    _keys: dict[Parts, str] = field(default_factory=dict)
    _hidden: str | None = None
    _kept: dict[Parts, Any] = field(default_factory=dict)
    _reshaped: set[Parts] = field(default_factory=set)
    _tensors: dict[Parts, Any] = field(default_factory=dict)  # of PyTorch, in the template
    _anywhere: set[Parts] = field(default_factory=set)  # of JAX, there, committed to no device

    def request(self, *, allow_pickle: bool = False, **options: Any) -> _core.LoadRequest:
        return _core.LoadRequest(prefix=self.prefix or None, like=self.template,
                                 strict_shapes=self.strict_shapes, choose=self.choose,
                                 place=self.place, keep_values=True,
                                 to_unpickle=allow_pickle and self.structured and
                                 self.template is None, **options)

    def choose(self, name: str, layout: str,
               leaves: Sequence[tuple[Any, ...]]) -> list[_core.Sharding | None]:
        """Shardings for the arrays of a checkpoint, once it is known which there are."""
        self.layout = layout
        self._hidden = self.prefix if self.prefix and not name else None
        arrays = [(tuple(parts), tuple(shape), spec) for parts, _, shape, spec in leaves]
        self._keys = {parts: self._key(name, parts) for parts, _, _ in arrays}
        specs = {self._keys[parts]: spec for parts, _, spec in arrays if spec is not None}
        specs.update(self._template_specs())
        # A file of safetensors lies on no mesh unless somebody says so.
        is_spread = layout != "safetensors" or self.rules is not None or self.shardings is not None
        self._wishes = Wishes(list(self._keys.values()), self.mesh if is_spread else None,
                              self.shardings, self.rules, specs=specs if self.as_saved else None,
                              everywhere=self.everywhere, mismatch_allowed=self.mismatch_allowed)
        self._match({parts: shape for parts, shape, _ in arrays})
        return [self._chosen(parts, shape) for parts, shape, _ in arrays]

    def place(self, parts: list[str], dtype: str, shape: tuple[int, ...],
              shards: list[tuple[int, Any]]) -> Any:
        """What becomes of an array that was read."""
        where = tuple(parts)
        if where in self._kept or self._wishes is None:
            return self._kept[where]
        key = self._keys[where]
        if where in self._tensors:
            from cairn import _torch
            tensor = _torch.place(self._tensors[where], dtype, shape, shards)
            return tensor if self.callback is None else self.callback(tensor, key)
        sharding, function = self._wishes.sharding(key), self._wishes.function(key)
        array = made_array(None if where in self._reshaped else sharding, shape, dtype, shards,
                           self.in_jax or function is not None or where in self._anywhere)
        if where in self._reshaped and sharding is not None:
            array = sys.modules["jax"].device_put(array, sharding)
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
        inside = tree.get(self._hidden) if self._hidden is not None else None
        return inside if isinstance(inside, dict) and len(tree) == 1 else tree

    def _key(self, name: str, parts: Parts) -> str:
        shown = parts[1:] if self._hidden and len(parts) > 1 and parts[0] == self._hidden else parts
        text = _core.key_text(shown) if shown else ""
        above = name or self._hidden or ""
        if not text or not self.structured or not above:
            return text or above
        return f"{above}.{text}"

    def _template_specs(self) -> dict[str, list[list[str]]]:
        """How the template's arrays lie on the mesh, by the keys of those that are there."""
        if self.mesh is None or self.template is None or "jax" not in sys.modules:
            return {}
        from cairn import _jax
        return {self._keys[parts]: _jax.spec_entries(leaf.sharding.spec)
                for parts, leaf in leaves_of(self.template) if parts in self._keys
                and getattr(getattr(leaf, "sharding", None), "mesh", None) == self.mesh}

    def _match(self, shapes: dict[Parts, tuple[int, ...]]) -> None:
        """Which leaves of the template stay as they are, and which arrays get its shape."""
        self._kept, self._reshaped = {}, set()
        self._tensors, self._anywhere = tensors_of(self.template), set()
        if self.template is None:
            return
        for parts, leaf in leaves_of(self.template):
            if "jax" in sys.modules and is_anywhere(leaf):
                self._anywhere.add(parts)
            wanted = tuple(leaf.shape) if hasattr(leaf, "shape") else shapes.get(parts)
            if wanted is None or shapes.get(parts) == wanted:
                continue
            if parts in shapes and math.prod(wanted) == math.prod(shapes[parts]):
                self._reshaped.add(parts)
            else:
                self._kept[parts] = leaf

    def _chosen(self, parts: Parts, shape: tuple[int, ...]) -> _core.Sharding | None:
        if parts in self._tensors:
            return None
        if parts in self._reshaped:
            return _core.Sharding()
        sharding = self._wishes.sharding(self._keys[parts]) if self._wishes is not None else None
        return None if sharding is None else core_sharding(sharding, shape)


def with_kept(about: Mapping[str, Any], report: dict[str, Any]) -> dict[str, Any]:
    """What is stored about a tree, and which leaves stayed as the template has them."""
    return {**about, **({"kept_from_template": report["kept"]} if report["kept"] else {})}
