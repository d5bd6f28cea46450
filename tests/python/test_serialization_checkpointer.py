# SPDX-License-Identifier: Apache-2.0
"""Checkpointer: policies, discovery and loads of a run, beside the reference's."""

import datetime as dt
import importlib.util
import json
import os
import random
import shutil
import threading
from pathlib import Path

import cairn
import jax
import jax.numpy as jnp
import ml_dtypes
import numpy as np
import optax
import pytest
from cairn.serialization import checkpointer as ours
from cairn.serialization.async_manager import AsyncCheckpointManager
from cairn.serialization.checkpointer import (
    Checkpointer,
    CheckpointInterval,
    RetentionRules,
    find_latest_checkpoint,
)
from eformer.serialization import checkpointer as reference
from jax.sharding import Mesh, NamedSharding, PartitionSpec

HOUR = dt.timedelta(hours=1)


class Hands:
    """A clock that stands until it is moved."""

    def __init__(self, now=dt.datetime(2026, 1, 1)):
        self.now = now

    def __call__(self):
        return self.now


def names(base):
    return sorted(name for name in os.listdir(base) if not name.startswith("."))


def leaves_same(a, b):
    for x, y in zip(jax.tree.leaves(a), jax.tree.leaves(b), strict=True):
        assert (x.dtype, x.shape) == (y.dtype, y.shape)
        np.testing.assert_array_equal(np.asarray(x), np.asarray(y))


def model_of_policies():
    path = Path(__file__).parents[1] / "oracle" / "test_save_policy.py"
    spec = importlib.util.spec_from_file_location("save_policy_model", path)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_policies_do_what_the_model_does(tmp_path):
    oracle, rng = model_of_policies(), random.Random(3)
    kinds = set()
    for n in range(25):
        until = rng.randint(1, 20)
        run = {"interval": rng.choice([None, 3600]), "steps": rng.choice(
            [[], [(rng.randint(1, 7), None)], [(2, until), (5, until + 10)], [(3, until)]])}
        clock, seen = Hands(), []
        checkpointer = Checkpointer(
            tmp_path / f"{n}", None if run["interval"] is None else HOUR,
            [CheckpointInterval(*step) for step in run["steps"]], dt_now_injection=clock)
        model, step = oracle.Model(run, 0), 0
        for _ in range(40):
            passed = rng.choice([0, 60, 1800, 7200])
            clock.now += dt.timedelta(seconds=passed)
            step += rng.choice([0, 1, 1, 2])
            force = rng.random() < 0.05
            seconds = int((clock.now - dt.datetime(2026, 1, 1)).total_seconds())
            expected = model.step(step, seconds, force)
            seen.clear()
            checkpointer.on_step(None, None, force, step=step, true_callbacks=[
                lambda name, mesh, about: seen.append((name, about["is_temporary"]))])
            assert seen == [] if expected == oracle.NOTHING else \
                seen == [(f"run-{step}", expected == oracle.TEMPORARY)]
            assert checkpointer._last_save_step == model.last_step
            kinds.add(expected)
    assert len(kinds) == 3


def test_policies_that_make_no_sense(tmp_path):
    for policies in ([(3, None), (5, 10)], [(3, 10), (5, 10)]):
        for module in (ours, reference):
            with pytest.raises(ValueError, match="until|open"):
                module.Checkpointer(str(tmp_path), None,
                                    [module.CheckpointInterval(*one) for one in policies])
    with pytest.raises(ValueError, match="every"):
        Checkpointer(tmp_path, None, [CheckpointInterval(0)])
    with pytest.raises(ValueError, match="mode"):
        RetentionRules(best_k=1, metric="loss", mode="least")
    with pytest.raises(ValueError, match="metric"):
        Checkpointer(tmp_path, None, [], retention=RetentionRules(best_k=1))
    assert not list(tmp_path.iterdir())


