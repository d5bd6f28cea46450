# SPDX-License-Identifier: Apache-2.0
"""Paths as the library takes them."""

from __future__ import annotations

import os

from cairn import _core
from cairn._errors import error_of

PathLike = str | bytes | os.PathLike[str] | os.PathLike[bytes]


def path_text(path: PathLike) -> str:
    """Expands `~`, and makes a relative path absolute by the current directory. URLs stay
    unchanged."""
    text = os.path.expanduser(os.fsdecode(path))
    try:
        text.encode()
    except UnicodeEncodeError:
        raise error_of("invalid_argument", "python/path", "",
                       f"the path {text!r} is no text in UTF-8") from None
    if not text or "://" in text or os.path.isabs(text):
        return text
    _core.check_path(text)  # before it looks like any other path
    return os.path.join(os.getcwd(), text)
