# SPDX-License-Identifier: Apache-2.0
"""Helpers around checkpoints: names of files, sizes, casts, moves of arrays."""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from cairn import _core
from cairn._log import logger
from cairn.serialization._casts import STRING_TO_DTYPE_MAP, put_dtype
from cairn.serialization._dicts import by_text, flatten_dict, is_flatten, unflatten_dict
from cairn.serialization._moves import (
    create_cpu_mesh,
    on_this_host,
    reshard,
    to_host,
    with_sharding_constraint,
)

__all__ = [
    "STRING_TO_DTYPE_MAP", "apply_gather_functions", "broadcast_tensor", "chunk_tensor_by_memory",
    "create_cpu_mesh", "derive_base_prefix_from_path", "estimate_array_nbytes",
    "estimate_available_memory", "flatten_dict", "flatten_for_broadcast",
    "group_keys_by_shard_size", "index_filename", "is_flatten", "is_gcs_path",
    "optimize_shard_layout", "parse_gcs_path", "put_dtype", "read_process_array", "reshard",
    "shard_filename", "to_host", "unflatten_dict", "with_sharding_constraint",
]


def derive_base_prefix_from_path(path_str: str) -> str:
    """The common beginning of the names of a checkpoint's files.

        >>> derive_base_prefix_from_path("/x/model-00001-of-00004.safetensors")
        '/x/model'
        >>> derive_base_prefix_from_path("/x/model.safetensors.index.json")
        '/x/model'
    """
    return _core.derive_base_prefix_from_path(path_str)


def shard_filename(base_prefix: str, idx: int, total: int) -> str:
    """The name of a part; the first is 1.

        >>> shard_filename("/x/model", 1, 4)
        '/x/model-00001-of-00004.safetensors'
    """
    return f"{base_prefix}-{idx:05d}-of-{total:05d}.safetensors"


def index_filename(base_prefix: str) -> str:
    """The name of the file that says which part holds which tensor.

        >>> index_filename("/x/model")
        '/x/model.safetensors.index.json'
    """
    return f"{base_prefix}.safetensors.index.json"


def is_gcs_path(path: Any) -> bool:
    """Does it lie in Google's storage?

        >>> is_gcs_path("gs://bucket/run"), is_gcs_path("/run")
        (True, False)
    """
    return str(path).startswith("gs://")


def parse_gcs_path(gcs_path: Any) -> tuple[str, str]:
    """Bucket and name.

        >>> parse_gcs_path("gs://bucket/run/model")
        ('bucket', 'run/model')
    """
    text = str(gcs_path)
    if not text.startswith("gs://"):
        raise ValueError(f"Invalid GCS path: {text}")
    bucket, _, name = text[len("gs://"):].partition("/")
    return bucket, name


def estimate_array_nbytes(array: Any) -> int:
    """Bytes of an array's elements; those smaller than a byte count as packed. Nothing is read."""
    if not hasattr(array, "dtype"):
        jax = sys.modules.get("jax")
        array = np.asarray(array) if jax is None else jax.numpy.asarray(array)
    bytes_known = _core.array_nbytes(str(array.dtype), tuple(array.shape), packed=True)
    if bytes_known is not None:
        return bytes_known
    return int(array.size) * int(array.dtype.itemsize)


def estimate_available_memory() -> int:
    """Half of the memory that this process may still take, limits of its container included; at
    most 0.4 of what the first accelerator has; at least 100 MiB."""
    available = _core.estimate_available_memory()
    limit = _device_limit()
    return max(available if limit is None else min(available, int(limit * 0.4)), 100 << 20)


def _device_limit() -> int | None:
    jax = sys.modules.get("jax")
    stats = jax.local_devices()[0].memory_stats() if jax is not None else None
    return int(stats.get("bytes_limit", 0)) if stats else None


def group_keys_by_shard_size(flat_state: Mapping[str, Any],
                             max_shard_size_bytes: int) -> list[list[str]]:
    """Groups keys into parts of at most so many bytes, greedily and in order; larger arrays get a
    part of their own.

        >>> group_keys_by_shard_size({"a": np.ones(2), "b": np.ones(1), "c": np.ones(4)}, 24)
        [['a', 'b'], ['c']]
    """
    groups = _core.group_keys_by_shard_size(_sizes(flat_state), max_shard_size_bytes)
    return _named(flat_state, groups)


