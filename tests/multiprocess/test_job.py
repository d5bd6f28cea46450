# SPDX-License-Identifier: Apache-2.0
"""Real processes save on one layout and load on another; some are killed or stopped."""

import json
import os
import shutil
import signal
import subprocess

import numpy
import pytest
from jobs import PROBE, SHAPES, SHORT, check_boxes, loading, numbers, saving

LOADS = [(8, [["x", 2], ["y", 4]]), (8, [["x", 1], ["y", 8]]), (4, [["x", 4], ["y", 1]]),
         (3, [["x", 1], ["y", 3]]), (2, [["y", 2], ["x", 4]]), (1, [["x", 1]])]


@pytest.mark.parametrize("layout", ["zarr2", "safetensors"])
def test_saved_by_eight_and_loaded_by_others(start_job, command, tmp_path, layout):
    path = tmp_path / "c"
    answers = start_job(8).do(saving(path, 5, [["x", 8]], layout))
    assert all("bytes" in answer for answer in answers.values()), answers
    total = 4 * sum(int(numpy.prod(shape)) for shape in SHAPES.values())
    assert sum(answer["bytes"] for answer in answers.values()) == total
    assert max(answer["bytes"] for answer in answers.values()) < 1.1 * total / 8 + 2**20
    shown = subprocess.run([command, "show", path], text=True, capture_output=True, check=True)
    assert "step 5, by 8 ranks on x=8" in shown.stdout
    assert "P(None, 'x')" in shown.stdout
    for n, (ranks, mesh) in enumerate(LOADS):
        order = loading(path, mesh, tmp_path / f"out{n}")
        check_boxes(start_job(ranks).do(order), numbers(5))


def failed(answers, *words):
    """All of them got one error, with these words in it."""
    texts = {answer.get("message") for answer in answers.values()}
    assert len(texts) == 1, "\n".join(map(str, texts))
    text = texts.pop()
    assert text and all(word in text for word in words), text


@pytest.fixture
def saved(start_job, tmp_path):
    """A checkpoint that must outlive what goes wrong, and a check that it did."""
    path = tmp_path / "c"
    job = start_job(4)
    assert all("bytes" in a for a in job.do(saving(path, 1, [["x", 4]])).values())

    def intact(step=1):
        out = tmp_path / f"intact{len(list(tmp_path.iterdir()))}"
        check_boxes(start_job(1).do(loading(path, [["x", 1]], out)), numbers(step))

    return path, job, intact


# Every few operations from the first to beyond the last of a rank's save.
@pytest.mark.parametrize("rank", [0, 2])
@pytest.mark.parametrize("operation", [0, 5, 12, 20, 35, 60, 90])
def test_a_killed_rank_fails_the_save_of_all(start_job, saved, rank, operation):
    path, job, intact = saved
    job.tell(saving(path, 2, [["x", 4]], seconds=SHORT), {rank: {"operation": operation}})
    others = [r for r in range(4) if r != rank]
    answers = job.answers(others)
    gone = job.ranks[rank].poll() is not None or job.ranks[rank].stdout.readline() == ""
    if all("bytes" in answer for answer in answers.values()):
        assert operation >= 60, "it had done its part before it was killed"
        intact(2)
        return
    assert gone
    failed(answers, f"rank {rank}")
    # Before the attempt is born, ranks meet by the coordinator, which says it in its own words.
    text = next(iter(answers.values()))["message"]
    assert "phase '" in text or "last seen in '" in text, text
    intact()
    again = start_job(4)
    assert all("bytes" in a for a in again.do(saving(path, 3, [["x", 4]])).values())
    intact(3)


@pytest.mark.parametrize("rank", [0, 3])
def test_a_stopped_rank_is_late_by_name(saved, rank):
    path, job, intact = saved
    job.tell(saving(path, 2, [["x", 4]], seconds=SHORT),
             {rank: {"operation": 30, "signal": int(signal.SIGSTOP)}})
    answers = job.answers([r for r in range(4) if r != rank])
    failed(answers, f"rank {rank}")
    intact()
    job.ranks[rank].send_signal(signal.SIGCONT)
    assert "message" in job.answers([rank])[rank]
    intact()


