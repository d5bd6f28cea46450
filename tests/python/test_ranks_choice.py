# SPDX-License-Identifier: Apache-2.0
"""How a process chooses by what it meets others."""

import os
import sys
import types

import cairn
import numpy as np
import pytest
from cairn import _ranks
from cairn.serialization import AsyncCheckpointManager, Checkpointer, CheckpointInterval


def forget_choice(monkeypatch):
    """As in a new process."""
    monkeypatch.setattr(_ranks, "_choice", None)


@pytest.fixture(autouse=True)
def unchosen(monkeypatch):
    forget_choice(monkeypatch)
    monkeypatch.delenv("CAIRN_RENDEZVOUS", raising=False)
    yield


class Notes:
    """As much of a store of torch.distributed as is used."""

    def __init__(self):
        self.notes = {}

    def add(self, key, amount):
        self.notes[key] = self.notes.get(key, 0) + amount
        return self.notes[key]

    def set(self, key, value):
        self.notes[key] = value

    def get(self, key):
        return self.notes[key]

    def check(self, keys):
        return all(key in self.notes for key in keys)

    def delete_key(self, key):
        return self.notes.pop(key, None) is not None


def initialise_torch(monkeypatch, store, rank=0, count=2):
    module = types.SimpleNamespace(
        is_available=lambda: True, is_initialized=lambda: True, get_rank=lambda: rank,
        get_world_size=lambda: count,
        distributed_c10d=types.SimpleNamespace(_get_default_store=lambda: store))
    monkeypatch.setitem(sys.modules, "torch.distributed", module)


def test_a_process_that_began_alone_says_what_to_do(monkeypatch, tmp_path):
    cairn.save({"w": np.ones(3)}, tmp_path / "c")
    initialise_torch(monkeypatch, Notes())
    with pytest.raises(cairn.MismatchError, match=r"by 'torch'.*cairn.coordinate\(\)") as caught:
        cairn.load(tmp_path / "c")
    assert caught.value.reason == "python/other-ranks"
    assert cairn.open(tmp_path / "c")["w"][0] == 1
    assert cairn.coordinate() == cairn.Ranks(0, 2, "torch")
    with pytest.raises(TimeoutError, match="rank 1 did not come"):
        cairn.load(tmp_path / "c", timeout=0.1)


def test_managers_wait_as_long_as_they_are_told(monkeypatch, tmp_path):
    initialise_torch(monkeypatch, Notes())
    for make in (lambda manager: manager.save_tree,
                 lambda manager: lambda tree, path: Checkpointer(
                     path, None, [], manager=manager).on_step(None, tree, True, step=1)):
        cairn.coordinate()
        with pytest.raises(TimeoutError, match="rank 1 did not come"):
            make(AsyncCheckpointManager(timeout=0.1))({"w": np.ones(3)}, tmp_path / "c")


def test_what_began_alone_does_not_go_on_alone(monkeypatch, tmp_path):
    tree, manager = {"w": np.ones(3)}, AsyncCheckpointManager()
    runs = [Checkpointer(tmp_path / name, None, [CheckpointInterval(every=1)])
            for name in ("first", "second")]
    manager.save_tree(tree, tmp_path / "c")
    runs[0].on_step(None, tree, step=1)
    assert runs[1].load_checkpoint_if_any(None) is None
    initialise_torch(monkeypatch, Notes())
    calls = [lambda: manager.save_tree(tree, tmp_path / "c"),
             lambda: runs[0].on_step(None, tree, step=2),
             lambda: runs[0].save_pytree(tree, "model", step=2),
             lambda: runs[0].load_checkpoint(None),
             lambda: runs[1].on_step(None, tree, step=1),
             lambda: runs[1]._run.remove(str(tmp_path / "first/run-1"))]
    for text in (r"by 'torch'.*cairn.coordinate\(\)", "make a new one, on every rank"):
        for call in calls:
            with pytest.raises(cairn.MismatchError, match=text) as caught:
                call()
            assert caught.value.reason == "python/other-ranks"
        cairn.coordinate()
    manager.wait_until_finished()
    runs[0].wait_until_finished()
    assert [entry["step"] for entry in cairn.ls(tmp_path / "first")] == [1]


def expect_unchosen(monkeypatch, path):
    """A load still takes the ranks that the program initialises now."""
    initialise_torch(monkeypatch, Notes())
    with pytest.raises(TimeoutError, match="rank 1 did not come"):
        cairn.load(path, timeout=0.1)


def test_making_a_manager_or_a_run_chooses_nothing(monkeypatch, tmp_path):
    Checkpointer(tmp_path, None, [], manager=AsyncCheckpointManager())
    expect_unchosen(monkeypatch, tmp_path / "c")


def test_what_is_chosen_lasts(monkeypatch, tmp_path):
    assert cairn.coordinate("alone") == cairn.Ranks(0, 1, "alone")
    initialise_torch(monkeypatch, Notes())
    cairn.save({"w": np.ones(3)}, tmp_path / "c")


def test_looking_chooses_nothing(monkeypatch, tmp_path):
    cairn.save({"w": np.ones(3)}, tmp_path / "c")
    forget_choice(monkeypatch)
    cairn.open(tmp_path / "c")
    cairn.verify(tmp_path / "c")
    cairn.ls(tmp_path)
    expect_unchosen(monkeypatch, tmp_path / "c")


def test_a_rank_that_was_started_anew_is_refused(monkeypatch):
    store = Notes()
    initialise_torch(monkeypatch, store, rank=1)
    monkeypatch.setattr(_ranks, "_opened", 0)
    cairn.coordinate("torch")
    monkeypatch.setattr(_ranks, "_opened", 0)
    with pytest.raises(cairn.MismatchError, match="rank 1 has been here before"):
        cairn.coordinate("torch")


@pytest.mark.parametrize(("words", "text"), [
    ({"by": "smoke"}, "jax, torch, mpi, rendezvous, alone"),
    ({"by": "jax"}, "jax.distributed.initialize"),
    ({"by": "rendezvous"}, "CAIRN_RENDEZVOUS"),
    ({"directory": "x", "rank": 1}, "belong together"),
    ({"rank": 1, "count": 2}, "to a directory"),
    ({"directory": "x", "rank": 2, "count": 2}, "is impossible"),
])
def test_what_cannot_be_chosen(monkeypatch, tmp_path, words, text):
    monkeypatch.chdir(tmp_path)
    with pytest.raises(cairn.Error, match=text):
        cairn.coordinate(**words)


def test_a_directory_and_the_child_of_a_fork(tmp_path):
    ranks = cairn.coordinate(directory=tmp_path / "meet", rank=0, count=2)
    assert ranks == cairn.Ranks(0, 2, "rendezvous")
    child = os.fork()
    if child == 0:
        os._exit(0 if _ranks.place() == cairn.Ranks(0, 1, "alone") else 1)
    assert os.waitpid(child, 0)[1] == 0
    assert _ranks.place() == ranks