def test_a_run_of_ours_is_a_run_to_the_reference(tmp_path, line):
    base = str(tmp_path / "run")
    state = {"params": {"w": jnp.arange(4.0)}, "opt": optax.adam(1e-3).init({"w": jnp.ones(4)})}
    mine = Checkpointer(base, None, [CheckpointInterval(every=2)])
    for step in range(5):
        mine.on_step(line, {"w": jnp.full(3, step)}, step=step, extras={"loss": step / 2})
    assert mine.save_pytree(state, "state", step=6, extras={"lr": 0.1}) == base + "/run-6"
    mine.wait_until_finished()
    theirs = reference.Checkpointer(base, None, [reference.CheckpointInterval(every=2)])
    assert reference.find_latest_checkpoint(base) == find_latest_checkpoint(base) == base + "/run-6"
    for structured in (True, False):
        tree, about = theirs.load_checkpoint(line, prefix="state", structured=structured)
        leaves_same(tree, state)
    got, about = theirs.load_pytree(line, prefix="state", load_treedef=True)
    assert jax.tree.structure(got) == jax.tree.structure(state)
    assert (about["lr"], about["step"], about["is_temporary"]) == (0.1, 6, False)
    assert theirs._manager.load_pytree(base + "/run-6", line, prefix="state")[1] \
        == {"lr": 0.1, "step": 6}
    tree, _ = theirs.load_checkpoint(line, path=base + "/run-4", discover_latest=False)
    assert tree["w"][0] == 4
    assert theirs._manager.load(base + "/run-4", line)[1]["custom_metadata"]["loss"] == 2


def test_a_run_of_the_reference_is_a_run_to_us(tmp_path, line):
    base = str(tmp_path / "run")
    state = {"params": {"w": jnp.arange(4.0)}, "layers": [jnp.ones(2), {"b": jnp.zeros(3)}]}
    theirs = reference.Checkpointer(base, None, [])
    for step in (10, 2):
        theirs.save_pytree(jax.tree.map(lambda x: x + step, state), "model", step=step,
                           extras={"lr": 0.5})
    mine = Checkpointer(base, None, [])
    assert find_latest_checkpoint(base) == base + "/run-10"  # the clock says run-2
    options = {"prefix": "model", "path": base + "/run-10", "discover_latest": False}
    for call, more in (("load_checkpoint", {}), ("load_checkpoint", {"structured": True}),
                       ("load_pytree", {}), ("load_pytree", {"load_treedef": True}),
                       ("load_pytree", {"chunk_size": 1, "dtype": None})):
        results = [getattr(one, call)(line, **options, **more) for one in (mine, theirs)]
        leaves_same(results[0][0], results[1][0])
        assert results[0][1].items() >= results[1][1].items()
    assert mine.load_pytree(line, prefix="model")[1]["step"] == 10
    assert ours._read_checkpoint_metadata(base + "/run-2") \
        == reference._read_checkpoint_metadata(base + "/run-2")


def test_on_step_with_a_tree(tmp_path, line):
    told, base = [], tmp_path / "run"
    run = Checkpointer(base, None, [CheckpointInterval(every=5)])
    tree = {"w": np.zeros(1 << 16)}
    for step in range(1, 12):
        tree["w"][:] = step
        saved = run.on_step(line, tree, step=step, extras={"loss": 1.5, "bad": float("inf")},
                            true_callbacks=[lambda *given: told.append((given, threading
                                            .current_thread() is threading.main_thread()))])
        assert (saved is None) == (step not in (5, 10))
        assert run.on_step(line, tree, step=step) is None
    run.wait_until_finished()
    assert names(base) == ["run-10", "run-5"]
    for (name, mesh, about), is_main in told:
        assert mesh is line and not is_main
        assert about["loss"] == 1.5 and about["bad"] is None and about["step"] in (5, 10)
        mark = json.loads((base / name / "metadata.json").read_text())
        assert mark.pop("cairn")["name"] == name
        assert mark == about
    for step in (5, 10):
        state, about = run.load_checkpoint(None, path=base / f"run-{step}", discover_latest=False)
        assert (state["w"] == step).all()
        assert (about["step"], about["loss"], about["is_temporary"]) == (step, 1.5, False)
        assert about["custom_metadata"]["loss"] == 1.5


def test_a_tree_is_looked_at_only_when_it_is_time(tmp_path):
    class Unsaveable:
        pass

    run = Checkpointer(tmp_path, None, [CheckpointInterval(every=5)])
    run.on_step(None, {"x": Unsaveable()}, step=1)
    with pytest.raises(ValueError, match="x is a .*Unsaveable"):
        run.on_step(None, {"x": Unsaveable()}, step=5)
    assert run._last_save_step == 0 and not list(tmp_path.glob("run-*"))


