# SPDX-License-Identifier: Apache-2.0
"""Tracks saves in flight, to wait for all of them."""

from __future__ import annotations

import os
import threading
from collections.abc import Callable

from cairn import _core
from cairn._log import logger

_said: set[str] = set()


def say_unfinished(handle: _core.SaveHandle) -> None:
    """Once in a process: programs of the reference expect all files when a save returns. Who set
    the variable, to whatever, knows."""
    if handle.done() or _said or "CAIRN_BLOCKING_SAVES" in os.environ:
        return
    _said.add(handle.path)
    logger.warning("%s is not complete yet: saves go on after their call. A program that reads or "
                   "uploads the files right away sets CAIRN_BLOCKING_SAVES=1, or calls "
                   "wait_until_finished() first; CAIRN_BLOCKING_SAVES=0 silences this", handle.path)


class SaveTracker:
    """A replacement for JAX's GlobalAsyncCheckpointManager as `manager=`. Each error is raised
    once, by the first call that sees it."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._handles: list[_core.SaveHandle] = []

    def add_save(self, handle: _core.SaveHandle) -> None:
        with self._lock:
            self._handles.append(handle)

    def check_for_errors(self) -> None:
        """Raises the error of a failed save; does not wait."""
        self._raise_errors(_core.SaveHandle.done)

    def wait_until_finished(self) -> None:
        """Waits until all saves are durable and visible."""
        self._raise_errors(lambda handle: True)

    def _raise_errors(self, is_due: Callable[[_core.SaveHandle], bool]) -> None:
        with self._lock:
            due = [handle for handle in self._handles if is_due(handle)]
        for handle in due:
            try:
                handle.wait()
            finally:
                if handle.done():
                    self._forget(handle)

    def _forget(self, handle: _core.SaveHandle) -> None:
        with self._lock:
            self._handles = [other for other in self._handles if other is not handle]
