# SPDX-License-Identifier: Apache-2.0
"""What the library has to say goes to the logger "cairn"."""

from __future__ import annotations

import logging

logger = logging.getLogger("cairn")
_LEVELS = {"info": logging.INFO, "warning": logging.WARNING, "error": logging.ERROR}


def emit(level: str, event: str, message: str) -> None:
    logger.log(_LEVELS[level], "%s [%s]", message, event)
