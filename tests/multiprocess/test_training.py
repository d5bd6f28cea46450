# SPDX-License-Identifier: Apache-2.0
"""The training program among the examples: killed and resumed, it learns what it would have."""

import json
import os
import subprocess
from pathlib import Path

import pytest

BIN = Path(os.environ["CAIRN_BIN"])


def start(run, count, *options):
    places = [{"RANK": str(rank), "WORLD_SIZE": str(count)} if count > 1 else {}
              for rank in range(count)]
    words = [BIN / "cairn_training", "--run", run, "--steps", "30", *options]
    return [subprocess.Popen(words, env=os.environ | place, text=True, stdout=subprocess.PIPE,
                             stderr=subprocess.PIPE) for place in places]


def train(run, count, *options):
    ranks = start(run, count, *options)
    said = [rank.communicate(timeout=60) for rank in ranks]
    assert [rank.returncode for rank in ranks] == [0] * count, said
    assert [errors for _, errors in said] == [""] * count
    return said[0][0]


def kill_in_save(run, count, step, *options):
    ranks = start(run, count, "--stall-at", str(step), *options)
    try:
        for rank in ranks:
            assert "stalled\n" in iter(rank.stdout.readline, "")
    finally:
        for rank in ranks:
            rank.kill()
            rank.communicate()


def list_problems(run):
    done = subprocess.run([BIN / "cairn", "ls", run, "--json"], check=True, capture_output=True)
    return {entry["name"]: entry["problem"] for entry in json.loads(done.stdout)["checkpoints"]}


@pytest.fixture(scope="module")
def straight(tmp_path_factory):
    """Losses of a training by one process that nobody disturbs."""
    run = tmp_path_factory.mktemp("straight")
    assert train(run, 1) == "starting at step 0, on 1 rank\ntrained to step 30\n"
    losses = (run / "loss.csv").read_text()
    rows = losses.splitlines()
    assert [row.split(",")[0] for row in rows] == ["step", *map(str, range(1, 31))]
    assert float(rows[-1].split(",")[1]) < 0.9 * float(rows[1].split(",")[1])
    return losses


def test_killed_in_a_save_it_goes_on_alone_and_learns_the_same(tmp_path, straight):
    kill_in_save(tmp_path, 2, 20, "--mesh", "fsdp=1,tp=2")
    assert list_problems(tmp_path) == {"run-10": None,
                                       "run-20": "only an unfinished save lies in it"}
    assert len((tmp_path / "loss.csv").read_text().splitlines()) == 1 + 20
    assert train(tmp_path, 1).startswith("resuming from step 10, on 1 rank\n")
    assert (tmp_path / "loss.csv").read_text() == straight
    assert list_problems(tmp_path) == {"run-10": None, "run-20": None, "run-30": None}


@pytest.mark.skipif(not (BIN / "cairn_mpi_suite").exists(), reason="built without MPI")
def test_ranks_may_meet_by_mpi(tmp_path, straight):
    root = ["--allow-run-as-root"] if os.geteuid() == 0 else []
    words = ["mpirun", "--oversubscribe", *root, "-n", "2", BIN / "cairn_training", "--run",
             tmp_path, "--steps", "30", "--mpi"]
    subprocess.run(words, check=True, timeout=60, stdout=subprocess.DEVNULL)
    assert (tmp_path / "loss.csv").read_text() == straight


@pytest.mark.parametrize("options, message", [
    (["--steps"], "usage: "), (["--steps", "none"], "usage: "), (["--what", "1"], "usage: "),
    (["--mesh", "fsdp=3,tp=1"], "one device for each of 1 ranks"),
    (["--mesh", "fsdp=1"], "tp"),
])
def test_refuses_what_cannot_be(tmp_path, options, message):
    done = subprocess.run([BIN / "cairn_training", "--run", tmp_path, *options], text=True,
                          capture_output=True)
    assert done.returncode in (1, 2) and message in done.stderr
