# SPDX-License-Identifier: Apache-2.0
"""Managers and the checkpoints of a run on several processes: what goes wrong on one of them."""

import os
import signal
import subprocess

import pytest
from rank_jobs import failed, free_port, got, mpirun

COUNT = 3


def checkpoints(path):
    return sorted(name for name in os.listdir(path) if not name.startswith("."))


@pytest.fixture(scope="module")
def job(start, tmp_path_factory):
    return start("rendezvous", COUNT, tmp_path_factory.mktemp("meet"))


@pytest.mark.parametrize("rank", [0, 1])
@pytest.mark.parametrize(("wrong", "words"), [
    ("object", ["bad is an array of object"]),
    ("set", ["bad is a builtins.set"]),
    ("gather", ["the disk of this rank is on fire"]),
    ("json", ["not JSON serializable"]),
])
def test_what_one_cannot_save_fails_the_save_of_a_manager_on_all(job, tmp_path, rank, wrong, words):
    path = str(tmp_path / "c")
    failed(job.do("manager_save", {rank: {"wrong": wrong}}, path=path, step=1),
           f"rank {rank}", *words)
    got(job.do("manager_save", path=path, step=2))
    failed(job.do("manager_save", {2: {"only": 5}}, path=path, step=3),
           "rank 2", "only (only here)")
    got(job.do("manager_load", path=path, step=2))


def test_what_one_cannot_save_fails_the_save_of_a_run_on_all(job, tmp_path):
    path = str(tmp_path / "run")
    got(job.do("make_run", path=path, every=2))
    for step, wrong, words in [(2, "object", "bad is an array of object"),
                               (4, "json", "not JSON serializable")]:
        failed(job.do("step", {1: {"wrong": wrong}}, step=step), "rank 1", words)
        failed(job.do("run_save", {1: {"wrong": wrong}}, step=7), "rank 1", words)
        assert got(job.do("step", step=step)) == [f"run-{step}"] * COUNT
    failed(job.do("step", {2: {"only": "x"}}, step=8), "rank 2", "only (only here)")
    # Nobody else has a part in what goes wrong while it is not time.
    answers = job.do("step", {1: {"wrong": "json"}}, step=9)
    assert answers[0] == answers[2] == {"got": None}
    assert answers[1]["reason"] == "python/refused"
    assert got(job.do("resume")) == [4] * COUNT


def test_callbacks_that_raise_on_one_rank(job, tmp_path):
    path = str(tmp_path / "run")
    got(job.do("make_run", path=path, every=2))
    assert got(job.do("callbacks_save", step=1)) == [True] * COUNT
    answers = job.do("callbacks_save", {1: {"fails": True}}, step=2)
    assert answers[1]["type"] == "OSError"
    failed(answers[::2], "rank 1", "on fire")
    assert got(job.do("resume")) == [1] * COUNT
    # After the commit: it stands, and the next save says what happened.
    answers = job.do("step", {1: {"callback": "fails"}}, step=4, callback="fine")
    got(answers[::2])
    failed([answers[1]], "on fire")
    assert got(job.do("resume")) == [4] * COUNT
    got(job.do("step", {1: {"callback": "fails"}}, step=6, callback="fine", waits=False))
    failed(job.do("step", step=8), "rank 1", "on fire")
    assert got(job.do("step", step=8)) == ["run-8"] * COUNT


def test_only_the_newest_stay_and_all_resume_from_the_same(job, tmp_path):
    path = str(tmp_path / "run")
    got(job.do("make_run", path=path, every=1, keep=2))
    for step in range(1, 6):
        got(job.do("step", step=step, waits=step == 5))
    assert checkpoints(path) == ["run-4", "run-5"]
    assert got(job.do("resume")) == [5] * COUNT


def test_the_first_rank_has_the_clock(job, tmp_path):
    got(job.do("make_run", path=str(tmp_path / "run"), minutes=10))
    got(job.do("pass_time", {0: {"minutes": 9}}, minutes=60))
    assert got(job.do("step", step=1)) == [None] * COUNT
    got(job.do("pass_time", {0: {"minutes": 1}}, minutes=0))
    assert got(job.do("step", step=2)) == ["run-2"] * COUNT
    assert got(job.do("step", step=3)) == [None] * COUNT


def test_steps_at_which_nobody_asks(job, tmp_path):
    got(job.do("make_run", path=str(tmp_path / "run"), every=150, plain=True))
    assert got(job.do("steps", count=320, forced=77)) == [[77, 150, 300]] * COUNT
    assert got(job.do("resume")) == [300] * COUNT


@pytest.mark.parametrize("rank", [0, 2])
def test_a_signal_to_one_is_a_signal_to_all(job, tmp_path, rank):
    got(job.do("make_run", path=str(tmp_path / "run"), every=1000))
    assert got(job.do("step", step=1)) == [None] * COUNT
    for step, number, stops in [(2, signal.SIGUSR1, False), (4, signal.SIGTERM, True)]:
        job.ranks[rank].send_signal(number)
        assert got(job.do("step", step=step)) == [f"run-{step}"] * COUNT
        assert got(job.do("should_stop")) == [stops] * COUNT
        assert got(job.do("step", step=step + 1)) == [None] * COUNT
    assert got(job.do("resume")) == [4] * COUNT


