# SPDX-License-Identifier: Apache-2.0
"""Plain processes meet in a directory; some are killed, stopped, or never start."""

import os
import random
import signal
import subprocess

import pytest
from ranks import LONG, PROBE, SHORT, Job


@pytest.fixture
def start(tmp_path):
    """Starts jobs in one directory, and ends what is left of them."""
    jobs = []

    def run(count, ranks=None):
        jobs.append(Job(tmp_path / "meet", count, ranks))
        return jobs[-1]

    yield run
    for job in jobs:
        job.kill()


def files(tmp_path):
    return sorted(path.name for path in (tmp_path / "meet").iterdir())


def late(answers):
    """Everybody got the same error about late ranks: its text."""
    assert {answer.get("reason") for answer in answers.values()} == {"coord/late-ranks"}, answers
    return next(iter(answers.values()))["message"]


@pytest.mark.parametrize("count", [1, 2, 4, 8])
def test_ranks_meet(start, tmp_path, count):
    order = list(range(count))
    random.Random(count).shuffle(order)
    job = start(count, order)
    for _ in range(5):
        assert job.meets("start")
        assert all(got == {"got": ["0"]} for got in job.all("broadcast", "news").values())
        gathered = job.all("gather", "reports")
        assert gathered.pop(0) == {"got": [str(rank) for rank in range(count)]}
        assert all(got == {"got": []} for got in gathered.values())
    assert len(files(tmp_path)) <= count + 2
    job.leave()
    assert files(tmp_path) == []


def test_a_killed_rank_is_named(start):
    job = start(4)
    assert job.meets("load")
    job.ranks[2].kill()
    text = late(job.all("barrier", "save 100", SHORT, [0, 1, 3]))
    assert "rank 2 did not come to barrier 'save 100' before the deadline" in text
    assert "last seen in 'load'" in text


def test_a_rank_that_never_started_is_named(start):
    job = start(4, [3, 0, 2])
    text = late(job.all("barrier", "start", SHORT))
    assert "rank 1 did not come" in text and "not seen in this job before" in text


def test_a_stopped_rank_is_named_and_hears_of_it_when_it_goes_on(start):
    job = start(4)
    assert job.meets("load")
    stopped = job.ranks[1].process
    stopped.send_signal(signal.SIGSTOP)
    job.ranks[1].call("barrier", "save 100", LONG)
    text = late(job.all("barrier", "save 100", SHORT, [0, 2, 3]))
    assert "rank 1 did not come" in text
    stopped.send_signal(signal.SIGCONT)
    assert job.ranks[1].answer() == {"reason": "coord/late-ranks", "message": text}


def test_rank_0_is_named_when_it_was_killed(start):
    job = start(3)
    assert job.meets("load")
    job.ranks[0].kill()
    text = late(job.all("barrier", "save 100", SHORT, [1, 2]))
    assert "rank 0 did not come" in text and "last seen in 'load'" in text


def test_phases_that_differ_are_named(start):
    job = start(2)
    job.ranks[0].call("barrier", "save 100")
    job.ranks[1].call("barrier", "save 200")
    answers = [job.ranks[rank].answer() for rank in (0, 1)]
    assert answers[0] == answers[1]
    assert answers[0]["reason"] == "coord/phase-mismatch"
    assert "'save 100'" in answers[0]["message"] and "'save 200'" in answers[0]["message"]


@pytest.mark.parametrize("order", [[0, 1, 2], [2, 1, 0]])
def test_a_job_that_was_killed_does_not_disturb_the_next(start, tmp_path, order):
    for phase in "first", "second", "third":
        job = start(3, order)
        assert job.meets(phase)
        job.kill()
    assert len(files(tmp_path)) <= 3 + 2
    last = start(2, order[1:] if 0 in order[1:] else order[:2])
    assert last.meets("smaller")
    last.leave()
    assert files(tmp_path) == []


def test_a_job_killed_within_its_first_call_does_not_disturb_the_next(start):
    job = start(3)
    for rank in 1, 2:
        job.ranks[rank].call("barrier", "start")
    job.kill()
    assert start(3, [2, 1, 0]).meets("start")


def test_says_what_to_do_when_nothing_says_which_rank_it_is(tmp_path):
    ours = "RANK", "WORLD_SIZE", "OMPI_", "PMI_", "SLURM_"
    environment = {k: v for k, v in os.environ.items() if not k.startswith(ours)}
    done = subprocess.run([PROBE, tmp_path], env=environment, text=True, capture_output=True)
    assert done.returncode == 1
    assert "coord/no-rank" in done.stdout and "set RANK and WORLD_SIZE" in done.stdout
