# SPDX-License-Identifier: Apache-2.0
"""Real processes save and load together, by what they have initialised; some are killed."""

import importlib.util
import os
import signal
import subprocess

import pytest
from rank_jobs import failed, got, mpirun

SHORT = 2  # seconds until somebody who never comes is late


@pytest.fixture(scope="module")
def jobs(start):
    """Of jax.distributed, with two devices a process; and alone, with four."""
    return {4: start("jax", 4), 2: start("jax", 2), 1: start("alone", 4)}


def shown(command, path):
    return subprocess.run([command, "show", path], text=True, capture_output=True,
                          check=True).stdout


@pytest.mark.parametrize("layout", ["zarr2", "safetensors"])
def test_saved_by_some_and_loaded_by_others(jobs, command, tmp_path, layout):
    for step, (saving, loading) in enumerate([(4, [2, 1, 4]), (2, [4, 1]), (1, [4])]):
        path = str(tmp_path / str(saving))
        got(jobs[saving].do("save", path=path, step=step, layout=layout))
        assert (f"by {saving} ranks on x={saving}" in shown(command, path)) == (saving > 1)
        for count in loading:
            devices = 4 if count == 1 else 2
            assert got(jobs[count].do("load", path=path, step=step)) == [5 * devices] * count


def test_a_run_of_some_is_resumed_by_others(jobs, tmp_path):
    path = str(tmp_path / "run")
    assert got(jobs[2].do("run_training", path=path, steps=6)) == [7, 7]
    assert sorted(os.listdir(path))[2:] == ["run-2", "run-4", "run-6", "run-7"]
    for count in (2, 4, 1):
        devices = 4 if count == 1 else 2
        assert got(jobs[count].do("resume_training", path=path, step=7)) == [5 * devices] * count


def test_ranks_that_disagree_name_the_leaves(jobs, tmp_path):
    path = str(tmp_path / "c")
    got(jobs[4].do("save", path=path, step=1))
    failed(jobs[4].do("save", {2: {"extra": 5}}, path=path, step=2), "rank 2", "extra (only here)")
    failed(jobs[4].do("save", {0: {"extra": 5}, 1: {"extra": 5}, 3: {"extra": 5}, 2: {"extra": 6}},
                      path=path, step=2), "rank 2", 'extra ("6" here, "5" there)')
    got(jobs[1].do("load", path=path, step=1))


@pytest.mark.parametrize("rank", [0, 3])
def test_a_rank_whose_leaf_cannot_be_saved_fails_the_save_of_all(jobs, tmp_path, rank):
    path = str(tmp_path / "c")
    answers = jobs[4].do("save", {rank: {"wrong": "set"}}, path=path, step=1)
    failed(answers, f"rank {rank}", "wrong is a builtins.set")
    got(jobs[4].do("save", path=path, step=1))


def test_arrays_that_no_process_has_whole_are_gathered_by_functions_alone(jobs, tmp_path):
    path = str(tmp_path / "c")
    failed(jobs[2].do("save_gathered", path=path, by_functions=False), "gather_fns=True", "'rows'",
           "several processes", "make_shard_and_gather_fns")
    assert not os.path.exists(path)
    got(jobs[2].do("save_gathered", path=path, by_functions=True))
    got(jobs[1].do("save_gathered", path=path, by_functions=False))


def test_a_checkpoint_that_is_not_there_is_an_error_of_all(jobs, tmp_path):
    answers = jobs[4].do("load", path=str(tmp_path / "none"), step=1)
    assert {answer["type"] for answer in answers} == {"NotFoundError"}, answers


def test_one_killed_in_the_middle_is_named_by_the_others(start, jobs, tmp_path):
    job = start("jax", 4)
    path = str(tmp_path / "c")
    got(job.do("save", path=path, step=1))
    for rank in range(4):
        job.tell(rank, "save", path=path, step=2, die=rank == 2)
    assert job.ranks[2].wait() == -signal.SIGKILL
    failed([job.answer(rank) for rank in (0, 1, 3)], "rank 2", "died", "'writing'")
    got(jobs[1].do("load", path=path, step=1))


