# SPDX-License-Identifier: Apache-2.0
"""Trees in safetensors files, by one process."""

from __future__ import annotations

import importlib
import io
import itertools
import json
import os
import sys
import uuid
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

import numpy as np

from cairn import _core
from cairn._dtypes import numpy_dtype
from cairn._errors import Error, error_of
from cairn._json import read_object
from cairn._log import logger
from cairn._placements import leaves_of
from cairn.serialization._dicts import by_text, flatten_dict, put, unflatten_dict
from cairn.serialization.fsspec_utils import (
    local_path,
    path_text,
    should_write_shared_checkpoint_files,
)
from cairn.serialization.utils import (
    apply_gather_functions,
    derive_base_prefix_from_path,
    estimate_array_nbytes,
    group_keys_by_shard_size,
    index_filename,
    is_flatten,
    is_gcs_path,
    parse_gcs_path,
    put_dtype,
    read_process_array,
    shard_filename,
    to_host,
)

__all__ = ["ALLOWED_DATA_TYPES", "CheckpointManager", "derive_base_prefix_from_path",
           "estimate_array_nbytes", "flatten_dict", "group_keys_by_shard_size", "index_filename",
           "is_flatten", "is_gcs_path", "parse_gcs_path", "put_dtype", "shard_filename",
           "unflatten_dict"]


class _DTypeList(Sequence[Any]):
    """Types made when they are asked for: some need ml_dtypes."""

    _names = ("int4", "int8", "int16", "int32", "int64", "uint4", "uint8", "uint16", "uint32",
              "uint64", "float16", "float32", "float64", "bfloat16")

    def __getitem__(self, at: Any) -> Any:
        names = self._names[at]
        return numpy_dtype(names) if isinstance(names, str) else [*map(numpy_dtype, names)]

    def __len__(self) -> int:
        return len(self._names)


ALLOWED_DATA_TYPES: Sequence[Any] = _DTypeList()