def test_a_rank_that_never_comes_is_named(start_job, tmp_path):
    job = start_job(4, [0, 1, 3])
    answers = job.do(saving(tmp_path / "c", 1, [["x", 4]], seconds=SHORT))
    failed(answers, "rank 2")
    assert not (tmp_path / "c").exists() or not any(
        name.name.startswith("cairn") for name in (tmp_path / "c").iterdir())


def test_ranks_that_disagree_are_told(saved):
    path, job, intact = saved
    answers = job.do(saving(path, 2, [["x", 4]]), {1: {"extra": True}})
    failed(answers, "rank 1", "tree and its values")
    intact()


def test_ranks_at_another_step_are_told(saved):
    path, job, intact = saved
    answers = job.do(saving(path, 2, [["x", 4]]), {3: {"step": 9}})
    assert all("message" in answer for answer in answers.values())
    text = next(iter(answers.values()))["message"]
    assert "step 2" in text and "step 9" in text, text
    intact()


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can mount a small disk")
def test_a_full_disk_fails_the_save_of_all(start_job, tmp_path):
    disk = tmp_path / "disk"
    disk.mkdir()
    mounted = subprocess.run(["mount", "-t", "tmpfs", "-o", "size=4m", "none", disk])
    if mounted.returncode != 0:
        pytest.skip("mounting is not allowed here")
    try:
        answers = start_job(4).do(saving(disk / "c", 1, [["x", 4]]))
        failed(answers, "rank ", "no space")
        assert not (disk / "c" / "cairn.json").exists()
    finally:
        subprocess.run(["umount", "-l", disk], check=True)


def mpirun(count, *orders, fails=False):
    if shutil.which("mpirun") is None:
        if os.environ.get("CI") == "true":
            pytest.fail("CI needs MPI")
        pytest.skip("mpirun is not installed")
    command = ["mpirun", "--oversubscribe", "-n", str(count)]
    if os.geteuid() == 0:
        command.append("--allow-run-as-root")
    done = subprocess.run([*command, PROBE, "--mpi", *map(json.dumps, orders)], text=True,
                          capture_output=True)
    assert (done.returncode != 0) == fails, done.stdout + done.stderr
    lines = [line for line in done.stdout.splitlines() if line.startswith("{")]
    return dict(enumerate(map(json.loads, lines)))


@pytest.fixture
def with_mpi(build):
    if "CAIRN_SANITIZE:STRING=\n" not in (build / "CMakeCache.txt").read_text():
        pytest.skip("OpenMPI does not stand sanitizers")


@pytest.mark.usefixtures("with_mpi")
def test_mpi_ranks_that_disagree_are_told(start_job, tmp_path):
    path = tmp_path / "c"
    mpirun(4, saving(path, 1, [["x", 4]]))
    answers = mpirun(4, saving(path, 2, [["x", 4]]) | {"extra": 2}, fails=True)
    failed(answers, "rank 2", "tree and its values")
    check_boxes(start_job(2).do(loading(path, [["x", 2]], tmp_path / "out")), numbers(1))


@pytest.mark.usefixtures("with_mpi")
def test_mpi_ranks_save_and_load(start_job, tmp_path):
    path = tmp_path / "c"
    mpirun(8, saving(path, 6, [["x", 8]]))
    for n, (ranks, mesh) in enumerate(LOADS):
        check_boxes(mpirun(ranks, loading(path, mesh, tmp_path / f"out{n}")), numbers(6))
    check_boxes(start_job(1).do(loading(path, [["x", 1]], tmp_path / "alone")), numbers(6))
    for ranks in (1, 2, 4):
        mpirun(ranks, saving(path, ranks, [["x", ranks]], "safetensors"))
        order = loading(path, [["x", 2]], tmp_path / f"by{ranks}")
        check_boxes(start_job(2).do(order), numbers(ranks))
