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
    """Starts a save and returns as soon as the arrays may be changed again.

    Saves the content of the arrays at the time of the call. The handle has `wait()`, `done()`,
    `phase` and `progress`. Later calls on the same path wait for the save, and so does the end of
    the program. A failure is logged when it happens; if the program never asks the handle, the
    error is printed when the program ends, and the exit status is 1, unless it calls `forget()`.

    Args:
        tree: dicts, lists, tuples, named tuples, dataclasses and nodes registered with JAX, with
            arrays and plain values as leaves.
        path: a directory, which may exist and keeps its other files, or a file that ends in
            ".safetensors". An existing tree of the same prefix is replaced if it has the same key
            paths; otherwise see `overwrite`.
        prefix: the name of the tree, if a checkpoint has several.
        layout: "zarr2", which JAX, TensorStore and zarr read, or "safetensors".
        compress: compress chunks (zarr2 only).
        dtype: cast floats to this type, rounded to nearest even.
        validate: also store a SHA-256 of each array.
        step: the training step. Saves with a step can be listed and resumed from as a run; load
            others by their path.
        metadata, extras: anything that JSON can hold.
        chunk_bytes, shard_size: the largest zarr2 chunk and the largest safetensors part.
        timeout: with several processes, the seconds after which a late process fails the save on
            all of them, with an error that names it; by default half an hour.
        progress: True draws a bar; a function gets the bytes done and the total.
        overwrite: also replace a tree with other key paths, and at a path that ends in
            ".safetensors" a file that is not safetensors.

    Raises:
        FileExistsError: there is a tree with other key paths, and `overwrite` is not set. Nothing
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
    """Gives a function the signature of another function, for programs and tools."""
    def decorate(function: Callable[..., dict[str, Any]]) -> Callable[Options, dict[str, Any]]:
        shown: Any = function
        shown.__signature__ = inspect.signature(begin).replace(return_annotation="dict[str, Any]")
        return function
    return decorate


@checked
@_taking(save_async)
def save(*tree_and_path: Any, **options: Any) -> dict[str, Any]:
    """Saves a tree and returns when it is durable; takes the arguments of save_async().

    Returns the path, the number of arrays, their bytes and their stored bytes. After an exception
    nothing visible has changed. Ctrl-C ends the wait, not the save.

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
        template: a tree with the structure, shapes and types of the result; floats are cast to its
            types. Leaves of JAX (arrays, or ShapeDtypeStruct) give arrays of JAX on the same
            devices.
        out: a template whose arrays are filled in place and returned: arrays of NumPy and tensors
            of PyTorch on the host, dense and writable. Their content is lost, even if the load
            fails.
        sharding: a sharding or device of JAX for all arrays, or a tree of these with the structure
            of the loaded tree. This process reads only what its own devices hold.
        keys: dotted key paths, or tuples of their parts; nothing else is read. A text is one key.
            With a template, other leaves stay as they are there.
        prefix: which tree, if there are several.
        dtype: cast floats to this type.
        strict_shapes: missing leaves, other shapes, and types that cannot be cast are one error
            that lists them all. Otherwise arrays of equal size are reshaped (each process reads the
            whole array), types stay as saved, and other leaves of the template stay, which is
            logged.
        validate: check the SHA-256 of arrays that have one, in addition to the checksums of blocks,
            which are always checked.
        allow_pickle: unpickle the structure and the values of a tree saved by the reference system,
            which lets its author run any code. Otherwise they are read without executing them, and
            the log lists containers that became plain ones.
        timeout: with several processes, the seconds until all of them must be done; by default two
            hours.
        progress: True draws a bar; a function gets the bytes done and the total.

    Raises:
        cairn.CorruptError: bytes differ from what was saved; the text names the leaf and the chunk.

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
                       "out is itself a template, and its memory is fixed: give "
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
    """Lists the checkpoints of a run, newest first, and abandoned ones last.

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
    """Reads every stored byte and lists all damage: `damages` is empty if there is none.

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
    """Compares two checkpoints of any layouts: `differences` is empty if they are equal bit for
    bit.

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
