# SPDX-License-Identifier: Apache-2.0
"""cairn.serialization.fsspec_utils does what the reference does with fsspec."""

import asyncio
import os
import pathlib
import random
import re

import cairn
import numpy as np
import pytest
from braceexpand import braceexpand
from cairn.serialization import fsspec_utils
from cairn.serialization._braces import expand_braces
from eformer.paths import ePath
from eformer.serialization import fsspec_utils as reference


@pytest.fixture(name="folder")
def folder_with_files(tmp_path):
    for name in ["a.json", "b.json", ".hidden.json", "sub/a.json", "sub/deep/c.json", "x[1].txt"]:
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text(name)
    (tmp_path / "dangling").symlink_to(tmp_path / "nowhere")
    (tmp_path / "link").symlink_to(tmp_path / "sub")
    return tmp_path


def test_exists(folder):
    for name in ["a.json", "sub", "no", "dangling", "link", "link/a.json", ""]:
        for url in (f"{folder}/{name}", f"file://{folder}/{name}"):
            assert fsspec_utils.exists(url) == reference.exists(url), url
    assert fsspec_utils.exists(folder / "a.json") and fsspec_utils.exists(ePath(str(folder)))


def test_mkdirs_and_remove(folder):
    fsspec_utils.mkdirs(f"file://{folder}/new/deep")
    fsspec_utils.mkdirs(folder / "new/deep")
    assert (folder / "new/deep").is_dir()
    fsspec_utils.remove(folder / "a.json")
    for module in (fsspec_utils, reference):
        with pytest.raises(FileNotFoundError):
            module.remove(str(folder / "a.json"))
        with pytest.raises(OSError if module is fsspec_utils else ValueError):
            module.remove(str(folder / "new"))
    fsspec_utils.remove(folder / "new", recursive=True)
    asyncio.run(fsspec_utils.async_remove(folder / "b.json"))
    assert not (folder / "new").exists() and not (folder / "b.json").exists()
    fsspec_utils.remove(folder / "link", recursive=True)
    assert (folder / "sub/a.json").exists() and not os.path.lexists(folder / "link")


def test_the_current_directory_is_not_removed(folder, monkeypatch):
    monkeypatch.chdir(folder / "sub")
    for module in (fsspec_utils, reference):
        with pytest.raises(ValueError):
            module.remove(".", recursive=True)


@pytest.mark.parametrize("pattern", ["*.json", "*", "sub/*", "*/*.json", "**/*.json", "**",
                                     "?.json",
                                     "[ab].json", "{a,b,q}.json", "*.{json,txt}", "no*", "sub/**",
                                     "sub/**/c.json", "x[[]1].txt", "no/*", "{a,sub/a}.json"])
def test_wildcards(folder, pattern):
    url = f"{folder}/{pattern}"
    assert list(fsspec_utils.expand_glob(url)) == list(reference.expand_glob(url))


def is_balanced(text):
    depth = 0
    for brace in re.findall(r"(?<!\\)[{}]", text):
        depth += 1 if brace == "{" else -1
        if depth < 0:
            return False
    return depth == 0


def test_braces():
    rng = random.Random(3)
    pieces = ["{", "}", ",", "..", "a", "e", "1", "3", "03", "-2", "\\x", "\\{", "x", "{a,b}",
              "{1..3}"]
    for _ in range(3000):
        text = "".join(rng.choice(pieces) for _ in range(rng.randint(0, 7)))
        if not is_balanced(text):
            continue  # braceexpand lets "}{" pass
        assert expand_braces(text) == list(braceexpand(text)), text
    for text in ("{a,b", "a}", "{{a}", "}{"):
        with pytest.raises(ValueError, match="brace"):
            expand_braces(text)


def test_joins():
    for left, right in [("/a", "b"), ("gs://b/d", "f"), ("/a", "gs://b/f"), ("gs://b", "gs://c/d"),
                        ("/a", "/b"), ("a/", "b"), ("", "b"), ("/a", "")]:
        assert fsspec_utils.join_path(left, right) == reference.join_path(left, right)
    assert fsspec_utils.join_path(pathlib.Path("/a"), pathlib.Path("b")) == "/a/b"
    for module in (fsspec_utils, reference):
        with pytest.raises(ValueError, match="different protocols"):
            module.join_path("gs://b", "s3://c")


def test_other_storages_are_refused_by_name():
    assert fsspec_utils.is_remote_path("hf://a/b") and not fsspec_utils.is_remote_path("file:///a")
    for call in (fsspec_utils.exists, fsspec_utils.mkdirs, fsspec_utils.remove):
        with pytest.raises(NotImplementedError, match=r"hf://.*there are paths and file://"):
            call("hf://a/b")


def test_only_the_first_process_writes_shared_files(tmp_path, monkeypatch):
    assert fsspec_utils.should_write_shared_checkpoint_files(tmp_path)
    monkeypatch.setattr("jax.process_index", lambda: 1)
    assert not fsspec_utils.should_write_shared_checkpoint_files(tmp_path)
    assert not fsspec_utils.should_write_shared_checkpoint_files("gs://b/c")


def test_a_save_on_its_way_is_waited_for(tmp_path):
    for _ in range(5):
        cairn.save_async({"w": np.ones(1 << 20)}, tmp_path / "c")
        assert fsspec_utils.exists(tmp_path / "c" / "tensorstore_index.json")
        cairn.save_async({"w": np.ones(1 << 20)}, tmp_path / "c")
        fsspec_utils.remove(tmp_path / "c", recursive=True)
        assert not (tmp_path / "c").exists()
