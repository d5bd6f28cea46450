# SPDX-License-Identifier: Apache-2.0
"""zarr v2 arrays of Cairn, read by TensorStore, zarr-python and JAX, and the other way round."""

import json

import jax
import numcodecs
import numpy as np
import pytest
import tensorstore as ts
import zarr
from exchange import (
    NUMPY_DTYPES,
    ZARR2_DTYPES,
    assert_cairn_reads,
    assert_same,
    bits_of,
    dtype_of,
    random_array,
    random_shape,
    save_by_cairn,
)
from jax.experimental.array_serialization.serialization import GlobalAsyncCheckpointManager

CODECS = [
    "raw", "zstd", "zstd:19", "gzip", "gzip:9", "zlib:6", "bz2:5", "blosc", "blosc:blosclz:9",
    "blosc:lz4hc:1", "blosc:zlib:5", "blosc:zstd:3", "blosc:snappy:5",
]  # fmt: skip


def tensorstore_at(path):
    return ts.open({"driver": "zarr", "kvstore": {"driver": "file", "path": f"{path}/"}}).result()


@pytest.mark.parametrize("seed", range(2 * len(CODECS)))
def test_others_read_what_cairn_saves(tmp_path, seed):
    codec = CODECS[seed % len(CODECS)]
    path = tmp_path / "saved"
    leaves = save_by_cairn(
        path, layout="zarr2", seed=seed, codec=codec,
        chunk_bytes=[1 << 26, 7, 64, 200, 3][seed % 5],
        prefixes=[["model"], [""], ["model", "opt.inner"]][seed % 3],
    )  # fmt: skip
    assert {leaf.dtype for leaf in leaves} == set(ZARR2_DTYPES)
    arrays = [tensorstore_at(path / leaf.directory()).read() for leaf in leaves]
    for leaf, array in zip(leaves, arrays, strict=True):
        assert_same(array.result(), leaf)
        if leaf.dtype in NUMPY_DTYPES and codec != "blosc:snappy:5":
            assert_same(zarr.open_array(path / leaf.directory(), mode="r")[...], leaf)


@pytest.mark.parametrize("codec", ["raw", "zstd"])
def test_jax_reads_what_cairn_saves(tmp_path, codec):
    path = tmp_path / "saved"
    leaves = save_by_cairn(path, layout="zarr2", seed=101, codec=codec, chunk_bytes=100)
    sharding = jax.sharding.SingleDeviceSharding(jax.devices()[0])
    arrays = GlobalAsyncCheckpointManager().deserialize_with_paths(
        [sharding] * len(leaves), [str(path / leaf.directory()) for leaf in leaves]
    )
    for leaf, array in zip(leaves, arrays, strict=True):
        assert_same(array, leaf)


def random_chunks(random, shape):
    return [int(random.integers(1, size + 3)) for size in shape]


def random_region(random, shape):
    """A part of the array: what is left out has no chunk, or a chunk with fill values."""
    edges = (sorted(int(n) for n in random.integers(0, size + 1, 2)) for size in shape)
    return tuple(slice(begin, end) for begin, end in edges)


def partly_written(random, array, fill):
    """The region to write, and what the array then reads as."""
    region = random_region(random, array.shape) if random.random() < 0.5 else (...,)
    whole = np.zeros(array.shape, array.dtype)
    if fill is not None:
        whole[...] = fill
    whole[region] = array[region]
    return region, whole


def random_order(random, shape):
    """TensorStore refuses order F where it is the same as C."""
    return str(random.choice(["C", "F"])) if len(shape) > 1 else "C"


def random_fill(random, dtype):
    """A value or none. TensorStore does not keep the payload of every NaN, and its numbers of
    float8_e8m0fnu are others than everybody's."""
    fill = random_array(random, dtype, ())
    if random.random() < 0.5 or dtype == "float8_e8m0fnu":
        return None
    return dtype_of(dtype).type(np.nan) if fill != fill else fill


def random_compressor(random):
    level = int(random.integers(1, 10))
    shuffle = int(random.integers(-1, 3))
    cname = random.choice(["blosclz", "lz4", "lz4hc", "zlib", "zstd"])
    return [
        None,
        *({"id": name, "level": level} for name in ("zstd", "gzip", "zlib", "bz2")),
        {"id": "blosc", "cname": str(cname), "clevel": level, "shuffle": shuffle, "blocksize": 0},
    ][random.integers(0, 6)]


