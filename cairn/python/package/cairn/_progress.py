# SPDX-License-Identifier: Apache-2.0
"""A bar on standard error."""

from __future__ import annotations

import sys
from collections.abc import Callable

WIDTH = 24


def progress_sink(progress: bool | Callable[[int, int], None] | None,
                  verb: str) -> Callable[[int, int], None] | None:
    """The function to call: the user's own, one that draws, or none."""
    if callable(progress):
        return progress
    return _bar(verb) if progress else None


def _bar(verb: str) -> Callable[[int, int], None]:
    drawn = -1

    def draw(done: int, total: int) -> None:
        nonlocal drawn
        filled = WIDTH if total == 0 else done * WIDTH // total
        ended = done >= total
        if filled == drawn and not ended:
            return
        drawn = filled
        bar = "#" * filled + "." * (WIDTH - filled)
        end = "\n" if ended else ""
        print(f"\r{verb} {bar} {done / 1e6:,.1f} of {total / 1e6:,.1f} MB", end=end,
              file=sys.stderr, flush=True)

    return draw
