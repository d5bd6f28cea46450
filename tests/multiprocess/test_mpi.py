# SPDX-License-Identifier: Apache-2.0
"""The tests of every coordinator under mpirun, each rank a process."""

import os
import shutil
import subprocess
from pathlib import Path

import pytest

SUITE = Path(os.environ["CAIRN_BIN"]) / "cairn_mpi_suite"


@pytest.fixture(autouse=True)
def suite(build):
    if SUITE.exists():
        return
    if "CAIRN_SANITIZE:STRING=\n" not in (build / "CMakeCache.txt").read_text():
        pytest.skip("OpenMPI does not stand sanitizers")
    if os.environ.get("CI") == "true":
        pytest.fail("CI needs MPI")
    pytest.skip("built without MPI")


def mpirun(count, *arguments):
    command = [shutil.which("mpirun") or "mpirun", "--oversubscribe", "-n", str(count)]
    if os.geteuid() == 0:
        command.append("--allow-run-as-root")
    done = subprocess.run([*command, SUITE, *arguments], text=True, capture_output=True)
    assert done.returncode == 0, done.stdout + done.stderr
    assert "PASSED" in done.stdout


# All ranks are on this machine; the level of MPI's threads goes along.
@pytest.mark.parametrize(("count", "level"), [(1, 0), (2, 1), (4, 2), (8, 3)])
def test_ranks_meet(count, level):
    mpirun(count, str(level), "--gtest_filter=-MpiAlone.*")


def test_opening_has_a_deadline():
    mpirun(3, "1", "--gtest_filter=MpiAlone.*")