def test_ranks_that_lost_each_other_begin_anew(job, tmp_path):
    path = str(tmp_path / "run")
    got(job.do("make_run", path=path, every=1))
    got(job.do("step", step=1))
    got(job.do("manager_save", path=str(tmp_path / "c"), step=1))
    failed(job.do("step", {1: {"step": 3}}, step=2), "step 2", "step 3")
    failed(job.do("step", step=2), "an earlier call failed")
    got(job.do("coordinate"))
    for order in ({"do": "step", "step": 2}, {"do": "resume"},
                  {"do": "manager_save", "path": path, "step": 2}):
        for answer in job.do(**order):
            assert answer["reason"] == "python/other-ranks", answer
    got(job.do("make_manager"))
    got(job.do("make_run", path=path, every=1))
    assert got(job.do("resume")) == [1] * COUNT
    assert got(job.do("step", step=2)) == ["run-2"] * COUNT


def test_saves_are_switched_off_on_all_or_on_none(job, tmp_path):
    path = str(tmp_path / "c")
    got(job.do("make_manager", enable=False))
    got(job.do("manager_save", {1: {"wrong": "set"}}, path=path, step=1))
    assert not os.path.exists(path)
    got(job.do("make_manager", {0: {"enable": True}}, enable=False))
    failed(job.do("manager_save", path=path, step=1),
           "rank 0 is in gather 'begin a save'", "saves are switched off")
    got(job.do("coordinate"))
    got(job.do("make_manager"))
    got(job.do("manager_save", path=path, step=1))


def test_a_template_that_is_wrong_on_one_rank_fails_the_load_of_all(job, tmp_path):
    path = str(tmp_path / "run")
    got(job.do("make_run", path=path, every=1))
    got(job.do("step", step=1))
    for rank in (0, 2):
        failed(job.do("resume", {rank: {"wrong": "set"}}),
               f"rank {rank}", "bad is a builtins.set")
        failed(job.do("front_load", {rank: {"wrong": "set"}}, path=f"{path}/run-1", step=1),
               f"rank {rank}", "bad is a builtins.set")
    assert got(job.do("resume")) == [1] * COUNT


@pytest.mark.parametrize("how", ["step", "manager_save"])
def test_one_killed_in_the_middle_is_named_by_the_others(start, job, tmp_path, how):
    other = start("rendezvous", COUNT, tmp_path / "meet")
    path, run = str(tmp_path / "c"), str(tmp_path / "run")
    got(other.do("manager_save", path=path, step=1))
    got(other.do("make_run", path=run, every=1))
    got(other.do("step", step=1))
    words = {"path": path} if how == "manager_save" else {}
    for rank in range(COUNT):
        other.tell(rank, how, step=2, dies=rank == 1, **words)
    assert other.ranks[1].wait() == -signal.SIGKILL
    failed(other.answers([0, 2]), "rank 1", "died")
    got(job.do("make_run", path=run, every=1))
    assert got(job.do("resume")) == [1] * COUNT
    got(job.do("manager_load", path=path, step=1))


@pytest.fixture(scope="module")
def late(start, tmp_path_factory):
    """Of JAX, with a manager and a run that were made before the processes knew of each other."""
    path = str(tmp_path_factory.mktemp("late") / "run")
    return start("late", 2, free_port(), path), path


def test_what_was_made_before_the_ranks_were_there_works_on_them(late, command, tmp_path):
    (job, run), path = late, str(tmp_path / "c")
    got(job.do("manager_save", path=path, step=1))
    assert got(job.do("step", step=1)) == ["run-1"] * 2
    for saved in (path, f"{run}/run-1"):
        shown = subprocess.run([command, "show", saved], text=True, capture_output=True, check=True)
        assert "by 2 ranks" in shown.stdout
    assert got(job.do("resume")) == [1] * 2


def test_arrays_that_lie_on_some_devices(late, tmp_path):
    job, path = late[0], str(tmp_path / "c")
    for devices in ([1, 2], [1, 2, 3]):
        assert got(job.do("save_on_some", path=path, devices=devices)) == [2] * 2
        assert got(job.do("load_on_some", path=path, devices=devices, key="some")) == \
            [1, len(devices) - 1]
    assert got(job.do("load_on_some", path=path, devices=[2, 3], key="rows")) == [0, 2]
    assert got(job.do("load_on_some", path=path, devices=[0], key="some")) == [1, 0]
    for devices, owner in (([2, 3], 1), ([3], 1), ([0, 1], 0)):
        for by_manager in (False, True):
            failed(job.do("save_on_some", path=path, devices=devices, by_manager=by_manager),
                   f"rank {1 - owner}: ", f"some lies on devices of rank {owner} alone")
    assert got(job.do("load_on_some", path=path, devices=[1, 2], key="some")) == [1, 1]


@pytest.mark.usefixtures("with_mpi")
def test_a_run_of_mpi(tmp_path):
    path, bad = str(tmp_path / "run"), {"1": {"wrong": "object"}}
    answers = mpirun(COUNT, {"do": "make_run", "path": path, "every": 2, "keep": 1},
                     {"do": "step", "step": 2}, {"do": "step", "step": 4, "special": bad},
                     {"do": "step", "step": 6},
                     {"do": "manager_save", "path": f"{path}/c", "step": 7, "special": bad},
                     {"do": "resume"})
    assert sorted(answers) == [*range(COUNT)]
    for _, first, wrong, second, also_wrong, last in answers.values():
        assert got([first, second, last]) == ["run-2", "run-6", 6]
        failed([wrong], "rank 1", "bad is an array of object")
        failed([also_wrong], "rank 1", "bad is an array of object")
    assert "run-2" not in checkpoints(path)
