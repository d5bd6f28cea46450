# SPDX-License-Identifier: Apache-2.0
"""The plain verbs: save, load, ls, verify, diff."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping, Sequence
from typing import Any, ParamSpec

from cairn import _core
from cairn._arguments import Bytes, checked
from cairn._errors import error_of
from cairn._json import dump
from cairn._nodes import like
from cairn._opened import Checkpoint, parts_of
from cairn._opened import open as open_checkpoint
from cairn._paths import PathLike, path_text
from cairn._placements import Placements, filled
from cairn._progress import progress_sink
from cairn._refusals import prepared
from cairn._unpickle import unpickled

Progress = bool | Callable[[int, int], None] | None
Key = str | Sequence[str | int]
Options = ParamSpec("Options")


@checked
def save_async(tree: Any, path: PathLike, *, prefix: str = "", layout: str = "zarr2",
               compress: bool = False, dtype: Any = None, validate: bool = False,
               step: int | None = None, metadata: Mapping[str, Any] | None = None,
               extras: Mapping[str, Any] | None = None, chunk_bytes: Bytes | None = None,
               shard_size: Bytes | None = None, timeout: float | None = None,
               progress: Progress = None, overwrite: bool = False) -> _core.SaveHandle:
    """Begins to save a tree and returns when its arrays may be changed again.

    What is in the arrays at the call is what is saved. The handle has `wait()`, `done()`, `phase`
    and `progress`; whatever is asked of the same path meanwhile waits for the save, and so does the
    end of the program. A failure is logged when it happens; if the program never asks the handle,
    its end prints the error and the exit status is 1, unless it calls `forget()`.

    Args:
        tree: dicts, lists, tuples, named tuples, dataclasses and whatever JAX takes for a tree, of
            arrays and plain values.
        path: a directory, which may be there and keeps what is not replaced, or a file that ends in
            ".safetensors". The tree that is there, of the same prefix, is replaced if it has the
            same key paths; otherwise see `overwrite`.
        prefix: the name of the tree among others in one checkpoint.
        layout: "zarr2", which JAX, TensorStore and zarr read, or "safetensors".
        compress: whether chunks are compressed (zarr2 alone).
        dtype: floats are cast to it, rounded to nearest even.
        validate: also stores a SHA-256 of each array.
        step: the step of the training. Directories that are saved with a step can be listed and
            resumed from as a run; others are loaded by their path.
        metadata, extras: anything that JSON can hold.
        chunk_bytes, shard_size: the largest zarr2 chunk and the largest safetensors part.
        timeout: with several processes, the seconds after which whoever is late fails the save on
            all of them, by name; half an hour if it is not given.
        progress: True draws a bar; a function gets the bytes done and in all.
        overwrite: also replaces a tree with other key paths, and at a path that ends in
            ".safetensors" a file that is something else.

    Raises:
        FileExistsError: a tree with other key paths is there, and `overwrite` is not set. Nothing
            has changed.

    Example:
        >>> import numpy as np, tempfile
        >>> weights = np.ones(3)
        >>> handle = save_async({"w": weights}, tempfile.mkdtemp() + "/c", step=100)
        >>> weights[:] = 0
        >>> load(handle.wait()["path"])["w"]
        array([1., 1., 1.])
    """
    return _begin(**locals())


def _begin(tree: Any, path: PathLike, *, prefix: str = "",
           metadata: Mapping[str, Any] | None = None, extras: Mapping[str, Any] | None = None,
           progress: Progress = None, waited_for: bool = False,
           **options: Any) -> _core.SaveHandle:
    state, about, more = prepared(lambda: (tree, _json(metadata), _json(extras)), "", "")
    return _core.begin_save([(prefix, state)], path_text(path), metadata=about, extras=more,
                            progress=progress_sink(progress, "saving"), waited_for=waited_for,
                            **options)


def _taking(begin: Callable[Options, object]) -> Callable[
        [Callable[..., dict[str, Any]]], Callable[Options, dict[str, Any]]]:
    """For a function that takes what another one takes, as programs and tools see it."""
    def decorate(function: Callable[..., dict[str, Any]]) -> Callable[Options, dict[str, Any]]:
        shown: Any = function
        shown.__signature__ = inspect.signature(begin).replace(return_annotation="dict[str, Any]")
        return function
    return decorate


@checked
@_taking(save_async)
def save(*tree_and_path: Any, **options: Any) -> dict[str, Any]:
    """Saves a tree and returns when it is safe on the disk; takes what save_async() takes.

    Returns the path, the number of arrays, their bytes and those stored. An exception means that
    nothing visible has changed. Ctrl-C ends the waiting, not the save.

        >>> import tempfile
        >>> path = tempfile.mkdtemp() + "/c"
        >>> save({"a": [1, 2.5, None]}, path)["path"] == path
        True
    """
    return _begin(*tree_and_path, **options, waited_for=True).wait()


@checked
def load(path: PathLike, *, template: Any = None, out: Any = None, sharding: Any = None,
         keys: str | Sequence[Key] | None = None, prefix: str | None = None,
         dtype: Any = None, strict_shapes: bool = True, validate: bool = False,
         allow_pickle: bool = False, timeout: float | None = None,
         progress: Progress = None) -> Any:
    """Loads a tree, or the leaves and subtrees that `keys` name.

    Args:
        path: a checkpoint of ours or of another system, or a .safetensors file.
        template: a tree whose structure the result takes and whose shapes and types are expected;
            floats are cast to its own. Where its leaves are JAX's (arrays, or ShapeDtypeStruct), so
            are those of the result, on the same devices.
        out: a template whose arrays are filled in place and stand in the result: arrays of NumPy
            and tensors of PyTorch on the host, dense and writable. What was in them is lost, also
            if the load fails.
        sharding: a sharding or device of JAX for all arrays, or a tree of them with the structure
            of what is loaded. This process reads what its own devices hold.
        keys: dotted key paths, or tuples of their parts; nothing else is read. A text is one key.
            With a template, its own leaves stand for all others.
        prefix: which tree, where there are several.
        dtype: floats are cast to it.
        strict_shapes: a missing leaf, another shape or a type that no cast leads to is an error
            that lists all of them. Otherwise an array of as many elements is reshaped (each process
            reads all of it), types stay as they were saved, and the template's leaf stays where
            nothing fits, which is logged.
        validate: checks the SHA-256 of arrays that have one, beside the checksums of their blocks,
            which are always checked.
        allow_pickle: unpickles the structure and the values of a tree that the reference system
            saved, which lets whoever wrote them run anything. Otherwise they are read without
            executing them, and the log says which containers came back as plain ones.
        timeout: with several processes, the seconds until all of them are done; two hours if it is
            not given.
        progress: True draws a bar; a function gets the bytes done and in all.

    Raises:
        cairn.CorruptError: bytes are not what was saved; the text names the leaf and the chunk.

    Example:
        >>> import numpy as np, tempfile
        >>> path = tempfile.mkdtemp() + "/c"
        >>> _ = save({"params": {"w": np.ones(2, np.float16), "b": np.zeros(2)}}, path)
        >>> load(path, keys="params.w")
        {'params': {'w': array([1., 1.], dtype=float16)}}
        >>> load(path, template={"params": {"w": np.empty(2)}})
        {'params': {'w': array([1., 1.])}}
    """
    where = path_text(path)
    wanted = [keys] if isinstance(keys, str) else list(keys or ())
    if keys is not None and not wanted:
        raise error_of("invalid_argument", "python/no-keys", "",
                       "keys names nothing; leave it out to load everything")
    if out is not None and (template is not None or sharding is not None):
        raise error_of("invalid_argument", "python/out", "",
                       "out is a template by itself, of memory that lies where it lies: give "
                       "neither template nor sharding")
    placements = Placements(template, sharding)
    shaped_like = template if out is None else out
    tree, _, _, report = _core.load(where, _core.LoadRequest(
        prefix=prefix, keys=[parts_of(key) for key in wanted], dtype=dtype, like=shaped_like,
        strict_shapes=strict_shapes, like_dtypes=True, validate=validate,
        choose=placements.choose, place=placements.place if out is None else filled(out),
        timeout=timeout, progress=progress_sink(progress, "loading"), fill=out is not None,
        to_unpickle=allow_pickle and not wanted and shaped_like is None))
    if shaped_like is not None:
        return like(shaped_like, tree)
    return unpickled(tree, report)


def ls(base: PathLike) -> list[dict[str, Any]]:
    """The checkpoints of a run, newest first; those of a branch that the run left come last.

        >>> import tempfile
        >>> run = tempfile.mkdtemp()
        >>> for step in (100, 200):
        ...     _ = save({"w": 1.5}, f"{run}/{step}", step=step)
        >>> [entry["name"] for entry in ls(run)]
        ['200', '100']
    """
    names = ("path", "name", "step", "timestamp", "is_temporary", "torn", "pinned", "abandoned",
             "problem")
    return [dict(zip(names, entry, strict=True)) for entry in _core.list_run(path_text(base))]


@checked
def verify(path: PathLike, *, prefix: str | None = None,
           progress: Progress = None) -> dict[str, Any]:
    """Reads every stored byte and says what is damaged: `damages` is empty if all is well.

        >>> import numpy as np, tempfile
        >>> path = tempfile.mkdtemp() + "/c"
        >>> _ = save({"w": np.ones(3)}, path)
        >>> verify(path)["damages"]
        []
    """
    names = ("prefix", "key", "object", "chunk", "reason", "message")
    report = open_checkpoint(path)._opened.verify(prefix, progress_sink(progress, "verifying"))
    report["damages"] = [dict(zip(names, one, strict=True)) for one in report["damages"]]
    return report


@checked
def diff(first: PathLike | Checkpoint, second: PathLike | Checkpoint, *, prefix: str | None = None,
         progress: Progress = None) -> dict[str, Any]:
    """Compares two checkpoints, whatever layout each has: `differences` is empty if they are equal
    bit for bit.

        >>> import numpy as np, tempfile
        >>> run = tempfile.mkdtemp()
        >>> for step in (1, 2):
        ...     _ = save({"w": np.ones(3), "b": np.full(2, step)}, f"{run}/{step}")
        >>> [(one["key"], one["different"]) for one in diff(f"{run}/1", f"{run}/2")["differences"]]
        [('b', 2)]
    """
    names = ("kind", "prefix", "key", "first", "second", "elements", "different", "max_absolute",
             "max_relative")
    one, other = (each if isinstance(each, Checkpoint) else open_checkpoint(each)
                  for each in (first, second))
    report = one._opened.diff(other._opened, prefix, progress_sink(progress, "comparing"))
    report["differences"] = [dict(zip(names, each, strict=True)) for each in report["differences"]]
    return report


def _json(value: Mapping[str, Any] | None) -> str:
    return "" if value is None else dump(value)
