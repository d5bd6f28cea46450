# SPDX-License-Identifier: Apache-2.0
"""The base CheckpointManager: safetensors files that the reference and safetensors read."""

import json
import os

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from cairn.serialization import AsyncCheckpointManager, CheckpointManager, base_manager
from eformer.serialization.base_manager import CheckpointManager as Reference
from jax.sharding import Mesh, NamedSharding, PartitionSpec
from safetensors import safe_open
from safetensors.flax import save_file


@pytest.fixture(name="mesh")
def mesh_of_eight():
    return Mesh(np.array(jax.devices()), ("a",))


@pytest.fixture(name="tree")
def tree_on_mesh(mesh):
    return {"layers": [{"w": jax.device_put(jnp.arange(16.0), NamedSharding(mesh,
                                                                            PartitionSpec("a")))},
                       {"w": jnp.ones((2, 3), jnp.bfloat16)}],
            "step": 7, "b": np.arange(5, dtype=np.int32), "nothing": None}


def same(a, b):
    assert jax.tree.structure(a) == jax.tree.structure(b)
    for x, y in zip(jax.tree.leaves(a), jax.tree.leaves(b)):
        assert (x.dtype, x.shape) == (y.dtype, y.shape)
        np.testing.assert_array_equal(np.asarray(x), np.asarray(y))


@pytest.mark.parametrize("shard_size", [5.0, 70 / (1 << 30), None])
def test_what_it_saves_both_load(tmp_path, tree, mesh, shard_size):
    path = str(tmp_path / "model.safetensors")
    returned = CheckpointManager.save_checkpoint(tree, path, mesh, metadata={"k": "v"},
                                                 shard_size_gb=shard_size)
    parts = sorted(name for name in os.listdir(tmp_path) if "-of-" in name)
    assert len(parts) == {5.0: 1, None: 0}.get(shard_size, 2)
    if shard_size:
        assert returned == str(tmp_path / "model.safetensors.index.json")
        assert parts[0] == f"model-00001-of-{len(parts):05d}.safetensors"
    ours, theirs = CheckpointManager.load_checkpoint(returned), Reference.load_checkpoint(returned)
    same(ours[0], theirs[0])
    assert ours[1] == {"k": "v"} and (shard_size is None or theirs[1] == {"k": "v"})
    np.testing.assert_array_equal(ours[0]["layers"]["0"]["w"], np.arange(16.0))
    assert ours[0]["layers"]["0"]["w"].dtype == jnp.float32 and int(ours[0]["step"]) == 7
    assert isinstance(ours[0]["b"], jax.Array) and "nothing" not in ours[0]
    for name in parts or ["model.safetensors"]:
        with safe_open(tmp_path / name, "np") as file:
            assert file.keys()


def test_what_others_saved(tmp_path):
    state = {"a.b": jnp.ones(2), "a.c.d": jnp.zeros((2, 2), jnp.bfloat16), "odd..name": jnp.ones(1)}
    save_file(state, tmp_path / "m.safetensors", metadata={"q": "1"})
    for path in (tmp_path / "m.safetensors",):
        ours, theirs = (module.load_checkpoint(str(path)) for module in (CheckpointManager,
                                                                         Reference))
        same(ours[0], theirs[0])
        assert ours[1] == theirs[1] == {"q": "1"}
    save_file(state, tmp_path / "p-00001-of-00001.safetensors")
    (tmp_path / "p.safetensors.index.json").write_text(json.dumps(
        {"metadata": {"x": 1}, "weight_map": dict.fromkeys(state, "p-00001-of-00001.safetensors")}))
    for path in ("p", "p.safetensors", "p.safetensors.index.json", "p-00001-of-00001.safetensors"):
        ours, theirs = (module.load_checkpoint(str(tmp_path / path))
                        for module in (CheckpointManager, Reference))
        same(ours[0], theirs[0])
        assert ours[1] == theirs[1] == {"x": 1}


