# SPDX-License-Identifier: Apache-2.0
"""What a Checkpointer has beyond the reference: fallback, retention, owners, signals, requests."""

import datetime as dt
import json
import logging
import os
import signal
import subprocess
import sys
import threading
import time

import cairn
import numpy as np
import pytest
from cairn.serialization import AsyncCheckpointManager, Checkpointer, CheckpointInterval
from cairn.serialization.checkpointer import RetentionRules


def names(base):
    return sorted(name for name in os.listdir(base) if not name.startswith("."))


def test_falling_back_from_damage(tmp_path, caplog):
    run = Checkpointer(tmp_path, None, [])
    assert run.load_checkpoint_if_any(None) is None
    for step in (1, 2):
        run.save_checkpoint({"w": np.full(100, step)}, f"run-{step}", step=step)
    run.wait_until_finished()
    chunk = tmp_path / "run-2" / "w" / "0"
    chunk.write_bytes(b"\0" * chunk.stat().st_size)
    with pytest.raises(cairn.CorruptError, match="leaf w"):
        run.load_checkpoint(None)
    state, about = run.load_checkpoint_if_any(None, fallback=True)
    assert state["w"][0] == about["step"] == 1 and "passed over" in caplog.text


def test_retention_and_metrics(tmp_path):
    run = Checkpointer(tmp_path / "r", None, [CheckpointInterval(every=1)],
                       retention=RetentionRules(keep_last_n=1, keep_every_n=4, best_k=1,
                                                metric="loss"),
                       metrics_path=tmp_path / "metrics.prom", run_id="mine")
    for step in range(1, 8):
        run.on_step(None, {"w": np.ones(2)}, step=step, metrics={"loss": np.float32(abs(step - 2))})
    run.wait_until_finished()
    assert names(tmp_path / "r") == ["run-2", "run-4", "run-7"]
    text = (tmp_path / "metrics.prom").read_text()
    assert "cairn" in text and "7" in text
    assert json.loads((tmp_path / "r" / "run-7" / "cairn.json").read_text())["run_id"] == "mine"


def test_one_owner(tmp_path):
    program = ("import sys, numpy as np\nfrom cairn.serialization import Checkpointer\n"
               f"run = Checkpointer({str(tmp_path)!r}, None, [])\n"
               "for step in (1, 3):\n"
               "    try:\n"
               "        run.save_checkpoint({'w': np.ones(1)}, f'run-{step}', step=step).wait()\n"
               "        print('saved', flush=True)\n"
               "    except ValueError as error:\n"
               "        print(error.reason)\n"
               "    sys.stdin.readline()\n")
    with subprocess.Popen([sys.executable, "-c", program], text=True, stdin=subprocess.PIPE,
                          stdout=subprocess.PIPE) as other:
        assert other.stdout.readline() == "saved\n"
        with pytest.raises(ValueError, match=f"process {other.pid}|{other.pid}"):
            Checkpointer(tmp_path, None, []).save_checkpoint({"w": np.ones(1)}, "b", step=2)
        Checkpointer(tmp_path, None, [], take_over=True).save_checkpoint({"w": np.ones(1)}, "b",
                                                                         step=2).wait()
        assert other.communicate("\n\n")[0] == "run/taken-over\n"


def test_signals(tmp_path):
    run = Checkpointer(tmp_path, None, [], save_on=[signal.SIGUSR1], stop_on=[signal.SIGUSR2],
                       stop_timeout=dt.timedelta(seconds=60))
    assert run.on_step(None, {"w": np.ones(1)}, step=1) is None
    os.kill(os.getpid(), signal.SIGUSR1)
    assert run.on_step(None, {"w": np.ones(1)}, step=2) is not None and not run.should_stop
    assert run.on_step(None, {"w": np.ones(1)}, step=3) is None
    os.kill(os.getpid(), signal.SIGUSR2)
    handle = run.on_step(None, {"w": np.ones(1)}, step=4)
    assert handle.done() and run.should_stop
    del run


class Asked(logging.Handler):
    """Waits until the log says that somebody asks for a save."""

    def __init__(self):
        super().__init__()
        self.seen = threading.Event()

    def emit(self, record):
        if "a save is asked for" in record.getMessage():
            self.seen.set()


