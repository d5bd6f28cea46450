# SPDX-License-Identifier: Apache-2.0
"""The time that policies go by."""

from __future__ import annotations

import datetime as dt
from collections.abc import Callable

_EPOCH = dt.datetime(1970, 1, 1, tzinfo=dt.timezone.utc)
_FARTHEST = dt.timedelta(days=100_000)  # the library counts nanoseconds, in 64 bits


class PolicyClock:
    """datetime.now(), or what a program says instead. Moments without a zone are local time."""

    def __init__(self, injected: Callable[[], dt.datetime] | None):
        self._zone: dt.tzinfo | None = None
        self.ask: Callable[[], dt.datetime] = injected or dt.datetime.now
        # None: the library has a clock of its own.
        self.now: Callable[[], int] | None = None if injected is None else self._now

    def _now(self) -> int:
        return self.nanoseconds(self.ask())

    def nanoseconds(self, moment: dt.datetime) -> int:
        """Since 1970. The zone is that of moments to come."""
        self._zone = moment.tzinfo
        since = moment.astimezone(dt.timezone.utc) - _EPOCH
        return max(-_FARTHEST, min(since, _FARTHEST)) // dt.timedelta(microseconds=1) * 1000

    def moment(self, nanoseconds: int) -> dt.datetime:
        found = _EPOCH + dt.timedelta(microseconds=nanoseconds // 1000)
        if self._zone is None:
            return found.astimezone().replace(tzinfo=None)
        return found.astimezone(self._zone)
