# SPDX-License-Identifier: Apache-2.0
"""Arguments of a wrong kind: one plain sentence that names the argument, what it got and what is
expected."""

import datetime as dt
import errno
import inspect
from pathlib import Path

import cairn
import numpy as np
import pytest
from cairn import serialization
from cairn.serialization import AsyncCheckpointManager, Checkpointer, CheckpointInterval
from cairn.serialization.checkpointer import RetentionRules

TREE = {"w": np.ones(3)}


def forged(**changes):
    """Rules that nobody checked."""
    rules = RetentionRules()
    for name, value in changes.items():
        object.__setattr__(rules, name, value)
    return rules


CALLS = {
    "compress": (lambda path: cairn.save(TREE, path, compress="zstd"),
                 "compress is True or False, not 'zstd' (str)"),
    "step": (lambda path: cairn.save(TREE, path, step=2.0),
             "step is a whole number or None, not 2.0 (float)"),
    "layout": (lambda path: cairn.save_async(TREE, path, layout=2),
               "layout is a text, not 2 (int)"),
    "prefix": (lambda path: cairn.save(TREE, path, prefix=None),
               "prefix is a text, not None (NoneType)"),
    "timeout": (lambda path: cairn.load(path, timeout="x"),
                "timeout is a number or None, not 'x' (str)"),
    "strict_shapes": (lambda path: cairn.load(path, strict_shapes="no"),
                      "strict_shapes is True or False, not 'no' (str)"),
    "verify": (lambda path: cairn.verify(path, prefix=3), "prefix is a text or None, not 3 (int)"),
    "diff": (lambda path: cairn.diff(path, path, prefix=b"p"),
             "prefix is a text or None, not b'p' (bytes)"),
    "coordinate": (lambda path: cairn.coordinate(directory=path, rank=0.0, count=1),
                   "rank is a whole number or None, not 0.0 (float)"),
    "save_interval": (lambda path: Checkpointer(path, 60, []),
                      "save_interval is a datetime.timedelta such as timedelta(minutes=15) or "
                      "None, not 60 (int)"),
    "every": (lambda path: CheckpointInterval(every=1.5),
              "every is a whole number, not 1.5 (float)"),
    "keep_last_n": (lambda path: RetentionRules(keep_last_n="3"),
                    "keep_last_n is a whole number or None, not '3' (str)"),
    "on_step": (lambda path: Checkpointer(path, None, []).on_step(None, TREE, step=2.0),
                "step is a whole number, not 2.0 (float)"),
    "force": (lambda path: Checkpointer(path, None, []).on_step(None, TREE, "yes", step=1),
              "force is True or False, not 'yes' (str)"),
    "save_checkpoint": (
        lambda path: Checkpointer(path, None, []).save_checkpoint(TREE, "a", step="1"),
        "step is a whole number, not '1' (str)"),
    "shard_size": (lambda path: AsyncCheckpointManager(shard_size="5GB"),
                   "shard_size is a number of bytes or None, not '5GB' (str)"),
    "chunk_bytes": (lambda path: cairn.save(TREE, path, chunk_bytes=-1),
                    "chunk_bytes is a number of bytes or None, not -1 (int)"),
    "max_bytes": (lambda path: RetentionRules(max_bytes=-1),
                  "max_bytes is a number of bytes or None, not -1 (int)"),
    "retention": (lambda path: Checkpointer(path, None, [], retention={"keep_last_n": 1}),
                  "retention is RetentionRules or None, not {'keep_last_n': 1}"),
    "rules": (lambda path: Checkpointer(path, None, [], retention=forged(max_bytes=-1)),
              "max_bytes of the retention rules is of the wrong kind"),
    "too large": (lambda path: cairn.save(TREE, path, step=1 << 63),
                  "step is a whole number or None, not 9223372036854775808 (int)"),
    "stop_timeout": (lambda path: Checkpointer(path, None, [], stop_timeout=60),
                     "stop_timeout is a datetime.timedelta such as timedelta(minutes=15), not 60 "
                     "(int)"),
    "run_id": (lambda path: Checkpointer(path, None, [], run_id=3),
               "run_id is a text or None, not 3 (int)"),
    "fallback": (lambda path: Checkpointer(path, None, []).load_checkpoint(None, fallback="x"),
                 "fallback is True or False, not 'x' (str)"),
    "use_async": (lambda path: AsyncCheckpointManager().load(path, None, use_async="x"),
                  "use_async is True or False, not 'x' (str)"),
    "serialize": (lambda path: serialization.tree_serialize_leaves(path, TREE, prefix=3),
                  "prefix is a text or None, not 3 (int)"),
    "wait": (lambda path: cairn.save_async(TREE, path).wait("x"),
             "timeout is a number or None, not 'x' (str)"),
    "unknown": (lambda path: cairn.save(TREE, path, compres=True),
                "save() got an unexpected keyword argument 'compres'"),
    "missing": (lambda path: cairn.save(TREE), "save() missing a required argument: 'path'"),
}