def test_requests(tmp_path, caplog):
    caplog.set_level(logging.INFO, "cairn")
    asked = Asked()
    runs = {watch: Checkpointer(tmp_path / str(watch), None, [], watch_requests=watch)
            for watch in (False, True)}
    for run in runs.values():
        run.save_checkpoint({"w": np.ones(1)}, "a", step=1).wait()
    logging.getLogger("cairn").addHandler(asked)
    try:
        for watch in runs:
            (tmp_path / str(watch) / ".cairn-request.json").write_text(
                json.dumps({"reason": "please", "time": "2026-01-01T00:00:00+00:00"}))
        assert asked.seen.wait(60)
    finally:
        logging.getLogger("cairn").removeHandler(asked)
    assert runs[False].on_step(None, {"w": np.ones(1)}, step=2) is None
    assert runs[True].on_step(None, {"w": np.ones(1)}, step=2) is not None
    assert runs[True].on_step(None, {"w": np.ones(1)}, step=3) is None


def test_dropping_it_loses_nothing(tmp_path):
    Checkpointer(tmp_path, None, []).save_pytree({"w": np.ones(1 << 18)}, "m", step=1)
    assert (tmp_path / "run-1").is_dir()
    assert cairn.load(tmp_path / "run-1")["w"].sum() == 1 << 18


def test_a_forked_child_goes_on_with_what_its_parent_used(tmp_path):
    done = subprocess.run([sys.executable, "-W", "ignore", "-c", (
        "import numpy, os, sys\n"
        "from cairn.serialization import AsyncCheckpointManager, Checkpointer\n"
        "base, tree, manager = sys.argv[1], {'w': numpy.ones(9)}, AsyncCheckpointManager()\n"
        "run, unused = (Checkpointer(f'{base}/{name}', None, []) for name in 'ab')\n"
        "def use(*runs):\n"
        "    for each in (manager, *runs):\n"
        "        if each is manager:\n"
        "            each.save_tree(tree, f'{base}/{os.getpid()}')\n"
        "        else:\n"
        "            each.on_step(None, tree, True, step=os.getpid())\n"
        "        each.wait_until_finished()\n"
        "use(run)\n"
        "child = os.fork()\n"
        "if child == 0:\n"
        "    use(run, unused)\n"
        "    os._exit(0)\n"
        "sys.exit(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]))"), tmp_path],
        timeout=60)
    assert done.returncode == 0
    assert len(names(tmp_path)) == 4 and len(names(tmp_path / "a")) == 2


def test_a_manager_of_its_own(tmp_path, caplog):
    manager = AsyncCheckpointManager(use_tensorstore=False, blocking=True)
    run = Checkpointer(tmp_path, None, [CheckpointInterval(every=1)], manager=manager)
    run.on_step(None, {"w": np.ones(2)}, step=1)
    assert (tmp_path / "run-1" / "model.safetensors").exists()
    off = Checkpointer(tmp_path / "off", None, [CheckpointInterval(every=1)],
                       manager=AsyncCheckpointManager(enable=False))
    with caplog.at_level(logging.INFO, "cairn"):
        off.on_step(None, {"w": np.ones(2)}, step=1)
    assert "switched off" in caplog.text and not (tmp_path / "off").exists()


def once_main_saves(do):
    """In another thread, when the main one is in a call that saves."""
    main, end = threading.main_thread().ident, time.monotonic() + 60

    def watch():
        while sys._current_frames()[main].f_code.co_name != "_save" and time.monotonic() < end:
            pass
        do()

    threading.Thread(target=watch).start()


def test_an_interrupted_call_keeps_its_turn(tmp_path):
    """A call that was given up goes on, and saves nothing; the next one waits for it."""
    run, go = Checkpointer(tmp_path, None, []), threading.Event()
    run.save_checkpoint({"w": np.ones(1)}, "a", step=1, commit_callback=lambda: go.wait())
    with pytest.raises(KeyboardInterrupt):
        once_main_saves(lambda: signal.pthread_kill(threading.main_thread().ident, signal.SIGINT))
        run.save_checkpoint({"w": np.ones(1)}, "b", step=2)  # waits for the one before
    once_main_saves(go.set)
    run.save_checkpoint({"w": np.ones(1)}, "c", step=3)
    run.wait_until_finished()
    assert run._last_save_step == 3
    assert [entry["name"] for entry in cairn.ls(tmp_path)] == ["c", "a"]