def test_functions_callbacks_and_casts(tmp_path):
    save_file({"a.b": jnp.ones(2), "c": jnp.ones(2, jnp.int32)}, tmp_path / "m.safetensors")
    path = str(tmp_path / "m.safetensors")
    options = {"shard_fns": {"a": {"b": lambda x: x * 3}}, "callback": lambda x, key: x + len(key),
               "dtype": "bf16"}
    same(*(module.load_checkpoint(path, **options)[0] for module in (CheckpointManager, Reference)))
    for module in (CheckpointManager, Reference):
        with pytest.raises(KeyError, match="c"):
            module.load_checkpoint(path, mismatch_allowed=False, shard_fns=options["shard_fns"])


def test_floats_are_cast_only_if_that_is_asked_for(tmp_path, tree, mesh):
    for dtype, expected in [(None, jnp.float32), ("bf16", jnp.bfloat16),
                            (jnp.float16, jnp.float16)]:
        path = CheckpointManager.save_checkpoint(tree, tmp_path / "m", mesh, float_dtype=dtype)
        loaded = CheckpointManager.load_checkpoint(path)[0]
        assert loaded["layers"]["0"]["w"].dtype == expected and loaded["b"].dtype == jnp.int32


def test_gathering(tmp_path, tree, mesh):
    def load(**options):
        path = CheckpointManager.save_checkpoint(tree, tmp_path / "m", mesh, **options)
        return CheckpointManager.load_checkpoint(path)[0]

    assert load(gather_fns=True)["b"][4] == 4
    assert load(gather_fns={"b": lambda x: x * 2})["b"][4] == 8
    with pytest.raises(KeyError, match="layers.0.w, layers.1.w, step"):
        load(gather_fns={"b": lambda x: x}, mismatch_allowed=False)


def test_nothing_is_written_where_that_is_asked_for(tmp_path, tree, mesh):
    save = CheckpointManager.save_checkpoint
    assert save(tree, tmp_path / "m", mesh, enable=False) == "/dev/null"
    assert save(tree, "/dev/null", mesh) == "/dev/null"
    assert os.listdir(tmp_path) == []
    save(tree, tmp_path / "m", mesh, write_index_file=False)
    assert os.listdir(tmp_path) == ["m-00001-of-00001.safetensors"]


def test_odd_keys_and_leaves(tmp_path):
    tree = {"x": {"a.b": np.ones(1), "50%": np.zeros(2)}, "flat.name": np.ones(3)}
    path = CheckpointManager.save_checkpoint(tree, tmp_path / "m", None)
    loaded = CheckpointManager.load_checkpoint(path)[0]
    assert {*loaded["x"]} == {"a.b", "50%"} and loaded["flat"]["name"].shape == (3,)
    with pytest.raises(ValueError, match="name, deep.0"):
        CheckpointManager.save_checkpoint({"name": "text", "deep": [b"x"]}, tmp_path / "n", None)
    for wrong in (np.ones(2), {"s": jax.ShapeDtypeStruct((2,), jnp.float32)}):
        with pytest.raises(ValueError, match="not (the tree itself|s)"):
            CheckpointManager.save_checkpoint(wrong, tmp_path / "n", None, None, "fp32")
    with pytest.raises(ValueError, match="one name in the file: a.b"):
        CheckpointManager.save_checkpoint({"a.b": np.ones(1), "a": {"b": np.ones(2)}},
                                          tmp_path / "n", None)
    with pytest.raises(NotImplementedError, match="gs://"):
        CheckpointManager.load_checkpoint("gs://bucket/m")


class Bucket(dict):
    """As much of a client of Google's storage as is needed."""

    def __bool__(self):
        return True

    def bucket(self, name):
        self.prefix = name
        return self

    def blob(self, name):
        return Blob(self, f"{self.prefix}/{name}")


class Blob:
    def __init__(self, objects, name):
        self.objects, self.name = objects, name

    def upload_from_file(self, file, content_type):
        self.objects[self.name] = file.read()

    def download_to_file(self, file):
        file.write(self.objects[self.name])


