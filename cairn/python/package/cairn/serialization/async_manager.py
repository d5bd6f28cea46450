# SPDX-License-Identifier: Apache-2.0
"""Single checkpoints: saved in the background, loaded onto any mesh."""

from __future__ import annotations

import hashlib
import json
import operator
import os
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import numpy as np

from cairn import _core
from cairn._arguments import Bytes, as_kind, checked
from cairn._errors import error_of
from cairn._front import Progress
from cairn._log import logger
from cairn._nodes import children_of, with_children
from cairn._progress import progress_sink
from cairn._refusals import prepared
from cairn.serialization import fsspec_utils
from cairn.serialization._casts import dtype_named
from cairn.serialization._dicts import by_text, flatten_dict, is_flatten, unflatten_dict
from cairn.serialization._metadata import CheckpointMetadata, described, json_text
from cairn.serialization._moves import create_cpu_mesh, on_this_host, to_host
from cairn.serialization._targets import Callback, Target, with_kept
from cairn.serialization._tracker import SaveTracker, say_unfinished
from cairn.serialization._wishes import Rules
from cairn.serialization.base_manager import CheckpointManager
from cairn.serialization.fsspec_utils import exists, local_path, path_text
from cairn.serialization.serialization import _is_none as _is_none
from cairn.serialization.serialization import (
    GLOBAL_CHECKPOINT_TIMEOUT,
    leaf_key_paths,
    tree_deserialize_leaves,
    tree_serialize_leaves,
)
from cairn.serialization.sharding_utils import match_partition_rules
from cairn.serialization.utils import derive_base_prefix_from_path, index_filename

__all__ = ["GLOBAL_CHECKPOINT_TIMEOUT", "AsyncCheckpointManager", "CheckpointManager",
           "CheckpointMetadata", "create_cpu_mesh", "derive_base_prefix_from_path",
           "flatten_dict", "fsspec_utils", "index_filename", "is_flatten", "leaf_key_paths",
           "match_partition_rules", "tree_deserialize_leaves", "tree_serialize_leaves",
           "unflatten_dict"]

Prefix = str  # see text_of_prefix()
_INDEX = "tensorstore_index.json"


