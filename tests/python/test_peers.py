# SPDX-License-Identifier: Apache-2.0
"""Trees of flax, optax and JAX: what Cairn saves, others load, and the other way round; on eight
devices, with random meshes and shardings, equal bit for bit."""

import cairn
import flax.linen as nn
import jax
import jax.numpy as jnp
import numpy as np
import optax
import pytest
import safetensors.numpy
import tensorstore as ts
import zarr
from eformer.serialization import AsyncCheckpointManager
from jax.experimental.array_serialization import serialization
from jax.sharding import Mesh, NamedSharding, PartitionSpec

SEEDS = range(3)


class Model(nn.Module):
    @nn.compact
    def __call__(self, x):
        x = nn.Dense(24, param_dtype=jnp.bfloat16)(nn.LayerNorm()(x))
        return nn.Dense(8)(nn.relu(x))


def mesh_of(rng):
    shape = [(8,), (4, 2), (2, 4), (2, 2, 2)][rng.integers(0, 4)]
    devices = rng.permutation(np.array(jax.devices())).reshape(shape)
    return Mesh(devices, ("a", "b", "c")[:len(shape)])


def sharding_of(rng, mesh, shape):
    axes = list(rng.permutation(mesh.axis_names))
    entries = []
    for size in shape:
        fits = axes and rng.integers(0, 3) and size % mesh.shape[axes[-1]] == 0
        entries.append(str(axes.pop()) if fits else None)
    return NamedSharding(mesh, PartitionSpec(*entries))


def state_of(seed):
    """Parameters of flax, an optimizer's state of optax, and arrays of JAX, all spread anyhow."""
    rng = np.random.default_rng(seed)
    params = Model().init(jax.random.key(seed), jnp.ones((1, 16)))["params"]
    params = jax.tree.map(
        lambda x: jnp.asarray(rng.standard_normal(x.shape), x.dtype), params)
    tree = {"params": params, "opt": optax.adamw(1e-3).init(params),
            "more": [jnp.arange(48, dtype=jnp.int8).reshape(4, 12), jnp.float32(seed)]}
    mesh = mesh_of(rng)
    return jax.tree.map(lambda x: jax.device_put(x, sharding_of(rng, mesh, x.shape)), tree)


def leaves_of(tree):
    """By the path that the array has on disk."""
    flat, _ = jax.tree_util.tree_flatten_with_path(tree)
    name = [jax.tree_util.keystr(path, simple=True, separator="/") for path, _ in flat]
    return dict(zip(name, (leaf for _, leaf in flat), strict=True))


def same(saved, loaded):
    saved, loaded = np.asarray(saved), np.asarray(loaded)
    assert (saved.dtype, saved.shape) == (loaded.dtype, loaded.shape)
    assert saved.tobytes() == loaded.tobytes()


def all_same(saved, loaded):
    wanted, found = leaves_of(saved), leaves_of(loaded)
    assert list(wanted) == list(found)
    for name, leaf in wanted.items():
        same(leaf, found[name])


def others(rng, saved):
    """Shardings onto another mesh, for each leaf."""
    mesh = mesh_of(rng)
    return {name: sharding_of(rng, mesh, leaf.shape) for name, leaf in saved.items()}


@pytest.mark.parametrize("compress", [False, True])
@pytest.mark.parametrize("seed", SEEDS)
def test_others_load_arrays_that_cairn_saved(tmp_path, seed, compress):
    tree = state_of(seed)
    saved = leaves_of(tree)
    cairn.save(tree, tmp_path / "c", compress=compress)
    wanted = others(np.random.default_rng(seed + 100), saved)
    specs = [serialization.get_tensorstore_spec(str(tmp_path / "c" / name)) for name in saved]
    loaded = serialization.run_deserialization(list(wanted.values()), specs)
    for (name, leaf), array in zip(saved.items(), loaded, strict=True):
        assert array.sharding == wanted[name]
        same(leaf, array)
        spec = {"driver": "zarr", "kvstore": f"file://{tmp_path}/c/{name}"}
        same(leaf, ts.open(spec).result().read().result())
        if leaf.dtype != jnp.bfloat16:  # which zarr-python lacks
            same(leaf, zarr.open_array(tmp_path / "c" / name, mode="r")[...])


