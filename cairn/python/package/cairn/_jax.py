# SPDX-License-Identifier: Apache-2.0
"""JAX's arrays and shardings. Imported only where the program has imported JAX."""

from __future__ import annotations

import functools
from collections.abc import Sequence
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from cairn import _core, _ranks
from cairn._dtypes import numpy_dtype
from cairn._errors import error_of


def problem_of(array: jax.Array) -> str:
    """Why it holds nothing that could be saved; empty if it does."""
    if isinstance(array, jax.core.Tracer):
        return "is traced: save outside of jit, grad and the like"
    if array.is_deleted():
        return "is an array of JAX that was deleted or donated"
    if array.is_fully_addressable or array.sharding.addressable_devices:
        return ""
    owners = {device.process_index for device in devices_of(array.sharding)}
    if len(owners) > 1 or _ranks.place().by != "jax":
        return ""
    return (f"lies on devices of rank {owners.pop()} alone, for which it is like an array of its "
            "own; put it on devices of several ranks (jax.device_put)")


def describe_array(array: jax.Array) -> tuple[Any, ...]:
    """As cairn._nodes.describe(). Nothing is copied: JAX changes no array, and what it gives is a
    view that holds the buffer. Of several ranks, an array that lies on this one's devices alone is
    like one of NumPy: the others have their own, and rank 0's counts."""
    if array.is_fully_addressable and (len(array.sharding.device_set) == 1 or
                                       _ranks.place().count > 1):
        return "array", _on_host(array, next(iter(array.devices()))), True
    positions = _positions(array.sharding)
    shards = [(positions[shard.device], _on_host(shard.data, shard.device), True)
              for shard in array.addressable_shards]
    return ("shards", array.dtype.name, array.shape, core_sharding(array.sharding, array.shape),
            shards)


def _on_host(part: jax.Array, device: Any) -> np.ndarray[Any, Any]:
    """What one device holds. From an accelerator it is copied, if that can be into memory which it
    writes by itself and JAX keeps for the next time. Never by the array itself: JAX would keep the
    copy as long as that."""
    if device.platform == "cpu":
        return np.asarray(part)
    pinned = [memory.kind for memory in device.addressable_memories()
              if memory.kind == "pinned_host"]
    where = jax.sharding.SingleDeviceSharding(device, memory_kind=pinned[0]) if pinned else device
    return np.asarray(jax.device_put(part, where))


def is_key(thing: Any) -> bool:
    """A PRNG key of JAX, or the outline of one."""
    return isinstance(thing, (jax.Array, jax.ShapeDtypeStruct)) and \
        not isinstance(thing.dtype, np.dtype) and \
        jnp.issubdtype(thing.dtype, jax.dtypes.prng_key)


def key_data(key: Any) -> Any:
    """The numbers that a key is made of, or their outline."""
    if isinstance(key, jax.ShapeDtypeStruct):
        return jax.eval_shape(jax.random.key_data, key)
    return jax.random.key_data(key)


def key_kind(key: Any) -> str:
    """As wrap_key() takes it; empty for one that is not known by a name."""
    kind = jax.random.key_impl(key) if isinstance(key, jax.Array) else key.dtype._impl.name
    return kind if isinstance(kind, str) else ""


def wrap_key(data: Any, kind: str) -> Any:
    return jax.random.wrap_key_data(jnp.asarray(data), impl=kind)


def wrap_key_like(key: Any, data: Any) -> Any:
    return wrap_key(data, key_kind(key))


def weak_like(template: Any, loaded: Any) -> Any:
    """What takes the place of an array or an outline whose type is weak, as that of a number of
    Python is: weak too, lest what it is added to changes its type after a load."""
    if not isinstance(loaded, jax.Array) or loaded.dtype != template.dtype:
        return loaded
    try:
        from jax._src.lax.lax import _convert_element_type  # there is no public way
    except ImportError:
        return loaded
    return _convert_element_type(loaded, weak_type=True)


def describe_outline(leaf: Any) -> tuple[Any, ...]:
    """Of an array or a ShapeDtypeStruct in a template."""
    sharding = getattr(leaf, "sharding", None)
    is_plain = sharding is None or (isinstance(sharding, jax.sharding.SingleDeviceSharding) and
                                    _ranks.place().count == 1)
    return ("outline", np.dtype(leaf.dtype).name, tuple(leaf.shape),
            _core.Sharding() if is_plain else core_sharding(sharding, leaf.shape))


@functools.lru_cache(maxsize=256)
def _positions(sharding: Any) -> dict[Any, int]:
    return {device: n for n, device in enumerate(devices_of(sharding))}


def devices_of(sharding: Any) -> Sequence[Any]:
    """In the order of their positions."""
    if isinstance(sharding, jax.sharding.NamedSharding):
        return tuple(sharding.mesh.devices.flat)
    return sorted(sharding.device_set, key=lambda device: device.id)