class AsyncCheckpointManager:
    """Saves and loads trees, one checkpoint at a time.

        >>> import tempfile
        >>> manager, path = AsyncCheckpointManager(), tempfile.mkdtemp() + "/c"
        >>> manager.save_tree({"w": np.ones(2), "n": 3}, path) == path
        True
        >>> tree, metadata = manager.load(path, mesh=None)
        >>> tree
        {'n': 3, 'w': array([1., 1.])}

    A save returns as soon as the arrays may be changed; it saves their content at the time of the
    call. Later calls on the same path wait for it, and so does the end of the program. The next
    call that saves, waits or checks raises the error of a save, once.

    Args:
        enable: False: saves write nothing.
        float_dtype: saves cast floats to this type. None: keep their types.
        verbose: saves tell the logger "cairn" what they do.
        gcs_bucket: refused; there is no cloud storage yet. Credentials are ignored.
        enable_validation: saves store a SHA-256 of each array, and loads check it.
        enable_compression: compress zarr chunks.
        use_tensorstore: save zarr v2 directories with an index, as JAX reads them; False:
            safetensors.
        blocking: saves return when the checkpoint is durable and visible, for programs that read
            the files in other ways right away. CAIRN_BLOCKING_SAVES=1 does the same.
        while_saving: what a save does while another is in flight: "wait" for its end, "refuse", or
            "queue" behind it with a copy of its arrays.
        shard_size: the largest safetensors part, in bytes.
        timeout: with several processes, the seconds after which a late process fails a save, or a
            step of a Checkpointer with this manager, on all of them; by default half an hour.

    All of them are attributes, and may be changed between saves.
    """

    def __init__(self, enable: bool | None = None, float_dtype: Any = None, verbose: bool = False,
                 gcs_bucket: str | None = None, gcs_credentials_path: str | None = None,
                 enable_validation: bool = False, enable_compression: bool = False,
                 use_tensorstore: bool = True, *, blocking: bool = False,
                 while_saving: str = "wait", shard_size: Bytes | None = None,
                 timeout: float | None = None):
        if gcs_bucket:
            raise error_of("unimplemented", "python/no-cloud-storage", "",
                           "gcs_bucket: there is no cloud storage yet")
        self.enable = enable
        self.float_dtype = float_dtype
        self.verbose = verbose
        self.gcs_bucket = gcs_bucket
        self.gcs_client: Any = None
        self.enable_validation = enable_validation
        self.enable_compression = enable_compression
        self.use_tensorstore = use_tensorstore
        self.blocking = blocking
        self.while_saving = while_saving
        self.shard_size = shard_size
        self.timeout = timeout
        self._begin()

    def _begin(self) -> None:
        self._core = _core.AsyncManager()
        self._configured_as: tuple[Any, ...] = ()
        self._global_manager = _Saves(self._core)
        self._said: set[str] = set()
        self.configured()

    def configured(self) -> _core.AsyncManager:
        """What does the work, as the attributes say now."""
        options = (self.enable, self.float_dtype, self.verbose, self.enable_validation,
                   self.enable_compression, self.use_tensorstore, self.blocking,
                   self.while_saving, self.shard_size, self.timeout)
        known = self._configured_as
        if len(known) != len(options) or not all(map(operator.is_, options, known)):
            self._core.configure(
                enable=as_kind("enable", "bool | None", self.enable),
                dtype=dtype_named(self.float_dtype),
                verbose=as_kind("verbose", "bool", self.verbose),
                validate=as_kind("enable_validation", "bool", self.enable_validation),
                compress=as_kind("enable_compression", "bool", self.enable_compression),
                use_tensorstore=as_kind("use_tensorstore", "bool", self.use_tensorstore),
                blocking=as_kind("blocking", "bool", self.blocking),
                while_saving=as_kind("while_saving", "str", self.while_saving),
                shard_size=as_kind("shard_size", "Bytes | None", self.shard_size),
                timeout=as_kind("timeout", "float | None", self.timeout))
            self._configured_as = options
        return self._core

    # A copy has the options; saves on their way stay with the original.
    def __getstate__(self) -> dict[str, Any]:
        return {name: value for name, value in vars(self).items()
                if name not in ("_core", "_configured_as", "_global_manager", "_said")}

    def __setstate__(self, state: dict[str, Any]) -> None:
        vars(self).update(state)
        self._begin()

    @property
    def global_manager(self) -> SaveTracker:
        """Has `wait_until_finished` and `check_for_errors` of all saves of this manager, and may be
        the `manager=` of tree_serialize_leaves()."""
        return self._global_manager

    def wait_until_finished(self) -> None:
        """Waits until all saves are durable and visible."""
        self._global_manager.wait_until_finished()

    def check_for_errors(self) -> None:
        """Raises the error of a failed save; does not wait."""
        self._global_manager.check_for_errors()

    def saves_in_flight(self) -> list[_core.SaveHandle]:
        """The saves in flight, oldest first, with their phase and progress."""
        return self._core.saves_in_flight()

    @staticmethod
    def compute_checksum(array: Any) -> str:
        """SHA-256 of the elements in C order, as hex.

            >>> AsyncCheckpointManager.compute_checksum(np.arange(3, dtype=np.uint8))[:8]
            'ae4b3280'
        """
        return hashlib.sha256(np.asarray(array).tobytes()).hexdigest()

    @checked
    def save_tree(self, tree: Any, path: Any, mesh: Any = None,
                  gather_fns: Mapping[Any, Any] | bool | None = None, float_dtype: Any = None,
                  metadata: Mapping[str, Any] | None = None,
                  callback: Callable[[str], object] | None = None, prefix: str | None = None,
                  do_all_gather: bool = False, cpu_offload: bool = False, *,
                  progress: Progress = None) -> str:
        """Starts to save a tree, and returns the path.

        Args:
            tree: see cairn.save_async().
            path: a directory, which may exist and keeps its other files, or a file that ends in
                ".safetensors".
            mesh: not needed, because arrays have their shardings.
            gather_fns: functions applied to leaves before the save, by key; True: copy all to the
                host.
            float_dtype: cast floats to this type, overriding the manager.
            metadata: anything that JSON can hold; load() returns it as `custom_metadata`.
            callback: called with the path once the checkpoint is durable and visible, in another
                thread.
            prefix: the name of the tree, if a checkpoint has several.
            do_all_gather: replicate arrays on every device of the mesh before they are saved as
                safetensors. No effect for zarr, which stores sharded arrays as they are.
            cpu_offload: with `do_all_gather`, in the memory of the host.
            progress: True draws a bar; a function gets the bytes done and the total.
        """
        if mesh is None:
            self._say("mesh", "saved without a mesh: arrays are saved as they lie")
        dtype = dtype_named(float_dtype)

        def make() -> tuple[Any, str, str]:
            state = unflatten_dict(tree) if isinstance(tree, Mapping) and is_flatten(tree) else tree
            state = _gathered(state, gather_fns)
            if do_all_gather:
                state = self._on_all(state, dtype, mesh, cpu_offload)
            return state, json_text(metadata), ""

        text = path_text(path)
        committed = None if callback is None else lambda: callback(text)
        self._save(make, prefix or "", path, dtype=dtype, committed=committed, progress=progress)
        return text

    save = save_tree

    @checked
    def save_pytree(self, pytree: Any, path: Any, mesh: Any = None, *, prefix: Prefix,
                    do_all_gather: bool = False, cpu_offload: bool = True, dtype: Any = None,
                    extras: Mapping[str, Any] | None = None, write_index: bool = True,
                    progress: Progress = None) -> str:
        """Starts to save a tree under a prefix, and returns the path; load_pytree() loads it with
        its containers.

        Args:
            dtype: cast floats to this type, overriding the manager.
            extras: anything that JSON can hold; load_pytree() returns it.
            write_index: write `tensorstore_index.json`, with which other programs find the arrays.
            Others: as save_tree().
        """
        _core.check_prefix_to_save(text_of_prefix(prefix))
        wanted = dtype_named(dtype)

        def make() -> tuple[Any, str, str]:
            state = self._on_all(pytree, wanted, mesh, cpu_offload) if do_all_gather else pytree
            about = json_text(extras)
            return state, about, about

        self._save(make, prefix, path, dtype=wanted, write_index=write_index, progress=progress)
        return path_text(path)

    @checked
    def load(self, path: Any, mesh: Any, shardings: Any = None, mismatch_allowed: bool = True,
             callback: Callback | None = None, partition_rules: Rules | None = None,
             dtype: Any = None, validate: bool | None = None, prefix_filter: str | None = None,
             prefix: str | None = None, use_async: bool = True, chunk_size: int | None = None, *,
             progress: Progress = None) -> tuple[Any, dict[str, Any]]:
        """Loads a tree as nested dicts with text keys, and the content of
        `checkpoint_metadata.json`.

        Args:
            path: a checkpoint of ours or of another system, a .safetensors file, or the common
                beginning of the names of its parts.
            mesh: where arrays are placed: by `shardings`, else by `partition_rules`, else
                replicated, which is an error on a mesh of several axes that lists every such leaf.
                None: arrays of NumPy. From safetensors files, only arrays that `shardings` or rules
                name go to the mesh.
            shardings: shardings, specs, or functions of an array, in a tree or by dotted key.
            mismatch_allowed: `shardings` need not name every array.
            callback: called with each array and its key, without the prefix, in the order of
                leaves; its result replaces the array in the tree.
            partition_rules: pairs of a regular expression, searched in the key path with slashes,
                and a PartitionSpec. The first match counts.
            dtype: cast floats to this type.
            validate: check the SHA-256 of arrays that have one, in addition to the checksums of
                blocks, which are always checked. None: as the manager does.
            prefix_filter: the old name of `prefix`.
            prefix: which tree; needed if there are several.
            use_async: False: read with one thread.
            chunk_size: batch size, in arrays.
            progress: True draws a bar; a function gets the bytes done and the total.
        """
        where = _found(path)
        target = Target(mesh=mesh, shardings=shardings, rules=partition_rules, callback=callback,
                        prefix=prefix or prefix_filter, mismatch_allowed=mismatch_allowed)
        target.in_jax = mesh is not None
        return self._load(where, target, validate, dtype=dtype_named(dtype), use_async=use_async,
                          chunk_size=max(chunk_size or 0, 0),
                          progress=progress_sink(progress, "loading"))

    @checked
    def load_tree_parallel(self, path: Any, shardings: Any = None, mismatch_allowed: bool = True,
                           callback: Callback | None = None, dtype: Any = None,
                           validate: bool | None = None, prefix_filter: str | None = None, *,
                           progress: Progress = None) -> tuple[Any, dict[str, Any]]:
        """load() without a mesh, for safetensors files; returns arrays of JAX if it is imported.

        Args:
            dtype: cast floats to this type, after everything else.
            prefix_filter: load only arrays with keys that begin with it.
        """
        where = _found(path)
        target = Target(shardings=shardings, callback=callback, mismatch_allowed=mismatch_allowed,
                        in_jax=True)
        is_changed = shardings is not None or callback is not None
        target.cast = dtype if is_changed else None
        keys = _core.Opened(where).keys_beginning_with(prefix_filter) if prefix_filter else []
        return self._load(where, target, validate, keys=keys,
                          dtype=None if is_changed else dtype_named(dtype),
                          progress=progress_sink(progress, "loading"))

    @checked
    def load_pytree(self, path: Any, mesh: Any, *, prefix: Prefix, shardings: Any = None,
                    partition_rules: Rules | None = None, dtype: Any = None, template: Any = None,
                    strict_shapes: bool = True, callback: Callback | None = None,
                    chunk_size: int | None = None, validate: bool | None = None,
                    allow_pickle: bool = False,
                    progress: Progress = None) -> tuple[Any, dict[str, Any]]:
        """Loads a tree that save_pytree() saved, with its containers, and the extras.

        Args:
            mesh: where arrays are placed: by `shardings`, else by `partition_rules`, else
                replicated. None: as in the template, or arrays of NumPy.
            prefix: the prefix of the save. Rules, shardings and the callback see keys with it in
                front.
            template: a tree with the containers of the result. Types stay as saved; `dtype` casts
                floats.
            strict_shapes: with a template: missing leaves and other shapes are one error that lists
                them all. Otherwise arrays of equal size are reshaped, and other leaves of the
                template stay; the log and "kept_from_template" among the extras list these.
            allow_pickle: see cairn.load().
            Others: as load().
        """
        _core.check_prefix_to_load(text_of_prefix(prefix))
        target = Target(mesh=mesh, shardings=shardings, rules=partition_rules, callback=callback,
                        prefix=prefix, structured=True, replicate="all", template=template,
                        strict_shapes=strict_shapes)
        where = _found(path)
        tree, _, extras, report = _core.load(where, target.request(
            dtype=dtype_named(dtype), validate=self._validates(validate),
            allow_pickle=allow_pickle, chunk_size=max(chunk_size or 0, 0),
            progress=progress_sink(progress, "loading")))
        return target.finish(tree, report), with_kept(json.loads(extras) or {}, report)

    @staticmethod
    def is_tensorstore(path: Any) -> bool:
        """Is it a directory with `tensorstore_index.json`, or that file? Waits for a save in flight
        there."""
        text = path_text(path)
        return text.endswith(_INDEX) or exists(os.path.join(text, _INDEX))

    @staticmethod
    def safe_loadpath(path: Any) -> Any:
        """The path without the name of an index at its end."""
        text = path_text(path).removesuffix(_INDEX)
        return text if fsspec_utils.scheme_of(text) else Path(text)

    def _load(self, where: str, target: Target, validate: bool | None,
              **options: Any) -> tuple[Any, dict[str, Any]]:
        tree, metadata, _, report = _core.load(where, target.request(
            nested=True, description=True, validate=self._validates(validate), **options))
        return target.finish(tree, report), described(report, json.loads(metadata))

    def _validates(self, validate: bool | None) -> bool:
        return bool(self.enable_validation) if validate is None else validate

    def _save(self, make: Callable[[], tuple[Any, str, str]], prefix: str, path: Any, *,
              progress: Progress, **options: Any) -> _core.SaveHandle:
        """`make` gives the tree, its metadata and its extras."""

        def make_unless_others_failed() -> tuple[Any, str, str]:
            self._global_manager.check_others()
            return make()

        tree, metadata, extras = prepared(make_unless_others_failed, "", "")
        handle = self.configured().save([(prefix, tree)], local_path(path), metadata=metadata,
                                        extras=extras,
                                        progress=progress_sink(progress, "saving"), **options)
        say_unfinished(handle)
        return handle

    def _on_all(self, tree: Any, dtype: Any, mesh: Any, cpu_offload: bool) -> Any:
        if self.use_tensorstore:
            self._say("gather", "do_all_gather: sharded arrays are saved without gathering them")
            return tree
        wanted = dtype if dtype is not None else dtype_named(self.float_dtype)
        return _mapped(tree, lambda _, leaf: to_host(leaf, wanted, mesh, cpu_offload)
                       if hasattr(leaf, "dtype") else leaf)

    def _say(self, what: str, sentence: str) -> None:
        """Once."""
        if what not in self._said:
            self._said.add(what)
            logger.warning(sentence)