def optimize_shard_layout(state: Mapping[str, Any], max_shard_size_bytes: int) -> list[list[str]]:
    """The same, but keeps leaves of one parent together if they fit. No part is empty."""
    return _named(state, _core.optimize_shard_layout(_sizes(state), max_shard_size_bytes))


def _sizes(state: Mapping[str, Any]) -> list[tuple[str, int]]:
    return [(key, estimate_array_nbytes(array)) for key, array in state.items()]


def _named(state: Mapping[str, Any], groups: list[list[int]]) -> list[list[str]]:
    keys = list(state)
    return [[keys[at] for at in group] for group in groups]


def chunk_tensor_by_memory(tensor: Any, memory_limit: int) -> list[Any]:
    """Splits along the first dimension into as many pieces as the limit requires, the last with the
    remainder; the tensor itself if it fits, or has too few rows.

        >>> [len(piece) for piece in chunk_tensor_by_memory(np.zeros(10), 24)]
        [2, 2, 2, 4]
    """
    count = -(-estimate_array_nbytes(tensor) // max(memory_limit, 1))
    if count <= 1 or tensor.ndim == 0 or tensor.shape[0] < count:
        return [tensor]
    rows = tensor.shape[0] // count
    return [tensor[n * rows:(n + 1) * rows if n < count - 1 else None] for n in range(count)]


def read_process_array(key: str, shard_fns: Mapping[str, Callable[[Any], Any]] | None,
                       mismatch_allowed: bool, manager: Any,
                       callback: Callable[[Any, str], Any] | None = None,
                       dtype: Any = None) -> tuple[str, Any, int]:
    """One tensor on its way: `manager.get_tensor(key)`, its function, the callback, the cast. The
    last number is 1 if there was no function for it; without `mismatch_allowed` that is a KeyError.
    """
    tensor = manager.get_tensor(key)
    function = shard_fns.get(key) if shard_fns else None
    is_mismatch = bool(shard_fns) and function is None
    if is_mismatch and not mismatch_allowed:
        raise KeyError(f"there is no shard function for {key}")
    if function is not None:
        tensor = function(tensor)
    if callback is not None:
        tensor = callback(tensor, key)
    return key, put_dtype(tensor, dtype), int(is_mismatch)


def apply_gather_functions(state: Mapping[str, Any], gather_fns: Mapping[Any, Any] | bool | None,
                           mismatch_allowed: bool, verbose: bool) -> dict[str, Any]:
    """The state with each leaf as its function makes it. True brings all to the host; None and
    False change nothing. Leaves without a function stay, or are a KeyError that lists them."""
    if not gather_fns:
        return dict(state)
    if gather_fns is True:
        return {key: on_this_host(key, value) for key, value in state.items()}
    functions = by_text(gather_fns)
    missing = [key for key in state if functions.get(key) is None]
    if missing and not mismatch_allowed:
        raise KeyError(f"Gather function for {', '.join(missing)} not found")
    if verbose:
        logger.info("gathering %d leaves, %d of them without a function", len(state), len(missing))
    return {key: value if functions.get(key) is None else functions[key](value)
            for key, value in state.items()}


def flatten_for_broadcast(state: Mapping[Any, Any]) -> dict[Any, Any]:
    """Flat with dotted keys; what is flat with tuples as keys stays."""
    return dict(state) if is_flatten(state) else flatten_dict(state, sep=".")


def broadcast_tensor(tensor: Any, memory_limit_bytes: int, target_sharding: Any = None) -> Any:
    """Broadcasts the array of the first process, in pieces of at most so many bytes if it has
    enough rows. All processes call it, with arrays of one shape and type."""
    import jax
    from jax.experimental import multihost_utils
    is_first = jax.process_index() == 0
    pieces = [multihost_utils.broadcast_one_to_all(piece if is_first else
                                                   jax.numpy.zeros_like(piece))
              for piece in _rows(tensor, memory_limit_bytes)]
    result = pieces[0] if len(pieces) == 1 else jax.numpy.concatenate(pieces, axis=0)
    return result if target_sharding is None else jax.device_put(result, target_sharding)


def _rows(tensor: Any, memory_limit: int) -> list[Any]:
    """Pieces along the first dimension that differ by one row at most."""
    count = -(-estimate_array_nbytes(tensor) // max(memory_limit, 1))
    if tensor.ndim == 0 or count <= 1:
        return [tensor]
    count = min(count, tensor.shape[0])
    short, longer = divmod(tensor.shape[0], count)
    ends = [n * short + min(n, longer) for n in range(count + 1)]
    return [tensor[begin:end] for begin, end in zip(ends, ends[1:])]
