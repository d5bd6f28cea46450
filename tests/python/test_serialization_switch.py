# SPDX-License-Identifier: Apache-2.0
"""What a program trips over when it changes its import, beyond names and parameters."""

import copy
import dataclasses
import datetime as dt
import errno
import os
import pickle
import shutil
import threading
from typing import Any, NamedTuple

import cairn
import eformer.serialization
import flax
import jax
import jax.numpy as jnp
import numpy as np
import optax
import pytest
import safetensors.numpy
from cairn.serialization import serialization as ours
from cairn.serialization import AsyncCheckpointManager, Checkpointer, CheckpointInterval
from cairn.serialization.async_manager import CheckpointMetadata
from cairn.serialization.checkpointer import find_latest_checkpoint
from eformer.serialization.async_manager import CheckpointMetadata as ReferenceMetadata
from flax import nnx
from jax.sharding import Mesh, NamedSharding, PartitionSpec

TREE = {"w": np.arange(6.0, dtype=np.float32)}


def files_in(folder):
    return sorted(path.relative_to(folder).as_posix() for path in folder.rglob("*")
                  if path.is_file() and not path.name.startswith("."))


def test_attributes_of_a_manager_may_be_set(tmp_path):
    manager = AsyncCheckpointManager()
    assert manager.gcs_bucket is None and manager.gcs_client is None
    run = Checkpointer(tmp_path / "run", None, [CheckpointInterval(every=1)], manager=manager)
    manager.use_tensorstore, manager.float_dtype = False, jnp.bfloat16
    manager.enable_validation = manager.verbose = True
    manager.save_tree(TREE, tmp_path / "a.safetensors")
    run.on_step(None, TREE, step=1)
    run.wait_until_finished()
    assert files_in(tmp_path / "run/run-1") != []
    assert not any("zarray" in name for name in files_in(tmp_path))
    assert manager.load(tmp_path / "a.safetensors", None)[0]["w"].dtype == jnp.bfloat16
    manager.enable = False
    manager.save_tree(TREE, tmp_path / "b.safetensors")
    run.on_step(None, TREE, step=2)
    run.wait_until_finished()
    assert not (tmp_path / "b.safetensors").exists() and not (tmp_path / "run/run-2").exists()
    manager.while_saving = "sometimes"
    with pytest.raises(ValueError, match="while_saving"):
        manager.save_tree(TREE, tmp_path / "c")


def test_credentials_without_a_bucket_mean_nothing():
    assert AsyncCheckpointManager(gcs_bucket="", gcs_credentials_path="/key.json").gcs_bucket == ""
    with pytest.raises(NotImplementedError, match="gcs_bucket"):
        AsyncCheckpointManager(gcs_bucket="mine")


@pytest.mark.parametrize("copied", [copy.copy, copy.deepcopy,
                                    lambda made: pickle.loads(pickle.dumps(made))])
def test_managers_can_be_copied(tmp_path, copied):
    manager = AsyncCheckpointManager(float_dtype="bf16")
    manager.save_tree(TREE, tmp_path / "a")
    other = copied(manager)
    other.save_tree(TREE, tmp_path / "b")
    assert other.load(tmp_path / "b", None)[0]["w"].dtype == jnp.bfloat16


@pytest.mark.parametrize("names", [["a.b", "c/d"], ["mlp/~/w.b", "mlp/~/w.c"], ["a..b", "c"],
                                   [".a", "b."], ["a.b%41", "c/d"]])
def test_names_in_files_of_others_are_split_as_the_reference_does(tmp_path, line, names):
    path = tmp_path / "model.safetensors"
    safetensors.numpy.save_file({name: np.ones(2, np.float32) for name in names}, path)
    loaded = [jax.tree.map(np.asarray, manager.load(path, line)[0])
              for manager in (AsyncCheckpointManager(),
                              eformer.serialization.AsyncCheckpointManager())]
    jax.tree.map(np.testing.assert_array_equal, *loaded)


