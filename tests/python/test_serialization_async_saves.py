# SPDX-License-Identifier: Apache-2.0
"""Saves of an AsyncCheckpointManager that go on after their call: errors, order, snapshots."""

import os
import subprocess
import sys
import threading
import weakref

import cairn
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from cairn.serialization import Checkpointer
from cairn.serialization import async_manager as ours


def test_an_error_is_raised_once(tmp_path):
    manager = ours.AsyncCheckpointManager()
    for ask in (manager.wait_until_finished, manager.global_manager.wait_until_finished,
                lambda: manager.save_tree({"w": np.ones(2)}, tmp_path / "d")):
        manager.save_tree({"w": np.ones(2)}, tmp_path / "c", callback=lambda path: 1 / 0)
        with pytest.raises(cairn.Error, match="ZeroDivisionError"):
            ask()
        manager.wait_until_finished()
        manager.check_for_errors()
    assert not (tmp_path / "d").exists()


def test_the_callback_gets_the_path_once_after_the_commit(tmp_path):
    manager, seen = ours.AsyncCheckpointManager(), []
    manager.save({"w": np.ones(9)}, str(tmp_path / "c"), callback=lambda path: seen.append(
        (path, (tmp_path / "c" / "cairn.json").exists())))
    manager.wait_until_finished()
    assert seen == [(str(tmp_path / "c"), True)]


def test_saves_while_another_is_on_its_way(tmp_path):
    for way in ("refuse", "queue"):
        manager, go = ours.AsyncCheckpointManager(while_saving=way), threading.Event()
        array = np.ones(2)
        manager.save_tree({"w": array}, tmp_path / way, callback=lambda path: go.wait())
        assert [save.path for save in manager.saves_in_flight()] == [str(tmp_path / way)]
        if way == "refuse":
            with pytest.raises(cairn.UnavailableError, match="on its way"):
                manager.save_tree({"w": array}, tmp_path / "other")
        else:
            manager.save_tree({"w": array}, tmp_path / "other")
            array[:] = 7
        go.set()
        manager.wait_until_finished()
        assert (tmp_path / "other").exists() == (way == "queue")
    assert manager.load(tmp_path / "other", None)[0]["w"].sum() == 2


def test_blocking_saves(tmp_path, monkeypatch):
    ours.AsyncCheckpointManager(blocking=True).save_tree({"w": np.ones(2)}, tmp_path / "a")
    assert (tmp_path / "a" / "cairn.json").exists()
    monkeypatch.setenv("CAIRN_BLOCKING_SAVES", "1")
    ours.AsyncCheckpointManager().save_tree({"w": np.ones(2)}, tmp_path / "b")
    assert (tmp_path / "b" / "cairn.json").exists()


def test_what_changes_after_the_call_is_not_saved(tmp_path):
    manager = ours.AsyncCheckpointManager()
    donate = jax.jit(lambda x: x + 1, donate_argnums=0)
    for n in range(3):
        here, there = np.arange(1 << 20, dtype=np.float64), jnp.arange(1 << 20)
        deleted = jnp.ones(1 << 18) * n
        manager.save_tree({"here": here, "view": here[::-2], "there": there, "deleted": deleted},
                          tmp_path / f"{n}")
        here[:] = -1
        donate(there)
        deleted.delete()
        loaded, _ = manager.load(tmp_path / f"{n}", None)
        np.testing.assert_array_equal(loaded["here"], np.arange(1 << 20))
        np.testing.assert_array_equal(loaded["view"], np.arange(1 << 20)[::-2])
        np.testing.assert_array_equal(loaded["there"], np.arange(1 << 20))
        assert (loaded["deleted"] == n).all()


def test_progress_batches_and_one_reader(tmp_path, line):
    manager, seen, threads = ours.AsyncCheckpointManager(), [], set()
    tree = {str(n): np.ones(100_000) for n in range(24)}

    def note(done, total):
        seen.append((done, total))
        threads.add(threading.get_ident())

    manager.save_pytree(tree, tmp_path / "c", prefix="m", progress=note)
    manager.load(tmp_path / "c", line, progress=note)
    assert seen.count((19_200_000, 19_200_000)) == 2 and len(threads) > 1
    threads.clear()
    manager.load(tmp_path / "c", line, use_async=False, progress=note)
    assert len(threads) == 1
    run = Checkpointer(tmp_path, None, [])
    for load in (manager.load, manager.load_pytree,
                 lambda path, *given, **named: run.load_pytree(*given, path=path,
                                                               discover_latest=False, **named)):
        seen.clear()
        load(tmp_path / "c", line, prefix="m", chunk_size=6, progress=note)
        assert seen.count((4_800_000, 4_800_000)) == 4


def test_the_end_of_the_program_waits(tmp_path):
    program = ("import numpy as np\nfrom cairn.serialization import AsyncCheckpointManager\n"
               "AsyncCheckpointManager().save_tree({'w': np.ones(1 << 20)}, "
               f"{str(tmp_path / 'c')!r}, callback=lambda path: print('committed', path))")
    done = subprocess.run([sys.executable, "-c", program], text=True, capture_output=True,
                          env={**os.environ})
    assert done.stdout.split() == ["committed", str(tmp_path / "c")], done
    assert cairn.load(tmp_path / "c")["w"].sum() == 1 << 20


@pytest.mark.parametrize("how", ["front", "manager", "step", "by hand"])
def test_arrays_are_let_go_of_while_they_are_written(tmp_path, how):
    goes_on = threading.Event()
    run, manager = Checkpointer(tmp_path / "run", None, []), ours.AsyncCheckpointManager()
    begin = {
        "front": lambda tree, progress: cairn.save_async(tree, tmp_path / "c", progress=progress),
        "manager": lambda tree, progress: manager.save_tree(tree, tmp_path / "c",
                                                            progress=progress),
        "step": lambda tree, progress: run.on_step(None, tree, True, step=1, progress=progress),
        "by hand": lambda tree, progress: run.save_checkpoint(tree, "c", step=1,
                                                              progress=progress),
    }[how]
    array = np.ones(1 << 16)
    gone = threading.Event()
    watched = weakref.ref(array, lambda _: gone.set())
    try:
        begin({"w": array}, lambda *_: goes_on.wait())
        del array
        assert gone.wait(60) and watched() is None
    finally:
        goes_on.set()
