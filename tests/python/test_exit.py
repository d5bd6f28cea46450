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
        process.wait()
        process.stderr.close()


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


FAILS = """
import atexit, resource
atexit.register(lambda: print("the others run", file=sys.stderr))
def begin():
    go = threading.Event()
    handle = cairn.save_async({"w": numpy.ones(99_999)}, path, progress=lambda *_: go.wait())
    resource.setrlimit(resource.RLIMIT_FSIZE, (1000, resource.RLIM_INFINITY))
    go.set()
    return handle
"""


def end_of(start, program):
    """The exit status and the lines of a program that begins saves which fail."""
    process = start(FAILS + program)
    text = process.communicate()[1]
    assert text.count("the others run") == 1
    return process.returncode, text.splitlines()


def lines_of(lines, event):
    return [line for line in lines if event in line]


def test_a_failed_save_that_nobody_asked_about_fails_the_program(start, tmp_path):
    status, lines = end_of(start, "begin()")
    assert status == 1
    (logged,) = lines_of(lines, "[save/failed]")
    (told,) = lines_of(lines, "cairn: ")
    for line in (logged, told):
        assert str(tmp_path / "c") in line and "allows no file that large" in line
    assert "wait()" in told and "forget()" in told


# The last save of a program that has changed one import, or follows the guides.
LAST_SAVES = {
    "a step": """
manager = cairn.serialization.Checkpointer(
    path + "s", None, [cairn.serialization.CheckpointInterval(every=1)])
save = lambda: manager.on_step(None, tree, step=1, progress=held)
""",
    "save_checkpoint": """
manager = cairn.serialization.Checkpointer(path + "s", None, [])
save = lambda: manager.save_checkpoint(tree, "last", mesh=None, step=1, progress=held)
""",
    "save_pytree": """
manager = cairn.serialization.AsyncCheckpointManager()
save = lambda: manager.save_pytree(tree, path + "s", prefix="model", progress=held)
"""}
LAST_SAVE = """
import cairn.serialization
go = threading.Event()
held = lambda *_: go.wait()
tree = {"w": numpy.ones(99_999)}
%s
save()
resource.setrlimit(resource.RLIMIT_FSIZE, (1000, resource.RLIM_INFINITY))
go.set()
"""


@pytest.mark.parametrize("save", LAST_SAVES.values(), ids=LAST_SAVES.keys())
def test_so_does_the_last_save_of_a_manager(start, tmp_path, save):
    status, lines = end_of(start, LAST_SAVE % save)
    assert status == 1
    assert len(lines_of(lines, "[save/failed]")) == len(lines_of(lines, "cairn: ")) == 1
    assert str(tmp_path / "cs") in lines_of(lines, "cairn: ")[0]


@pytest.mark.parametrize("save", LAST_SAVES.values(), ids=LAST_SAVES.keys())
def test_a_manager_that_was_asked_has_been_heard(start, save):
    status, lines = end_of(start, LAST_SAVE % save + """
try: manager.wait_until_finished()
except cairn.Error: pass
""")
    assert status == 0
    assert not lines_of(lines, "cairn: ")


def test_the_exit_status_of_the_program_itself_stays(start):
    status, lines = end_of(start, "begin(); sys.exit(7)")
    assert status == 7
    assert lines_of(lines, "cairn: ")


@pytest.mark.parametrize("hear", [
    "try: begin().wait()\nexcept cairn.Error: pass", "begin().forget()"])
def test_an_error_that_was_heard_or_forgotten_is_logged_and_no_more(start, hear):
    status, lines = end_of(start, hear)
    assert status == 0
    assert len(lines_of(lines, "[save/failed]")) == 1
    assert not lines_of(lines, "cairn: ")


def test_a_save_that_is_waited_for_raises_and_logs_nothing(start):
    status, lines = end_of(start, """
resource.setrlimit(resource.RLIMIT_FSIZE, (1000, resource.RLIM_INFINITY))
try: cairn.save({"w": numpy.ones(99_999)}, path)
except cairn.Error: pass
""")
    assert status == 0
    assert not lines_of(lines, "[save/failed]") and not lines_of(lines, "cairn: ")
