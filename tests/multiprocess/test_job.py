# SPDX-License-Identifier: Apache-2.0
"""Real processes save on one layout and load on another; some are killed or stopped."""

import json
import os
import shutil
import signal
import subprocess
import tempfile
from pathlib import Path

import numpy
import pytest
from jobs import LONG, PROBE, SHAPES, SHORT, check_boxes, loading, numbers, saving

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


class Saved:
    """A checkpoint that must outlive what goes wrong, and the job that saved it."""

    def __init__(self, start_job, folder):
        self.folder = folder
        self.path = folder / "c"
        self.start_job = start_job
        self.job = start_job(4)
        self.saves(1)

    def saves(self, step, layout="zarr2", job=None):
        answers = (job or self.job).do(saving(self.path, step, [["x", 4]], layout))
        assert all("bytes" in answer for answer in answers.values()), answers

    def holds(self, step):
        out = self.folder / f"out{len(list(self.folder.iterdir()))}"
        check_boxes(self.start_job(1).do(loading(self.path, [["x", 1]], out)), numbers(step))

    def get_into(self, trouble, moment, seconds):
        order = saving(self.path, 2, [["x", 4]], moment.layout, seconds)
        self.job.tell(order, {moment.rank: {"trouble": trouble} | moment.when})

    def check_others(self, moment, word=""):
        """The others got one error that says who and where; or all is well, if it had reported."""
        answers = self.job.answers([rank for rank in range(4) if rank != moment.rank])
        if moment.has_reported:
            assert all("bytes" in answer for answer in answers.values()), answers
        else:
            failed(answers, f"rank {moment.rank}", moment.name, word)
        self.holds(2 if moment.has_reported else 1)


@pytest.fixture
def saved(start_job, tmp_path):
    return Saved(start_job, tmp_path)


class Moment:
    """When a rank gets into trouble: in a phase, or before the save has an attempt, while ranks
    meet by the coordinator, which says it in words of its own."""

    def __init__(self, rank, phase=None, layout="zarr2"):
        self.rank = rank
        self.when = {"phase": phase} if phase else {"operation": 0}
        self.name = f"'{phase}'" if phase else "save of step 2"
        self.layout = layout
        self.seconds = LONG if phase else SHORT  # nobody sees without an attempt that it is gone
        self.has_reported = rank != 0 and phase == "waiting for the others"

    def __str__(self):
        return f"{self.rank} {self.name}"


# Only some have tensors to put together, with safetensors.
MOMENTS = [
    Moment(0), Moment(0, "writing"), Moment(0, "syncing"), Moment(0, "waiting for the others"),
    Moment(0, "committing"),
    Moment(2), Moment(2, "writing"), Moment(2, "syncing"), Moment(2, "waiting for the others"),
    Moment(2, "waiting for pieces", "safetensors"),
    Moment(2, "putting tensors together", "safetensors")]
EACH_MOMENT = pytest.mark.parametrize("moment", MOMENTS, ids=str)


@EACH_MOMENT
def test_a_killed_rank_fails_the_save_of_all(start_job, saved, moment):
    saved.get_into("kill", moment, moment.seconds)
    assert saved.job.ranks[moment.rank].wait() == -signal.SIGKILL
    saved.check_others(moment, "died" if "phase" in moment.when else "did not come")
    saved.saves(3, moment.layout, start_job(4))
    saved.holds(3)


def test_a_stopped_rank_is_late_by_name_in_each_phase(start_job, tmp_path):
    # All of them wait at the same time.
    jobs = []
    for n, moment in enumerate(MOMENTS):
        (tmp_path / str(n)).mkdir()
        jobs.append((moment, Saved(start_job, tmp_path / str(n))))
    for moment, saved in jobs:
        saved.get_into("stop", moment, seconds=10)
    for moment, saved in jobs:
        saved.check_others(moment)
        saved.job.ranks[moment.rank].send_signal(signal.SIGCONT)
        answer = saved.job.answers([moment.rank])[moment.rank]
        assert "bytes" in answer if moment.has_reported else "message" in answer, answer
        saved.holds(2 if moment.has_reported else 1)


@EACH_MOMENT
def test_a_rank_that_cannot_write_fails_the_save_of_all(start_job, saved, moment):
    saved.get_into("fail", moment, moment.seconds)
    answer = saved.job.answers([moment.rank])[moment.rank]
    assert "bytes" in answer if moment.has_reported else "cannot write" in answer["message"], answer
    saved.check_others(moment)
    # Before the attempt it is the coordinator that could not write, and it has lost the others.
    saved.saves(3, moment.layout, saved.job if "phase" in moment.when else start_job(4))
    saved.holds(3)


@pytest.mark.parametrize(
    "moment", [moment for moment in MOMENTS if not moment.has_reported], ids=str)
def test_a_disk_that_fills_up_fails_the_save_of_all(disk, start_job, moment):
    small = disk("tmpfs", 64 << 20)
    saved = Saved(start_job, small.at)
    saved.get_into("stop", moment, LONG)
    rank = saved.job.ranks[moment.rank]
    os.waitpid(rank.pid, os.WUNTRACED)
    small.fill(small.at / "ballast")
    rank.send_signal(signal.SIGCONT)
    # Who cannot tell the others has an error of its own.
    for answer in saved.job.answers().values():
        failed({moment.rank: answer}, "rank ", "no space")
    (small.at / "ballast").unlink()
    saved.holds(1)
    saved.saves(3, moment.layout)
    saved.holds(3)


def test_a_rank_that_never_comes_is_named(start_job, tmp_path):
    job = start_job(4, [0, 1, 3])
    answers = job.do(saving(tmp_path / "c", 1, [["x", 4]], seconds=SHORT))
    failed(answers, "rank 2")
    assert not (tmp_path / "c").exists() or not any(
        name.name.startswith("cairn") for name in (tmp_path / "c").iterdir())


def test_ranks_that_disagree_are_told(saved):
    answers = saved.job.do(saving(saved.path, 2, [["x", 4]]), {1: {"extra": True}})
    failed(answers, "rank 1", "tree and its values")
    saved.holds(1)


def test_ranks_at_another_step_are_told(saved):
    answers = saved.job.do(saving(saved.path, 2, [["x", 4]]), {3: {"step": 9}})
    assert all("message" in answer for answer in answers.values())
    text = next(iter(answers.values()))["message"]
    assert "step 2" in text and "step 9" in text, text
    saved.holds(1)


def mpirun(count, *orders, fails=False):
    if shutil.which("mpirun") is None:
        if os.environ.get("CI") == "true":
            pytest.fail("CI needs MPI")
        pytest.skip("mpirun is not installed")
    command = ["mpirun", "--oversubscribe", "-n", str(count)]
    if os.geteuid() == 0:
        command.append("--allow-run-as-root")
    with tempfile.TemporaryDirectory() as answers:
        done = subprocess.run([*command, PROBE, "--mpi", answers, *map(json.dumps, orders)],
                              text=True, capture_output=True)
        assert (done.returncode != 0) == fails, done.stdout + done.stderr
        lines = {int(file.name): file.read_text().splitlines()
                 for file in Path(answers).iterdir()}
    assert sorted(lines) == list(range(count)), lines
    return {rank: json.loads(said[-1]) for rank, said in sorted(lines.items())}


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