def test_streams_of_msgpack(monkeypatch):
    monkeypatch.setattr(CheckpointManager, "create_gcs_client", staticmethod(lambda _: Bucket()))
    manager = CheckpointManager("gs://b/c", gcs_bucket="b")
    tree = {"w": {"k": jnp.arange(3.0), "n": jnp.arange(2)}}
    manager.save_state_to_gcs_msgpack(tree, "gs://b/x", float_dtype="bf16")
    loaded = manager.load_state_from_gcs_msgpack("gs://b/x")
    assert loaded["w"]["k"].dtype == jnp.bfloat16 and loaded["w"]["n"].tolist() == [0, 1]
    theirs = Reference("gs://b/c")
    theirs.gcs_client = Bucket()
    theirs.save_state_to_gcs_msgpack(tree, "gs://b/x", float_dtype="bf16")
    manager.gcs_client["b/y"] = theirs.gcs_client["b/x"]
    np.testing.assert_array_equal(manager.load_state_from_gcs_msgpack("gs://b/y")["w"]["k"],
                                  loaded["w"]["k"])
    with pytest.raises(ValueError, match="GCS client not initialized"):
        CheckpointManager("c").load_state_from_gcs_msgpack("gs://b/x")


def test_what_is_missing_is_said(monkeypatch):
    monkeypatch.setitem(__import__("sys").modules, "google.cloud.storage", None)
    with pytest.raises(NotImplementedError, match="pip install google-cloud-storage"):
        CheckpointManager.create_gcs_client()


def test_metadata_of_a_file_is_seen_by_everybody(tmp_path):
    path = str(tmp_path / "m.safetensors")
    CheckpointManager.save_checkpoint({"w": np.ones(2)}, path, None, shard_size_gb=None,
                                      metadata={"k": "v", "format": "flax"})
    with safe_open(path, "np") as file:
        seen = file.metadata()
    assert seen.pop("cairn") and seen == {"k": "v", "format": "flax"}
    save_file({"w": jnp.ones(2)}, tmp_path / "theirs.safetensors", metadata={"q": "1"})
    _, metadata = AsyncCheckpointManager().load(str(tmp_path / "theirs.safetensors"), None)
    assert metadata == {"q": "1"}


def test_overwriting_leaves_the_old_tree_or_gives_the_new_one(tmp_path, monkeypatch):
    path, size = str(tmp_path / "m"), 20 / (1 << 30)
    (tmp_path / "other.safetensors").write_bytes(b"not ours")

    def trees(n):
        return {name: np.full(4, n, np.float32) for name in "abc"}

    def loaded():
        found = [float(CheckpointManager.load_checkpoint(path)[0][name][0]) for name in "abc"]
        theirs = [float(Reference.load_checkpoint(path)[0][name][0]) for name in "abc"]
        assert found == theirs
        return found

    CheckpointManager.save_checkpoint(trees(1), path, None, shard_size_gb=size)
    first = sorted(os.listdir(tmp_path))
    write, calls = base_manager._write, []

    def fail_at_the_last(state, part, metadata):
        calls.append(part)
        if len(calls) == 3:
            raise OSError("killed")
        write(state, part, metadata)

    monkeypatch.setattr(base_manager, "_write", fail_at_the_last)
    with pytest.raises(OSError, match="killed"):
        CheckpointManager.save_checkpoint(trees(2), path, None, shard_size_gb=size)
    assert loaded() == [1, 1, 1]
    monkeypatch.undo()
    for n in (3, 4):
        CheckpointManager.save_checkpoint(trees(n), path, None, shard_size_gb=size)
        assert loaded() == [n, n, n]
    index = json.loads((tmp_path / "m.safetensors.index.json").read_text())
    named = set(index["weight_map"].values())
    assert named <= set(os.listdir(tmp_path)) and len(named) == 3
    assert sorted(named) == [name for name in first if "-of-" in name]  # free again
    left = set(os.listdir(tmp_path)) - named - {"m.safetensors.index.json", "other.safetensors"}
    assert left == {os.path.basename(part) for part in calls[:2]}  # of the save that failed
    assert (tmp_path / "other.safetensors").read_bytes() == b"not ours"
