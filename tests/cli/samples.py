# SPDX-License-Identifier: Apache-2.0
"""What make_checkpoints.cc saves, and how it is damaged."""

import ml_dtypes
import numpy as np

KERNEL = np.arange(48, dtype=np.float32).reshape(6, 8)
HALF = (np.arange(10, dtype=np.uint16) + 0x3F80).view(ml_dtypes.bfloat16).reshape(2, 5)
MOMENTS = np.arange(48, dtype=np.float64).reshape(6, 8) - 5


def flip(path, at):
    """Changes one bit of the byte at `at`."""
    data = bytearray(path.read_bytes())
    data[at] ^= 1
    path.write_bytes(data)
