# SPDX-License-Identifier: Apache-2.0
"""What programs that use the reference rely on, point by point."""

import datetime as dt
import importlib
import json
import logging
import os
import shutil
import subprocess
import sys
from pathlib import Path

import cairn
import jax
import jax.numpy as jnp
import numpy as np
import optax
import pytest
import safetensors.numpy
import tensorstore
from cairn.serialization import (
    AsyncCheckpointManager,
    Checkpointer,
    CheckpointInterval,
    CheckpointManager,
)
from cairn.serialization.checkpointer import _read_checkpoint_metadata, find_latest_checkpoint
from eformer.paths import ePath
from eformer.serialization import AsyncCheckpointManager as ReferenceManager
from flax import nnx
from jax.sharding import NamedSharding, PartitionSpec


def large(value=1.0):
    """Takes a while to be written."""
    return {"w": np.full(1 << 21, value)}


def test_01_where_names_live():
    for module, names in {
            "async_manager": ["AsyncCheckpointManager"], "base_manager": ["CheckpointManager"],
            "checkpointer": ["Checkpointer", "CheckpointInterval", "find_latest_checkpoint",
                             "_read_checkpoint_metadata"],
            "fsspec_utils": ["exists", "join_path"], "serialization": ["tree_serialize_leaves"],
            "sharding_utils": ["make_itsharded"], "utils": ["flatten_dict"]}.items():
        found = importlib.import_module(f"cairn.serialization.{module}")
        assert all(hasattr(found, name) for name in names), module
    package = importlib.import_module("cairn.serialization")
    reference = importlib.import_module("eformer.serialization")
    assert set(reference.__all__) <= set(package.__all__)


def test_02_private_names(tmp_path):
    now = dt.datetime(2026, 3, 1)
    run = Checkpointer(tmp_path, dt.timedelta(hours=1), [], dt_now_injection=lambda: now)
    assert (run._last_save_step, run._last_save_time, run._dt_now_injection()) == (0, now, now)
    run._last_save_step, run._last_save_time = 5, now - dt.timedelta(days=1)
    assert run.on_step(None, large(), step=5) is None
    assert run.on_step(None, large(), step=6) is not None
    run._queue_checkpoint_removal(str(tmp_path / "run-6"))
    assert find_latest_checkpoint(str(tmp_path)) is None


def test_03_nobody_waits(tmp_path, line):
    path = tmp_path / "run-1"
    Checkpointer(tmp_path, None, []).save_pytree(large(), "model", step=1)
    assert path.is_dir()
    (path / "config.json").write_text("{}")
    assert find_latest_checkpoint(str(tmp_path)) == str(path)
    manager = AsyncCheckpointManager()
    for n, use in enumerate((lambda path: AsyncCheckpointManager.is_tensorstore(path),
                             lambda path: AsyncCheckpointManager().load(path, line),
                             lambda path: cairn.open(path),
                             lambda path: shutil.copytree(path, f"{path}-copy") if
                             AsyncCheckpointManager.is_tensorstore(path) else None,
                             lambda path: AsyncCheckpointManager().save_tree(large(2), path))):
        where = tmp_path / f"use-{n}"
        manager.save_tree(large(), where)
        assert use(where) is not False
    assert AsyncCheckpointManager().load(where, None)[0]["w"][0] == 2
    assert cairn.load(tmp_path / "use-3-copy")["w"][0] == 1


def test_03_the_end_of_the_program_waits(tmp_path):
    program = ("import sys, numpy as np\nfrom cairn.serialization import Checkpointer\n"
               "Checkpointer(sys.argv[1], None, []).save_pytree("
               "{'w': np.ones(1 << 21)}, 'm', step=1)\n")
    subprocess.run([sys.executable, "-c", program, tmp_path], check=True)
    assert cairn.load(tmp_path / "run-1")["w"].sum() == 1 << 21


def test_04_callbacks_that_save(tmp_path):
    run = Checkpointer(str(tmp_path), None, [CheckpointInterval(every=2)])
    seen = []

    def save(destination, mesh, metadata):
        path = os.path.join(run.base_path, destination)
        os.makedirs(path, exist_ok=True)
        AsyncCheckpointManager().save_pytree(large(), path, mesh, prefix="model")
        seen.append((destination, mesh, metadata["step"], metadata["is_temporary"]))

    for step in range(5):
        run.on_step(mesh="mesh", pytree=None, step=step, true_callbacks=[save])
        for marked in tmp_path.glob("run-*"):
            assert _read_checkpoint_metadata(str(marked))["step"] in (2, 4)
            assert (marked / "cairn.json").exists()
    assert seen == [("run-2", "mesh", 2, False), ("run-4", "mesh", 4, False)]


