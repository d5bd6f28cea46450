# SPDX-License-Identifier: Apache-2.0
"""PyTorch's DTensors, which are spread over the ranks of a job. Imported only where the program has
imported PyTorch."""

from __future__ import annotations

import functools
import itertools
import math
from collections.abc import Sequence
from typing import Any

import torch

from cairn import _core, _ranks

Box = tuple[list[int], list[int]]
Position = tuple[int, ...]  # in a mesh


def is_spread(thing: Any) -> bool:
    return isinstance(thing, torch.Tensor) and hasattr(thing, "full_tensor")


def problem_of(tensor: Any) -> str:
    """Why it cannot be saved as it is; empty if it can."""
    mesh, placements = tensor.device_mesh, tensor.placements
    for axis, placement in enumerate(placements):
        factor = _split_factor(placement)
        is_known = placement.is_replicate() if factor == 0 else \
            factor in (1, _split_before(axis, mesh, placements))
        if not is_known:
            return f"is a DTensor of PyTorch that is placed by {placement}: redistribute() it"
    if _places(mesh) is None:
        return (f"is a DTensor of PyTorch on {mesh.size()} of {torch.distributed.get_world_size()} "
                "ranks: place it on a mesh of all of them, or on a slice of one")
    if _positions(tensor) is None:
        return (f"is a DTensor of PyTorch whose parts by {list(placements)} are not those that "
                "are known: redistribute() it")
    return ""


def sharding_of(tensor: Any) -> _core.Sharding:
    _check_ranks(tensor.device_mesh)
    return _layout(tuple(tensor.shape), tensor.device_mesh, tuple(tensor.placements))[0]


def positions_here(tensor: Any) -> list[int]:
    """Which of the sharding's boxes this rank holds: one, or none of an uneven split."""
    found = _positions(tensor)
    assert found is not None
    return found


def wrap(template: Any, local: torch.Tensor) -> Any:
    """A DTensor like the template, of this rank's part."""
    return type(template).from_local(local, template.device_mesh, template.placements,
                                     run_check=False, shape=template.shape,
                                     stride=_dense(template.shape))


def _positions(tensor: Any) -> list[int] | None:
    """None: the part that is here has another shape than its box."""
    boxes, ranks = _layout(tuple(tensor.shape), tensor.device_mesh, tuple(tensor.placements))[1:]
    here = [n for n, rank in enumerate(ranks) if rank == torch.distributed.get_rank()]
    local = list(tensor.to_local().shape)
    if not here:
        return here if math.prod(local) == 0 else None
    begin, end = boxes[here[0]]
    return here if local == [b - a for a, b in zip(begin, end)] else None


def _split_factor(placement: Any) -> int:
    """Into how many pieces other axes have split the dimension before this one does: 1 for a plain
    Shard, 0 for what is none."""
    if not hasattr(placement, "dim"):
        return 0
    return int(getattr(placement, "split_factor", 1))


def _split_before(axis: int, mesh: Any, placements: Sequence[Any]) -> int:
    """Into how many pieces the axes after this one split its dimension."""
    return math.prod(mesh.size(other) for other in range(axis + 1, len(placements))
                     if getattr(placements[other], "dim", None) == placements[axis].dim)


@functools.lru_cache(maxsize=1 << 16)
def _layout(shape: tuple[int, ...], mesh: Any,
            placements: tuple[Any, ...]) -> tuple[_core.Sharding, list[Box], list[int]]:
    """The boxes that are not empty, and whose they are."""
    order = _order(placements)
    boxes, ranks = [], []
    places = _places(mesh)
    assert places is not None
    for place, rank in places:
        box = _box(shape, [(placements[axis].dim, mesh.mesh.shape[axis], place[axis])
                           for axis in order])
        if all(a < b for a, b in zip(*box)) or 0 in shape:
            boxes.append(box)
            ranks.append(rank)
    return _core.Sharding.of_boxes(list(shape), boxes, [(rank, rank) for rank in ranks]), boxes, \
        ranks


@functools.lru_cache
def _places(mesh: Any) -> list[tuple[Position, int]] | None:
    """All ranks of the job, each with its place in the mesh. Of a mesh that is a slice of one of
    all ranks, as FSDP's is beside tensor parallelism, the other slices hold the same. None: some
    rank is in no slice."""
    here = _by_place(mesh)
    world = torch.distributed.get_world_size()
    if len(here) == world:
        return list(here.items())
    root = _by_place(mesh._get_root_mesh()) if hasattr(mesh, "_get_root_mesh") else here
    if len(root) != world:
        return None
    of_rank = {rank: place for place, rank in root.items()}
    first, *others = (of_rank[rank] for rank in here.values())
    along = [axis for axis in range(len(first)) if any(p[axis] != first[axis] for p in others)]
    within = {tuple(of_rank[rank][axis] for axis in along): place for place, rank in here.items()}
    slices = [(tuple(place[axis] for axis in along), rank) for place, rank in root.items()]
    if any(part not in within for part, _ in slices):
        return None
    return [(within[part], rank) for part, rank in slices]


def _by_place(mesh: Any) -> dict[Position, int]:
    return {place: int(mesh.mesh[place])
            for place in itertools.product(*map(range, mesh.mesh.shape))}


def _order(placements: Sequence[Any]) -> list[int]:
    """Axes of the mesh in the order in which they split: those that come after others, as FSDP
    comes after tensor parallelism, say so."""
    factors = {axis: _split_factor(placement) for axis, placement in enumerate(placements)}
    plain = [axis for axis, factor in factors.items() if factor == 1]
    return plain + [axis for axis in reversed(factors) if factors[axis] > 1]


def _box(shape: tuple[int, ...], splits: Sequence[tuple[int, int, int]]) -> Box:
    """After each of (dimension, into how many, which of them); as PyTorch splits, the last pieces
    are smaller or empty."""
    begin, end = [0] * len(shape), list(shape)
    for dim, count, which in splits:
        piece = -(-(end[dim] - begin[dim]) // count)
        begin[dim], end[dim] = (min(begin[dim] + n * piece, end[dim]) for n in (which, which + 1))
    return begin, end


def _dense(shape: Sequence[int]) -> tuple[int, ...]:
    return tuple(math.prod(shape[n + 1:]) for n in range(len(shape)))


def _check_ranks(mesh: Any) -> None:
    by = _ranks.place().by
    if by != "torch" and mesh.size() > 1:
        _core.refuse_other_ranks(
            "a DTensor lies on several processes of PyTorch, and this one saves and loads by "
            f"'{by}'; call cairn.coordinate('torch') on every rank")
