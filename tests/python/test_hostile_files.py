# SPDX-License-Identifier: Apache-2.0
"""Files of a checkpoint that Python reads: whatever lies there is an error of the library."""

import os
import subprocess
import sys

import cairn
import numpy as np
import pytest

LOADS = """
import resource, sys, cairn
from cairn.serialization.async_manager import AsyncCheckpointManager
from cairn.serialization.checkpointer import _read_checkpoint_metadata
resource.setrlimit(resource.RLIMIT_DATA, (1 << 33, 1 << 33))
try:
    if sys.argv[2] == "metadata.json":
        _read_checkpoint_metadata(sys.argv[1])
    else:
        AsyncCheckpointManager().load(sys.argv[1], None)
except cairn.Error as error:
    print(error.reason)
"""
FILES = {
    "a pipe": (os.mkfifo, "storage/not-found"),
    "a link to a device": (lambda path: os.symlink("/dev/zero", path), "storage/not-found"),
    "a directory": (os.mkdir, "storage/not-found"),
    "nothing in it": (lambda path: path.write_text(""), "python/bad-json"),
    "no JSON": (lambda path: path.write_text("{,"), "python/bad-json"),
    "no text": (lambda path: path.write_bytes(b'{"a": "\xff"}'), "python/bad-json"),
    "a list": (lambda path: path.write_text("[1]"), "python/bad-json"),
    "many levels": (lambda path: path.write_text("[" * 100_000), "python/bad-json"),
    "too much": (lambda path: os.truncate(os.open(path, os.O_CREAT | os.O_WRONLY), 1 << 40),
                 "storage/too-large"),
}


@pytest.mark.parametrize("name", ["checkpoint_metadata.json", "metadata.json"])
@pytest.mark.parametrize("what", list(FILES))
def test_a_file_that_is_none(tmp_path, name, what):
    folder = tmp_path / "c"
    cairn.save({"w": np.zeros(3)}, folder)
    (folder / name).unlink(missing_ok=True)
    make, reason = FILES[what]
    make(folder / name)
    ended = subprocess.run([sys.executable, "-c", LOADS, str(folder), name], timeout=60,
                           capture_output=True, text=True, check=False)
    assert ended.returncode == 0, ended.stderr
    passes_for_none = name != "metadata.json" and reason == "storage/not-found"
    assert ended.stdout.strip() == ("" if passes_for_none else reason)