@pytest.mark.parametrize("tree", [{"w": np.ones(2)}, np.ones(2), [], object()], ids=repr)
def test_a_tree_in_the_place_of_the_mesh_is_refused(tmp_path, line, tree):
    run = Checkpointer(tmp_path, None, [CheckpointInterval(every=1)])
    for mesh in (None, line):
        assert run.on_step(mesh, step=1) is None
    for step in (0, 1):
        with pytest.raises(ValueError, match=r"pass the mesh, or None, first") as caught:
            run.on_step(tree, step=step)
        assert caught.value.reason == "run/no-tree"


def test_callbacks_that_save(tmp_path):
    """What they began is durable when on_step() returns, and marked."""
    base, where = tmp_path / "run", []
    run = Checkpointer(base, None, [CheckpointInterval(every=1)])

    def save(name, mesh, about):
        where.append(threading.current_thread())
        AsyncCheckpointManager().save_pytree({"w": np.ones(9)}, base / name, prefix="model")
        run.save_pytree({"m": np.ones(9)}, "tx", step=about["step"], extras={"mine": 1})
        (base / name / "config.json").write_text("{}")

    handle = run.on_step("mesh", step=3, true_callbacks=[save], extras={"epoch": 7})
    assert where == [threading.main_thread()] and handle.done()
    mark = json.loads((base / "run-3" / "metadata.json").read_text())
    assert (mark["step"], mark["is_temporary"], mark["epoch"], mark["mine"]) == (3, False, 7, 1)
    assert {"model", "tx", "config.json", "cairn.json"} <= set(os.listdir(base / "run-3"))
    assert run._last_save_step == 3
    with pytest.raises(KeyError, match="mine"):
        run.on_step(None, step=4, true_callbacks=[lambda *given: {}["mine"]])
    assert run._last_save_step == 3 and names(base) == ["run-3"]


def test_nothing_to_save(tmp_path, caplog):
    run = Checkpointer(tmp_path, None, [CheckpointInterval(every=1)])
    assert run.on_step(None, step=1) is None and run._last_save_step == 0
    run.on_step(None, step=2, true_callbacks=[lambda *given: None])
    assert "nothing into" in caplog.text and run._last_save_step == 2
    assert find_latest_checkpoint(tmp_path) is None


def test_temporary_checkpoints_are_replaced(tmp_path):
    clock, base = Hands(), tmp_path / "run"
    run = Checkpointer(base, HOUR, [CheckpointInterval(every=10)], dt_now_injection=clock)
    seen = []
    for step in range(1, 22):
        clock.now += dt.timedelta(minutes=25)
        if run.on_step(None, {"w": np.ones(2)}, step=step):
            run.wait_until_finished()
            seen.append(names(base))
    assert seen == [["run-3"], ["run-6"], ["run-9"], ["run-10"], ["run-10", "run-13"],
                    ["run-10", "run-16"], ["run-10", "run-19"], ["run-10", "run-20"]]
    clock.now += HOUR
    run.on_step(None, {"w": np.ones(2)}, step=21)
    run.wait_until_finished()
    mark = json.loads((base / "run-21" / "metadata.json").read_text())
    (base / "run-21" / "metadata.json").write_text(json.dumps({**mark, "is_temporary": False}))
    clock.now += HOUR
    run.on_step(None, {"w": np.ones(2)}, step=22)
    run.wait_until_finished()
    assert names(base) == ["run-10", "run-20", "run-21", "run-22"]


@pytest.mark.parametrize("delete", [True, False])
def test_leftovers_of_earlier_runs(tmp_path, delete):
    for step in (1, 2):
        Checkpointer(tmp_path, None, [], delete_old_temp_checkpoints=False).save_checkpoint(
            {"w": np.full(2, step)}, f"run-{step}", step=step, is_temporary=True)
    run = Checkpointer(tmp_path, None, [], delete_old_temp_checkpoints=delete, take_over=True)
    run.on_step(None, {"w": np.ones(2)}, True, step=3)
    run.wait_until_finished()
    assert names(tmp_path) == (["run-3"] if delete else ["run-1", "run-2", "run-3"])