def write_by_tensorstore(random, path):
    dtype = str(random.choice(ZARR2_DTYPES))
    array = random_array(random, dtype, random_shape(random))
    native = dtype in NUMPY_DTYPES
    big = native and array.itemsize > 1 and random.random() < 0.3
    metadata = {
        "shape": list(array.shape), "chunks": random_chunks(random, array.shape),
        "dtype": (array.dtype.newbyteorder(">") if big else array.dtype).str if native else dtype,
        "compressor": random_compressor(random), "order": random_order(random, array.shape),
        "dimension_separator": str(random.choice([".", "/"])),
    }  # fmt: skip
    spec = {"driver": "zarr", "kvstore": {"driver": "file", "path": f"{path}/"}}
    fill = random_fill(random, dtype)
    store = ts.open({**spec, "metadata": metadata}, create=True, fill_value=fill).result()
    region, whole = partly_written(random, array, fill)
    store[region].write(array[region]).result()
    return whole


def write_by_zarr_python(random, path):
    dtype = str(random.choice(NUMPY_DTYPES))
    array = random_array(random, dtype, random_shape(random))
    if array.itemsize > 1 and random.random() < 0.3:
        array = array.astype(array.dtype.newbyteorder(">"))
    config = random_compressor(random)
    fill = None if random.random() < 0.3 else array.dtype.type(random.integers(0, 2) * 1.5)
    store = zarr.create_array(
        store=path, shape=array.shape, chunks=tuple(random_chunks(random, array.shape)),
        dtype=array.dtype, compressors=numcodecs.get_codec(config) if config else None,
        fill_value=fill, order=random_order(random, array.shape), zarr_format=2, filters=None,
        chunk_key_encoding={"name": "v2", "separator": str(random.choice([".", "/"]))},
        config={"write_empty_chunks": bool(random.random() < 0.5)},
    )  # fmt: skip
    region, whole = partly_written(random, array, fill)
    store[region] = array[region]
    return whole


@pytest.mark.parametrize("writer", [write_by_tensorstore, write_by_zarr_python])
def test_cairn_reads_what_others_write(tmp_path, writer):
    random = np.random.default_rng(7)
    arrays = {}
    for number in range(300):
        folder = f"group{number % 7}/array{number}"
        arrays["", folder.replace("/", ".")] = writer(random, tmp_path / "loose" / folder)
    assert_cairn_reads(tmp_path / "loose", tmp_path / "dump", arrays)


def test_cairn_reads_what_jax_writes(tmp_path):
    random = np.random.default_rng(8)
    arrays = []
    for number in range(60):
        sizes = [(8,), (4, 2), (2, 2)][number % 3]
        mesh = jax.make_mesh(sizes, ("a", "b")[: len(sizes)])
        shape = tuple(8 * int(n) for n in random.integers(0, 3, random.integers(1, 4)))
        axes = [None] * len(shape)
        axes[random.integers(0, len(shape))] = mesh.axis_names
        sharding = jax.sharding.NamedSharding(mesh, jax.sharding.PartitionSpec(*axes))
        dtype = ZARR2_DTYPES[number % len(ZARR2_DTYPES)]
        arrays.append(jax.device_put(random_array(random, dtype, shape), sharding))
    manager = GlobalAsyncCheckpointManager()
    paths = [str(tmp_path / "loose" / f"array{number}") for number in range(len(arrays))]
    manager.serialize_with_paths(arrays, paths)
    manager.wait_until_finished()
    expected = {("", f"array{number}"): np.asarray(array) for number, array in enumerate(arrays)}
    assert_cairn_reads(tmp_path / "loose", tmp_path / "dump", expected)


def test_jax_saves_again_where_cairn_saved(tmp_path):
    """JAX opens what is there with the metadata that it would write: that must not differ."""
    path = tmp_path / "saved"
    save_by_cairn(path, layout="zarr2", seed=3, codec="zstd:1")
    for dtype in ZARR2_DTYPES:
        there = path / "each" / dtype
        metadata = json.loads((there / ".zarray").read_text())
        value = jax.device_put(np.ones(metadata["shape"], dtype_of(dtype)))
        manager = GlobalAsyncCheckpointManager()
        manager.serialize_with_paths([value], [str(there)])
        manager.wait_until_finished()
        assert bits_of(tensorstore_at(there).read().result()) == bits_of(value)