def test_metadata_has_the_fields_of_the_reference():
    fields = [[field.name for field in dataclasses.fields(kind)]
              for kind in (CheckpointMetadata, ReferenceMetadata)]
    assert fields[0] == fields[1]
    assert CheckpointMetadata.from_dict({"theirs": 1}).to_dict()["theirs"] == 1
    assert "theirs" not in CheckpointMetadata().to_dict()


def test_policies_may_be_changed(tmp_path):
    now = dt.datetime(2026, 3, 1)
    run = Checkpointer(tmp_path, 0, [], dt_now_injection=lambda: now)
    assert run.on_step(None, TREE, step=1) is None
    run.step_policies.append(CheckpointInterval(every=2))
    assert [bool(run.on_step(None, TREE, step=step)) for step in (2, 3)] == [True, False]
    run.step_policies, run.save_interval = [], dt.timedelta(minutes=1)
    now += dt.timedelta(minutes=2)
    assert [bool(run.on_step(None, TREE, step=step)) for step in (4, 5)] == [True, False]
    assert run._last_save_step == 4
    run.step_policies = [CheckpointInterval(1), CheckpointInterval(2)]
    with pytest.raises(ValueError, match="every 1 for ever"):
        run.on_step(None, TREE, step=6)
    with pytest.raises(AttributeError):
        run.base_path = "/elsewhere"


def test_overriding_in_vain_is_said(tmp_path, caplog):
    class Manager(AsyncCheckpointManager):
        def save_pytree(self, *args, **options):
            raise AssertionError

    class Run(Checkpointer):
        def save_checkpoint(self, *args, **options):
            raise AssertionError

    Run(tmp_path, None, [], manager=Manager())
    assert [record.getMessage().split("does not call what ")[1] for record in caplog.records] == \
        [f"{Run.__qualname__} overrides: save_checkpoint",
         f"{Manager.__qualname__} overrides: save_pytree"]
    with pytest.raises(TypeError, match="AsyncCheckpointManager of cairn.serialization"):
        Checkpointer(tmp_path, None, [], manager=eformer.serialization.AsyncCheckpointManager())


@pytest.mark.parametrize("destination", ["{base}", "{base}/", ".", "{base}/a/../../outside",
                                         "../outside", "{base}/inside"])
def test_destinations_lead_where_they_do_in_the_reference(tmp_path, line, destination):
    found = []
    for package in (eformer.serialization, __import__("cairn.serialization").serialization):
        base = tmp_path / package.__name__ / "base"
        run = package.Checkpointer(str(base), None, [])
        os.makedirs(base / "a")
        path = run.save_pytree({"w": jnp.ones(2)}, "m", step=7,
                               destination=destination.format(base=base))
        run.wait_until_finished()
        assert find_latest_checkpoint(path) == os.path.normpath(path)
        tree, extras = run.load_pytree(line, prefix="m", path=path, load_treedef=True)
        assert (tree["w"].tolist(), extras["step"]) == ([1, 1], 7)
        found.append([name for name in files_in(tmp_path / package.__name__)
                      if not name.endswith("cairn.json")])
    assert found[0] == found[1]


def test_an_index_of_the_first_version_has_one_tree_whatever_it_is_called(fixtures, line):
    path = fixtures / "eformer_index_v1/checkpoint"
    loaded = [jax.tree.map(lambda array: np.asarray(array).tobytes(),
                           manager.load(str(path), line, prefix="tx")[0])
              for manager in (AsyncCheckpointManager(),
                              eformer.serialization.AsyncCheckpointManager())]
    assert loaded[0] == loaded[1]
    path = fixtures / "eformer_save_tree_no_prefix/checkpoint"
    with pytest.raises(ValueError, match="'tx' not found"):
        AsyncCheckpointManager().load(path, line, prefix="tx")


