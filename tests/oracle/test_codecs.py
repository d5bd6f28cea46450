# SPDX-License-Identifier: Apache-2.0
"""Chunks that Cairn encodes, read by TensorStore and zarr-python, and the other way round."""

import json
import os
import pathlib
import subprocess

import numpy as np
import pytest
import tensorstore as ts
import zarr

ROOT = pathlib.Path(__file__).resolve().parents[2]
PROBE = pathlib.Path(os.environ.get("CAIRN_BIN", ROOT / "build/dev/bin")) / "cairn_codec_probe"

BLOSC = [
    {"id": "blosc", "cname": cname, "clevel": clevel, "shuffle": shuffle, "blocksize": blocksize}
    for cname in ("blosclz", "lz4", "lz4hc", "snappy", "zlib", "zstd")
    for clevel, shuffle, blocksize in ((5, -1, 0), (9, 0, 0), (1, 1, 512), (5, 2, 0), (0, 1, 0))
]
CONFIGS = [
    *({"id": "zstd", "level": level} for level in (-131072, -5, 0, 1, 3, 22)),
    {"id": "zstd", "level": 1, "checksum": True},
    *({"id": name, "level": level} for name in ("gzip", "zlib") for level in (0, 1, 6, 9)),
    *({"id": "bz2", "level": level} for level in (1, 9)),
    *BLOSC,
]


def in_tensorstore(config):
    return "checksum" not in config


def in_zarr_python(config):
    return config.get("cname") != "snappy"


def samples():
    """Several item sizes, no multiples of a block, and no zeros: those may not be stored at all."""
    random = np.random.default_rng(1)
    yield np.full(1, 7, np.uint8)
    yield np.repeat(random.integers(0, 100, 500), 7).astype(np.uint8)
    yield np.cumsum(random.integers(-3, 4, 20_011)).astype(np.int16)
    yield random.standard_normal(70_001).astype(np.float32)
    yield np.full(4099, 1 + 2j)


def probe(verb, config, number, data):
    command = [PROBE, verb, json.dumps(config), str(number)]
    return subprocess.run(command, input=data, stdout=subprocess.PIPE, check=True).stdout


def write_metadata(path, config, values):
    metadata = {
        "zarr_format": 2, "shape": list(values.shape), "chunks": list(values.shape),
        "dtype": values.dtype.str, "compressor": config, "fill_value": None, "order": "C",
        "filters": None, "dimension_separator": ".",
    }  # fmt: skip
    path.mkdir()
    (path / ".zarray").write_text(json.dumps(metadata))


def tensorstore_at(path):
    return ts.open({"driver": "zarr", "kvstore": f"file://{path}/"}).result()


@pytest.mark.parametrize("config", CONFIGS, ids=json.dumps)
def test_others_read_what_cairn_encodes(tmp_path, config):
    for number, values in enumerate(samples()):
        path = tmp_path / str(number)
        write_metadata(path, config, values)
        stored = probe("encode", config, values.itemsize, values.tobytes())
        (path / "0").write_bytes(stored)
        if in_tensorstore(config):
            np.testing.assert_array_equal(tensorstore_at(path).read().result(), values)
        if in_zarr_python(config):
            np.testing.assert_array_equal(zarr.open_array(path, mode="r")[:], values)


@pytest.mark.parametrize("config", CONFIGS, ids=json.dumps)
def test_cairn_reads_what_others_encode(tmp_path, config):
    for number, values in enumerate(samples()):
        path = tmp_path / str(number)
        write_metadata(path, config, values)
        if in_tensorstore(config):
            tensorstore_at(path).write(values).result()
            stored = (path / "0").read_bytes()
            assert probe("decode", config, values.nbytes, stored) == values.tobytes()
        if in_zarr_python(config):
            zarr.open_array(path, mode="r+")[:] = values
            stored = (path / "0").read_bytes()
            assert probe("decode", config, values.nbytes, stored) == values.tobytes()
