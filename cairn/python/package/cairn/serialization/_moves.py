# SPDX-License-Identifier: Apache-2.0
"""Arrays of JAX from devices to devices. JAX is imported when something is called."""

from __future__ import annotations

import math
import sys
from collections.abc import Sequence
from typing import Any

import numpy as np

from cairn._errors import error_of
from cairn.serialization._casts import dtype_named


def create_cpu_mesh(axis_dims: Sequence[int] = (1, -1, 1, 1, 1),
                    axis_names: Sequence[str] = ("dp", "fsdp", "ep", "tp", "sp")) -> Any:
    """All CPU devices, in this shape."""
    import jax
    return jax.sharding.Mesh(np.array(jax.devices("cpu")).reshape(axis_dims), axis_names)


def reshard(x: Any, target_sharding: Any) -> Any:
    """The array on other devices; inside of jit, the constraint that it lies there. Axes that do
    not divide their dimension are left out."""
    import jax
    if isinstance(target_sharding, jax.sharding.NamedSharding):
        target_sharding = _fitting(target_sharding.mesh, target_sharding.spec, x.shape)
    if isinstance(x, jax.core.Tracer):
        constrained: Any = jax.lax.with_sharding_constraint  # JAX has no types for it
        return constrained(x, target_sharding)
    return jax.device_put(x, target_sharding)


def with_sharding_constraint(arr: Any, sharding: Any) -> Any:
    """Applies jax.lax.with_sharding_constraint() to each array of a tree. Axes that the mesh does
    not have, or that do not divide their dimension, are left out; an empty spec does nothing. A
    PartitionSpec uses the mesh around the call; without one, nothing happens."""
    import jax
    if isinstance(sharding, jax.sharding.NamedSharding):
        mesh, spec = sharding.mesh, sharding.spec
    elif isinstance(sharding, jax.sharding.PartitionSpec):
        mesh, spec = mesh_around(), sharding
    else:
        raise TypeError(f"a NamedSharding or a PartitionSpec is needed, not {sharding!r}")

    def constrain(leaf: Any) -> Any:
        if not isinstance(leaf, jax.Array) or mesh is None or not len(spec):
            return leaf
        constrained: Any = jax.lax.with_sharding_constraint  # JAX has no types for it
        return constrained(leaf, _fitting(mesh, spec, leaf.shape))

    return jax.tree.map(constrain, arr)


def mesh_around() -> Any:
    """The mesh of the `with` statement around the call; None without one."""
    from jax._src.mesh import thread_resources  # JAX has no public name for it any longer
    mesh = thread_resources.env.physical_mesh
    return None if mesh.empty else mesh


def _fitting(mesh: Any, spec: Any, shape: Sequence[int]) -> Any:
    """A sharding with what of the spec fits an array of this shape on this mesh."""
    import jax
    make_spec: Any = jax.sharding.PartitionSpec  # no types either

    def fits(entry: Any, size: int) -> bool:
        axes = [entry] if isinstance(entry, str) else entry
        if not isinstance(axes, (list, tuple)) or not all(axis in mesh.shape for axis in axes):
            return False
        return bool(size % math.prod(mesh.shape[axis] for axis in axes) == 0)

    entries = [entry if fits(entry, size) else None for entry, size in zip(spec, shape)]
    return jax.sharding.NamedSharding(mesh, make_spec(*entries))


def to_host(x: Any, float_dtype: Any, mesh: Any, cpu_offload: bool = False) -> Any:
    """An array of JAX on every device of the mesh, or with `cpu_offload` in the memory of the host;
    floats with another type if one is asked for. Without a mesh it stays where it is."""
    jax = sys.modules.get("jax")
    if jax is not None and isinstance(x, jax.Array):
        where = create_cpu_mesh() if cpu_offload else mesh
        if where is not None:
            x = reshard(x, jax.sharding.NamedSharding(where, jax.sharding.PartitionSpec()))
    wanted = dtype_named(float_dtype)
    is_float = str(getattr(x, "dtype", "")).startswith(("float", "bfloat"))
    return x.astype(wanted) if wanted is not None and is_float else x


def on_this_host(key: str, leaf: Any) -> Any:
    """The leaf of this name as an array of NumPy; what lies on no device stays as it is."""
    import jax
    if isinstance(leaf, jax.Array) and not leaf.is_fully_addressable and \
            not leaf.is_fully_replicated:
        raise error_of("invalid_argument", "save/cannot-gather", "",
                       f"gather_fns=True: '{key}' lies on devices of several processes, and no "
                       "process can bring it to its host alone; leave gather_fns out, and each "
                       "process saves its own shards, or give the functions that "
                       "make_shard_and_gather_fns() makes")
    return jax.device_get(leaf)
