# SPDX-License-Identifier: Apache-2.0
"""What a commit callback may not do: it would wait for its own save."""

import subprocess
import sys

import pytest

PROGRAM = """
import queue, sys, cairn, numpy as np
from cairn.serialization.async_manager import AsyncCheckpointManager
from cairn.serialization.checkpointer import Checkpointer
manager = AsyncCheckpointManager()
run = Checkpointer(sys.argv[1], None, [], manager=manager)
tree = {"w": np.zeros(3)}
refused = []
handles = queue.Queue()
def callback(*_):
    try:
        if sys.argv[2] == "step":
            run.on_step(None, tree, step=2, force=True)
        elif sys.argv[2] == "wait":
            run.wait_until_finished()
        elif sys.argv[2] == "handle":
            handles.get(timeout=30).wait()
        else:
            manager.wait_until_finished()
    except cairn.Error as error:
        refused.append(error.reason)
handles.put(run.on_step(None, tree, step=1, force=True, true_callbacks=[callback]))
run.wait_until_finished()
print(*refused)
"""


@pytest.mark.parametrize(("what", "reason"), [
    ("step", "manager/in-callback"), ("wait", "manager/in-callback"),
    ("manager", "manager/in-callback"), ("handle", "save/in-callback")])
def test_a_callback_that_would_wait_for_its_save(tmp_path, what, reason):
    ended = subprocess.run([sys.executable, "-c", PROGRAM, str(tmp_path / "run"), what], timeout=60,
                           capture_output=True, text=True, check=False)
    assert ended.returncode == 0, ended.stderr
    assert ended.stdout.strip() == reason