def test_one_killed_before_it_comes_is_late_by_name(start, jobs, tmp_path):
    job = start("jax", 2)
    path = str(tmp_path / "c")
    got(job.do("save", path=path, step=1))
    job.ranks[1].kill()
    job.tell(0, "save", path=path, step=2, seconds=SHORT)
    failed([job.answer(0)], "rank 1 did not come", "save of step 2")
    job.tell(0, "save", path=path, step=2, seconds=SHORT)
    failed([job.answer(0)], "an earlier call failed", "rank 1 did not come")
    got(jobs[1].do("load", path=path, step=1))


def test_threads_go_on_while_a_save_waits_for_others(jobs, tmp_path):
    path = str(tmp_path / "c")
    jobs[2].tell(0, "save_beside_a_thread", path=path, step=1)
    assert jobs[2].answer(0) == {"counted": True}
    jobs[2].tell(1, "save", path=path, step=1)
    got([jobs[2].answer(rank) for rank in (0, 1)])


@pytest.mark.parametrize("rank", [0, 1])
def test_one_interrupted_while_it_waits_tells_the_others(jobs, tmp_path, rank):
    job, path = jobs[2], str(tmp_path / "c")
    got(job.do("coordinate"))
    job.tell(rank, "save_beside_a_thread", path=path, step=1)
    assert job.answer(rank) == {"counted": True}
    job.ranks[rank].send_signal(signal.SIGINT)
    assert job.answer(rank)["type"] == "KeyboardInterrupt"
    job.tell(1 - rank, "save", path=path, step=1)
    failed([job.answer(1 - rank)], f"rank {rank} failed", "was interrupted")
    assert got(job.do("coordinate")) == [{"rank": each, "count": 2, "by": "jax"}
                                         for each in (0, 1)]
    got(job.do("save", path=path, step=1))


def test_ranks_that_meet_in_a_directory(start, jobs, command, tmp_path):
    job, path = start("rendezvous", 2, tmp_path / "meet"), str(tmp_path / "c")
    got(job.do("save", path=path, step=1))
    assert "by 2 ranks" in shown(command, path)
    got(job.do("load", path=path, step=1))
    job.tell(0, "save_beside_a_thread", path=path, step=2)
    assert job.answer(0) == {"counted": True}
    job.ranks[0].send_signal(signal.SIGINT)
    assert job.answer(0)["type"] == "KeyboardInterrupt"
    job.tell(1, "save", path=path, step=2)
    failed([job.answer(1)], "rank 0 failed", "was interrupted")
    got(job.do("coordinate"))
    got(job.do("save", path=path, step=2))


def test_ranks_of_torch(start, command, tmp_path):
    if importlib.util.find_spec("torch") is None:
        pytest.skip("PyTorch is not installed; it is tested by hand, on a machine that has it")
    job, path = start("torch", 2), str(tmp_path / "c")
    got(job.do("save", path=path, step=1))
    assert "by 2 ranks" in shown(command, path)
    got(job.do("load", path=path, step=1))
    failed(job.do("save", {1: {"extra": 5}}, path=path, step=2), "rank 1", "extra (only here)")


@pytest.mark.usefixtures("with_mpi")
def test_ranks_of_mpi(jobs, command, tmp_path):
    path = str(tmp_path / "c")
    saving = {"do": "save", "path": path, "step": 1}
    loading = {"do": "load", "path": path, "step": 1}
    answers = mpirun(3, saving, saving | {"step": 2, "only": 1, "extra": 7}, loading)
    assert sorted(answers) == [0, 1, 2]
    for first, second, third in answers.values():
        got([first, third])
        failed([second], "rank 1", "extra (only here)")
    assert "by 3 ranks" in shown(command, path)
