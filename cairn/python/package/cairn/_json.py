# SPDX-License-Identifier: Apache-2.0
"""What users give with their trees, as JSON."""

from __future__ import annotations

import json
from typing import Any


def dump(value: Any, *, allow_nan: bool = False) -> str:
    """Numbers of NumPy, JAX and PyTorch, as losses are, count as Python's.

        >>> import numpy as np
        >>> dump({"loss": np.float32(0.5), "best": np.array(3), "done": np.True_})
        '{"loss": 0.5, "best": 3, "done": true}'
    """
    return json.dumps(value, allow_nan=allow_nan, default=_number)


def _number(thing: Any) -> Any:
    if getattr(thing, "shape", None) == () and hasattr(thing, "item"):
        number = thing.item()
        if isinstance(number, (bool, int, float, str)):
            return number
    raise TypeError(f"{type(thing).__qualname__} is not JSON serializable")