def test_05_marks_that_clients_write(tmp_path):
    run = Checkpointer(tmp_path, None, [])
    for step, stamp in ((1, "2026-05-01T12:00:00+00:00"), (3, "2026-01-01T12:00:00"),
                        (2, "2026-06-01T12:00:00Z")):
        run.save_pytree(large(step), "m", step=step)
        assert cairn.load(tmp_path / f"run-{step}")["w"][0] == step
        (tmp_path / f"run-{step}" / "metadata.json").write_text(json.dumps(
            {"timestamp": stamp, "step": step, "is_temporary": False, "run_name": "theirs"}))
    assert find_latest_checkpoint(tmp_path) == str(tmp_path / "run-3")
    assert run.load_pytree(None, prefix="m")[1]["run_name"] == "theirs"
    for name, stamp in (("run-1", "2026-07-01T00:30:00+02:00"), ("run-2", "2026-06-30T23:00:00Z")):
        (tmp_path / name / "metadata.json").write_text(
            json.dumps({"step": 3, "timestamp": stamp}))
    assert find_latest_checkpoint(tmp_path) == str(tmp_path / "run-2")


def test_06_without_a_step(tmp_path, line):
    base = str(tmp_path / "base")
    assert find_latest_checkpoint(base) is None
    run = Checkpointer(base, None, [])
    assert run.save_pytree({"w": jnp.ones(2)}, "m") == base
    assert run.load_pytree(line, prefix="m", discover_raise=False)[0]["w"].sum() == 2
    assert not os.path.exists(base + "/metadata.json")


def test_07_other_peoples_files(tmp_path, line):
    path = tmp_path / "run-1"
    path.mkdir()
    (path / "config.json").write_text("before")
    ReferenceManager().save_tree({"v": jnp.zeros(2)}, str(path), line, prefix="theirs")
    manager = AsyncCheckpointManager()
    manager.save_pytree(large(), path, line, prefix="model")
    (path / "README.md").write_text("during")
    manager.save_pytree(large(2), path, line, prefix="model")
    manager.wait_until_finished()
    assert (path / "config.json").read_text() == "before"
    assert (path / "README.md").read_text() == "during"
    for one in (manager, ReferenceManager()):
        assert one.load(str(path), line, prefix="theirs")[0]["v"].sum() == 0
        assert one.load(str(path), line, prefix="model")[0]["w"][0] == 2


def test_08_errors_that_clients_match(tmp_path, line):
    manager = AsyncCheckpointManager()
    manager.save_pytree({"a": jnp.ones(2), "b": jnp.ones(3)}, tmp_path / "c", prefix="m")
    with pytest.raises(KeyError) as missing:
        manager.load_pytree(tmp_path / "c", line, prefix="m",
                            template={"a": jnp.ones(2), "x": jnp.ones(1), "y": jnp.ones(1)})
    assert str(missing.value).startswith("Missing array for key 'x'")
    assert "Missing array for key 'y'" in str(missing.value)
    with pytest.raises(ValueError) as other:
        manager.load_pytree(tmp_path / "c", line, prefix="m",
                            template={"a": jnp.ones(4), "b": jnp.ones(5)})
    assert str(other.value).startswith("Array shape mismatch for key 'a'")
    assert "Array shape mismatch for key 'b'" in str(other.value)


def test_09_structure_without_a_template(tmp_path, line):
    model = nnx.Linear(2, 3, rngs=nnx.Rngs(0))
    tree = {"tx": optax.adamw(1e-3).init({"k": jnp.ones(2)}), "state": nnx.state(model),
            "keys": {0: jnp.ones(1), 7: (jnp.zeros(1), [jnp.ones(2)])}}
    run = Checkpointer(tmp_path, None, [])
    run.save_pytree(tree, "all", step=1)
    loaded, _ = run.load_pytree(line, prefix="all", load_treedef=True)
    assert jax.tree.structure(loaded) == jax.tree.structure(tree)
    seen = []
    run.load_pytree(line, prefix="all", load_treedef=True,
                    callback=lambda x, key: seen.append(key) or x)
    assert {"all.tx.0.mu.k", "all.keys.7.1.0"} <= set(seen)
    assert any(key.startswith("all.state.kernel") for key in seen)


