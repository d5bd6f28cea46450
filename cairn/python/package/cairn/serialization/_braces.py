# SPDX-License-Identifier: Apache-2.0
"""Braces as shells expand them."""

from __future__ import annotations

import re

_NUMBERS = re.compile(r"(-?\d+)\.\.(-?\d+)(?:\.\.(-?\d+))?")
_LETTERS = re.compile(r"([A-Za-z])\.\.([A-Za-z])(?:\.\.(-?\d+))?")


def expand_braces(text: str) -> list[str]:
    """All texts that "{a,b}", "{1..5..2}" and "{a..e}" stand for; a backslash takes what follows as
    it is.

        >>> expand_braces("model-{01..03}-{x,{y,z}}")[:4]
        ['model-01-x', 'model-01-y', 'model-01-z', 'model-02-x']
    """
    expanded, at = _piece(text, 0, inside=False)
    if at < len(text):
        raise ValueError(f"{text}: a brace closes that was never opened")
    return expanded


def _piece(text: str, at: int, inside: bool) -> tuple[list[str], int]:
    """Up to the end, or to what ends an alternative."""
    made = [""]
    while at < len(text):
        if text[at] == "}" or (inside and text[at] == ","):
            break
        if text[at] == "{":
            choices, at = _group(text, at)
        else:
            at += text[at] == "\\" and at + 1 < len(text)
            choices, at = [text[at]], at + 1
        made = [before + choice for before in made for choice in choices]
    return made, at


def _group(text: str, begin: int) -> tuple[list[str], int]:
    alternatives: list[list[str]] = []
    at = begin
    while at < len(text) and text[at] != "}":
        made, at = _piece(text, at + 1, inside=True)
        alternatives.append(made)
    if at == len(text):
        raise ValueError(f"{text}: a brace opens that is never closed")
    if len(alternatives) > 1:
        return [choice for made in alternatives for choice in made], at + 1
    return (_series(text[begin + 1:at]) or ["{" + one + "}" for one in alternatives[0]]), at + 1


def _series(inside: str) -> list[str]:
    """What "1..3" or "a..c" stands for; nothing for anything else."""
    if found := _NUMBERS.fullmatch(inside):
        first, last = found[1], found[2]
        is_padded = any(re.match(r"-?0\d", end) for end in (first, last))
        width = max(len(first), len(last)) if is_padded else 0
        return [f"{number:0{width}d}" for number in _steps(int(first), int(last), found[3])]
    if found := _LETTERS.fullmatch(inside):
        return [chr(code) for code in _steps(ord(found[1]), ord(found[2]), found[3])]
    return []


def _steps(first: int, last: int, step: str | None) -> range:
    width = abs(int(step or 1)) or 1
    return range(first, last + 1, width) if first <= last else range(first, last - 1, -width)