def test_a_prefix_that_is_not_there_is_no_fresh_start(tmp_path, line):
    for manager in (AsyncCheckpointManager(), eformer.serialization.AsyncCheckpointManager()):
        path = tmp_path / type(manager).__module__
        manager.save_pytree({"w": jnp.ones(2)}, str(path), line, prefix="model")
        manager.global_manager.wait_until_finished()
        run = Checkpointer(path, None, [])
        for load_treedef in (True, False):
            with pytest.raises(ValueError, match="'tx' not found"):
                run.load_pytree(line, prefix="tx", discover_raise=False, load_treedef=load_treedef)
        with pytest.raises(FileNotFoundError, match="No checkpoint found under"):
            run.load_pytree(line, prefix="tx")


def test_temporary_checkpoints_go_with_what_callbacks_put_beside_them(tmp_path):
    now = dt.datetime(2026, 3, 1)
    run = Checkpointer(tmp_path, dt.timedelta(minutes=1), [], dt_now_injection=lambda: now)
    manager = AsyncCheckpointManager()

    def save(destination, mesh, metadata):
        manager.save_pytree(TREE, tmp_path / destination, prefix="model")
        (tmp_path / destination / "config.json").write_text("{}")

    for step in (1, 2, 3):
        now += dt.timedelta(minutes=2)
        run.on_step(None, step=step, true_callbacks=[save])
    run.wait_until_finished()
    assert [name for name in os.listdir(tmp_path) if not name.startswith(".")] == ["run-3"]
    run._queue_checkpoint_removal(str(tmp_path / "run-3"))
    assert not (tmp_path / "run-3").exists()


class Pair(NamedTuple):
    step: Any
    w: Any


@flax.struct.dataclass
class State:
    step: Any
    w: Any


def trees_without_a_plain_dict():
    leaves = {"step": np.int32(7), "w": np.arange(3.0)}
    yield Pair(**leaves)
    yield State(**leaves)
    yield flax.core.freeze(leaves)
    yield nnx.State(leaves)
    yield list(leaves.values())


@pytest.mark.parametrize("tree", [*trees_without_a_plain_dict()],
                         ids=lambda tree: type(tree).__name__)
def test_a_run_goes_on_with_the_containers_of_its_template(tmp_path, tree):
    run = Checkpointer(tmp_path, None, [CheckpointInterval(every=1)])
    run.on_step(None, tree, step=1)
    empty = jax.tree.map(np.zeros_like, tree)
    for load in (run.load_checkpoint, run.load_checkpoint_if_any):
        state, about = load(None, template=empty)
        assert type(state) is type(tree) and about["step"] == 1
        assert jax.tree.structure(state) == jax.tree.structure(tree)
        jax.tree.map(np.testing.assert_array_equal, state, tree)


def test_leaves_that_stay_as_the_template_has_them_are_listed(tmp_path, caplog):
    run = Checkpointer(tmp_path, None, [CheckpointInterval(every=1)])
    run.save_pytree({"a": np.ones(2), "b": np.ones(4)}, "m", step=1, extras={"lr": 1})
    run.wait_until_finished()
    loads = {"template": {"a": np.zeros(3), "b": np.zeros((2, 2)), "c": np.zeros(1), "n": 3},
             "strict_shapes": False, "prefix": "m"}
    manager, where = AsyncCheckpointManager(), tmp_path / "run-1"
    for load in (lambda: run.load_checkpoint(None, **loads),
                 lambda: run.load_checkpoint(None, structured=True, **loads),
                 lambda: run.load_pytree(None, load_treedef=True, **loads),
                 lambda: manager.load_pytree(where, None, **loads),
                 lambda: (cairn.load(where, **loads), None)):
        caplog.clear()
        tree, about = load()
        assert tree["a"].shape == (3,) and tree["n"] == 3 and tree["b"].sum() == 4
        assert about is None or about["kept_from_template"] == ["a", "c", "n"]
        assert [record.levelname for record in caplog.records if record.name == "cairn"] == \
            ["WARNING"] and "the template's values: a, c, n" in caplog.text
    caplog.clear()
    _, about = manager.load_pytree(where, None, prefix="m", template={"a": np.zeros(2)})
    assert about == {"lr": 1, "step": 1} and not caplog.records


