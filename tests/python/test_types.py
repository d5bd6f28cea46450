# SPDX-License-Identifier: Apache-2.0
"""The package is typed: mypy, at its strictest, finds nothing in it, and mistakes in programs."""

import os
import subprocess
import sys
from pathlib import Path

PACKAGE = Path(__file__).parents[2] / "cairn" / "python" / "package"

GOOD = """
import cairn
import numpy as np

handle: cairn.SaveHandle = cairn.save_async({"w": np.ones(3)}, "c", step=3, progress=True)
seconds: float = handle.progress[2]
leaf: cairn.Leaf = cairn.open("c")["w"]
shape: tuple[int, ...] = leaf.shape
try:
    cairn.load("c", keys=["a.b", ("a", 0)])
    saved: dict[str, object] = cairn.save({}, b"c", step=3)
except cairn.CorruptError as error:
    reason: str = error.reason
"""
BAD = """
import cairn

cairn.save({}, 3)
cairn.load("c", no_such_option=1)
cairn.save({}, "c", no_such_option=1)
cairn.save({}, "c", step="three")
"""


def mypy(cwd, *words):
    environment = {**os.environ, "MYPYPATH": str(PACKAGE), "PYTHONPATH": ""}
    return subprocess.run([sys.executable, "-m", "mypy", "--strict", "--ignore-missing-imports",
                           "--cache-dir", os.devnull, *words], cwd=cwd, env=environment, text=True,
                          capture_output=True)


def test_the_package(tmp_path):
    done = mypy(tmp_path, "-p", "cairn")
    assert done.returncode == 0, done.stdout


def test_programs(tmp_path):
    (tmp_path / "good.py").write_text(GOOD)
    (tmp_path / "bad.py").write_text(BAD)
    good, bad = mypy(tmp_path, "good.py"), mypy(tmp_path, "bad.py")
    assert good.returncode == 0, good.stdout
    for line in range(4, 8):
        assert f"bad.py:{line}" in bad.stdout, bad.stdout
