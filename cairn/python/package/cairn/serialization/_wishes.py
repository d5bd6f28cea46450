# SPDX-License-Identifier: Apache-2.0
"""What callers say about where arrays go, in the library's words. The library decides."""

from __future__ import annotations

import sys
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from cairn import _core
from cairn._nodes import children_of
from cairn._placements import whole_array

Parts = tuple[str, ...]
Spec = list[list[str]]
Rules = Sequence[tuple[str, Any]]


def wishes_by_key(shardings: Any, keys: Sequence[str]) -> dict[str, Any]:
    """From one for all, a dict by dotted keys, or a tree."""
    flat = dict(_leaves(shardings, ()))
    if () in flat:
        return dict.fromkeys(keys, flat[()])
    return {name: wish for parts, wish in flat.items() for name in _names(parts)}


def core_wish(wish: Any, shape: tuple[int, ...]) -> _core.Sharding | Spec:
    """A function gets the whole array."""
    if callable(wish):
        return _core.Sharding()
    from cairn import _jax
    return _jax.spec_entries(wish) if _jax.is_spec(wish) else _jax.core_sharding(wish, shape)


def core_mesh(mesh: Any) -> _core.Mesh | None:
    if mesh is None:
        return None
    from cairn import _jax
    return _jax.core_mesh(mesh)


def core_rules(rules: Rules | None) -> list[tuple[str, Spec]] | None:
    if rules is None:
        return None
    from cairn import _jax
    return [(pattern, _jax.spec_entries(spec)) for pattern, spec in rules]


def wished_specs(leaves: Mapping[Parts, Any], mesh: Any, shardings: Any,
                 rules: Rules | None) -> list[tuple[list[str], Spec]]:
    """Specs to be stored with arrays. ValueError for what does not fit them."""
    if shardings is None and rules is None:
        return []
    by_text = {_core.key_text(parts): parts for parts in leaves}
    given: dict[Parts, Spec | None] = {}
    for parts, wish in [] if shardings is None else _leaves(shardings, ()):
        named = [by_text[name] for name in _names(parts) if name in by_text]
        given.update(dict.fromkeys(leaves if not parts else named or [parts], _spec_of(wish)))
    return _core.wished_specs([(parts, tuple(leaf.shape)) for parts, leaf in leaves.items()],
                              given=list(given.items()), rules=core_rules(rules),
                              mesh=core_mesh(mesh))


def _spec_of(wish: Any) -> Spec | None:
    from cairn import _jax
    spec = getattr(wish, "spec", wish)
    return _jax.spec_entries(spec) if _jax.is_spec(spec) else None


def made_array(sharding: Any, shape: tuple[int, ...], dtype: str,
               shards: list[tuple[int, Any]], in_jax: bool) -> Any:
    """From what was read: where the sharding says, or else JAX's if asked for and it is imported,
    or NumPy's."""
    if sharding is not None:
        from cairn import _jax
        return _jax.place(sharding, shape, dtype, shards)
    jax = sys.modules.get("jax")
    array = whole_array(shape, shards)
    return array if jax is None or not in_jax else jax.numpy.asarray(array)


def _names(parts: Sequence[str]) -> set[str]:
    return {".".join(parts), _core.key_text(parts)}


def _leaves(tree: Any, above: Parts) -> Iterator[tuple[Parts, Any]]:
    jax = sys.modules.get("jax")
    is_spec = jax is not None and isinstance(tree, jax.sharding.PartitionSpec)
    children = None if is_spec else \
        list(tree.items()) if isinstance(tree, Mapping) else children_of(tree)
    if children is None:
        yield above, tree
        return
    for key, child in children:
        parts = map(str, key) if isinstance(key, tuple) else [str(key)]
        yield from _leaves(child, (*above, *parts))
