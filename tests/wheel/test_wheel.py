# SPDX-License-Identifier: Apache-2.0
"""The wheel of `make wheel`, in a virtual environment with nothing but NumPy."""

import re
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

DIST = Path(__file__).parents[2] / "dist"

PROGRAM = """
import sys
import numpy as np
import cairn

path = sys.argv[1]
tree = {"w": np.arange(6.0).reshape(2, 3), "n": [1, None, "text"]}
for layout in ("zarr2", "safetensors"):
    cairn.save(tree, path, layout=layout, compress=layout == "zarr2", prefix=layout)
    loaded = cairn.load(path, prefix=layout)
    assert (loaded["w"] == tree["w"]).all() and loaded["n"] == tree["n"]
assert not cairn.verify(path)["damages"]
try:
    cairn.load(path + "/nothing")
except cairn.NotFoundError as error:
    print(error.reason)
"""


def run(*words, cwd):
    return subprocess.run(list(map(str, words)), cwd=cwd, text=True, capture_output=True,
                          check=True)


@pytest.fixture(scope="module")
def clean(tmp_path_factory):
    wheels = list(DIST.glob("cairn_checkpoint-*.whl"))
    assert len(wheels) == 1, f"`make wheel` leaves one wheel in {DIST}; there are {wheels}"
    folder = tmp_path_factory.mktemp("clean")
    run("/usr/bin/python3", "-m", "venv", folder / "venv", cwd=folder)
    python = folder / "venv" / "bin" / "python"
    run(python, "-m", "pip", "install", "--quiet", wheels[0], cwd=folder)
    return python


def test_it_needs_numpy_alone(clean, tmp_path):
    listed = run(clean, "-m", "pip", "list", "--format=freeze", cwd=tmp_path).stdout
    names = {line.partition("==")[0] for line in listed.splitlines()}
    assert names - {"pip", "setuptools"} == {"cairn-checkpoint", "numpy"}


def test_it_saves_and_loads(clean, tmp_path):
    done = run(clean, "-c", PROGRAM, tmp_path / "c", cwd=tmp_path)
    assert done.stdout.strip() == "checkpoint/not-found"


def test_the_command_is_in_it(clean, tmp_path):
    run(clean, "-c", PROGRAM, tmp_path / "c", cwd=tmp_path)
    for words in ((clean.parent / "cairn",), (clean, "-m", "cairn")):
        assert "2 arrays" in run(*words, "show", tmp_path / "c", cwd=tmp_path).stdout


def test_auditwheel_finds_its_libraries_inside():
    wheel, = DIST.glob("cairn_checkpoint-*.whl")
    assert "manylinux" in wheel.name
    shown = run(sys.executable, "-m", "auditwheel", "show", wheel, cwd=DIST).stdout
    assert "manylinux" in shown


def test_the_licences_of_its_libraries_are_in_it(clean, tmp_path):
    run(clean, "-c", "import cairn", cwd=tmp_path)  # pip has compared every file with its digest
    wheel, = DIST.glob("cairn_checkpoint-*.whl")
    with zipfile.ZipFile(wheel) as file:
        texts = {Path(name).stem: file.read(name).decode() for name in file.namelist()
                 if "/licenses/third-party/" in name and name.endswith(".txt")}
        libraries = [name for name in file.namelist() if re.search(r"\.libs/.*\.so", name)]
    assert len(texts) >= len(libraries) > 5
    assert {"libblosc1", "libssl3", "libbz2-1.0", "libcli11-dev", "nlohmann-json3-dev",
            "nanobind", "robin-map"} <= set(texts)
    assert all("opyright" in text for text in texts.values())
