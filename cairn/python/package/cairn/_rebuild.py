# SPDX-License-Identifier: Apache-2.0
"""The containers of a tree that was loaded without a template."""

from __future__ import annotations

import dataclasses
from collections import namedtuple
from collections.abc import Sequence
from typing import Any

from cairn import _core
from cairn._classes import (
    KNOWN_DICTS,
    find_class,
    is_named_tuple,
    make_by_jax,
    make_dataclass,
    make_dict,
    make_named_tuple,
)
from cairn._log import logger
from cairn._nodes import PRNG_KEY
from cairn._statics import NotPlain, parse_statics

Children = list[tuple[str | int, Any]]

_MOST_PLACES = 5  # that a note names


class Rebuilder:
    """Makes the containers of one load, and knows which came back as something else."""

    def __init__(self) -> None:
        self._places: dict[str, list[str]] = {}

    def rebuild(self, kind: str, class_name: str, children: Children, statics: str,
                parts: Sequence[str]) -> Any:
        """The container if its class can be found and made; otherwise a named tuple of the same
        fields, or a dict."""
        found = find_class(class_name)
        try:
            if class_name == PRNG_KEY:
                return _made_key(dict(children), parse_statics(statics))
            if found is None:
                raise NotPlain("there is no such class")
            return _made(kind, found, children, statics)
        except Exception as error:  # whatever a class does when it is made
            self.lose(class_name, str(error), _core.key_text(list(parts)) if parts else "")
        if kind == "named_tuple":
            name = class_name.rpartition(":")[2].rpartition(".")[2] or "Tuple"
            plain: Any = namedtuple  # by a name that is only known now
            return plain(name, [str(key) for key, _ in children], rename=True)(
                *(child for _, child in children))
        return dict(children)

    def lose(self, class_name: str, why: str, where: str) -> None:
        """Notes that a container could not be made."""
        self._places.setdefault(f"{class_name or 'a class without a name'} ({why})",
                                []).append(where or "the tree itself")

    def notes(self) -> list[str]:
        """A sentence for each class that came back as something else; logged, too."""
        notes = []
        for name, places in self._places.items():
            more = f" and {len(places) - _MOST_PLACES} more" if len(places) > _MOST_PLACES else ""
            notes.append(f"containers of {name} came back as plain ones: "
                         f"{', '.join(places[:_MOST_PLACES])}{more}")
            logger.warning("%s", notes[-1])
        return notes


def _made_key(children: dict[str | int, Any], kind: str) -> Any:
    from cairn import _jax
    return _jax.wrap_key(children["key_data"], kind)


def _made(kind: str, found: type, children: Children, statics: str) -> Any:
    values = [child for _, child in children]
    if kind == "named_tuple":
        # Another system does not name a field that has no leaves: its place stands for it.
        if not is_named_tuple(found) or any(
                key not in (field, str(n)) for n, ((key, _), field) in
                enumerate(zip(children, found._fields, strict=True))):  # type: ignore[attr-defined]
            raise ValueError("it has other fields")
        return make_named_tuple(found, values)
    if kind == "attributes" and dataclasses.is_dataclass(found):
        rest = parse_statics(statics) if statics else {}
        return make_dataclass(found, {**{str(key): child for key, child in children}, **rest})
    if not statics:
        raise NotPlain("what it holds beside its children is not known")
    make = make_dict if found in KNOWN_DICTS else make_by_jax
    return make(found, parse_statics(statics), values)
