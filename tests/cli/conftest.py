# SPDX-License-Identifier: Apache-2.0
"""The command, run as people run it, and the checkpoints that it looks at."""

import json
import os
import shutil
import subprocess
from dataclasses import dataclass

import pytest


@dataclass
class Done:
    status: int
    out: str
    error: str
    raw: bytes

    @property
    def document(self):
        return json.loads(self.out)


@pytest.fixture(scope="session")
def cairn(command):
    """cairn("show", path, status=0): runs the command and checks how it ended."""

    def run(*words, status=0, cwd=None, **environment):
        clean = {name: value for name, value in os.environ.items() if name != "NO_COLOR"}
        done = subprocess.run([str(command), *map(str, words)], env=clean | environment,
                              cwd=cwd, capture_output=True)
        out = done.stdout.decode(errors="replace")
        error = done.stderr.decode()
        assert done.returncode == status, f"{words}: {done.returncode}\n{out}\n{error}"
        return Done(done.returncode, out, error, done.stdout)

    return run


@pytest.fixture(scope="session")
def originals(command, tmp_path_factory):
    """`zarr2` and `safetensors` of two prefixes, `run` of two checkpoints, `flags`. Read only."""
    folder = tmp_path_factory.mktemp("checkpoints")
    subprocess.run([command.parent / "cairn_make_checkpoints", folder], check=True)
    return folder


@pytest.fixture(params=["zarr2", "safetensors"])
def checkpoint(request, originals):
    """One checkpoint of two prefixes, in each layout."""
    return originals / request.param


@pytest.fixture
def mine(originals, tmp_path):
    """A copy of the zarr2 checkpoint that the test may damage."""
    return shutil.copytree(originals / "zarr2", tmp_path / "mine")
