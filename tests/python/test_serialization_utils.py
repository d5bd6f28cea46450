# SPDX-License-Identifier: Apache-2.0
"""cairn.serialization.utils gives what eformer.serialization.utils gives."""

import sys

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from cairn.serialization import utils
from eformer.serialization import utils as reference
from jax.sharding import Mesh, NamedSharding, PartitionSpec

DTYPES = ["float32", "bfloat16", "int8", "float16", "bool", "float8_e4m3fn"]


@pytest.fixture(name="rng")
def seeded():
    return np.random.default_rng(7)


@pytest.fixture(name="mesh")
def mesh_of_eight():
    return Mesh(np.array(jax.devices()).reshape(4, 2), ("a", "b"))


def some_state(rng):
    names = ["w", "layers.0.k", "layers.0.b", "layers.1.k", "layers.10.k", "layers.1.b", "head.k",
             "head.b", "a.b.c.d", "a.b.c.e", "z"]
    chosen = rng.permutation(names)[:rng.integers(0, len(names) + 1)]
    return {str(name): np.zeros(tuple(rng.integers(0, 6, rng.integers(0, 3))),
                                jnp.dtype(rng.choice(DTYPES))) for name in chosen}


def test_reshard_inside_of_jit_is_a_constraint(mesh):
    wanted = NamedSharding(mesh, PartitionSpec("a", "b"))
    for module in (utils, reference):
        moved = jax.jit(lambda x, reshard=module.reshard: reshard(x * 2, wanted))(jnp.ones((8, 8)))
        assert moved.sharding.is_equivalent_to(wanted, 2)


def test_names_of_files():
    for path in ["/x/model", "/x/model.safetensors", "/x/model.safetensors.index.json", "",
                 "/x/model-00001-of-00004.safetensors", "/x/model-00001-of-00004",
                 "a.safetensors.x", "-00001-of-00002.safetensors",
                 "/x/m-1-of-2.safetensors", "gs://b/m.safetensors",
                 "/x/m-00001-of-00002-00003-of-00004.safetensors"]:
        assert utils.derive_base_prefix_from_path(path) == \
            reference.derive_base_prefix_from_path(path), path
    assert utils.shard_filename("/x/m", 3, 123456) == reference.shard_filename("/x/m", 3, 123456)
    assert utils.index_filename("/x/m") == reference.index_filename("/x/m")


def test_paths_of_google():
    for path in ["gs://b/k/e", "gs://b", "gs://b/", "gs:///k", "/local", "s3://b/k", ""]:
        assert utils.is_gcs_path(path) == reference.is_gcs_path(path)
        if path.startswith("gs://"):
            assert utils.parse_gcs_path(path) == reference.parse_gcs_path(path)
    with pytest.raises(ValueError, match="Invalid GCS path"):
        utils.parse_gcs_path("/local")


def test_sizes(rng):
    for dtype in DTYPES:
        array = jnp.zeros((3, 5), dtype)
        assert utils.estimate_array_nbytes(array) == reference.estimate_array_nbytes(array)
    assert utils.estimate_array_nbytes(1.5) == reference.estimate_array_nbytes(1.5)
    assert utils.estimate_array_nbytes(np.zeros(3, "S5")) == 15
    assert utils.estimate_array_nbytes(jnp.zeros((3, 5), jnp.int4)) == 8  # packed
    assert utils.estimate_available_memory() >= 100 << 20


def test_groups_of_keys(rng):
    for _ in range(400):
        state, limit = some_state(rng), int(rng.integers(1, 200))
        for name in ("group_keys_by_shard_size", "optimize_shard_layout"):
            ours = getattr(utils, name)(state, limit)
            expected = getattr(reference, name)(state, limit)
            assert ours == [group for group in expected if group], (name, limit)


def test_pieces_of_a_tensor(rng):
    for _ in range(200):
        tensor = rng.integers(0, 9, tuple(rng.integers(0, 9, rng.integers(0, 4))))
        limit = int(rng.integers(1, 300))
        ours, expected = (module.chunk_tensor_by_memory(tensor, limit)
                          for module in (utils, reference))
        assert [piece.shape for piece in ours] == [piece.shape for piece in expected]
        if tensor.ndim:
            np.testing.assert_array_equal(np.concatenate(ours), tensor)


def test_casts_touch_floats_only(rng):
    for dtype in [*DTYPES, "int32"]:
        array = jnp.asarray(rng.integers(0, 2, 5), dtype)
        for wanted in [None, "", "bf16", "float16", jnp.float32, "fp8", np.dtype("float16"),
                       "fp8_e4m3b11fnuz"]:
            ours, expected = utils.put_dtype(array, wanted), reference.put_dtype(array, wanted)
            assert ours.dtype == expected.dtype, (dtype, wanted)
    for module in (utils, reference):
        with pytest.raises(ValueError, match="Unsupported dtype string: no"):
            module.put_dtype(jnp.ones(1), "no")
    assert set(utils.STRING_TO_DTYPE_MAP) == set(reference.STRING_TO_DTYPE_MAP)
    for name, dtype in reference.STRING_TO_DTYPE_MAP.items():
        assert utils.STRING_TO_DTYPE_MAP[name] == dtype


