# SPDX-License-Identifier: Apache-2.0
"""The processes of a job, and how they communicate.

Imports nothing: only ways that the program has initialised are used.
"""

from __future__ import annotations

import functools
import os
import sys
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from cairn import _core
from cairn._arguments import checked
from cairn._boards import JaxBoard, MpiBoard, TorchBoard
from cairn._errors import error_of

RENDEZVOUS = "CAIRN_RENDEZVOUS"


@dataclass(frozen=True)
class Ranks:
    """The rank of this process, the world size, and how the processes communicate.

        >>> coordinate("alone").count
        1
    """

    rank: int
    count: int
    by: str


@dataclass(frozen=True)
class _Found:
    """A way to meet that is there: by what, and the object that it stands on."""

    by: str
    on: Any = None

    def same(self, other: _Found) -> bool:
        return self.by == other.by and self.on is other.on


@dataclass(frozen=True)
class _Choice:
    found: _Found
    coordinator: _core.Coordinator | None
    lasting: bool  # whatever the program initialises later

    @functools.cached_property
    def ranks(self) -> Ranks:
        it = self.coordinator
        return Ranks(0, 1, "alone") if it is None else Ranks(it.rank, it.count, self.found.by)


def _find_jax() -> _Found | None:
    # Not jax.process_count(), which would start the devices.
    module = sys.modules.get("jax._src.distributed")
    state = None if module is None else module.global_state
    if state is None or state.client is None or (state.num_processes or 1) < 2:
        return None
    return _Found("jax", state.client)


def _find_torch() -> _Found | None:
    module = sys.modules.get("torch.distributed")
    if module is None or not module.is_available() or not module.is_initialized() or \
            module.get_world_size() < 2:
        return None
    return _Found("torch", module.distributed_c10d._get_default_store())


def _find_mpi() -> _Found | None:
    module = sys.modules.get("mpi4py.MPI")
    if module is None or not module.Is_initialized() or module.Is_finalized() or \
            module.COMM_WORLD.Get_size() < 2:
        return None
    return _Found("mpi", module.COMM_WORLD)


def _find_rendezvous() -> _Found | None:
    return _Found("rendezvous") if os.environ.get(RENDEZVOUS) else None


_FINDERS: dict[str, Callable[[], _Found | None]] = {
    "jax": _find_jax, "torch": _find_torch, "mpi": _find_mpi, "rendezvous": _find_rendezvous}
_NOT_THERE = {
    "jax": "call jax.distributed.initialize() with more than one process first",
    "torch": "call torch.distributed.init_process_group() with more than one process first",
    "mpi": "import mpi4py.MPI first, in a program that mpirun or srun starts",
    "rendezvous": f"give a directory that all ranks see, here or in {RENDEZVOUS}",
}


def _look() -> _Found:
    for find in _FINDERS.values():
        found = find()
        if found is not None:
            return found
    return _Found("alone")


_choice: _Choice | None = None
_opened = 0  # coordinators; the same on all ranks, which make the same calls


def _open(found: _Found) -> _core.Coordinator | None:
    global _opened
    if found.by == "alone":
        return None
    _opened += 1
    root = f"cairn/{_opened}"
    if found.by == "jax":
        state = sys.modules["jax._src.distributed"].global_state
        return JaxBoard(found.on, root).open(state.process_id, state.num_processes)
    if found.by == "torch":
        module = sys.modules["torch.distributed"]
        return TorchBoard(found.on, root).open(module.get_rank(), module.get_world_size())
    if found.by == "mpi":
        return MpiBoard(sys.modules["mpi4py.MPI"], found.on).open()
    return _core.Coordinator.in_directory(os.environ[RENDEZVOUS], None)


def chosen() -> _core.Coordinator | None:
    """What saves and loads use: chosen at the first of them, unless coordinate() has."""
    global _choice
    if _choice is None:
        found = _look()
        _choice = _Choice(found, _open(found), lasting=False)
    elif not _choice.lasting and not _look().same(_choice.found):
        _core.refuse_other_ranks(_changed(_choice, _look()))
    return _choice.coordinator


def _changed(before: _Choice, now: _Found) -> str:
    if before.found.by == now.by:
        what = f"{now.by} was initialised anew since this process began to save or load"
    else:
        what = (f"this process began to save or load by '{before.found.by}', and now the ranks "
                f"could meet by '{now.by}'")
    return (f"{what}; initialise before the first save or load, or call cairn.coordinate() on "
            "every rank now")


@checked
def coordinate(by: str | None = None, *, directory: str | os.PathLike[str] | None = None,
               rank: int | None = None, count: int | None = None) -> Ranks:
    """Chooses how the processes of the job meet; every rank makes the same call.

    Without this call the first save or load chooses, in this order: `jax.distributed`,
    `torch.distributed` or `mpi4py` if the program has initialised it for several processes, then
    the directory in CAIRN_RENDEZVOUS; otherwise the process is alone. Call it to choose another
    way, to choose again after one of these was initialised, or to continue after an error that
    broke the connection between the ranks. Does not block.

    Args:
        by: "jax", "torch", "mpi", "rendezvous" or "alone"; None for what the program has
            initialised.
        directory: where the ranks meet by rendezvous; all see it, and it serves nothing else.
        rank, count: for a rendezvous; by default those of the launcher (RANK and WORLD_SIZE, or
            those of Slurm or MPI).

        >>> coordinate("alone")
        Ranks(rank=0, count=1, by='alone')
    """
    global _choice
    if directory is not None:
        by = by or "rendezvous"
    if (rank is None) != (count is None) or (directory is None and rank is not None):
        raise error_of("invalid_argument", "python/coordinate", "",
                       "rank and count belong together, and to a directory")
    if by == "rendezvous" and directory is not None:
        place = None if rank is None or count is None else (rank, count)
        coordinator = _core.Coordinator.in_directory(os.fspath(directory), place)
        _choice = _Choice(_Found(by), coordinator, lasting=True)
        return _choice.ranks
    found = _asked(by)
    _choice = _Choice(found, _open(found), lasting=by is not None)
    return _choice.ranks


def _asked(by: str | None) -> _Found:
    if by is None:
        return _look()
    if by == "alone":
        return _Found(by)
    if by not in _FINDERS:
        raise error_of("invalid_argument", "python/coordinate", "",
                       f"ranks cannot meet by '{by}'; there are: {', '.join(_FINDERS)}, alone")
    found = _FINDERS[by]()
    if found is None:
        raise error_of("failed_precondition", "python/coordinate", "",
                       f"the ranks cannot meet by {by}: {_NOT_THERE[by]}")
    return found


def place() -> Ranks:
    """Of a save or a load, which asks for each leaf; whether that is still so, it asks chosen()."""
    if _choice is None:
        chosen()
    assert _choice is not None
    return _choice.ranks


def after_fork() -> None:
    """In the child: the rank is the parent's, and the child alone."""
    global _choice
    if _choice is not None and _choice.coordinator is not None:
        _choice = _Choice(_Found("alone"), None, lasting=True)
