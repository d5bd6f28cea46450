# SPDX-License-Identifier: Apache-2.0
"""If a rank cannot make its tree, the other ranks get the error instead of waiting for it."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from cairn import _ranks
from cairn._errors import error_of


class Refusal:
    """Stands for a tree that could not be made: to save it is an error, of all ranks."""

    def __init__(self, error: Exception):
        # Not the exception, whose frames hold arrays.
        self.problem = f"could not be made: {error!r}"

    def refuse(self, *_: object) -> None:
        raise error_of("invalid_argument", "python/refused", "", f"the save {self.problem}")


def prepared(make: Callable[[], tuple[Any, ...]], *rest: Any) -> tuple[Any, ...]:
    """A tree and what else `make` gives. What it raises becomes, where there are several ranks, a
    refusal and `rest`: the save that follows tells the others."""
    try:
        return make()
    except Exception as error:
        if _ranks.place().count == 1:
            raise
        return Refusal(error), *rest
