# SPDX-License-Identifier: Apache-2.0
"""JAX's arrays, shardings and trees, both ways, against JAX itself."""

import math

import cairn
import jax
import jax.numpy as jnp
import numpy as np
import optax
import pytest
from flax import nnx, struct
from jax.sharding import Mesh, NamedSharding, PartitionSpec, SingleDeviceSharding


def equal(a, b):
    assert jax.tree.structure(a) == jax.tree.structure(b)
    for x, y in zip(jax.tree.leaves(a), jax.tree.leaves(b)):
        if isinstance(x, jax.Array):
            assert (x.dtype, x.shape, x.sharding) == (y.dtype, y.shape, y.sharding)
        np.testing.assert_array_equal(np.asarray(x), np.asarray(y))


def random_mesh(rng):
    shape = [(8,), (4, 2), (2, 4), (2, 2, 2), (1, 8), (1,), (2,)][rng.integers(0, 7)]
    devices = rng.permutation(np.array(jax.devices()))[:math.prod(shape)].reshape(shape)
    return Mesh(devices, ("a", "b", "c")[:len(shape)])


def random_sharding(rng, mesh, shape):
    axes = list(rng.permutation(mesh.axis_names))
    entries = []
    for size in shape:
        taken = []
        while axes and rng.integers(0, 2) and size % math.prod(
                mesh.shape[axis] for axis in [*taken, axes[-1]]) == 0:
            taken.append(axes.pop())
        entries.append(tuple(taken) if len(taken) > 1 else taken[0] if taken else None)
    return NamedSharding(mesh, PartitionSpec(*entries[:rng.integers(0, len(entries) + 1)]))


def test_any_sharding_becomes_any_other(tmp_path):
    rng = np.random.default_rng(11)
    for n in range(60):
        shape = tuple(int(rng.choice([1, 2, 8, 16, 24])) for _ in range(rng.integers(0, 4)))
        values = rng.integers(0, 100, shape).astype(rng.choice(["float32", "int32", "bfloat16"])
                                                   if n % 2 else "float32")
        saved = jax.device_put(values, random_sharding(rng, random_mesh(rng), shape))
        cairn.save({"w": saved}, tmp_path / "c", layout=["zarr2", "safetensors"][n % 2])
        wanted = random_sharding(rng, random_mesh(rng), shape)
        loaded = cairn.load(tmp_path / "c", sharding=wanted)["w"]
        assert loaded.sharding == wanted and loaded.dtype == saved.dtype
        np.testing.assert_array_equal(np.asarray(loaded), np.asarray(saved))
        for shard in loaded.addressable_shards:
            np.testing.assert_array_equal(np.asarray(shard.data), np.asarray(saved)[shard.index])


def state_on(mesh):
    params = {"dense": {"kernel": jnp.arange(64.0).reshape(8, 8),
                        "bias": jnp.ones(8, jnp.bfloat16)}}
    params = jax.device_put(params, NamedSharding(mesh, PartitionSpec("a")))
    return {"params": params, "opt": optax.adam(1e-3).init(params), "step": 3}


def test_a_template_gives_structure_and_placement(tmp_path):
    devices = np.array(jax.devices())
    state = state_on(Mesh(devices.reshape(4, 2), ("a", "b")))
    cairn.save(state, tmp_path / "c")
    equal(cairn.load(tmp_path / "c", template=state), state)
    other = state_on(Mesh(devices[:2], ("a",)))
    equal(cairn.load(tmp_path / "c", template=other), other)
    outline = jax.tree.map(lambda x: jax.ShapeDtypeStruct(x.shape, x.dtype, sharding=x.sharding)
                           if isinstance(x, jax.Array) else x, other)
    equal(cairn.load(tmp_path / "c", template=outline), other)
    plain = cairn.load(tmp_path / "c")
    assert jax.tree.structure(plain) == jax.tree.structure(state)
    assert all(not isinstance(leaf, jax.Array) for leaf in jax.tree.leaves(plain))


def test_a_tree_of_shardings(tmp_path):
    mesh = Mesh(np.array(jax.devices()), ("a",))
    cairn.save({"x": np.ones(8), "y": [np.ones(4), np.ones(3)]}, tmp_path / "c")
    split, single = NamedSharding(mesh, PartitionSpec("a")), SingleDeviceSharding(jax.devices()[5])
    whole = NamedSharding(mesh, PartitionSpec())
    loaded = cairn.load(tmp_path / "c", sharding={"x": split, "y": [single, whole]})
    assert [loaded["x"].sharding, loaded["y"][0].sharding] == [split, single]
    with pytest.raises(ValueError, match="y.0"):
        cairn.load(tmp_path / "c", sharding=split)


def test_modules_and_states_of_flax(tmp_path):
    @struct.dataclass
    class State:
        params: dict
        rate: float = struct.field(pytree_node=False)

    model = nnx.Linear(3, 4, rngs=nnx.Rngs(0))
    state = nnx.state(model)
    cairn.save({"nnx": state, "struct": State({"w": jnp.ones(2)}, 0.5)}, tmp_path / "c")
    template = {"nnx": nnx.state(nnx.Linear(3, 4, rngs=nnx.Rngs(1))),
                "struct": State({"w": jnp.zeros(2)}, 0.25)}
    loaded = cairn.load(tmp_path / "c", template=template)
    assert loaded["struct"].rate == 0.25 and loaded["struct"].params["w"].sum() == 2
    np.testing.assert_array_equal(loaded["nnx"]["kernel"].get_value(), state["kernel"].get_value())
    assert "nnx.kernel.value" in cairn.open(tmp_path / "c")


def test_donated_and_deleted_arrays_are_saved_as_they_were(tmp_path):
    mesh = Mesh(np.array(jax.devices()), ("a",))
    step = jax.jit(lambda x: x + 1, donate_argnums=0)
    for sharding in (SingleDeviceSharding(jax.devices()[0]),
                     NamedSharding(mesh, PartitionSpec("a"))):
        array = jax.device_put(jnp.zeros((8, 100_000)), sharding)
        handle = cairn.save_async({"w": array}, tmp_path / "c")
        for _ in range(5):
            array = step(array)
        array.delete()
        handle.wait()
        assert not cairn.load(tmp_path / "c")["w"].any()