def test_10_indexes_written_by_hand(tmp_path, line):
    array = np.arange(32, dtype=np.float32).reshape(8, 4)
    arrays = []
    for name in ("model/w", "model/layers/0/k"):
        store = tensorstore.open({
            "driver": "zarr", "kvstore": {"driver": "file", "path": str(tmp_path / name)},
            "metadata": {"chunks": [3, 2], "shape": [8, 4], "dtype": "<f4"}, "create": True}
        ).result()
        store.write(array).result()
        arrays.append({"path": name, "shape": [8, 4], "dtype": "float32"})
    (tmp_path / "tensorstore_index.json").write_text(json.dumps(
        {"format": "tensorstore", "version": "easydel", "prefixes": {"model": arrays}}))
    (tmp_path / "checkpoint_metadata.json").write_text('{"version": "easydel"}')
    tree, about = AsyncCheckpointManager().load(
        tmp_path, line, prefix="model", partition_rules=((".*", PartitionSpec("a")),))
    np.testing.assert_array_equal(tree["layers"]["0"]["k"], array)
    assert tree["w"].sharding == NamedSharding(line, PartitionSpec("a"))
    assert about["version"] == "easydel"


def test_11_prefixes_of_files_and_kinds_of_paths(tmp_path, line):
    path = tmp_path / "m.safetensors"
    safetensors.numpy.save_file({"w": np.ones(2)}, path)
    for one in (str(path), path, ePath(str(path)), f"file://{path}"):
        assert AsyncCheckpointManager().load(one, line, prefix="tx")[0]["w"].sum() == 2
        assert not AsyncCheckpointManager.is_tensorstore(one)
    for one in ("/no/such", Path("/no/such"), ePath("/no/such")):
        assert not AsyncCheckpointManager.is_tensorstore(one)
        assert str(AsyncCheckpointManager.safe_loadpath(one)) == "/no/such"
    kept = AsyncCheckpointManager.safe_loadpath("/no/such/tensorstore_index.json")
    assert str(kept).rstrip("/") == "/no/such"


def test_12_which_key_a_function_sees(tmp_path, line):
    run = Checkpointer(tmp_path, None, [])
    run.save_pytree({"a": {0: jnp.ones(8)}}, "m", step=1)
    manager, path = AsyncCheckpointManager(), tmp_path / "run-1"
    rules = {False: (("^a/0$", PartitionSpec("a")),), True: (("^m/a/0$", PartitionSpec("a")),)}
    shardings = {False: {"a.0": PartitionSpec("a")}, True: {"m.a.0": PartitionSpec("a")}}
    for structured, load in ((False, manager.load), (True, manager.load_pytree)):
        for options in ({"partition_rules": rules[structured]},
                        {"shardings": shardings[structured]}):
            seen = []
            tree, _ = load(path, line, prefix="m", callback=lambda x, key: seen.append(key) or x,
                           **options)
            assert seen == ["m.a.0" if structured else "a.0"]
            assert jax.tree.leaves(tree)[0].sharding.spec == PartitionSpec("a")
    assert list(run.load_pytree(line, prefix="m", load_treedef=False)[0]["a"]) == ["0"]
    assert list(run.load_pytree(line, prefix="m", load_treedef=True)[0]["a"]) == [0]


def test_13_removal_hides_at_once(tmp_path):
    run = Checkpointer(tmp_path, None, [])
    for step in (1, 2):
        run.save_pytree(large(step), "m", step=step)
    run._queue_checkpoint_removal(str(tmp_path / "run-2"))
    assert not (tmp_path / "run-2").exists()
    assert find_latest_checkpoint(tmp_path) == str(tmp_path / "run-1")
    with pytest.raises(FileNotFoundError):
        cairn.load(tmp_path / "run-2")


def test_14_what_the_reference_cannot(tmp_path, line):
    manager = AsyncCheckpointManager(enable_validation=True)
    manager.save_pytree({"w": np.ones(2)}, tmp_path / "a", prefix="m")
    Checkpointer(tmp_path, None, []).save_checkpoint({"w": np.ones(2)}, "b", step=1)
    manager.save_tree({"w": jnp.ones(2), "none": None}, tmp_path / "c")
    CheckpointManager.save_checkpoint({"w": jnp.ones(2)}, str(tmp_path / "d"), None)
    manager.save_tree({"w": jnp.ones(2)}, tmp_path / "e", prefix="m")
    manager.wait_until_finished()
    (tmp_path / "e" / "tensorstore_index.json").unlink()
    (tmp_path / "e" / "cairn.json").unlink()
    for name in "abcde":
        tree, _ = manager.load(tmp_path / name, line, prefix="m" if name in "ae" else None)
        assert float(jax.tree.leaves(tree)[0].sum()) == 2, name


def test_15_everything_is_synced_before_the_decision(tmp_path, caplog):
    with caplog.at_level(logging.INFO, "cairn"):
        Checkpointer(tmp_path, None, [], manager=AsyncCheckpointManager(verbose=True)
                     ).save_pytree(large(), "m", step=1)
        cairn.ls(tmp_path)  # waits
    phases = [record.message.split(" [")[0] for record in caplog.records
              if "save/phase" in record.message]
    assert phases.index("writing") < phases.index("syncing") < phases.index("committing")
