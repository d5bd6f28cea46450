# SPDX-License-Identifier: Apache-2.0
"""What containers hold beside their children, as JSON: plain values, and names of classes."""

from __future__ import annotations

import base64
import json
import math
from typing import Any

import numpy as np

from cairn._classes import class_name, find_class
from cairn._dtypes import numpy_dtype

_MAX_TEXT = 1 << 20  # bytes


class NotPlain(ValueError):
    """It cannot be written down, or not be made from what was written."""


def dump_statics(thing: Any) -> str:
    """Raises NotPlain for what only code can make."""
    try:
        text = json.dumps(_dumped(thing), allow_nan=False, separators=(",", ":"))
    except RecursionError:
        raise NotPlain("it is too deep") from None
    if len(text) > _MAX_TEXT:
        raise NotPlain("it is too long")
    return text


def parse_statics(text: str) -> Any:
    """What dump_statics() was given; classes as find_class() finds them, or NotPlain."""
    try:
        return _parsed(json.loads(text))
    except (AttributeError, RecursionError, KeyError, TypeError, ValueError) as error:
        raise NotPlain(str(error)) from None


def _dumped(thing: Any) -> Any:
    if thing is None or type(thing) in (bool, int, str):
        return thing
    if type(thing) is float:
        return thing if math.isfinite(thing) else {"float": str(thing)}
    if type(thing) is bytes:
        return {"bytes": base64.b64encode(thing).decode("ascii")}
    if type(thing) is tuple:
        return {"tuple": [_dumped(item) for item in thing]}
    if type(thing) is list:
        return [_dumped(item) for item in thing]
    if type(thing) is dict:
        return {"dict": [[_dumped(key), _dumped(value)] for key, value in thing.items()]}
    if isinstance(thing, np.dtype) and thing.names is None:
        return {"dtype": thing.name}
    if isinstance(thing, np.generic) and not isinstance(thing, np.void) and \
            thing.dtype.kind in "biufcV":  # the last of ml_dtypes
        data = base64.b64encode(thing.tobytes()).decode("ascii")
        return {"scalar": [thing.dtype.name, data]}
    if isinstance(thing, type) and find_class(class_name(thing)) is thing:
        return {"class": class_name(thing)}
    raise NotPlain(f"{type(thing).__qualname__} is no plain value")


def _parsed(thing: Any) -> Any:
    if isinstance(thing, list):
        return [_parsed(item) for item in thing]
    if not isinstance(thing, dict):
        return thing
    (kind, inside), = thing.items()
    if kind == "tuple":
        return tuple(_parsed(item) for item in inside)
    if kind == "dict":
        return {_parsed(key): _parsed(value) for key, value in inside}
    if kind == "float":
        return float(inside)
    if kind == "bytes":
        return base64.b64decode(inside, validate=True)
    if kind == "dtype":
        return numpy_dtype(inside)
    if kind == "scalar":
        name, data = inside
        data = base64.b64decode(data, validate=True)
        return np.frombuffer(data, numpy_dtype(name)).reshape(())[()]
    found = find_class(inside) if kind == "class" else None
    if found is None:
        raise NotPlain(f"there is no {kind} {inside}")
    return found