@pytest.mark.parametrize("name", list(CALLS))
def test_the_argument_and_what_it_got_are_named(tmp_path, name):
    call, sentence = CALLS[name]
    with pytest.raises(TypeError) as caught:
        call(tmp_path / "c")
    assert str(caught.value) == sentence


def test_attributes_are_checked_as_arguments_are(tmp_path):
    run = Checkpointer(tmp_path, None, [])
    run.save_interval = 60
    with pytest.raises(TypeError, match="save_interval is a datetime.timedelta"):
        run.on_step(None, TREE, step=1)
    manager = AsyncCheckpointManager()
    manager.shard_size = "5GB"
    with pytest.raises(TypeError, match="shard_size is a number of bytes"):
        manager.save_tree(TREE, tmp_path / "c")


def test_numbers_of_numpy_are_numbers(tmp_path):
    cairn.save(TREE, tmp_path / "c", step=np.int64(7), compress=np.True_, timeout=np.float32(60))
    assert cairn.open(tmp_path / "c").about()["step"] == 7
    run = Checkpointer(tmp_path / "r", dt.timedelta(hours=1), [CheckpointInterval(np.int32(2))])
    assert run.on_step(None, TREE, step=np.int64(2)) is not None
    run.wait_until_finished()


def test_longer_than_any_job_is_for_ever(tmp_path):
    run = Checkpointer(tmp_path / "r", dt.timedelta.max, [], stop_timeout=dt.timedelta.max)
    assert run.on_step(None, TREE, step=1) is None
    run.save_interval = dt.timedelta.max - dt.timedelta(days=1)
    assert run.on_step(None, TREE, step=2) is None
    run.save_interval = dt.timedelta(hours=1)
    run._last_save_time = dt.datetime.min.replace(tzinfo=dt.timezone.utc)
    assert run.on_step(None, TREE, step=3) is not None
    run.wait_until_finished()
    cairn.save(TREE, tmp_path / "c", timeout=float("inf"))


def test_signatures_stay():
    assert list(inspect.signature(cairn.save).parameters)[:3] == ["tree", "path", "prefix"]
    assert inspect.signature(cairn.load).parameters["strict_shapes"].default is True
    assert list(inspect.signature(serialization.Checkpointer).parameters)[0] == "base_path"


def test_a_file_in_the_way_is_not_a_directory(tmp_path):
    (tmp_path / "file").write_text("mine")
    with pytest.raises(NotADirectoryError) as caught:
        cairn.save(TREE, tmp_path / "file")
    assert isinstance(caught.value, cairn.Error)
    assert (caught.value.errno, caught.value.reason) == (errno.ENOTDIR, "fs/not-a-directory")


def test_a_url_that_was_made_a_path_is_no_path(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    place = Path("gs://bucket/run")
    for call in (lambda: cairn.save({"w": np.ones(1)}, place), lambda: cairn.ls(place),
                 lambda: cairn.load(place), lambda: Checkpointer(place, None, [])):
        with pytest.raises(cairn.InvalidArgumentError, match="lost a slash"):
            call()
    assert not list(tmp_path.iterdir())
