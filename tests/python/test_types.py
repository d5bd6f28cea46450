# SPDX-License-Identifier: Apache-2.0
"""The package is typed: mypy, at its strictest, finds nothing in it, and mistakes in programs."""

import ast
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from cairn import _core

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


def parameters(function):
    """Of one of the stub, or of a text that nanobind writes, where defaults are numbered."""
    if isinstance(function, str):
        function = ast.parse(re.sub(r"\\\d+", "None", function) + ": ...").body[0]
    given = function.args
    return len(given.posonlyargs + given.args), len(given.defaults), \
        [(one.arg, default is not None)
         for one, default in zip(given.kwonlyargs, given.kw_defaults)]


def check_stub(stub, thing):
    named = {node.name: node for node in stub.body
             if isinstance(node, (ast.ClassDef, ast.FunctionDef))}
    attributes = {node.target.id for node in stub.body if isinstance(node, ast.AnnAssign)}
    there = {name for name in vars(thing) if not name.startswith("_")}
    assert there == {name for name in {*named, *attributes} if not name.startswith("_")}
    for name, node in named.items():
        found = getattr(thing, name, None)
        if isinstance(node, ast.ClassDef) and not name.startswith("_"):
            check_stub(node, found)
        elif hasattr(found, "__nb_signature__"):
            assert parameters(found.__nb_signature__[0][0]) == parameters(node), name


def test_the_stub_says_what_the_compiled_part_has():
    check_stub(ast.parse((PACKAGE / "cairn" / "_core.pyi").read_text()), _core)


def names_of_options(of):
    stub = ast.parse((PACKAGE / "cairn" / "_core.pyi").read_text())
    [options] = [node for node in stub.body if isinstance(node, ast.ClassDef) and node.name == of]
    return [node.target.id for node in options.body if isinstance(node, ast.AnnAssign)]


def test_the_stub_names_the_options_that_saves_take(tmp_path):
    names = names_of_options("_SaveOptions")
    path = str(tmp_path / "c")
    _core.begin_save([("", {})], path, **dict.fromkeys(names)).wait()
    with pytest.raises(TypeError, match="saves have no strides"):
        _core.begin_save([("", {})], path, strides=None)
    with pytest.raises(TypeError, match="step is of the wrong kind"):
        _core.begin_save([("", {})], path, step="three")


def test_the_stub_names_the_options_that_loads_take():
    _core.LoadRequest(**dict.fromkeys(names_of_options("_LoadOptions")))
    with pytest.raises(TypeError, match="loads have no strides"):
        _core.LoadRequest(strides=None)
    with pytest.raises(TypeError, match="chunk_size is of the wrong kind"):
        _core.LoadRequest(chunk_size="three")
