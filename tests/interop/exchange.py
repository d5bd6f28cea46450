# SPDX-License-Identifier: Apache-2.0
"""Whole checkpoints to and from Cairn, by its probe, and arrays compared bit for bit."""

import dataclasses
import json
import os
import pathlib
import subprocess

import ml_dtypes
import numpy as np

ROOT = pathlib.Path(__file__).resolve().parents[2]
PROBE = pathlib.Path(os.environ.get("CAIRN_BIN", ROOT / "build/dev/bin")) / "cairn_checkpoint_probe"

NUMPY_DTYPES = [
    "bool", "int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64",
    "float16", "float32", "float64", "complex64", "complex128",
]  # fmt: skip
SMALL_FLOATS = [
    "float8_e3m4", "float8_e4m3fn", "float8_e4m3fnuz", "float8_e4m3b11fnuz", "float8_e5m2",
    "float8_e5m2fnuz", "float8_e8m0fnu",
]  # fmt: skip
ZARR2_DTYPES = [*NUMPY_DTYPES, "bfloat16", *SMALL_FLOATS, "int2", "int4", "float4_e2m1fn"]
BITS = {"int2": 2, "int4": 4, "float4_e2m1fn": 4}


def dtype_of(name):
    return np.dtype(getattr(ml_dtypes, name, name))


@dataclasses.dataclass
class Leaf:
    prefix: str
    key: str
    path: list
    dtype: str
    shape: tuple
    raw: bytes

    def directory(self):
        """Below the checkpoint, in the zarr v2 layout."""
        return "/".join(filter(None, [*self.prefix.split("."), *self.key.split(".")]))


def bits_of(array):
    """Type, shape and little-endian C-order bytes; unused bits of sub-byte types do not count."""
    array = np.asarray(array)
    raw = np.ascontiguousarray(array.astype(array.dtype.newbyteorder("<"))).tobytes()
    bits = BITS.get(array.dtype.name)
    if bits:
        raw = (np.frombuffer(raw, np.uint8) & ((1 << bits) - 1)).tobytes()
    return array.dtype.newbyteorder("=").name, array.shape, raw


def assert_same(array, leaf):
    dtype, shape, raw = bits_of(array)
    assert (dtype, tuple(shape)) == (leaf.dtype, leaf.shape), leaf.key
    assert raw == leaf.raw, leaf.key


def run_probe(*arguments):
    done = subprocess.run([PROBE, *arguments], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr


def read_dump(dump):
    raw = pathlib.Path(f"{dump}.bin").read_bytes()
    leaves = []
    for entry in json.loads(pathlib.Path(f"{dump}.json").read_text()):
        offset, shape = entry.pop("offset"), tuple(entry.pop("shape"))
        size = int(np.prod(shape, dtype=np.int64)) * dtype_of(entry["dtype"]).itemsize
        leaves.append(Leaf(**entry, shape=shape, raw=raw[offset : offset + size]))
    return leaves


def save_by_cairn(path, **options):
    """Saves random trees; returns their arrays."""
    dump = path.with_name(path.name + ".written")
    run_probe("write", path, dump, json.dumps(options))
    leaves = read_dump(dump)
    assert leaves
    return leaves


def load_by_cairn(path, dump):
    """(prefix, key) to array, of every prefix."""
    run_probe("read", path, dump)
    return {(leaf.prefix, leaf.key): leaf for leaf in read_dump(dump)}


def assert_cairn_reads(path, dump, arrays):
    """`arrays`: (prefix, key) to array, all there is."""
    found = load_by_cairn(path, dump)
    assert sorted(found) == sorted(arrays)
    for name, array in arrays.items():
        assert_same(array, found[name])


def random_array(random, dtype, shape):
    """Any bits that the type can have."""
    dt, count = dtype_of(dtype), int(np.prod(shape, dtype=np.int64))
    raw = random.integers(0, 256, count * dt.itemsize, np.uint8)
    if dtype == "bool":
        raw &= 1
    if dtype in BITS:
        raw &= (1 << BITS[dtype]) - 1
    return raw.view(dt).reshape(shape)


def random_shape(random, max_rank=5):
    rank = int(random.integers(0, max_rank + 1))
    sizes = random.integers(1, 7 if rank < 4 else 4, rank)
    sizes[random.random(rank) < 0.05] = 0
    return tuple(int(n) for n in sizes)
