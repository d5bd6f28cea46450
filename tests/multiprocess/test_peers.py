# SPDX-License-Identifier: Apache-2.0
"""What ranks of Cairn wrote together, JAX and eformer read onto meshes of theirs, and back."""

import json

import jax
import numpy
import pytest
from eformer.serialization import AsyncCheckpointManager
from jax.experimental.array_serialization import serialization
from jax.sharding import Mesh, NamedSharding, PartitionSpec
from jobs import SHAPES, check_boxes, loading, numbers, saving

# Onto what the fixtures' and JAX's own layouts are loaded: nothing like those they were saved on.
MESHES = [(4, [["a", 4]]), (2, [["a", 2], ["b", 2]]), (3, [["a", 3]])]


def jax_mesh(shape, names):
    return Mesh(numpy.array(jax.devices()).reshape(shape), names)


@pytest.fixture
def written(start_job, tmp_path):
    path = tmp_path / "c"
    answers = start_job(8).do(saving(path, 5, [["x", 4], ["y", 2]]))
    assert all("bytes" in answer for answer in answers.values()), answers
    return path


@pytest.mark.parametrize(
    ("shape", "axes"), [((2, 4), ("p", "q")), ((8, 1), (None, "p")), ((1, 8), ("q",)), ((4, 2), ())]
)
def test_jax_reads_what_ranks_wrote(written, shape, axes):
    mesh = jax_mesh(shape, ("p", "q"))
    for key, expected in numbers(5).items():
        sharding = NamedSharding(mesh, PartitionSpec(*axes[: expected.ndim - 1 and 2]))
        store = serialization.get_tensorstore_spec(str(written / "m" / key))
        [array] = serialization.run_deserialization([sharding], [store])
        assert array.sharding == sharding
        numpy.testing.assert_array_equal(numpy.asarray(array), expected)


def test_eformer_reads_what_ranks_wrote(written):
    mesh = jax_mesh((8,), ("p",))
    tree, _ = AsyncCheckpointManager().load(str(written), mesh, prefix="m")
    for key, expected in numbers(5).items():
        numpy.testing.assert_array_equal(numpy.asarray(tree[key]), expected)


def load_everywhere(start_job, path, tmp_path, expected):
    """Arrays are split along their first dimension where that divides."""
    for n, (ranks, mesh) in enumerate(MESHES):
        parts = mesh[0][1]
        rules = [[f"^{key}$", ["a"] if array.ndim and array.shape[0] % parts == 0 else []]
                 for key, array in expected.items()]
        check_boxes(start_job(ranks).do(loading(path, mesh, tmp_path / f"out{n}", rules)), expected)


def test_ranks_read_what_jax_wrote(start_job, tmp_path):
    mesh = jax_mesh((4, 2), ("p", "q"))
    specs = {"rows": ("p",), "columns": (None, ("p", "q")), "both": ("q", "p"), "large": ("p",)}
    arrays = [
        jax.device_put(array, NamedSharding(mesh, PartitionSpec(*specs.get(key, ()))))
        for key, array in numbers(9).items()
    ]
    stores = [serialization.get_tensorstore_spec(str(tmp_path / "j" / key)) for key in SHAPES]
    serialization.run_serialization(arrays, stores)
    load_everywhere(start_job, tmp_path / "j", tmp_path, numbers(9))


def test_ranks_read_what_jax_wrote_long_ago(start_job, tmp_path, fixtures):
    folder = fixtures / "zarr2_jax_sharded"
    leaves = json.loads((folder / "expected.json").read_text())["leaves"]
    expected = {}
    for leaf in leaves:
        store = serialization.get_tensorstore_spec(str(folder / "checkpoint" / leaf["array"]))
        one = jax.sharding.SingleDeviceSharding(jax.devices()[0])
        [array] = serialization.run_deserialization([one], [store])
        expected[leaf["key"]] = numpy.asarray(array)
    bits = {key: array.view(f"u{array.dtype.itemsize}") for key, array in expected.items()}
    load_everywhere(start_job, folder / "checkpoint", tmp_path, bits)
