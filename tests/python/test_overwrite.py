# SPDX-License-Identifier: Apache-2.0
"""A save over a tree with other leaves needs overwrite=True; the drop-in replaces what is there."""

import errno
import os

import cairn
import numpy as np
import pytest
from cairn.serialization import AsyncCheckpointManager, CheckpointManager
from cairn.serialization.serialization import tree_serialize_leaves
from safetensors.numpy import load_file, save_file

OLD = {"w": np.ones(2), "rate": 0.5}
NEW = {"w": np.zeros(3), "layers": [np.ones(1)]}


@pytest.mark.parametrize("path, options", [("c", {}), ("c", {"prefix": "model"}),
                                           ("c", {"layout": "safetensors"}),
                                           ("c.safetensors", {})])
def test_a_tree_with_other_leaves_stays(tmp_path, path, options):
    path = tmp_path / path
    cairn.save(OLD, path, **options)
    with pytest.raises(FileExistsError) as caught:
        cairn.save(NEW, path, **options)
    assert isinstance(caught.value, cairn.AlreadyExistsError)
    assert (caught.value.reason, caught.value.errno) == ("save/other-tree", errno.EEXIST)
    for part in (str(path), "only the old one has rate", "only the new one has layers.0",
                 "overwrite=True"):
        assert part in str(caught.value)
    assert cairn.load(path)["rate"] == 0.5
    handle = cairn.save_async(NEW, path, **options)
    with pytest.raises(FileExistsError):
        handle.wait()
    cairn.save_async(NEW, path, overwrite=True, **options).wait()
    cairn.save(OLD, path, overwrite=True, **options)
    assert cairn.load(path)["rate"] == 0.5


def test_the_same_leaves_need_nothing(tmp_path):
    path = tmp_path / "c"
    for tree in (OLD, {"w": np.ones((4, 4), np.int8), "rate": "fast"}, {"w": 1, "rate": None}):
        if tree["rate"] is None:
            with pytest.raises(FileExistsError, match="only the old one has rate"):
                cairn.save(tree, path)
        else:
            cairn.save(tree, path)
    cairn.save(OLD, path, layout="safetensors")
    cairn.save(OLD, tmp_path / "two", prefix="a")
    cairn.save(NEW, tmp_path / "two", prefix="b")
    cairn.save(NEW, tmp_path / "two", prefix="b")


def test_a_file_that_is_none_of_ours_stays(tmp_path):
    path = tmp_path / "c.safetensors"
    for content, says in ((b"PK\3\4 and so on", "a zip archive"), (b"words", "can be read")):
        path.write_bytes(content)
        with pytest.raises(FileExistsError, match=says):
            cairn.save(OLD, path)
        assert path.read_bytes() == content
    cairn.save(OLD, path, overwrite=True)
    assert os.listdir(tmp_path) == ["c.safetensors"] and list(load_file(path)) == ["w"]


def test_the_managers_replace_what_is_there(tmp_path):
    for prefix in (None, "model"):
        path = tmp_path / f"tree-{prefix}"
        for tree in (OLD, NEW):
            tree_serialize_leaves(path, tree, prefix=prefix)
    manager = AsyncCheckpointManager()
    for tree in (OLD, NEW):
        manager.save_tree(tree, tmp_path / "c", mesh=None)
        manager.wait_until_finished()
    assert "layers" in cairn.load(tmp_path / "c")
    for tree in ({"a": np.ones(1)}, {"b": np.ones(1)}):
        CheckpointManager.save_checkpoint(tree, tmp_path / "b.safetensors", None,
                                          shard_size_gb=None)
    assert list(load_file(tmp_path / "b.safetensors")) == ["b"]


def test_opened_checkpoint_says_that_it_was_replaced(tmp_path):
    path = tmp_path / "c"
    cairn.save({"w": np.zeros(3, np.float32)}, path)
    opened = cairn.open(path)
    cairn.save({"w": np.ones(3, np.float32)}, path)
    with pytest.raises(cairn.Error, match="saved again or removed after it was opened") as caught:
        opened["w"][:]
    assert caught.value.reason == "checkpoint/replaced"
    assert cairn.open(path)["w"][0] == 1


def test_opened_file_of_another_system_is_held(tmp_path):
    path = tmp_path / "m.safetensors"
    save_file({"w": np.zeros(3, np.float32)}, path)
    opened = cairn.open(path)
    save_file({"w": np.ones(3, np.float32)}, tmp_path / "new")
    (tmp_path / "new").rename(path)
    assert opened["w"][0] == 0
    assert cairn.open(path)["w"][0] == 1
