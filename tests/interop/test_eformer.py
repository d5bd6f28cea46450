# SPDX-License-Identifier: Apache-2.0
"""Checkpoints of the reference system, eformer, read by Cairn, and the other way round."""

import json
import pathlib

import jax
import numpy as np
import optax
import pytest
from eformer.serialization import AsyncCheckpointManager, Checkpointer
from eformer.serialization.async_manager import CheckpointMetadata
from eformer.serialization.base_manager import CheckpointManager
from exchange import (
    NUMPY_DTYPES,
    ZARR2_DTYPES,
    assert_cairn_reads,
    assert_same,
    random_array,
    random_shape,
    save_by_cairn,
)

FLAX_DTYPES = [d for d in [*NUMPY_DTYPES, "bfloat16"] if d != "complex128"]


@pytest.fixture(scope="module")
def mesh():
    return jax.sharding.Mesh(np.array(jax.devices()[:1]), ("one",))


def leaves_of(tree, key=""):
    """Dotted key to array of nested dicts, lists and tuples; other leaves are left out."""
    if isinstance(tree, dict):
        children = tree.items()
    elif isinstance(tree, tuple) and hasattr(tree, "_fields"):
        children = zip(tree._fields, tree, strict=True)
    elif isinstance(tree, (list, tuple)):
        children = enumerate(tree)
    else:
        return {key: tree} if hasattr(tree, "dtype") else {}
    found = {}
    for name, child in children:
        found |= leaves_of(child, f"{key}.{name}" if key else str(name))
    return found


def load_by_eformer(path, mesh, prefix=None):
    tree, metadata = AsyncCheckpointManager().load(str(path), mesh, prefix=prefix or None)
    return leaves_of(tree), metadata


@pytest.mark.parametrize("seed", range(8))
@pytest.mark.parametrize("odd_keys", [False, True])
def test_eformer_loads_zarr2_of_cairn(tmp_path, mesh, seed, odd_keys):
    prefixes = [["model", "optimizer", "opt.inner"], [""], ["", "model"], ["tx"]][seed % 4]
    leaves = save_by_cairn(
        tmp_path / "c", layout="zarr2", seed=seed, odd_keys=odd_keys, prefixes=prefixes,
        codec=["raw", "zstd"][seed % 2], chunk_bytes=[100, 1 << 26, 33][seed % 3],
    )  # fmt: skip
    for prefix in prefixes:
        expected = {leaf.key: leaf for leaf in leaves if leaf.prefix == prefix}
        found, _ = load_by_eformer(tmp_path / "c", mesh, prefix)
        assert sorted(found) == sorted(expected)
        for key, leaf in expected.items():
            assert_same(found[key], leaf)


def test_eformer_validates_checksums_of_cairn(tmp_path, mesh):
    path = tmp_path / "c"
    user = {"run": "r1", "note": "caf\u00e9"}
    leaves = save_by_cairn(
        path, layout="zarr2", seed=4, enable_validation=True, metadata=user, prefixes=["model"]
    )
    found, stored = load_by_eformer(path, mesh, "model")
    metadata = CheckpointMetadata.from_dict(stored)
    assert metadata.custom_metadata == user
    assert sorted(metadata.checksum) == sorted(metadata.array_metadata) == sorted(found)
    for leaf in leaves:
        about = {"dtype": leaf.dtype, "shape": list(leaf.shape)}
        assert metadata.array_metadata[leaf.key] == about
    manager = AsyncCheckpointManager(enable_validation=True)
    assert manager._validate_checkpoint(found, metadata)
    # That accepts wrong sums too: it looks for tuples among the keys. So each is compared here.
    assert metadata.checksum == {key: manager.compute_checksum(x) for key, x in found.items()}


def test_checksums_are_left_out_unless_asked_for(tmp_path):
    save_by_cairn(tmp_path / "c", layout="zarr2", seed=4)
    stored = json.loads((tmp_path / "c/checkpoint_metadata.json").read_text())
    assert CheckpointMetadata.from_dict(stored).checksum == {}


@pytest.mark.parametrize("name", ["c.safetensors", "c"])
@pytest.mark.parametrize("shard_size", [1 << 40, 500])
def test_eformer_loads_safetensors_of_cairn(tmp_path, mesh, name, shard_size):
    leaves = save_by_cairn(
        tmp_path / name, layout="safetensors", seed=9, dtypes=FLAX_DTYPES, shard_size=shard_size
    )
    file = tmp_path / name if "." in name else tmp_path / name / "model.safetensors"
    manager = AsyncCheckpointManager(use_tensorstore=False, enable_validation=True)
    tree, _ = manager.load(str(file), mesh)
    found = leaves_of(tree)
    assert sorted(found) == sorted(leaf.key for leaf in leaves)
    for leaf in leaves:
        assert_same(found[leaf.key], leaf)


