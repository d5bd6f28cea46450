# SPDX-License-Identifier: Apache-2.0
"""The examples in the docstrings, and the programs of the README and of the package's page."""

import doctest
import importlib.util
import pkgutil
import re
import subprocess
import sys
import tempfile
from pathlib import Path

import cairn
import pytest


def modules():
    left_out = set()
    if importlib.util.find_spec("torch") is None:
        left_out = {"cairn._torch", "cairn._dtensors"}
    yield "cairn"
    for found in pkgutil.walk_packages(cairn.__path__, "cairn."):
        if found.name not in left_out:
            yield found.name


@pytest.mark.parametrize("name", list(modules()))
def test_examples_run(name, tmp_path, monkeypatch):
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    result = doctest.testmod(importlib.import_module(name))
    assert result.failed == 0


SOURCE = Path(__file__).parents[2]


def programs(document):
    return re.findall(r"```python\n(.*?)```", (SOURCE / document).read_text(), re.S)


def readme_program():
    return programs("README.md")[0]


def run(program, folder):
    done = subprocess.run([sys.executable, "-c", program], cwd=folder, text=True,
                          capture_output=True)
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_the_program_of_the_readme_goes_on_where_it_was_killed(tmp_path):
    whole, killed = tmp_path / "whole", tmp_path / "killed"
    whole.mkdir()
    killed.mkdir()
    printed = run(readme_program(), whole)
    assert printed.startswith("[")
    early = readme_program().replace("while", "import os, signal\nwhile", 1).replace(
        "    state = train(state)\n",
        "    state = train(state)\n"
        "    if state['step'] == 250: os.kill(os.getpid(), signal.SIGKILL)\n", 1)
    dead = subprocess.run([sys.executable, "-c", early], cwd=killed)
    assert dead.returncode == -9
    assert not (killed / "run/run-300").exists()
    assert run(readme_program(), killed) == printed


def test_the_page_of_the_package_runs_with_numpy_alone_and_links_nowhere(tmp_path):
    program = "import sys; sys.modules['jax'] = sys.modules['torch'] = None\n"
    printed = run(program + "".join(programs("docs/package.md")), tmp_path)
    row = "[1. 1. 1. 1. 1. 1. 1. 1.]"
    assert "kernel" in printed and printed.endswith(f"[{row}\n {row}]\n")
    assert sorted(found.name for found in (tmp_path / "run").glob("run-*")) == \
        ["run-100", "run-200", "run-300"]
    assert "](" not in (SOURCE / "docs/package.md").read_text()


def test_the_training_run_of_the_guide_saves_its_last_step(tmp_path):
    loop, = [one for one in programs("docs/guide/python.md") if "run.on_step(" in one]
    given = ("import numpy as np\n"
             "mesh, steps, state = None, {}, {{'w': np.zeros(2)}}\n"
             "def train(state):\n"
             "    return {{'w': state['w'] + 1}}, 0.5\n")
    for steps in 3, 5:
        run(given.format(steps) + loop, tmp_path)
        latest = cairn.open(tmp_path / f"runs/a/run-{steps}")
        assert latest["w"][...].tolist() == [steps, steps]


def test_every_public_name_is_described():
    for name in cairn.__all__:
        thing = getattr(cairn, name)
        assert thing.__doc__ and not thing.__doc__.startswith(f"{name}("), name
        members = vars(thing) if isinstance(thing, type) else {}
        for member in (member for member in members if not member.startswith("_")):
            described = getattr(thing, member)
            assert not (callable(described) or isinstance(described, property)) or \
                described.__doc__, f"{name}.{member}"


def test_every_verb_has_an_example():
    verbs = [getattr(cairn, name) for name in cairn.__all__
             if not (isinstance(getattr(cairn, name), type) and
                     issubclass(getattr(cairn, name), Exception))]
    assert len(verbs) > 10
    for verb in verbs:
        assert ">>> " in verb.__doc__, verb
