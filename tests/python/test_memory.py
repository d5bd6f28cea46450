# SPDX-License-Identifier: Apache-2.0
"""Checkpoints below memory://, which live as long as the process."""
import numpy as np
import pytest

import cairn


def test_a_tree_is_saved_replaced_and_loaded():
    path = "memory://python/run/c"
    tree = {"w": np.arange(6, dtype=np.float32).reshape(2, 3), "names": ["a", 1]}
    cairn.save(tree, path)
    loaded = cairn.load(path)
    assert loaded["names"] == ["a", 1]
    np.testing.assert_array_equal(loaded["w"], tree["w"])
    assert cairn.verify(path)["damages"] == []
    with pytest.raises(FileExistsError, match="other leaves"):
        cairn.save({"other": np.zeros(2)}, path)
    cairn.save_async({"other": np.zeros(2)}, path, overwrite=True).wait()
    assert list(cairn.load(path)) == ["other"]


def test_what_was_never_saved_is_not_found():
    with pytest.raises(FileNotFoundError, match="memory://python/nowhere"):
        cairn.load("memory://python/nowhere")