def test_flat_dicts():
    trees = [{}, {"a": 1}, {"a": {"b": {"c": 1}, "d": {}}, "e": 2}, {"a": {0: 1, "1": 2}},
             {("a", "b"): 1, ("c",): 2}, {"a.b": {"c": 1}}]
    for tree in trees:
        assert utils.is_flatten(tree) == reference.is_flatten(tree)
        assert utils.flatten_for_broadcast(tree) == reference.flatten_for_broadcast(tree)
        assert utils.flatten_dict(tree) == reference.flatten_dict(tree)
    assert utils.flatten_dict({"a": {"b": {}}}, keep_empty_nodes=True).keys() == {("a", "b")}
    stopped = utils.flatten_dict(trees[2], is_leaf=lambda path, _: path == ("a",), sep="/")
    assert stopped == {"a": {"b": {"c": 1}, "d": {}}, "e": 2}
    assert utils.unflatten_dict(utils.flatten_dict(trees[2], keep_empty_nodes=True)) == trees[2]
    with pytest.raises(TypeError):
        utils.flatten_dict([1])


class Tensors(dict):
    get_tensor = dict.__getitem__


def test_one_tensor_on_its_way():
    tensors = Tensors(a=jnp.ones(2), b=jnp.ones(2, jnp.int32))
    functions = {"a": lambda x: x + 1, "c": None}
    for key in tensors:
        for fns in (None, {}, functions):
            for callback in (None, lambda x, name: x * len(name) * 3):
                ours, expected = (module.read_process_array(key, fns, True, tensors, callback,
                                                            "bf16")
                                  for module in (utils, reference))
                assert (ours[0], ours[2], ours[1].dtype) == (expected[0], expected[2],
                                                             expected[1].dtype)
                np.testing.assert_array_equal(ours[1], expected[1])
    for module in (utils, reference):
        with pytest.raises(KeyError, match="b"):
            module.read_process_array("b", functions, False, tensors)


def test_gathering():
    state = {"a.b": jnp.ones(2), "c": jnp.zeros(1), "d": jnp.zeros(1)}
    for fns in (True, {"a": {"b": lambda x: x + 1}}, {"a.b": lambda x: x - 1}):
        ours, expected = (module.apply_gather_functions(state, fns, True, False)
                          for module in (utils, reference))
        assert list(ours) == list(expected)
        for key in state:
            np.testing.assert_array_equal(ours[key], expected[key])
    tuples = utils.apply_gather_functions(state, {("a", "b"): lambda x: x + 1}, True, True)
    assert tuples["a.b"].sum() == 4
    assert utils.apply_gather_functions(state, None, False, False) == state
    with pytest.raises(KeyError, match="c, d"):
        utils.apply_gather_functions(state, {"a.b": abs}, False, False)


def test_moves_of_arrays(mesh):
    array = jnp.arange(24.0).reshape(4, 6)
    for spec in [PartitionSpec("a"), PartitionSpec("b", "a"), PartitionSpec(None, "b"),
                 PartitionSpec(("a", "b")), PartitionSpec("b", None, "a")]:
        wanted = NamedSharding(mesh, spec)
        ours, expected = utils.reshard(array, wanted), reference.reshard(array, wanted)
        assert ours.sharding.is_equivalent_to(expected.sharding, 2), spec
        np.testing.assert_array_equal(ours, array)
        with mesh:
            ours, expected = (module.with_sharding_constraint({"x": array}, spec)["x"]
                              for module in (utils, reference))
        assert ours.sharding.is_equivalent_to(expected.sharding, 2), spec
    spread = jax.device_put(array, NamedSharding(mesh, PartitionSpec("a")))
    assert utils.reshard(spread, NamedSharding(mesh, PartitionSpec())).sharding.is_fully_replicated
    assert utils.with_sharding_constraint(array, PartitionSpec("a")) is array  # no mesh around
    with mesh:
        assert utils.with_sharding_constraint(array, PartitionSpec("no")).shape == (4, 6)
    with pytest.raises(TypeError):
        utils.with_sharding_constraint(array, "a")


def test_to_host(mesh):
    spread = jax.device_put(jnp.arange(8.0), NamedSharding(mesh, PartitionSpec("a")))
    for offload in (False, True):
        for dtype in (None, "bf16", jnp.float16):
            ours = utils.to_host(spread, dtype, mesh, offload)
            assert ours.dtype == reference.to_host(spread, dtype, mesh, offload).dtype
            assert ours.sharding.is_fully_replicated
            np.testing.assert_array_equal(ours, spread)
    assert utils.to_host(jnp.arange(3), "bf16", mesh).dtype == jnp.int32
    assert utils.to_host(np.ones(2), "bf16", None).dtype == jnp.bfloat16
    assert utils.to_host(3, "bf16", mesh) == 3
    ours, expected = utils.create_cpu_mesh(), reference.create_cpu_mesh()
    assert (ours.axis_names, ours.shape) == (expected.axis_names, expected.shape)


def test_broadcast(rng, mesh):
    for shape, limit in [((), 1), ((7, 3), 10), ((7, 3), 1000), ((0, 2), 1), ((3,), 1)]:
        tensor = jnp.asarray(rng.integers(0, 9, shape), jnp.float32)
        ours = utils.broadcast_tensor(tensor, limit)
        np.testing.assert_array_equal(ours, reference.broadcast_tensor(tensor, limit))
        assert (ours.shape, ours.dtype) == (shape, np.float32)
    wanted = NamedSharding(mesh, PartitionSpec("a"))
    assert utils.broadcast_tensor(jnp.ones(8), 10, wanted).sharding == wanted


def test_memory_is_bounded_by_the_accelerator(monkeypatch):
    class Device:
        def memory_stats(self):
            return {"bytes_limit": 1 << 29}

    monkeypatch.setattr(sys.modules["jax"], "local_devices", lambda: [Device()])
    assert utils.estimate_available_memory() == int((1 << 29) * 0.4)
