# SPDX-License-Identifier: Apache-2.0
"""The end of the program: it waits for all saves, unless somebody really wants it not to."""

from __future__ import annotations

import os
import signal
import sys

from cairn import _core
from cairn._log import logger

_given_up = False


def give_up() -> None:
    """The time that a signal left for saves has passed: the end of the program does not wait."""
    global _given_up
    _given_up = True


def finish() -> None:
    """Until all that goes on in the background has ended. The second Ctrl-C abandons it."""
    _core.let_no_other_thread_begin()  # daemon threads, which nobody joins
    if _core.wait_for_background():
        return
    if _given_up:
        _leave(signal.SIGTERM)
    try:
        logger.info("the end of the program waits for %s", _saves())
        _wait()
    except KeyboardInterrupt:
        _wait_once_more()


def _wait_once_more() -> None:
    try:
        logger.warning("the program ends when %s is safe; Ctrl-C again abandons that", _saves())
        _wait()
    except KeyboardInterrupt:
        _leave(signal.SIGINT)


def _wait() -> None:
    while not _core.wait_for_background():
        pass


def _saves() -> str:
    return ", ".join(_core.places_in_flight()) or "what goes on in the background"


def _leave(number: signal.Signals) -> None:
    logger.error("abandoned: %s; what was saved before is as it was", _saves())
    sys.stdout.flush()
    sys.stderr.flush()
    signal.signal(number, signal.SIG_DFL)
    os.kill(os.getpid(), number)