@pytest.mark.filterwarnings("ignore:Object at")  # files beside the arrays
@pytest.mark.parametrize("prefix", ["", "model", "a.b"])
def test_zarr_opens_what_cairn_saved_as_groups(tmp_path, prefix):
    tree = {"layers": [{"w": np.arange(6.0).reshape(2, 3)}, {"w": np.zeros((0, 3), np.int8)}],
            "w": np.ones(3, np.complex64), "step": 7}
    cairn.save(tree, tmp_path / "c", prefix=prefix)
    cairn.save({"other": np.ones(1)}, tmp_path / "c", prefix="beside")
    group = zarr.open(tmp_path / "c" / prefix.replace(".", "/"), mode="r")
    found = dict(group.members(max_depth=None))
    for name in "layers", "layers/0", "layers/1":
        assert isinstance(found.pop(name), zarr.Group)
    found = {name: each for name, each in found.items() if not name.startswith("beside")}
    assert list(leaves_of(tree | {"step": None})) == sorted(found)
    for name, array in found.items():
        same(leaves_of(tree)[name], array[...])
    same(tree["layers"][0]["w"], group["layers"]["0"]["w"][...])


def test_zarr_opens_arrays_beside_those_of_types_that_it_lacks(tmp_path):
    cairn.save({"p": {"a": jnp.ones(3, jnp.bfloat16), "b": jnp.ones(3)}}, tmp_path / "c")
    group = zarr.open(tmp_path / "c", mode="r")
    same(np.ones(3, np.float32), group["p/b"][...])
    with pytest.raises(ValueError, match="bfloat16"):
        group["p/a"]
    with pytest.raises(ValueError, match="bfloat16"):
        list(group["p"].keys())


@pytest.mark.parametrize("seed", SEEDS)
def test_safetensors_loads_what_cairn_saved(tmp_path, seed):
    saved = {name.replace("/", "."): leaf for name, leaf in leaves_of(state_of(seed)).items()}
    cairn.save(state_of(seed), tmp_path / "c.safetensors")
    loaded = safetensors.numpy.load_file(tmp_path / "c.safetensors")
    assert sorted(saved) == sorted(loaded)
    for name, leaf in saved.items():
        same(leaf, loaded[name])


@pytest.mark.parametrize("seed", SEEDS)
def test_cairn_loads_arrays_that_jax_saved(tmp_path, seed):
    tree = state_of(seed)
    saved = leaves_of(tree)
    specs = [serialization.get_tensorstore_spec(str(tmp_path / "c" / name)) for name in saved]
    serialization.run_serialization(list(saved.values()), specs)
    wanted = others(np.random.default_rng(seed + 200), saved)
    shardings = jax.tree.unflatten(jax.tree.structure(tree), list(wanted.values()))
    loaded = cairn.load(tmp_path / "c", template=tree, sharding=shardings)
    assert jax.tree.structure(loaded) == jax.tree.structure(tree)
    all_same(tree, loaded)
    for name, array in leaves_of(loaded).items():
        assert array.sharding == wanted[name], name


@pytest.mark.parametrize("seed", SEEDS)
def test_cairn_loads_what_safetensors_saved(tmp_path, seed):
    tree = state_of(seed)
    named = {name.replace("/", "."): np.asarray(leaf) for name, leaf in leaves_of(tree).items()}
    safetensors.numpy.save_file(named, tmp_path / "c.safetensors")
    all_same(tree, cairn.load(tmp_path / "c.safetensors", template=tree))


@pytest.mark.parametrize("seed", SEEDS)
def test_the_reference_and_cairn_load_each_others(tmp_path, seed):
    tree = state_of(seed)
    rng = np.random.default_rng(seed + 300)
    mesh = mesh_of(rng)
    manager = AsyncCheckpointManager()
    cairn.save(tree, tmp_path / "ours", prefix="state")
    loaded, _ = manager.load_pytree(str(tmp_path / "ours"), mesh=mesh, prefix="state",
                                    partition_rules=((".*", PartitionSpec()),))
    assert jax.tree.structure(loaded) == jax.tree.structure(tree)
    all_same(tree, loaded)
    manager.save_pytree(tree, str(tmp_path / "theirs"), mesh=mesh, prefix="state")
    everywhere = NamedSharding(mesh, PartitionSpec())
    back = cairn.load(tmp_path / "theirs", sharding=everywhere)
    assert jax.tree.structure(back) == jax.tree.structure(tree)
    all_same(tree, back)
    assert all(leaf.sharding == everywhere for leaf in jax.tree.leaves(back))