NUMBERS = {"w": jnp.ones(8), "step": 3, "inside": [jnp.zeros(8), 0.5, True], "name": "adam"}


def save_tree_of_reference(path, mesh):
    manager = eformer.serialization.AsyncCheckpointManager(float_dtype=None)
    manager.save_tree(NUMBERS, path, mesh, prefix="m")


def save_pytree_of_reference(path, mesh):
    manager = eformer.serialization.AsyncCheckpointManager(float_dtype=None)
    manager.save_pytree(NUMBERS, path, mesh, prefix="m")


@pytest.mark.parametrize("save", [save_tree_of_reference, save_pytree_of_reference])
def test_numbers_stay_those_of_the_template_where_the_reference_saved_them(
        tmp_path, line, caplog, save):
    save(str(tmp_path), line)
    template = {"w": jnp.zeros(8), "step": 9, "inside": [jnp.ones(8), 1.5, False], "name": "sgd"}
    manager = AsyncCheckpointManager()
    tree, about = manager.load_pytree(tmp_path, line, prefix="m", template=template)
    assert (tree["step"], tree["inside"][1:], tree["name"]) == (9, [1.5, False], "sgd")
    assert tree["w"].sum() == 8 and tree["inside"][0].sum() == 0
    assert about["kept_from_template"] == ["inside.1", "inside.2", "name", "step"]
    assert [record.message for record in caplog.records if "template's values" in record.message]
    stored = save is save_pytree_of_reference  # in pickles, which the reference does not ask then
    assert cairn.load(tmp_path, prefix="m", template=template)["step"] == (3 if stored else 9)
    template["more"] = jnp.zeros(1)
    with pytest.raises(KeyError, match=r"Missing array for key 'more' \("):
        manager.load_pytree(tmp_path, line, prefix="m", template=template)


def test_what_lay_on_no_mesh_goes_to_every_device_of_any(tmp_path, grid):
    """Arrays on the mesh go back to their place; those without one are replicated."""
    spread = NamedSharding(grid, PartitionSpec("a", "b"))
    state = {"w": jax.device_put(jnp.arange(64.0).reshape(8, 8), spread), "step": jnp.int32(7),
             "adam": optax.adam(1e-3).init({"w": jnp.ones((8, 8))}), "seen": np.arange(3)}
    run = Checkpointer(tmp_path, None, [CheckpointInterval(every=1)])
    run.on_step(grid, state, step=1)
    tree, _ = run.load_checkpoint(grid)
    assert tree["w"].sharding == spread
    for leaf in (tree["step"], tree["adam"]["0"]["count"], tree["adam"]["0"]["mu"]["w"],
                 tree["seen"]):
        assert leaf.sharding == NamedSharding(grid, PartitionSpec())
    other = Mesh(grid.devices, ("x", "y"))
    with pytest.raises(ValueError, match="No sharding specified for 'w' on multi-axis mesh"):
        run.load_checkpoint(other)


def test_arrays_of_others_go_to_a_mesh_of_several_axes_only_if_they_are_scalars(tmp_path, grid):
    saver = eformer.serialization.serialization
    run = Checkpointer(tmp_path, None, [])
    saver.tree_serialize_leaves(str(tmp_path), {"step": jnp.int32(7), "w": jnp.ones(8)})
    with pytest.raises(ValueError, match="No sharding specified for 'w' on multi-axis mesh"):
        run.load_checkpoint(grid, path=tmp_path, discover_latest=False)


