# SPDX-License-Identifier: Apache-2.0
"""Saves and restores the state of training jobs.

    >>> import cairn, numpy as np, tempfile
    >>> path = tempfile.mkdtemp() + "/run-100"
    >>> cairn.save({"w": np.ones((2, 3)), "step": 100}, path)["arrays"]
    1
    >>> cairn.load(path)["step"]
    100
    >>> cairn.open(path)["w"][0, 1:]
    array([1., 1.])
"""

from __future__ import annotations

import atexit
import os

from cairn import _core, _exit, _ranks
from cairn._core import SaveHandle
from cairn._errors import (
    AlreadyExistsError,
    CancelledError,
    CorruptError,
    DeadlineError,
    Error,
    InvalidArgumentError,
    MismatchError,
    MissingKeyError,
    MissingPrefixError,
    NotDirectoryError,
    NotFoundError,
    PermissionDeniedError,
    ResourceError,
    UnavailableError,
    UnsupportedError,
)
from cairn._front import diff, load, ls, save, save_async, verify
from cairn._opened import Checkpoint, Leaf, open
from cairn._ranks import Ranks, coordinate

__version__: str = _core.__version__

# Saves go on when the program ends; the interpreter waits for them while it is whole.
atexit.register(_exit.finish)
os.register_at_fork(after_in_child=_core.forget_runtime)
os.register_at_fork(after_in_child=_ranks.after_fork)

__all__ = [
    "AlreadyExistsError", "CancelledError", "Checkpoint", "CorruptError", "DeadlineError", "Error",
    "InvalidArgumentError", "Leaf", "MismatchError", "MissingKeyError", "MissingPrefixError",
    "NotDirectoryError", "NotFoundError", "PermissionDeniedError", "Ranks", "ResourceError",
    "SaveHandle", "UnavailableError", "UnsupportedError", "coordinate", "diff", "load", "ls",
    "open", "save", "save_async", "verify",
]
