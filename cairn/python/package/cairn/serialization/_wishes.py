# SPDX-License-Identifier: Apache-2.0
"""Where arrays of a load are to go: the caller's shardings and rules, by key."""

from __future__ import annotations

import sys
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from cairn import _core
from cairn._errors import error_of
from cairn._nodes import children_of
from cairn._placements import whole_array

Rules = Sequence[tuple[str, Any]]


class Wishes:
    """A sharding of JAX, a function, or nothing for each key.

    Args:
        specs: how arrays lay when they were saved, by key; counts where the mesh has those axes,
            and nothing else says anything.
        everywhere: what nobody says anything about goes to all devices of any mesh; otherwise that
            is refused where the mesh has several axes.
        mismatch_allowed: `shardings` need not name every key.
    """

    def __init__(self, keys: Sequence[str], mesh: Any, shardings: Any, rules: Rules | None, *,
                 specs: Mapping[str, Sequence[Sequence[str]]] | None = None,
                 everywhere: bool = False, mismatch_allowed: bool = True):
        self._mesh = mesh
        given = _by_key(shardings, keys)
        self._wanted = {key: self._placed(given[key]) for key in keys
                        if given.get(key) is not None}
        rest = [key for key in keys if key not in self._wanted]
        if rest and shardings is not None and not mismatch_allowed:
            raise KeyError(f"there is no function and no sharding for {', '.join(rest)}")
        if rules is not None:
            self._wanted.update(self._by_rules(rest, rules))
        elif mesh is not None and rest:
            self._wanted.update(self._by_specs(rest, specs or {}))
            self._spread([key for key in rest if key not in self._wanted], everywhere)

    def sharding(self, key: str) -> Any:
        wish = self._wanted.get(key)
        return None if callable(wish) else wish

    def function(self, key: str) -> Any:
        wish = self._wanted.get(key)
        return wish if callable(wish) else None

    def _placed(self, wish: Any) -> Any:
        jax = sys.modules.get("jax")
        if jax is None or not isinstance(wish, jax.sharding.PartitionSpec):
            return wish
        return self._on_mesh(wish)

    def _on_mesh(self, spec: Any) -> Any:
        import jax
        if self._mesh is None:
            raise error_of("invalid_argument", "load/no-mesh", "",
                           "specs and rules say nothing without a mesh")
        return jax.sharding.NamedSharding(self._mesh, spec)

    def _by_rules(self, keys: list[str], rules: Rules) -> dict[str, Any]:
        names = ["/".join(_core.parse_key(key)) for key in keys]
        matches = _core.matching_rules([pattern for pattern, _ in rules], names)
        return {key: self._on_mesh(rules[match][1])
                for key, match in zip(keys, matches, strict=True)}

    def _by_specs(self, keys: list[str],
                  specs: Mapping[str, Sequence[Sequence[str]]]) -> dict[str, Any]:
        import jax
        make_spec: Any = jax.sharding.PartitionSpec  # JAX has no types for it
        there = set(self._mesh.axis_names)
        return {key: self._on_mesh(make_spec(*map(_entry, specs[key]))) for key in keys
                if key in specs and there.issuperset(axis for axes in specs[key] for axis in axes)}

    def _spread(self, keys: list[str], everywhere: bool) -> None:
        """On every device, which is refused where there is more than one way to spread."""
        if keys and len(self._mesh.axis_names) > 1 and not everywhere:
            raise error_of("invalid_argument", "load/no-sharding", "",
                           f"No sharding specified for {', '.join(map(repr, keys))} on multi-axis "
                           "mesh. Provide 'shardings' or 'partition_rules'.")
        import jax
        make_spec: Any = jax.sharding.PartitionSpec
        self._wanted.update(dict.fromkeys(keys, self._on_mesh(make_spec())))


def wished_specs(leaves: Mapping[str, Any], mesh: Any, shardings: Any,
                 rules: Rules | None) -> list[tuple[list[str], list[list[str]]]]:
    """Specs to be stored with arrays, by the parts of their keys. ValueError for what does not fit
    them."""
    if shardings is None and rules is None:
        return []
    given = _by_key(shardings, list(leaves))
    unknown = [".".join(parts) for parts, _ in _leaves(shardings, ())
               if shardings is not None and parts and not _names(parts) & leaves.keys()]
    if unknown:
        raise ValueError("there are shardings for what is no array of the tree: "
                         f"{', '.join(unknown)}")
    specs = {key: getattr(given[key], "spec", given[key]) for key in leaves if key in given}
    rest = [key for key in leaves if key not in specs]
    if rules is not None:
        matches = _core.matching_rules([pattern for pattern, _ in rules],
                                       ["/".join(_core.parse_key(key)) for key in rest])
        specs.update((key, rules[match][1]) for key, match in zip(rest, matches, strict=True))
    return [(_core.parse_key(key), _checked(key, leaves[key], mesh, spec))
            for key, spec in specs.items() if spec is not None and not callable(spec)]


def _checked(key: str, leaf: Any, mesh: Any, spec: Any) -> list[list[str]]:
    from cairn import _jax
    entries = _jax.spec_entries(spec)
    if mesh is None:
        return entries
    import jax
    try:
        jax.sharding.NamedSharding(mesh, spec).shard_shape(tuple(leaf.shape))
    except ValueError as error:
        raise ValueError(f"{key}: {error}") from None
    return entries


def _entry(axes: Sequence[str]) -> str | tuple[str, ...] | None:
    return axes[0] if len(axes) == 1 else tuple(axes) or None


def core_sharding(sharding: Any, shape: tuple[int, ...]) -> _core.Sharding:
    from cairn import _jax
    return _jax.core_sharding(sharding, shape)


def is_anywhere(leaf: Any) -> bool:
    from cairn import _jax
    return _jax.is_anywhere(leaf)


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


def _by_key(shardings: Any, keys: Sequence[str]) -> dict[str, Any]:
    """From one for all, a dict by dotted keys, or a tree."""
    if shardings is None:
        return {}
    flat = dict(_leaves(shardings, ()))
    if () in flat:
        return dict.fromkeys(keys, flat[()])
    return {name: wish for parts, wish in flat.items() for name in _names(parts)}


def _names(parts: Sequence[str]) -> set[str]:
    return {".".join(parts), _core.key_text(parts)}


def _leaves(tree: Any, above: tuple[str, ...]) -> Iterator[tuple[tuple[str, ...], Any]]:
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