class CheckpointManager:
    """Saves and loads trees as safetensors, one file or several parts with an index.

        >>> import numpy as np, tempfile
        >>> path = tempfile.mkdtemp() + "/model"
        >>> index = CheckpointManager.save_checkpoint({"w": np.ones(2)}, path, None)
        >>> os.path.basename(index)
        'model.safetensors.index.json'
        >>> float(CheckpointManager.load_checkpoint(path)[0]["w"].sum())
        2.0
    """

    def __init__(self, checkpoint_dir: Any, enable: bool | None = None, float_dtype: Any = None,
                 save_optimizer_state: bool = True, verbose: bool = False,
                 gcs_bucket: str | None = None, gcs_credentials_path: str | None = None):
        self.checkpoint_dir = checkpoint_dir
        self.enable = enable
        self.float_dtype = float_dtype
        self.save_optimizer_state = save_optimizer_state
        self.verbose = verbose
        self.gcs_bucket = gcs_bucket
        self.gcs_client: Any = \
            self.create_gcs_client(gcs_credentials_path) if gcs_bucket else None

    @staticmethod
    def create_gcs_client(gcs_credentials_path: str | None = None) -> Any:
        """A client of google-cloud-storage, which must be installed."""
        storage = _needed("google.cloud.storage", "google-cloud-storage")
        if not gcs_credentials_path:
            return storage.Client()
        account = _needed("google.oauth2.service_account", "google-auth")
        return storage.Client(
            credentials=account.Credentials.from_service_account_file(gcs_credentials_path))

    @classmethod
    def save_checkpoint(cls, tree: Any, path: Any, mesh: Any,
                        gather_fns: Mapping[Any, Any] | bool | None = None,
                        float_dtype: Any = None, verbose: bool = True,
                        mismatch_allowed: bool = True,
                        metadata: Mapping[str, str] | None = None, enable: bool | None = None,
                        shard_size_gb: float | None = 5.00, write_index_file: bool = True) -> Any:
        """Saves a tree and returns the path to load it from.

        The parts are `<base>-00001-of-0000N.safetensors`, and an index maps tensors to parts. If
        such parts exist, the new ones get a number after `<base>`, the index is replaced
        atomically, and then the old parts are removed: a reader of the index sees the old tree or
        the new one.

        Args:
            path: `<base>`, or `<base>.safetensors`.
            mesh: replicate arrays of JAX on it; None: they stay where they are.
            gather_fns: functions that copy leaves to the host, by key; True: all leaves.
            float_dtype: cast floats to this type. None: keep their types.
            mismatch_allowed: leaves may have no function in `gather_fns`.
            metadata: texts by name.
            enable: False writes nothing; None: the first process saves.
            shard_size_gb: the largest part, in GiB. None or 0: one file at `path`.
            write_index_file: False leaves the parts without an index.
        """
        is_wanted = should_write_shared_checkpoint_files(path) if enable is None else enable
        if not is_wanted or path_text(path).startswith("/dev/null"):
            return "/dev/null"
        state = {key: to_host(leaf, float_dtype, mesh) for key, leaf in apply_gather_functions(
            _flat(tree), gather_fns, mismatch_allowed, verbose).items()}
        target = local_path(path)
        if not shard_size_gb or shard_size_gb < 0:
            _write(state, target, metadata)
            return path
        return _write_parts(state, derive_base_prefix_from_path(target), metadata,
                            int(shard_size_gb * (1 << 30)), write_index_file)

    @staticmethod
    def load_checkpoint(path: Any, shard_fns: Mapping[Any, Any] | None = None,
                        verbose: bool = False, mismatch_allowed: bool = True,
                        callback: Callable[[Any, str], Any] | None = None, dtype: Any = None,
                        gcs_client: Any = None) -> tuple[dict[str, Any], dict[str, Any]]:
        """Loads a tree as nested dicts, and the metadata. Returns arrays of JAX if it is imported.

        Args:
            path: a file, an index, or the common beginning of their names.
            shard_fns: functions applied to arrays, by key.
            mismatch_allowed: arrays may have no function in `shard_fns`.
            callback: called with each array and its key; its result replaces the array in the tree.
            dtype: cast floats to this type, after everything else.
            gcs_client: ignored, for compatibility; `gs://` is refused.
        """
        target = local_path(path)
        index = index_filename(derive_base_prefix_from_path(target))
        functions = by_text(shard_fns) if shard_fns else None
        source = _Tensors(index if os.path.exists(index) else target)
        tree: dict[str, Any] = {}
        mismatches = 0
        for key, parts in source.keys():
            _, tensor, missing = read_process_array(key, functions, mismatch_allowed, source,
                                                    callback, dtype)
            mismatches += missing
            put(tree, parts, tensor)
        if verbose:
            logger.info("loaded %s; %d arrays had no function", path, mismatches)
        return tree, source.metadata

    def save_state_to_gcs_msgpack(self, tree: Any, gcs_path: str,
                                  gather_fns: Mapping[Any, Any] | None = None,
                                  float_dtype: Any = None, verbose: bool = False,
                                  mismatch_allowed: bool = True) -> None:
        """One object in a bucket, a stream of pairs of key and value. Needs a bucket at
        construction, and msgpack and flax installed."""
        packer = _needed("msgpack", "msgpack").Packer()
        to_bytes = _needed("flax.serialization", "flax").to_bytes
        state = apply_gather_functions(_flat(tree), gather_fns, mismatch_allowed, verbose)
        buffer = io.BytesIO()
        for key, value in state.items():
            cast = put_dtype(value, float_dtype) if hasattr(value, "dtype") else value
            buffer.write(packer.pack((_core.parse_key(key), to_bytes(cast))))
        buffer.seek(0)
        self._blob(gcs_path).upload_from_file(buffer, content_type="application/octet-stream")

    def load_state_from_gcs_msgpack(self, gcs_path: str, verbose: bool = False) -> dict[Any, Any]:
        """What save_state_to_gcs_msgpack() saved, as nested dicts."""
        msgpack = _needed("msgpack", "msgpack")
        from_bytes = _needed("flax.serialization", "flax").from_bytes
        buffer = io.BytesIO()
        self._blob(gcs_path).download_to_file(buffer)
        buffer.seek(0)
        tree: dict[Any, Any] = {}
        for key, value in msgpack.Unpacker(buffer, raw=False):
            put(tree, key, from_bytes(None, value))
        if verbose:
            logger.info("loaded %s", gcs_path)
        return tree

    def _blob(self, gcs_path: str) -> Any:
        if self.gcs_client is None:
            raise ValueError("GCS client not initialized: construct the manager with gcs_bucket")
        bucket, name = parse_gcs_path(gcs_path)
        return self.gcs_client.bucket(bucket).blob(name)


class _Tensors:
    """The tensors of a file, or of an index and its parts."""

    def __init__(self, path: str):
        self._opened = _core.Opened(path)
        self._leaves = {leaf[4]: (n, leaf) for n, leaf in enumerate(self._opened.prefixes()[0][1])}
        self.metadata = json.loads(self._opened.about(None)[4]) or {}

    def keys(self) -> Iterator[tuple[str, list[str]]]:
        """Names with the parts that they are made of."""
        for name, (_, (parts, _, _, _, _)) in self._leaves.items():
            yield name, parts if len(parts) > 1 else _parts_of(name)

    def get_tensor(self, name: str) -> Any:
        number, (_, _, _, shape, _) = self._leaves[name]
        array = self._opened.read(0, number, [(0, size) for size in shape])
        jax = sys.modules.get("jax")
        return array if jax is None else jax.numpy.asarray(array)