class _Saves(SaveTracker):
    """The saves of a manager, and those that were added by hand."""

    def __init__(self, manager: _core.AsyncManager) -> None:
        super().__init__()
        self._manager = manager

    def wait_until_finished(self) -> None:
        self._manager.wait_until_finished()
        super().wait_until_finished()

    def check_for_errors(self) -> None:
        self._manager.check_for_errors()
        super().check_for_errors()

    def check_others(self) -> None:
        super().check_for_errors()


def text_of_prefix(prefix: Any) -> str:
    """Empty for what is no text: the library refuses it."""
    return prefix if isinstance(prefix, str) else ""


def _found(path: Any) -> str:
    """A directory or file; an index where its parts are meant."""
    where = local_path(AsyncCheckpointManager.safe_loadpath(path))
    _core.wait_for_saves(where)
    if os.path.isdir(where) or where.endswith(".json"):
        return where
    index = index_filename(derive_base_prefix_from_path(where))
    return index if os.path.exists(index) else where


def _gathered(tree: Any, gather_fns: Mapping[Any, Any] | bool | None) -> Any:
    if not gather_fns:
        return tree
    if gather_fns is True:
        return _mapped(tree, on_this_host)
    functions = by_text(gather_fns)
    return _mapped(tree, lambda key, leaf: functions.get(key, lambda x: x)(leaf))


def _mapped(tree: Any, change: Callable[[str, Any], Any], above: tuple[str, ...] = ()) -> Any:
    """The tree with each leaf but None changed, by its key."""
    children = children_of(tree)
    if children is None:
        return tree if tree is None else change(_core.key_text(above) if above else "", tree)
    return with_children(tree, children, [_mapped(child, change, (*above, str(key)))
                                          for key, child in children])
