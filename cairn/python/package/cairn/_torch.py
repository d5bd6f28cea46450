# SPDX-License-Identifier: Apache-2.0
"""PyTorch's tensors. Imported only where the program has imported PyTorch."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import torch

from cairn import _core, _dtensors
from cairn._placements import whole_array


def is_tensor(thing: Any) -> bool:
    return isinstance(thing, torch.Tensor)


def problem_of(thing: Any) -> str:
    """Why it cannot be saved as it is; empty if PyTorch has nothing to say about it."""
    if isinstance(thing, (torch.nn.Module, torch.optim.Optimizer)):
        return f"is a {type(thing).__qualname__} of PyTorch: save its state_dict()"
    if not is_tensor(thing):
        return ""
    if _dtensors.is_spread(thing):
        return _dtensors.problem_of(thing)
    if thing.layout != torch.strided or thing.is_quantized or thing.is_nested:
        return "is a tensor of PyTorch that is sparse, quantized or nested: make it dense"
    return "is a tensor of PyTorch without memory" if thing.device.type == "meta" else ""


def describe_tensor(tensor: torch.Tensor) -> tuple[Any, ...]:
    """("memory", dtype, shape, strides in bytes, address, owner, is it immutable), or "shards" as
    cairn._nodes.describe(). What lies on an accelerator is copied to the host; the rest is lent
    until the save has copied it."""
    lend = tensor.device.type != "cpu"
    if _dtensors.is_spread(tensor):
        here = [(position, _in_numpy(_host_memory(tensor.to_local())), lend)
                for position in _dtensors.positions_here(tensor)]
        return ("shards", _name(tensor.dtype), tuple(tensor.shape), _dtensors.sharding_of(tensor),
                here)
    plain = _host_memory(tensor)
    strides = [stride * plain.element_size() for stride in plain.stride()]
    return ("memory", _name(plain.dtype), tuple(plain.shape), strides, plain.data_ptr(), plain,
            lend)


def describe_outline(tensor: torch.Tensor) -> tuple[Any, ...]:
    """Of a tensor in a template."""
    if not _dtensors.is_spread(tensor):
        return "outline", _name(tensor.dtype), tuple(tensor.shape), _core.Sharding()
    problem = _dtensors.problem_of(tensor)
    if problem:
        return "problem", problem
    return "outline", _name(tensor.dtype), tuple(tensor.shape), _dtensors.sharding_of(tensor)


def describe_out(tensor: torch.Tensor) -> tuple[Any, ...]:
    """Of a tensor that is filled."""
    problem = problem_of(tensor)
    if _dtensors.is_spread(tensor):
        problem = "is a DTensor of PyTorch: give it as a template instead"
    elif not problem and (tensor.device.type != "cpu" or tensor.is_conj() or tensor.is_neg()):
        problem = "is a tensor of PyTorch that does not lie in the host's memory as it is"
    return ("problem", problem) if problem else describe_tensor(tensor)


def place(template: torch.Tensor, dtype: str, shape: tuple[int, ...],
          shards: Sequence[tuple[int, np.ndarray[Any, Any]]]) -> torch.Tensor:
    """A tensor of what was loaded, on the template's device, over the same memory if that is the
    host's; on the host, or the mesh's devices, for one that has no memory."""
    if not _dtensors.is_spread(template):
        made = _place_here(template, dtype, whole_array(shape, shards))
    elif shards:
        made = _dtensors.wrap(template, _place_here(template, dtype, shards[0][1]))
    else:
        nothing = torch.empty(template.to_local().shape, dtype=getattr(torch, dtype))
        made = _dtensors.wrap(template, nothing.to(_home(template)))
    return made.requires_grad_(template.requires_grad) if template.requires_grad else made


def _place_here(template: torch.Tensor, dtype: str, data: np.ndarray[Any, Any]) -> torch.Tensor:
    memory = torch.from_numpy(data.reshape(-1).view(np.uint8)) if data.size else \
        torch.empty(0, dtype=torch.uint8)
    return memory.view(getattr(torch, dtype)).reshape(data.shape).to(_home(template))


def _home(template: torch.Tensor) -> Any:
    if template.device.type != "meta":
        return template.device
    return template.device_mesh.device_type if _dtensors.is_spread(template) else "cpu"


def _host_memory(tensor: torch.Tensor) -> torch.Tensor:
    plain = tensor.detach().resolve_conj().resolve_neg()
    return plain if plain.device.type == "cpu" else _on_host(plain)


def _in_numpy(tensor: torch.Tensor) -> np.ndarray[Any, Any]:
    """The same memory; what NumPy has no type for is given as integers of that size."""
    sizes = {1: torch.uint8, 2: torch.int16}
    known = tensor.dtype.itemsize > 2 or tensor.dtype == torch.bool
    found: np.ndarray[Any, Any] = (
        tensor if known else tensor.view(sizes[tensor.dtype.itemsize])).numpy()
    return found


def _on_host(tensor: torch.Tensor) -> torch.Tensor:
    """Through memory that the accelerator writes by itself, which PyTorch keeps for the next
    time."""
    if tensor.device.type != "cuda":
        return tensor.cpu()
    return torch.empty_like(tensor, device="cpu", pin_memory=True).copy_(tensor)


def _name(dtype: torch.dtype) -> str:
    return str(dtype).removeprefix("torch.")