def put(array):
    """On devices: in pieces where its first dimension can be cut, so that it has several chunks."""
    devices = 4 if array.ndim and array.shape[0] and array.shape[0] % 4 == 0 else 1
    pieces = jax.sharding.Mesh(np.array(jax.devices()[:devices]), ("x",))
    spec = jax.sharding.PartitionSpec("x") if devices > 1 else jax.sharding.PartitionSpec()
    return jax.device_put(array, jax.sharding.NamedSharding(pieces, spec))


def random_tree(seed, dtypes=ZARR2_DTYPES):
    random = np.random.default_rng(seed)

    def one(n):
        return put(random_array(random, dtypes[n % len(dtypes)], random_shape(random)))

    return {
        "each": {dtype: one(n) for n, dtype in enumerate(dtypes)},
        "layers": [{"kernel": one(n), "bias": one(n + 1)} for n in range(3)],
        "deep": {"a": {"b": {"0": one(5)}}},
    }


def expected_of(trees):
    return {
        (prefix, key): array
        for prefix, tree in trees.items()
        for key, array in leaves_of(tree).items()
    }


@pytest.mark.parametrize("prefixes", [[""], ["model"], ["model", "optimizer", "opt.inner"]])
def test_cairn_loads_save_tree(tmp_path, mesh, prefixes):
    trees = {prefix: random_tree(seed) for seed, prefix in enumerate(prefixes)}
    manager = AsyncCheckpointManager(enable_validation=True)
    for prefix, tree in trees.items():
        manager.save_tree(tree, str(tmp_path / "c"), mesh=mesh, prefix=prefix or None)
    assert_cairn_reads(tmp_path / "c", tmp_path / "dump", expected_of(trees))


@pytest.mark.parametrize("use_tensorstore", [True, False])
def test_cairn_loads_save_pytree(tmp_path, mesh, use_tensorstore):
    params = random_tree(7)
    trees = {
        "model": {**params, "values": {"lr": 0.1, "name": "text", "none": None}},
        "optimizer": optax.adam(1e-3).init({"w": put(np.ones((4, 3), np.float32))}),
    }
    manager = AsyncCheckpointManager(use_tensorstore=use_tensorstore)
    for prefix, tree in trees.items():
        manager.save_pytree(tree, str(tmp_path / "c"), mesh=mesh, prefix=prefix, extras={"n": 3})
    assert_cairn_reads(tmp_path / "c", tmp_path / "dump", expected_of(trees))


def test_cairn_loads_the_checkpoints_of_a_run(tmp_path, mesh):
    run = Checkpointer(str(tmp_path / "run"), None, [], delete_old_temp_checkpoints=False)
    for step in (10, 20):
        tree = random_tree(step, ["float32", "bfloat16"])
        run.save_pytree(tree, "model", step=step, mesh=mesh, temporary=step == 20)
        path = tmp_path / "run" / f"run-{step}"
        assert_cairn_reads(path, tmp_path / "dump", expected_of({"model": tree}))


def test_cairn_loads_one_safetensors_file(tmp_path, mesh):
    tree = random_tree(11, FLAX_DTYPES)
    manager = AsyncCheckpointManager(use_tensorstore=False, enable_validation=True)
    manager.save_tree(tree, str(tmp_path / "model.safetensors"), mesh=mesh, metadata={"run": "r1"})
    expected = expected_of({"": tree})
    assert_cairn_reads(tmp_path / "model.safetensors", tmp_path / "dump", expected)


def test_cairn_loads_safetensors_parts(tmp_path):
    """By eformer's writer of parts; its call that also writes the index fails on every tree."""
    flat = leaves_of(random_tree(12, FLAX_DTYPES))
    (tmp_path / "c").mkdir()
    base = str(tmp_path / "c" / "model")
    groups = CheckpointManager._group_keys_by_shard_size(flat, 512)
    assert len(groups) > 1
    CheckpointManager._save_sharded_to_local(
        flat_state=flat, base_prefix=base, shards=groups, total_shards=len(groups),
        metadata={"format": "flax"}, verbose=False,
    )  # fmt: skip
    weight_map = {
        key: pathlib.Path(CheckpointManager._shard_filename(base, number, len(groups))).name
        for number, group in enumerate(groups, 1)
        for key in group
    }
    with open(CheckpointManager._index_filename(base), "w", encoding="utf-8") as index:
        json.dump({"metadata": {"format": "flax"}, "weight_map": weight_map}, index)
    assert_cairn_reads(tmp_path / "c", tmp_path / "dump", expected_of({"model": flat}))