def test_an_index_of_another_format_is_named(tmp_path, line):
    (tmp_path / "tensorstore_index.json").write_text('{"format": "orbax", "arrays": []}')
    for load in (lambda: cairn.load(tmp_path),
                 lambda: AsyncCheckpointManager().load(tmp_path, line),
                 lambda: ours.tree_deserialize_leaves(tmp_path, line)):
        with pytest.raises(ValueError, match='unsupported index format: "orbax"') as caught:
            load()
        assert caught.value.reason == "index/format"


@pytest.mark.parametrize("lost", ["m/w/0", "m/w"])
def test_lost_files_of_an_array_are_both_damage_and_files_that_are_not_there(tmp_path, line, lost):
    manager = AsyncCheckpointManager(blocking=True)
    manager.save_pytree(TREE, tmp_path, prefix="m")
    shutil.rmtree(tmp_path / lost) if (tmp_path / lost).is_dir() else (tmp_path / lost).unlink()
    for kind in (FileNotFoundError, ValueError, cairn.CorruptError):
        with pytest.raises(kind) as caught:
            manager.load_pytree(tmp_path, line, prefix="m")
        assert caught.value.errno == errno.ENOENT and caught.value.reason == "load/chunk-missing"
        assert type(pickle.loads(pickle.dumps(caught.value))) is type(caught.value)


def test_a_lost_part_of_a_set_is_both_too(tmp_path):
    (tmp_path / "model.safetensors.index.json").write_text(
        '{"weight_map": {"w": "model-00001-of-00001.safetensors"}}')
    for kind in (FileNotFoundError, cairn.CorruptError):
        with pytest.raises(kind, match="the set is incomplete") as caught:
            AsyncCheckpointManager().load(tmp_path / "model.safetensors.index.json", None)
        assert caught.value.errno == errno.ENOENT


def test_times_have_no_zone(tmp_path):
    run = Checkpointer(tmp_path, None, [])
    run.save_pytree(TREE, "m", step=1)
    run.wait_until_finished()
    for load in (run.load_checkpoint(None, prefix="m"), run.load_pytree(None, prefix="m"),
                 run.load_pytree(None, prefix="m", load_treedef=True),
                 AsyncCheckpointManager().load(tmp_path / "run-1", None, prefix="m")):
        time = dt.datetime.fromisoformat(load[1]["timestamp"])
        assert time.tzinfo is None and abs(time - dt.datetime.now()) < dt.timedelta(hours=1)


def saves(path):
    manager, run = AsyncCheckpointManager(), Checkpointer(path / "run", None, [])
    yield lambda gate: manager.save_tree(TREE, path / "a", progress=gate)
    yield lambda gate: manager.save_pytree(TREE, path / "b", prefix="m", progress=gate)
    yield lambda gate: run.on_step(None, TREE, True, step=1, progress=gate)
    yield lambda gate: run.save_checkpoint(TREE, "c", step=2, progress=gate)
    yield lambda gate: run.save_pytree(TREE, "m", step=3, progress=gate)


def test_a_save_that_goes_on_after_its_call_is_said_once(tmp_path, caplog, monkeypatch):
    monkeypatch.delenv("CAIRN_BLOCKING_SAVES", raising=False)
    for save in saves(tmp_path):
        monkeypatch.setattr("cairn.serialization._tracker._said", set())
        caplog.clear()
        gate = threading.Event()
        save(lambda *_, gate=gate: gate.wait())
        gate.set()
        assert "is not complete yet" in caplog.text and "CAIRN_BLOCKING_SAVES=1" in caplog.text
        caplog.clear()
        save(None)
        assert "is not complete yet" not in caplog.text
    monkeypatch.setattr("cairn.serialization._tracker._said", set())
    AsyncCheckpointManager(blocking=True).save_tree(TREE, tmp_path / "d")
    monkeypatch.setenv("CAIRN_BLOCKING_SAVES", "0")
    gate = threading.Event()
    AsyncCheckpointManager().save_tree(TREE, tmp_path / "e", progress=lambda *_: gate.wait())
    gate.set()
    assert "is not complete yet" not in caplog.text
