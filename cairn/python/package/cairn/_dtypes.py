# SPDX-License-Identifier: Apache-2.0
"""Types of elements by their names."""

from __future__ import annotations

import functools
from typing import Any

import numpy as np

from cairn._errors import error_of


@functools.cache
def numpy_dtype(name: str) -> np.dtype[Any]:
    """The type with this name; what NumPy does not have comes from ml_dtypes."""
    try:
        return np.dtype(name)
    except TypeError:
        pass
    try:
        import ml_dtypes
    except ImportError:
        raise error_of("unimplemented", "python/no-ml-dtypes", "",
                       f"NumPy has no {name}: install ml_dtypes, or load with dtype='float32'"
                       ) from None
    found: np.dtype[Any] = np.dtype(getattr(ml_dtypes, name))
    return found


def stand_in(name: str, bytes_each: int) -> np.dtype[Any]:
    """The same, or, where nobody has it, one for bytes that mean nothing to NumPy."""
    try:
        return numpy_dtype(name)
    except NotImplementedError:
        return np.dtype(f"V{bytes_each}")


def name_of(dtype: Any) -> str:
    """The name of whatever says a type: its name, a NumPy or JAX type, an array's dtype."""
    if isinstance(dtype, str):
        return dtype
    return str(np.dtype(dtype).name)
