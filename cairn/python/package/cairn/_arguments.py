# SPDX-License-Identifier: Apache-2.0
"""Checks arguments of public functions, with one error sentence for a wrong type."""

from __future__ import annotations

import datetime as dt
import functools
import inspect
import math
import operator
from collections.abc import Callable
from typing import Any, ParamSpec, TypeVar

import numpy as np

Bytes = int  # how many: zero or more
Options = ParamSpec("Options")
Answer = TypeVar("Answer")
_LIMIT = 1 << 63  # of the numbers that the library takes


def checked(function: Callable[Options, Answer]) -> Callable[Options, Answer]:
    """The function with its arguments checked by their annotations: arguments annotated with names
    of _KINDS are converted to that kind, others are passed unchanged."""
    signature = inspect.signature(function)
    name = function.__qualname__.removesuffix(".__init__")
    kinds = {key: str(parameter.annotation) for key, parameter in signature.parameters.items()}

    @functools.wraps(function)
    def call(*args: Options.args, **options: Options.kwargs) -> Answer:
        try:
            bound = signature.bind(*args, **options)
        except TypeError as error:
            raise TypeError(f"{name}() {error}") from None
        given: dict[str, Any] = bound.arguments
        for key in given:
            given[key] = as_kind(key, kinds[key], given[key])
        return function(*bound.args, **bound.kwargs)

    return call


def checked_init(made: type[Answer]) -> type[Answer]:
    """The same for the construction of a class."""
    setattr(made, "__init__", checked(made.__init__))
    return made


def as_kind(name: str, annotation: str, value: Any) -> Any:
    """The value as one of the kinds in the annotation; TypeError if it is none of them."""
    wanted = annotation.split(" | ")
    if not all(kind in _KINDS or kind == "None" for kind in wanted):
        return value
    if value is None and "None" in wanted:
        return None
    kinds = [_KINDS[kind] for kind in wanted if kind != "None"]
    for _, convert in kinds:
        try:
            return convert(value)
        except (TypeError, ValueError, OverflowError):
            pass
    said = [text for text, _ in kinds] + ["None"] * ("None" in wanted)
    raise TypeError(f"{name} is {' or '.join(said)}, not {_shown(value)}")


def _shown(value: Any) -> str:
    text = repr(value)
    return f"{text if len(text) <= 60 else text[:57] + '...'} ({type(value).__qualname__})"


def _flag(value: Any) -> bool:
    is_bool = isinstance(value, bool) or getattr(value, "dtype", None) == np.bool_
    if is_bool or (isinstance(value, int) and value in (0, 1)):
        return bool(value)
    raise TypeError


def _whole(least: int) -> Callable[[Any], int]:
    def convert(value: Any) -> int:
        if least <= (number := operator.index(value)) < _LIMIT:
            return number
        raise TypeError
    return convert


def _number(value: Any) -> float:
    if isinstance(value, (str, bytes)) or math.isnan(number := float(value)):
        raise TypeError
    return number


def _text(value: Any) -> str:
    if isinstance(value, str):
        return value
    raise TypeError


def _span(value: Any) -> dt.timedelta:
    if isinstance(value, dt.timedelta):
        return value
    if isinstance(value, int) and value == 0:
        return dt.timedelta(0)
    raise TypeError


_KINDS: dict[str, tuple[str, Callable[[Any], Any]]] = {
    "bool": ("True or False", _flag),
    "int": ("a whole number", _whole(-_LIMIT)),
    "Bytes": ("a number of bytes", _whole(0)),
    "float": ("a number", _number),
    "str": ("a text", _text),
    "dt.timedelta": ("a datetime.timedelta such as timedelta(minutes=15)", _span),
}
