# SPDX-License-Identifier: Apache-2.0
"""Files and directories by path or URL.

Supports paths and `file://`; other schemes are refused by name. Calls about a path with a save in
flight wait for the save.
"""

from __future__ import annotations

import asyncio
import fnmatch
import glob
import os
import shutil
import sys
from collections.abc import Iterator
from typing import Any

from cairn import _core
from cairn._errors import error_of
from cairn.serialization._braces import expand_braces

SCHEMES = ("file", "local")

__all__ = ["async_remove", "exists", "expand_glob", "is_remote_path", "join_path", "mkdirs",
           "remove", "should_write_shared_checkpoint_files"]


def exists(url: Any, **kwargs: Any) -> bool:
    """Does the path exist? A dangling link does not."""
    return os.path.exists(settled(url))


def mkdirs(path: Any) -> None:
    """Makes a directory and its parents; it may exist."""
    os.makedirs(local_path(path), exist_ok=True)


def should_write_shared_checkpoint_files(path: Any) -> bool:
    """Does this process write the files that all share? True on the first process, on every
    storage."""
    jax = sys.modules.get("jax")
    return jax is None or bool(jax.process_index() == 0)


def expand_glob(url: Any) -> Iterator[str]:
    """Expands braces ("{a,b}", "{1..3}") and then wildcards. Paths without wildcards are returned
    unchanged, even if they do not exist; matches of wildcards are URLs, sorted.

        >>> list(expand_glob("run-{1..3}/{model,tx}"))[1:4]
        ['run-1/tx', 'run-2/model', 'run-2/tx']
    """
    for candidate in expand_braces(path_text(url)):
        if not glob.has_magic(candidate):
            yield candidate
            continue
        path = settled(candidate)
        found = set(_matches("/", path.strip("/").split("/")))
        yield from (f"file://{one}" for one in sorted(found))


def remove(url: Any, *, recursive: bool = False, **kwargs: Any) -> None:
    """Removes a file, or with `recursive` a directory and all in it. Links are not followed."""
    path = settled(url)
    if not recursive or os.path.islink(path) or not os.path.isdir(path):
        os.remove(path)
        return
    if path == os.getcwd():
        raise ValueError(f"{path} is the current directory: it is not removed")
    shutil.rmtree(path)


async def async_remove(url: Any, *, recursive: bool = False, **kwargs: Any) -> None:
    """remove(), while other coroutines go on."""
    await asyncio.to_thread(remove, url, recursive=recursive, **kwargs)


def join_path(lhs: Any, rhs: Any) -> str:
    """A path below another; a URL stays as it is. Two schemes that differ are refused.

        >>> join_path("gs://bucket/runs", "run-100")
        'gs://bucket/runs/run-100'
    """
    left, right = path_text(lhs), path_text(rhs)
    ours, theirs = scheme_of(left), scheme_of(right)
    if theirs is None:
        return os.path.join(left, right)
    if ours is not None and ours != theirs:
        raise ValueError(f"Cannot join paths with different protocols: {left} and {right}")
    return right


def is_remote_path(path: Any) -> bool:
    return scheme_of(path_text(path)) not in (None, "file")


def path_text(path: Any) -> str:
    """A path or URL as text, whatever class it has: only its text counts."""
    return os.fsdecode(path) if isinstance(path, (bytes, os.PathLike)) else str(path)


def scheme_of(url: str) -> str | None:
    scheme, mark, _ = url.partition("://")
    return scheme if mark and len(scheme) > 1 else None


def local_path(url: Any) -> str:
    """An absolute path of the file system. Raises UnsupportedError for other storages."""
    text = path_text(url)
    scheme = scheme_of(text)
    if scheme is None:
        _core.check_path(text or ".")
        return os.path.abspath(os.path.expanduser(text))
    if scheme not in SCHEMES:
        raise error_of("unimplemented", "python/no-such-storage", "",
                       f"{text}: {scheme}:// cannot be used here; there are paths and file://")
    return os.path.abspath(text.partition("://")[2])


def settled(url: Any) -> str:
    """local_path(), once no save is on its way there."""
    path = local_path(url)
    _core.wait_for_saves(path)
    return path


def _matches(folder: str, segments: list[str]) -> Iterator[str]:
    """Paths below the folder that fit; "**" stands for any number of directories. Wildcards do not
    go into links."""
    if not segments:
        yield folder
        return
    segment, rest = segments[0], segments[1:]
    if segment != "**" and not glob.has_magic(segment):
        path = os.path.join(folder, segment)
        if os.path.lexists(path):
            yield from _matches(path, rest)
        return
    if segment == "**":
        yield from _matches(folder, rest)
    for name in _names_in(folder):
        path = os.path.join(folder, name)
        is_inside = os.path.isdir(path) and not os.path.islink(path)
        if segment == "**" and is_inside:
            yield from _matches(path, segments)
        elif (segment == "**" or fnmatch.fnmatchcase(name, segment)) and (is_inside or not rest):
            yield from _matches(path, rest)


def _names_in(folder: str) -> list[str]:
    try:
        return os.listdir(folder)
    except OSError:
        return []
