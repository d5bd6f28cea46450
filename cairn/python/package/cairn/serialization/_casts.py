# SPDX-License-Identifier: Apache-2.0
"""Types of floats by their names, and casts to them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from cairn._dtypes import numpy_dtype

_SHORT_NAMES = {"bf16": "bfloat16", "fp16": "float16", "fp32": "float32", "fp64": "float64",
                "fp8": "float8_e5m2"}
_LONG_NAMES = ["bfloat16", "float16", "float32", "float64", "float8_e4m3fn", "float8_e4m3fnuz",
               "float8_e4m3b11fnuz", "float8_e5m2", "float8_e5m2fnuz"]
_CAST_NAMES = frozenset(_LONG_NAMES[:4])


class _DTypes(Mapping[str, Any]):
    """Types by name, made when they are asked for: some need ml_dtypes."""

    def __init__(self) -> None:
        self._names = {**_SHORT_NAMES, **{name: name for name in _LONG_NAMES},
                       **{name.replace("float8", "fp8"): name for name in _LONG_NAMES
                          if name.startswith("float8")}}

    def __getitem__(self, name: str) -> Any:
        return numpy_dtype(self._names[name])

    def __iter__(self) -> Iterator[str]:
        return iter(self._names)

    def __len__(self) -> int:
        return len(self._names)


STRING_TO_DTYPE_MAP: Mapping[str, Any] = _DTypes()


def put_dtype(array: Any, dtype: Any) -> Any:
    """The array with another type if it is one of bfloat16, float16, float32 and float64; as it is
    otherwise, and for None.

        >>> import numpy as np
        >>> put_dtype(np.ones(2, np.float32), "fp16").dtype
        dtype('float16')
        >>> put_dtype(np.ones(2, np.int8), "bf16").dtype
        dtype('int8')
    """
    wanted = dtype_named(dtype)
    if wanted is None or str(array.dtype) not in _CAST_NAMES:
        return array
    return array.astype(wanted)


def dtype_named(dtype: Any) -> Any:
    """A type by one of the names in STRING_TO_DTYPE_MAP; what is no text is one already. None for
    None and for ""."""
    if not isinstance(dtype, str):
        return dtype
    if not dtype:
        return None
    if dtype not in STRING_TO_DTYPE_MAP:
        raise ValueError(f"Unsupported dtype string: {dtype}; there are "
                         f"{', '.join(sorted(STRING_TO_DTYPE_MAP))}")
    return STRING_TO_DTYPE_MAP[dtype]
