# SPDX-License-Identifier: Apache-2.0
"""safetensors files of Cairn, read by the safetensors library, and the other way round."""

import json
import struct

import jax.numpy as jnp
import numpy as np
import pytest
import safetensors.flax
import safetensors.numpy
from exchange import (
    NUMPY_DTYPES,
    assert_cairn_reads,
    assert_same,
    random_array,
    random_shape,
    save_by_cairn,
)
from safetensors import TensorSpec, deserialize, safe_open, serialize_file

NAMES = {
    "bool": "BOOL", "uint8": "U8", "int8": "I8", "uint16": "U16", "int16": "I16",
    "float16": "F16", "bfloat16": "BF16", "uint32": "U32", "int32": "I32", "float32": "F32",
    "uint64": "U64", "int64": "I64", "float64": "F64", "complex64": "C64",
    "float8_e4m3fn": "F8_E4M3", "float8_e5m2": "F8_E5M2", "float8_e8m0fnu": "F8_E8M0",
    "float8_e4m3fnuz": "F8_E4M3FNUZ", "float8_e5m2fnuz": "F8_E5M2FNUZ", "float4_e2m1fn": "F4",
    "float6_e2m3fn": "F6_E2M3", "float6_e3m2fn": "F6_E3M2",
}  # fmt: skip
PACKED = {"float4_e2m1fn": 4, "float6_e2m3fn": 6, "float6_e3m2fn": 6}
WHOLE = [dtype for dtype in NAMES if dtype not in PACKED]
IN_NUMPY = [dtype for dtype in WHOLE if dtype in NUMPY_DTYPES]


def stored_bytes(leaf):
    """As the format packs them: the first element in the lowest bits."""
    bits = PACKED.get(leaf.dtype)
    if bits is None:
        return leaf.raw
    every = np.unpackbits(np.frombuffer(leaf.raw, np.uint8)[:, None], axis=1, bitorder="little")
    return np.packbits(every[:, :bits].ravel(), bitorder="little").tobytes()


def assert_data_begin_aligned(file):
    with file.open("rb") as opened:
        assert (8 + struct.unpack("<Q", opened.read(8))[0]) % 4096 == 0


def assert_library_reads(file, leaves):
    """By bytes for every type, and as NumPy arrays where it has the type."""
    assert_data_begin_aligned(file)
    found = dict(deserialize(file.read_bytes()))
    assert sorted(found) == sorted(leaf.key for leaf in leaves)
    with safe_open(file, framework="numpy") as opened:
        assert sorted(opened.keys()) == sorted(found)
        for leaf in leaves:
            tensor = found[leaf.key]
            assert (tensor["dtype"], tuple(tensor["shape"])) == (NAMES[leaf.dtype], leaf.shape)
            assert bytes(tensor["data"]) == stored_bytes(leaf), leaf.key
            if leaf.dtype in IN_NUMPY:
                assert_same(opened.get_tensor(leaf.key), leaf)


@pytest.mark.parametrize("seed", range(12))
def test_the_library_reads_a_bare_file(tmp_path, seed):
    file = tmp_path / "one.safetensors"
    leaves = save_by_cairn(file, layout="safetensors", seed=seed)
    assert {leaf.dtype for leaf in leaves} == set(NAMES)
    assert_library_reads(file, leaves)


@pytest.mark.parametrize("seed", range(12))
def test_the_library_reads_a_file_for_each_prefix(tmp_path, seed):
    prefixes = ["model", "optimizer"]
    leaves = save_by_cairn(tmp_path / "c", layout="safetensors", seed=seed, prefixes=prefixes)
    for prefix in prefixes:
        of_prefix = [leaf for leaf in leaves if leaf.prefix == prefix]
        assert_library_reads(tmp_path / "c" / f"{prefix}.safetensors", of_prefix)


@pytest.mark.parametrize("seed", range(12))
def test_the_library_reads_parts_by_their_index(tmp_path, seed):
    path, limit = tmp_path / "c", 80 * (seed + 1)
    leaves = save_by_cairn(path, layout="safetensors", seed=seed, shard_size=limit)
    index = json.loads((path / "model.safetensors.index.json").read_text())
    assert sorted(index["weight_map"]) == sorted(leaf.key for leaf in leaves)
    assert index["metadata"]["total_size"] == sum(len(stored_bytes(leaf)) for leaf in leaves)
    parts = sorted(set(index["weight_map"].values()))
    assert len(parts) > 1
    assert parts == [f"model-{n + 1:05}-of-{len(parts):05}.safetensors" for n in range(len(parts))]
    for part in parts:
        of_part = [leaf for leaf in leaves if index["weight_map"][leaf.key] == part]
        sizes = [len(stored_bytes(leaf)) for leaf in of_part]
        assert sum(sizes) <= limit or len(sizes) == 1
        assert_library_reads(path / part, of_part)


