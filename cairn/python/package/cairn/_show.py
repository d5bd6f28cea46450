# SPDX-License-Identifier: Apache-2.0
"""Trees of a checkpoint for people: as lines, and as parts of a page that fold."""

from __future__ import annotations

import html
import itertools
from collections.abc import Iterator
from typing import Any

from cairn import _core

_MOST_LINES = 60
_MOST_ROWS = 1000
_LONGEST = 80  # characters of a name or a value

_STYLE = "margin-left:1.2em;font-family:monospace"


def tree_text(title: str, tree: Any) -> str:
    """A line for each leaf and container."""
    walk = _walk(tree)
    rows = [("  " * (depth + 1) + name, _summary(thing) if isinstance(thing, dict) else
             _about(thing)) for depth, name, thing in itertools.islice(walk, _MOST_LINES)]
    width = max((len(name) for name, _ in rows), default=0)
    lines = [f"{title}  {_summary(tree)}", *(f"{name:<{width}}  {about}" for name, about in rows)]
    left = sum(not isinstance(thing, dict) for _, _, thing in walk)
    if left:
        lines.append(f"  ... and {left} more leaves")
    return "\n".join(lines)


def tree_html(title: str, tree: Any) -> str:
    """The same as a page's part; all text of the checkpoint is escaped."""
    rows = _Rows()
    body = rows.inside(tree)
    more = f"<div style='{_STYLE}'>... and {rows.left} more leaves</div>" if rows.left else ""
    return (f"<details open><summary><b>{html.escape(title)}</b> {html.escape(_summary(tree))}"
            f"</summary>{body}{more}</details>")


class _Rows:
    """Leaves as rows, up to a number of them."""

    def __init__(self) -> None:
        self._taken = 0
        self.left = 0

    def inside(self, tree: Any) -> str:
        if not isinstance(tree, dict):
            return self._row("", tree)
        return "".join(self._folder(_short(name), child) if isinstance(child, dict)
                       else self._row(_short(name), child) for name, child in tree.items())

    def _folder(self, name: str, tree: dict[str, Any]) -> str:
        if self._taken >= _MOST_ROWS:
            self.left += sum(1 for _ in _leaves(tree))
            return ""
        return (f"<details style='{_STYLE}'><summary>{html.escape(name)} "
                f"<small>{html.escape(_summary(tree))}</small></summary>{self.inside(tree)}"
                f"</details>")

    def _row(self, name: str, leaf: Any) -> str:
        if self._taken >= _MOST_ROWS:
            self.left += 1
            return ""
        self._taken += 1
        return (f"<div style='{_STYLE}'>{html.escape(name)} <small>{html.escape(_about(leaf))}"
                f"</small></div>")


def _walk(tree: Any, depth: int = 0) -> Iterator[tuple[int, str, Any]]:
    if not isinstance(tree, dict):
        yield depth, "", tree
        return
    for name, child in tree.items():
        yield depth, _short(name), child
        if isinstance(child, dict):
            yield from _walk(child, depth + 1)


def _leaves(tree: Any) -> Iterator[Any]:
    return (thing for _, _, thing in _walk(tree) if not isinstance(thing, dict))


def _summary(tree: Any) -> str:
    arrays = [leaf.nbytes for leaf in _leaves(tree) if hasattr(leaf, "nbytes")]
    count = f"{len(arrays)} array{'' if len(arrays) == 1 else 's'}"
    return f"{count}, {_core.format_bytes(sum(arrays))}"


def _about(leaf: Any) -> str:
    if not hasattr(leaf, "dtype_name"):
        return f"= {_short(repr(leaf))}"
    shape = ", ".join(map(str, leaf.shape))
    return f"{leaf.dtype_name}[{shape}]  {_core.format_bytes(leaf.nbytes)}" + \
        (f"  {leaf.spec}" if leaf.spec else "")


def _short(text: str) -> str:
    text = text if text.isprintable() else repr(text)[1:-1]
    return text if len(text) <= _LONGEST else text[:_LONGEST - 3] + "..."
