# SPDX-License-Identifier: Apache-2.0
"""The end of a program with a save on its way."""

import signal
import subprocess
import sys

import cairn
import pytest

HELD = """
import logging, sys, threading
import cairn, numpy
logging.basicConfig(level=logging.INFO, format="%(message)s")
never = threading.Event()
path = sys.argv[1]
cairn.save({"w": numpy.zeros(9)}, path)
"""


@pytest.fixture
def start(tmp_path):
    started = []

    def start(program):
        started.append(subprocess.Popen([sys.executable, "-c", HELD + program, tmp_path / "c"],
                                        stderr=subprocess.PIPE, text=True))
        return started[0]

    yield start
    for process in started:
        process.kill()
        process.communicate()


def line_with(process, text):
    for line in process.stderr:
        if text in line:
            return line
    raise AssertionError(f"the program ended without '{text}'")


def test_the_second_interrupt_abandons_a_save_and_says_so(start, tmp_path):
    process = start("cairn.save_async({'w': numpy.ones(9)}, path,\n"
                    "                 progress=lambda *_: never.wait())")
    assert str(tmp_path / "c") in line_with(process, "the end of the program waits for")
    process.send_signal(signal.SIGINT)
    line_with(process, "Ctrl-C again abandons")
    process.send_signal(signal.SIGINT)
    assert str(tmp_path / "c") in line_with(process, "abandoned: ")
    assert process.wait() == -signal.SIGINT
    assert not cairn.load(tmp_path / "c")["w"].any()


def test_one_interrupt_does_not(start, tmp_path):
    process = start("""
class Release(logging.Handler):
    def emit(self, record):
        if "Ctrl-C again" in record.getMessage():
            never.set()

logging.getLogger("cairn").addHandler(Release())
cairn.save_async({"w": numpy.ones(9)}, path, progress=lambda *_: never.wait())
""")
    line_with(process, "the end of the program waits for")
    process.send_signal(signal.SIGINT)
    assert process.wait() == 0
    assert cairn.load(tmp_path / "c")["w"].all()


def test_the_deadline_after_a_signal_abandons_it_too(start, tmp_path):
    process = start("""
import datetime, os, signal
from cairn.serialization import Checkpointer
run = Checkpointer(path, None, [], stop_on=[signal.SIGTERM],
                   stop_timeout=datetime.timedelta(milliseconds=20))
os.kill(os.getpid(), signal.SIGTERM)
run.on_step(None, {"w": numpy.ones(9)}, step=1, progress=lambda *_: never.wait())
""")
    line_with(process, "DeadlineError")
    assert "run-1" in line_with(process, "abandoned: ")
    assert process.wait() == -signal.SIGTERM
    assert not (tmp_path / "c/run-1/metadata.json").exists()