@pytest.mark.parametrize("seed", range(4))
def test_flax_reads_a_file_with_the_types_it_has(tmp_path, seed):
    dtypes = ["float32", "bfloat16", "float16", "int32", "uint8", "bool", "int64", "float64"]
    file = tmp_path / "one.safetensors"
    leaves = save_by_cairn(file, layout="safetensors", seed=seed, dtypes=dtypes)
    found = safetensors.flax.load_file(file)
    assert sorted(found) == sorted(leaf.key for leaf in leaves)
    for leaf in leaves:
        assert_same(found[leaf.key], leaf)


def random_tensors(random, dtypes, count=40):
    return {
        f"layers.{n}.weight": random_array(random, dtypes[n % len(dtypes)], random_shape(random))
        for n in range(count)
    }


def save_any_types(tensors, file):
    """By the library, which then does not need to know the types as NumPy's."""
    raw = {name: np.frombuffer(x.tobytes() + b"\0", np.uint8) for name, x in tensors.items()}
    specs = {
        name: TensorSpec(
            dtype=array.dtype.name, shape=list(array.shape), data_ptr=raw[name].ctypes.data,
            data_len=array.nbytes,
        )
        for name, array in tensors.items()
    }  # fmt: skip
    serialize_file(specs, file, metadata={"format": "pt", "note": "caf\u00e9"})


def save_by_numpy(tensors, file):
    safetensors.numpy.save_file(tensors, file, metadata={"format": "np"})


def save_by_flax(tensors, file):
    safetensors.flax.save_file({name: jnp.asarray(array) for name, array in tensors.items()}, file)


WRITERS = [
    (save_any_types, WHOLE),
    (save_by_numpy, IN_NUMPY),
    (save_by_flax, [*IN_NUMPY, "bfloat16"]),
]


@pytest.mark.parametrize(("writer", "dtypes"), WRITERS)
def test_cairn_reads_files_of_others(tmp_path, writer, dtypes):
    random = np.random.default_rng(5)
    for number in range(3):
        file = tmp_path / f"{number}.safetensors"
        tensors = random_tensors(random, dtypes)
        writer(tensors, file)
        expected = {("", name): array for name, array in tensors.items()}
        assert_cairn_reads(file, tmp_path / "dump", expected)


@pytest.mark.parametrize(("writer", "dtypes"), WRITERS)
def test_cairn_reads_parts_with_an_index_of_others(tmp_path, writer, dtypes):
    random = np.random.default_rng(6)
    for count in (1, 2, 5):
        folder = tmp_path / str(count)
        folder.mkdir()
        tensors = random_tensors(random, dtypes)
        names = sorted(tensors)
        weight_map = {}
        for part in range(count):
            file = f"model-{part + 1:05}-of-{count:05}.safetensors"
            weight_map |= dict.fromkeys(names[part::count], file)
            writer({name: tensors[name] for name in names[part::count]}, folder / file)
        index = {"metadata": {"total_size": sum(x.nbytes for x in tensors.values())}}
        index_file = folder / "model.safetensors.index.json"
        index_file.write_text(json.dumps(index | {"weight_map": weight_map}, indent=2))
        (folder / "config.json").write_text("{}")
        expected = {("model", name): array for name, array in tensors.items()}
        assert_cairn_reads(folder, tmp_path / "dump", expected)
        assert_cairn_reads(index_file, tmp_path / "dump", expected)


def test_names_that_are_leaf_and_branch_stay_apart(tmp_path):
    """No tree of dicts has such leaves: each name is then one key."""
    keys = {
        "a": "a", "a.b": "a%2Eb", "a.b.c": "a%2Eb%2Ec", "x/y": "x%2Fy", "": "%", "\u00e9": "\u00e9",
        "\\": "%5C",
    }  # fmt: skip
    tensors = {name: np.float32([number]) for number, name in enumerate(keys)}
    safetensors.numpy.save_file(tensors, tmp_path / "odd.safetensors")
    expected = {("", keys[name]): array for name, array in tensors.items()}
    assert_cairn_reads(tmp_path / "odd.safetensors", tmp_path / "dump", expected)