def core_sharding(sharding: Any, shape: tuple[int, ...]) -> _core.Sharding:
    if isinstance(sharding, jax.sharding.NamedSharding):
        return _core_named(sharding, _ranks.place())
    devices = devices_of(sharding)
    held = sharding.devices_indices_map(shape)
    boxes = [_box(held[device], shape) for device in devices]
    ranks = _ranks.place()
    return _core.Sharding.of_boxes(shape, boxes, [_device(device, ranks) for device in devices])


def place_anywhere(array: np.ndarray) -> jax.Array:
    """Committed to no device: it lies where JAX's default is, and goes where others are."""
    placed: jax.Array = jax.device_put(array)
    return placed


def place(sharding: Any, shape: tuple[int, ...], dtype: str,
          shards: Sequence[tuple[int, np.ndarray]]) -> jax.Array:
    """An array of JAX from what the load read: each box once, for the first of its devices here,
    if there are any."""
    boxes = _boxes_by_position(sharding, shape)
    read = {boxes[position]: data for position, data in shards}
    if not boxes:
        known = jax.dtypes.canonicalize_dtype(numpy_dtype(dtype))
        return jax.make_array_from_single_device_arrays(shape, sharding, [], dtype=known)
    return jax.make_array_from_callback(shape, sharding, lambda index: read[str(index)])


@functools.lru_cache(maxsize=256)
def _boxes_by_position(sharding: Any, shape: tuple[int, ...]) -> dict[int, str]:
    """What each device of this process holds, in words."""
    held = sharding.addressable_devices_indices_map(shape)
    return {position: str(held[device]) for position, device in enumerate(devices_of(sharding))
            if device in held}


def sharding_of(thing: Any) -> Any:
    """The sharding that a caller means: one of JAX, or a device. None for whatever else."""
    if isinstance(thing, jax.Device):
        return jax.sharding.SingleDeviceSharding(thing)
    return thing if isinstance(thing, jax.sharding.Sharding) else None


def is_spec(thing: Any) -> bool:
    return isinstance(thing, jax.sharding.PartitionSpec)


def wanted_sharding(leaf: Any) -> Any:
    """Where the array that takes the place of a template's leaf goes: there, or, for an outline
    without a sharding, to the device that JAX would take. None for what is not JAX's."""
    if isinstance(leaf, jax.ShapeDtypeStruct) and leaf.sharding is None:
        return jnp.zeros(()).sharding
    return getattr(leaf, "sharding", None)


def is_anywhere(leaf: Any) -> bool:
    """Is it an array of JAX, or an outline, that is committed to no device? It goes together with
    arrays on any others, and so must what takes its place."""
    if isinstance(leaf, jax.ShapeDtypeStruct):
        return leaf.sharding is None
    return isinstance(leaf, jax.Array) and not leaf.committed


def core_mesh(mesh: Any) -> _core.Mesh:
    return _core_mesh(mesh, _ranks.place())


def on_mesh(mesh: Any, spec: Any) -> Any:
    return jax.sharding.NamedSharding(mesh, spec)


@functools.lru_cache(maxsize=256)
def _core_named(sharding: Any, ranks: _ranks.Ranks) -> _core.Sharding:
    return _core.Sharding.on_mesh(_core_mesh(sharding.mesh, ranks), spec_entries(sharding.spec))


@functools.lru_cache(maxsize=16)
def _core_mesh(mesh: Any, ranks: _ranks.Ranks) -> _core.Mesh:
    if isinstance(mesh, jax.sharding.AbstractMesh):
        raise error_of("invalid_argument", "load/bad-sharding", "",
                       f"{mesh} is an abstract mesh, which has no devices: give a Mesh")
    return _core.Mesh(list(zip(mesh.axis_names, mesh.devices.shape)),
                      [_device(device, ranks) for device in mesh.devices.flat])


def _device(device: Any, ranks: _ranks.Ranks) -> tuple[int, int]:
    """Its id and whose it is."""
    if ranks.by == "jax":
        return device.id, device.process_index
    if device.process_index == jax.process_index():
        return device.id, ranks.rank
    _core.refuse_other_ranks(
        "an array lies on devices of several processes of JAX, and this one saves and loads by "
        f"'{ranks.by}'; call cairn.coordinate('jax') on every rank")


def spec_entries(spec: Any) -> list[list[str]]:
    """Axes of each dimension."""
    return [[] if entry is None else [entry] if isinstance(entry, str) else list(entry)
            for entry in spec]


def spec_of(entries: Sequence[Sequence[str]]) -> Any:
    """The other way round."""
    make_spec: Any = jax.sharding.PartitionSpec  # JAX has no types for it
    return make_spec(*(axes[0] if len(axes) == 1 else tuple(axes) or None for axes in entries))


def _box(index: tuple[slice, ...], shape: tuple[int, ...]) -> tuple[list[int], list[int]]:
    ranges = [one.indices(size)[:2] for one, size in zip(index, shape, strict=True)]
    return [begin for begin, _ in ranges], [end for _, end in ranges]