def test_the_private_names_of_the_reference(tmp_path):
    clock = Hands(dt.datetime(2026, 5, 1, 12, tzinfo=dt.timezone.utc))
    run = Checkpointer(tmp_path, HOUR, [], dt_now_injection=clock)
    assert run._dt_now_injection() == run._last_save_time == clock.now
    assert run._last_save_time.tzinfo is not None
    run._last_save_time = clock.now - 2 * HOUR
    assert run._last_save_time == clock.now - 2 * HOUR
    assert run.on_step(None, {"w": np.ones(1)}, step=1) is not None
    run._last_save_step = 7
    run._last_save_time = clock.now - 2 * HOUR
    assert run._last_save_step == 7 and run.on_step(None, {"w": np.ones(1)}, step=7) is None
    plain = Checkpointer(tmp_path / "x", None, [])
    assert abs(plain._last_save_time - dt.datetime.now()) < HOUR
    assert abs(plain._dt_now_injection() - dt.datetime.now()) < HOUR

    def fail():
        raise RuntimeError("no clock")

    clock.__class__.__call__, kept = lambda self: fail(), clock.__class__.__call__
    try:
        with pytest.raises(RuntimeError, match="no clock"):
            run.on_step(None, {"w": np.ones(1)}, step=8)
    finally:
        clock.__class__.__call__ = kept


def test_removal_hides_at_once(tmp_path, caplog):
    run = Checkpointer(tmp_path, None, [])
    for step in (1, 2):
        run.save_checkpoint({"w": np.ones(2)}, f"run-{step}", step=step)
    run._queue_checkpoint_removal(str(tmp_path / "run-2"))
    assert not (tmp_path / "run-2").exists()
    assert find_latest_checkpoint(str(tmp_path)) == str(tmp_path / "run-1")
    (tmp_path / "theirs").mkdir()
    run._queue_checkpoint_removal(tmp_path / "theirs")
    assert "is not removed" in caplog.text and (tmp_path / "theirs").exists()
    run.wait_until_finished()
    assert not list((tmp_path / ".cairn-trash").glob("*"))


def test_save_checkpoint(tmp_path, line):
    run, told = Checkpointer(tmp_path, None, []), []
    tree = {"w": jnp.arange(4.0), "n": 3}
    run.save_checkpoint(tree, "a", step=4, dtype=jnp.bfloat16, extras={"x": 1},
                        commit_callback=lambda: told.append((tmp_path / "a/cairn.json").exists()))
    state, about = run.load_checkpoint(line)
    assert state["w"].dtype == ml_dtypes.bfloat16 and state["n"] == 3
    assert isinstance(state["w"], jax.Array) and (about["step"], about["x"]) == (4, 1)
    run.save_checkpoint(tree, str(tmp_path / "b"), step=5, prefix="m", structured=True)
    state, about = run.load_checkpoint(line, prefix="m", structured=True)
    assert about["step"] == 5 and run._last_save_step == 5 and told == [True]
    run.save_checkpoint(tree, "c")
    assert ours._read_checkpoint_metadata(tmp_path / "c")["step"] == -1
    for call in (lambda: run.save_checkpoint(tree, "d", structured=True),
                 lambda: run.load_checkpoint(line, structured=True)):
        with pytest.raises(ValueError, match="prefix is required when structured=True"):
            call()
    run.save_checkpoint(tree, "e", step=6, commit_callback=lambda: 1 / 0)
    with pytest.raises(cairn.Error, match="ZeroDivision"):
        run.wait_until_finished()
    with pytest.raises(FileNotFoundError, match="ckpt|No checkpoint found under"):
        Checkpointer(tmp_path / "none", None, []).load_checkpoint(line)


