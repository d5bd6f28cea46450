# SPDX-License-Identifier: Apache-2.0
"""PyTorch's tensors. Imported only where the program has imported PyTorch."""

from __future__ import annotations

from typing import Any

import numpy as np
import torch

from cairn import _core


def is_tensor(thing: Any) -> bool:
    return isinstance(thing, torch.Tensor)


def problem_of(thing: Any) -> str:
    """Why it cannot be saved as it is; empty if PyTorch has nothing to say about it."""
    if isinstance(thing, (torch.nn.Module, torch.optim.Optimizer)):
        return f"is a {type(thing).__qualname__} of PyTorch: save its state_dict()"
    if not is_tensor(thing):
        return ""
    if hasattr(thing, "full_tensor"):
        return "is a DTensor of PyTorch: save its to_local(), or full_tensor() of it"
    if thing.layout != torch.strided or thing.is_quantized or thing.is_nested:
        return "is a tensor of PyTorch that is sparse, quantized or nested: make it dense"
    return "is a tensor of PyTorch without memory" if thing.device.type == "meta" else ""


def describe_tensor(tensor: torch.Tensor) -> tuple[Any, ...]:
    """("memory", dtype, shape, strides in bytes, address, owner, is it immutable). What lies on an
    accelerator is copied to the host; the rest is lent until the save has copied it."""
    plain = tensor.detach().resolve_conj().resolve_neg()
    lend = plain.device.type != "cpu"
    if lend:
        plain = _on_host(plain)
    strides = [stride * plain.element_size() for stride in plain.stride()]
    return ("memory", _name(plain.dtype), tuple(plain.shape), strides, plain.data_ptr(), plain,
            lend)


def describe_outline(tensor: torch.Tensor) -> tuple[Any, ...]:
    """Of a tensor in a template."""
    return "outline", _name(tensor.dtype), tuple(tensor.shape), _core.Sharding()


def describe_out(tensor: torch.Tensor) -> tuple[Any, ...]:
    """Of a tensor that is filled."""
    problem = problem_of(tensor)
    if not problem and (tensor.device.type != "cpu" or tensor.is_conj() or tensor.is_neg()):
        problem = "is a tensor of PyTorch that does not lie in the host's memory as it is"
    return ("problem", problem) if problem else describe_tensor(tensor)


def place(template: torch.Tensor, dtype: str, shape: tuple[int, ...],
          data: np.ndarray[Any, Any]) -> torch.Tensor:
    """A tensor of what was loaded, on the template's device, over the same memory if that is the
    host's."""
    memory = torch.from_numpy(data.reshape(-1).view(np.uint8)) if data.size else \
        torch.empty(0, dtype=torch.uint8)
    made = memory.view(getattr(torch, dtype)).reshape(shape)
    made = made.to(template.device)
    return made.requires_grad_(template.requires_grad) if template.requires_grad else made


def _on_host(tensor: torch.Tensor) -> torch.Tensor:
    """Through memory that the accelerator writes by itself, which PyTorch keeps for the next
    time."""
    if tensor.device.type != "cuda":
        return tensor.cpu()
    return torch.empty_like(tensor, device="cpu", pin_memory=True).copy_(tensor)


def _name(dtype: torch.dtype) -> str:
    return str(dtype).removeprefix("torch.")
