# SPDX-License-Identifier: Apache-2.0
"""A job that is killed and started again learns what one learns that is left alone."""

import importlib.util
import subprocess
import sys
from pathlib import Path

import cairn

PROGRAM = Path(__file__).with_name("training.py")


def training():
    spec = importlib.util.spec_from_file_location("training", PROGRAM)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def run_until(base, last):
    """Losses by step; the program is killed as soon as it has said `last`."""
    said = {}
    with subprocess.Popen([sys.executable, PROGRAM, base], text=True,
                          stdout=subprocess.PIPE) as program:
        for line in program.stdout:
            step, loss = line.split()
            said[int(step)] = float.fromhex(loss)
            if int(step) == last:
                program.kill()
    return said


def test_a_job_that_is_killed_goes_on_as_if_nothing_had_happened(tmp_path):
    module = training()
    expected = dict(module.losses(None))
    assert list(expected) == list(range(1, module.STEPS + 1))
    base, said = str(tmp_path / "run"), {}
    for last in (11, 20, module.STEPS + 1):
        part = run_until(base, last)
        first = min(part)
        assert first == 1 if not said else 1 < first <= max(said) + 1
        assert all(said[step] == part[step] for step in part if step in said)
        said.update(part)
    assert said == expected
    assert cairn.ls(base)[0]["step"] == module.STEPS
    assert not any(entry["torn"] for entry in cairn.ls(base))