def test_shardings_of_a_save_are_wishes_for_loads(tmp_path, grid):
    run = Checkpointer(tmp_path, None, [])
    tree = {"k": np.arange(16.0).reshape(8, 2), "b": np.ones(4)}
    rules = (("k", PartitionSpec("a", "b")), (".*", PartitionSpec(("a",))))
    run.save_checkpoint(tree, "r", step=1, mesh=grid, partition_rules=rules)
    state, _ = run.load_checkpoint(grid)
    assert state["k"].sharding == NamedSharding(grid, PartitionSpec("a", "b"))
    assert state["b"].sharding.is_equivalent_to(NamedSharding(grid, PartitionSpec("a")), 1)
    run.save_checkpoint(tree, "s", step=2, shardings={"k": NamedSharding(grid, PartitionSpec("b"))})
    for options in ({}, {"shardings": {"b": PartitionSpec()}}):
        state, _ = run.load_checkpoint(grid, **options)
        assert state["k"].sharding == NamedSharding(grid, PartitionSpec("b"))
        assert state["b"].sharding == NamedSharding(grid, PartitionSpec())
    other = Mesh(np.array(jax.devices()), ("z",))
    assert run.load_checkpoint(other)[0]["k"].sharding == NamedSharding(other, PartitionSpec())
    for wrong, what in (({"shardings": {"nobody": PartitionSpec()}}, "nobody"),
                        ({"partition_rules": rules[:1]}, "b"),
                        ({"partition_rules": ((".*", PartitionSpec(None, "a")),)}, "k|b")):
        with pytest.raises(ValueError, match=what):
            run.save_checkpoint(tree, "t", step=3, mesh=grid, **wrong)
    assert names(tmp_path) == ["r", "s"]


def test_sharded_trees_come_back_as_they_lay(tmp_path, grid):
    run = Checkpointer(tmp_path, None, [CheckpointInterval(every=1)])
    where = NamedSharding(grid, PartitionSpec("b", "a"))
    run.on_step(grid, {"w": jax.device_put(jnp.arange(32.0).reshape(4, 8), where)}, step=1)
    assert run.load_checkpoint(grid)[0]["w"].sharding == where
    rules = ((".*", PartitionSpec()),)
    assert run.load_checkpoint(grid, partition_rules=rules)[0]["w"].sharding \
        == NamedSharding(grid, PartitionSpec())


def test_trees_without_a_step(tmp_path, line):
    run = Checkpointer(str(tmp_path / "base"), None, [])
    assert run.load_pytree(line, prefix="m", discover_raise=False) == (None, {})
    with pytest.raises(FileNotFoundError):
        run.load_pytree(line, prefix="m")
    assert run.save_pytree({"w": np.ones(2)}, "m") == run.base_path
    assert run.save_pytree({"w": np.ones(3)}, "m", destination=tmp_path / "own") \
        == str(tmp_path / "own")
    assert find_latest_checkpoint(run.base_path) is None
    assert run.load_pytree(line, prefix="m", discover_raise=False)[0]["w"].shape == (2,)
    assert cairn.load(tmp_path / "own")["w"].shape == (3,)
    assert not (tmp_path / "own" / "metadata.json").exists()
    assert run.save_pytree({"w": np.ones(4)}, "m", step=9, temporary=True, destination="named") \
        == run.base_path + "/named"
    tree, about = run.load_pytree(line, prefix="m", load_treedef=True)
    assert (about["is_temporary"], about["step"], tree["w"].shape) == (True, 9, (4,))


def test_keys_containers_and_callbacks_of_load_pytree(tmp_path, line):
    run = Checkpointer(tmp_path, None, [])
    state = {"a": [jnp.ones(2), {0: jnp.zeros(2)}], "o": optax.sgd(0.1, 0.9).init(jnp.ones(3))}
    run.save_pytree(state, "model", step=1)
    for treedef, first in ((True, "model.a.0"), (False, "a.0")):
        seen = []
        tree, _ = run.load_pytree(line, prefix="model", load_treedef=treedef,
                                  callback=lambda x, key: seen.append(key) or x + 1)
        assert seen[0] == first and len(seen) == 3
        leaves_same(tree, jax.tree.map(lambda x: x + 1, state))
        if treedef:
            assert jax.tree.structure(tree) == jax.tree.structure(state)
        else:
            assert set(tree["a"]) == {"0", "1"} and set(tree["a"]["1"]) == {"0"}
    template = jax.tree.map(lambda x: jax.ShapeDtypeStruct(x.shape, x.dtype), state)
    leaves_same(run.load_pytree(line, prefix="model", load_treedef=True, template=template)[0],
                state)
    with pytest.raises(KeyError, match="^Missing array for key 'z'"):
        run.load_pytree(line, prefix="model", load_treedef=True,
                        template={**state, "z": jnp.ones(1)})