def _flat(tree: Any) -> dict[str, Any]:
    """Arrays by the names that they get; numbers become arrays. ValueError with all others."""
    found = list(by_text(tree).items()) if isinstance(tree, Mapping) and is_flatten(tree) else \
        [(_name_of(parts), leaf) for parts, leaf in leaves_of(tree)]
    leaves = {key: leaf for key, leaf in found if leaf is not None}
    _core.check_distinct([key for key, leaf in found if leaf is not None])
    wrong = [key or "the tree itself" for key, leaf in leaves.items() if not key
             or not (hasattr(leaf, "__array__") or isinstance(leaf, (int, float, complex)))]
    if wrong:
        _core.refuse_leaves("safetensors holds only named arrays and numbers, not "
                            f"{', '.join(wrong)}")
    return {key: leaf if hasattr(leaf, "dtype") else np.asarray(leaf)
            for key, leaf in leaves.items()}


def _name_of(parts: Sequence[str]) -> str:
    """A flat dict has names already."""
    if len(parts) == 1 and _is_name(parts[0]):
        return parts[0]
    return _core.key_text(parts)


def _is_name(text: str) -> bool:
    try:
        return bool(_core.parse_key(text))
    except ValueError:
        return False


def _parts_of(name: str) -> list[str]:
    return _core.parse_key(name) if _is_name(name) else name.split(".")


def _write(state: Mapping[str, Any], path: str, metadata: Mapping[str, str] | None) -> None:
    tree: dict[str, Any] = {}
    for key, leaf in state.items():
        put(tree, _core.parse_key(key), leaf)
    _core.begin_save([("", tree)], path, layout="safetensors", metadata=json.dumps(metadata or {}),
                     overwrite=True, waited_for=True).wait()


def _write_parts(state: Mapping[str, Any], base: str, metadata: Mapping[str, str] | None,
                 max_bytes: int, write_index_file: bool) -> str:
    groups = group_keys_by_shard_size(state, max_bytes)
    index = index_filename(base)
    replaced = _parts_named_by(index)
    if not write_index_file and os.path.lexists(index):
        os.remove(index)
        _sync_folder(index)
    parts = [shard_filename(base, n, len(groups)) for n in range(1, len(groups) + 1)]
    if write_index_file:
        parts = _free_names(base, len(groups))
    weight_map: dict[str, str] = {}
    for part, keys in zip(parts, groups, strict=True):
        _write({key: state[key] for key in keys}, part, metadata)
        weight_map.update(dict.fromkeys(keys, os.path.basename(part)))
    if write_index_file:
        replace_file(index, json.dumps({"metadata": metadata or {}, "weight_map": weight_map}))
    for part in replaced - set(parts):
        if os.path.isfile(part):
            os.remove(part)
    return index


def _free_names(base: str, count: int) -> list[str]:
    """Of parts that overwrite nothing: `<base>-00001-of-0000N.safetensors`, or with a number behind
    the base where such a file is there."""
    for number in itertools.count():
        name = f"{base}.{number}" if number else base
        parts = [shard_filename(name, n, count) for n in range(1, count + 1)]
        if not any(map(os.path.lexists, parts)):
            return parts
    raise AssertionError


def _parts_named_by(index: str) -> set[str]:
    """Files beside an index that it names; none if there is no index, or nobody can read it."""
    try:
        names = {str(name) for name in read_object(index)["weight_map"].values()}
    except (OSError, Error, AttributeError, KeyError, TypeError, ValueError):
        return set()
    folder = os.path.dirname(index)
    return {os.path.join(folder, name) for name in names
            if name == os.path.basename(name) and name.endswith(".safetensors")}


def replace_file(path: str, text: str) -> None:
    """Whole or not at all, and durable."""
    aside = f"{path}.{uuid.uuid4().hex}"
    try:
        with open(aside, "x", encoding="utf-8") as file:
            file.write(text)
            file.flush()
            os.fsync(file.fileno())
        os.replace(aside, path)
    finally:
        if os.path.exists(aside):
            os.unlink(aside)
    _sync_folder(path)


def _sync_folder(path: str) -> None:
    folder = os.open(os.path.dirname(path), os.O_RDONLY)
    try:
        os.fsync(folder)
    finally:
        os.close(folder)


def _needed(module: str, package: str) -> Any:
    try:
        return importlib.import_module(module)
    except ImportError:
        raise error_of("unimplemented", "python/not-installed", "",
                       f"this needs {package}: pip install {package}") from None
