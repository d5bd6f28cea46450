# SPDX-License-Identifier: Apache-2.0
"""DTensors of PyTorch, saved by some ranks and loaded by others."""

import socket
import subprocess
import sys
from pathlib import Path

import cairn
import numpy as np
import pytest

torch = pytest.importorskip("torch", reason="PyTorch is not installed")
PROGRAM = Path(__file__).parent / "dtensor_program.py"


def run(count, do, path, seed=""):
    with socket.socket() as at:
        at.bind(("localhost", 0))
        port = at.getsockname()[1]
    ranks = [subprocess.Popen([sys.executable, PROGRAM, *map(str, (port, rank, count)), do, path,
                               str(seed)], stderr=subprocess.PIPE, text=True)
             for rank in range(count)]
    said = [rank.communicate()[1] for rank in ranks]
    assert all(rank.returncode == 0 for rank in ranks), "\n".join(said)


@pytest.fixture(scope="module")
def saved(tmp_path_factory):
    path = str(tmp_path_factory.mktemp("dtensors") / "c")
    run(4, "save", path, 1)
    return path


@pytest.mark.parametrize("count", [4, 2, 1])
def test_any_placement_becomes_any_other(saved, count):
    run(count, "load", saved, 2)


def test_arrays_are_whole_for_others(saved):
    tree = cairn.load(saved)
    assert len(tree) == 180
    meshes = ("all", "both", "x", "y", "turned")
    for name in (f"-{mesh}{number}" for mesh in meshes for number in range(6)):
        assert (tree["uneven" + name] == np.arange(35, dtype=np.float32).reshape(5, 7)).all()
        assert (tree["few" + name] == np.arange(12).reshape(3, 4)).all()
        assert tree["none" + name].shape == (0, 4)


def test_a_model_of_fsdp_over_tensor_parallelism_goes_on(tmp_path):
    path = str(tmp_path / "c")
    run(4, "model", path)
    expected = torch.load(path + ".pt")
    found = cairn.load(path)["model"]
    assert {name: array.tolist() for name, array in found.items()} == \
        {name: tensor.tolist() for name, tensor in expected.items()}


def test_a_run_goes_on_with_other_ranks(tmp_path):
    for start, count in ((0, 2), (2, 4), (4, 1)):
        run(count, "run", str(tmp_path / "run"), start)
    assert sorted(path.name for path in (tmp_path / "run").glob("run-*")) == ["run-5", "run-6"]


def test_what_is_placed_in_other_ways_is_refused_and_what_does_not_fit_stays(tmp_path):
    run(2, "refuse", str(tmp_path / "c"))