def test_discovery(tmp_path):
    assert find_latest_checkpoint(str(tmp_path / "no")) is None
    run = Checkpointer(tmp_path, None, [])
    for step in (3, 4, 20):
        run.save_checkpoint({"w": np.full(2, step)}, f"run-{step}", step=step)
    assert find_latest_checkpoint(f"file://{tmp_path}") == f"file://{tmp_path}/run-20"
    (tmp_path / "run-20" / "w" / "0").unlink()
    assert find_latest_checkpoint(tmp_path) == str(tmp_path / "run-4")
    assert run.load_checkpoint(None)[0]["w"][0] == 4
    with pytest.raises(NotImplementedError, match="gs://"):
        find_latest_checkpoint("gs://bucket/run")
    with pytest.raises(FileNotFoundError):
        ours._read_checkpoint_metadata(tmp_path / "no")


def test_a_template_says_where_arrays_lie_with_and_without_a_prefix(tmp_path):
    mesh = Mesh(np.array(jax.devices()), ("x",))
    rows = NamedSharding(mesh, PartitionSpec("x"))
    tree = {"w": jax.device_put(np.arange(16.0, dtype=np.float32), rows), "n": np.arange(3)}
    run = Checkpointer(tmp_path, None, [CheckpointInterval(every=1)])
    run.on_step(mesh, tree, step=1)
    run.save_pytree(tree, "model", step=2)
    for loaded, _ in (run.load_checkpoint(None, path=tmp_path / "run-1", template=tree),
                      run.load_checkpoint(None, prefix="model", template=tree),
                      run.load_pytree(None, prefix="model", load_treedef=True, template=tree)):
        assert loaded["w"].sharding == rows
        np.testing.assert_array_equal(np.asarray(loaded["w"]), np.arange(16.0))
        np.testing.assert_array_equal(loaded["n"], np.arange(3))


def test_a_template_says_how_arrays_lie_on_a_mesh_of_several_axes(tmp_path):
    mesh = Mesh(np.array(jax.devices()).reshape(2, 4), ("x", "y"))

    def state(*axes):
        where = NamedSharding(mesh, PartitionSpec(*axes))
        return {"w": jax.device_put(np.ones((4, 4), np.float32), where), "rng": jax.random.key(1),
                "count": jax.numpy.int32(3)}

    run = Checkpointer(tmp_path, None, [CheckpointInterval(every=1)])
    run.on_step(mesh, state("x", "y"), step=1)
    for axes in (("x", "y"), (None, "x"), ()):
        loaded, _ = run.load_checkpoint(mesh, template=state(*axes))
        assert loaded["w"].sharding == state(*axes)["w"].sharding
        assert loaded["count"].sharding.is_fully_replicated and loaded["count"] == 3
        assert loaded["count"].sharding.mesh == mesh
    plain, _ = run.load_checkpoint(mesh, template={"w": np.ones((4, 4), np.float32)})
    assert plain["w"].sharding.spec == PartitionSpec("x", "y")


def test_a_run_that_went_back_resumes_from_its_new_branch(tmp_path, caplog):
    def started():
        return Checkpointer(tmp_path, None, [CheckpointInterval(every=1)])

    def save(run, step):
        run.on_step(None, {"w": np.full(2, step)}, step=step)
        run.wait_until_finished()

    run = started()
    for step in range(1, 11):
        save(run, step)
    assert run.load_checkpoint(None, path=str(tmp_path / "run-5"))[0]["w"][0] == 5
    save(run, 6)
    assert "abandoned branch" in caplog.text and "run-10" in caplog.text
    assert started().load_checkpoint_if_any(None)[0]["w"][0] == 6
    assert find_latest_checkpoint(tmp_path) == str(tmp_path / "run-6")
    assert [entry["step"] for entry in cairn.ls(tmp_path) if entry["abandoned"]] == [10, 9, 8, 7]


@pytest.mark.parametrize("structured", [False, True])
def test_a_checkpoint_that_retention_removes_while_it_is_loaded_is_loaded_whole(
        tmp_path, structured):
    run = Checkpointer(tmp_path, None, [])
    run.save_checkpoint({"w": np.arange(4)}, "run-1", prefix="model", step=1)
    run.wait_until_finished()

    def remove(done, total):
        if done == total:
            shutil.rmtree(tmp_path / "run-1", ignore_errors=True)

    tree, about = run.load_checkpoint_if_any(None, prefix="model", structured=structured,
                                             progress=remove)
    np.testing.assert_array_equal(tree["w"], np.arange(4))
    assert about["step"] == 1
    assert structured or about["version"].startswith("cairn")
