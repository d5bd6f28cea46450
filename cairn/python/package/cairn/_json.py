# SPDX-License-Identifier: Apache-2.0
"""What users give with their trees, as JSON, and files of checkpoints that are JSON."""

from __future__ import annotations

import json
from typing import Any

from cairn import _core
from cairn._errors import error_of

_LIMIT = 1 << 28  # bytes


def dump(value: Any, *, allow_nan: bool = False) -> str:
    """Numbers of NumPy, JAX and PyTorch, as losses are, count as Python's.

        >>> import numpy as np
        >>> dump({"loss": np.float32(0.5), "best": np.array(3), "done": np.True_})
        '{"loss": 0.5, "best": 3, "done": true}'
    """
    return json.dumps(value, allow_nan=allow_nan, default=_number)


def read_object(path: str) -> dict[str, Any]:
    """What a file of a checkpoint says. Whatever lies there, its errors are the library's."""
    return parse_object(_core.read_file(path, _LIMIT), path)


def parse_object(text: bytes | str, path: str) -> dict[str, Any]:
    """The same of a text from the file."""
    try:
        found = json.loads(text)
    except (TypeError, ValueError, RecursionError) as error:
        raise error_of("corrupt", "python/bad-json", path,
                       f"{path} is not JSON: {error}") from None
    if isinstance(found, dict):
        return found
    raise error_of("corrupt", "python/bad-json", path,
                   f"{path} has a {type(found).__qualname__} where a JSON object belongs")


def _number(thing: Any) -> Any:
    if getattr(thing, "shape", None) == () and hasattr(thing, "item"):
        number = thing.item()
        if isinstance(number, (bool, int, float, str)):
            return number
    raise TypeError(f"{type(thing).__qualname__} is not JSON serializable")
