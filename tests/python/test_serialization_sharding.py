# SPDX-License-Identifier: Apache-2.0
"""cairn.serialization.sharding_utils beside the reference's."""

import json

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from cairn.serialization import serialization, sharding_utils
from eformer import escale
from eformer.serialization import sharding_utils as reference
from jax.sharding import Mesh, NamedSharding, PartitionSpec, SingleDeviceSharding


@pytest.fixture(name="mesh")
def mesh_of_two_axes():
    return Mesh(np.array(jax.devices()).reshape(4, 2), ("a", "b"))


@pytest.fixture(name="saved")
def saved_checkpoint(tmp_path):
    serialization.tree_serialize_leaves(tmp_path / "c", {"w": {"k": jnp.ones((8, 4))},
                                                         "b": jnp.ones(8)}, prefix="model")
    return str(tmp_path / "c")


def outcome(call):
    try:
        return call()
    except ValueError:
        return "refused"


def test_rules_match_as_in_the_reference():
    rng = np.random.default_rng(2)
    patterns = ["kernel", "^layers/0", "bias$", r"\d+/b", "(embed|head)", ".*", "nothing",
                r"layers/[01]/k", r"(?i)KERNEL", r"[^/]+$", r"(?!x)e"]
    specs = [PartitionSpec(), PartitionSpec("a"), PartitionSpec("a", "b"), PartitionSpec(None, "b"),
             PartitionSpec(("a", "b"), None, None), PartitionSpec(("a",))]
    tree = {"layers": [{"kernel": np.ones((8, 4)), "bias": np.ones(3)} for _ in range(2)],
            "embed": np.ones((2, 2, 2)), "head": (np.ones(()), 3), "x/y": np.ones((0, 3))}
    refused = 0
    for _ in range(300):
        rules = [(str(rng.choice(patterns)), specs[rng.integers(len(specs))])
                 for _ in range(rng.integers(1, 6))]
        options = {"min_size": [0, 5, 100, None][rng.integers(4)],
                   "strict": bool(rng.integers(2))}
        ours, expected = (outcome(lambda module=module: module.match_partition_rules(
            rules, tree, **options)) for module in (sharding_utils, escale))
        assert ours == expected, (rules, options)
        refused += ours == "refused"
    assert 20 < refused < 280
    with pytest.raises(ValueError, match="embed"):
        sharding_utils.match_partition_rules([("kernel", PartitionSpec())], tree)


def test_no_rule_can_hang_a_load():
    with pytest.raises(ValueError, match="regex/limit"):
        sharding_utils.match_partition_rules([("(a+)+(a+)+(a+)+$", PartitionSpec())],
                                             {"a" * 60 + "b": np.ones(2)})


def test_functions_that_shard_and_gather(mesh):
    specs = {"w": PartitionSpec("a", "b"), "b": PartitionSpec(), "odd": PartitionSpec("a")}
    tree = {"w": jnp.arange(32.0).reshape(8, 4), "b": jnp.ones(3), "odd": jnp.ones(3)}
    shard, gather = sharding_utils.make_shard_and_gather_fns(specs, mesh)
    theirs, _ = escale.make_shard_and_gather_fns(specs, mesh)
    for key, array in tree.items():
        spread = shard[key](array)
        if len(specs[key]):
            assert spread.sharding.is_equivalent_to(theirs[key](array).sharding, array.ndim)
        back = gather[key](spread)
        assert isinstance(back, np.ndarray)
        np.testing.assert_array_equal(back, array)
    assert shard["w"](np.ones((8, 4))).sharding == NamedSharding(mesh, specs["w"])
    with mesh:
        around, _ = sharding_utils.make_shard_and_gather_fns(specs)
    assert around["w"](tree["w"]).sharding == NamedSharding(mesh, specs["w"])
    with pytest.raises(ValueError, match="no mesh"):
        sharding_utils.make_shard_and_gather_fns(specs)


def test_shardings_from_an_index(saved, mesh, tmp_path, caplog):
    everywhere, split = (NamedSharding(mesh, spec)
                         for spec in (PartitionSpec(), PartitionSpec("a")))
    call = sharding_utils.create_sharding_tree_from_index
    assert call(saved, mesh) == {"b": everywhere, "w": {"k": everywhere}}
    assert call(saved) == {"b": None, "w": {"k": None}}
    assert call(saved, mesh, "model", PartitionSpec("a")) == {"b": split, "w": {"k": split}}
    assert call(saved, None, "model", split) == {"b": split, "w": {"k": split}}
    infos = []
    call(saved, mesh, default_sharding=infos.append)
    assert {"path": "model/w/k", "shape": [8, 4], "dtype": "float32"} in infos
    serialization.tree_serialize_leaves(tmp_path / "o", {"b": {"c": jnp.ones(2)}})
    assert call(tmp_path / "o", None, None, dict) == \
        reference.create_sharding_tree_from_index(str(tmp_path / "o"), None, None, dict)
    with pytest.raises(ValueError, match="Prefix 'no' not found.*model"):
        call(saved, mesh, "no")
    with pytest.raises(ValueError, match="Mesh required"):
        call(saved, None, None, PartitionSpec())
    assert call(tmp_path / "nothing") == {} and "tensorstore_index.json" in caplog.text


def test_shardings_from_an_index_that_the_reference_can_read(saved, mesh):
    text = json.loads(open(saved + "/tensorstore_index.json").read())
    assert text["version"] == "2.0"  # the only one whose prefixes the reference sees here
    assert sharding_utils.create_sharding_tree_from_index(saved, mesh) == \
        reference.create_sharding_tree_from_index(saved, mesh)


def test_shardings_are_applied(mesh, caplog):
    split = NamedSharding(mesh, PartitionSpec("a"))
    arrays = {"x": {"w": jnp.ones(8), "n": 3}, "b": np.ones(8), "f": jnp.ones(2)}
    wishes = {"x": {"w": split, "n": split}, "b": None, "f": lambda array: array * 5}
    for where in (mesh, None):
        ours, expected = (module.apply_sharding_tree(arrays, wishes, where)
                          for module in (sharding_utils, reference))
        assert jax.tree.map(lambda x: getattr(x, "sharding", x), ours) == \
            jax.tree.map(lambda x: getattr(x, "sharding", x), expected)
    assert isinstance(ours["b"].sharding, SingleDeviceSharding) and ours["f"][0] == 5
    assert sharding_utils.apply_sharding_tree(arrays, None) is arrays
    assert sharding_utils.apply_sharding_tree(arrays, {"x": split}) is arrays
    assert "structure" in caplog.text
    assert sharding_utils.apply_sharding_tree({"w": 1}, {"w": "nowhere"}) == {"w": 1}
    with pytest.raises(ValueError, match="evenly divide"):  # what goes wrong is not hidden
        sharding_utils.apply_sharding_tree({"w": jnp.ones(3)}, {"w": split})


def test_structures_are_compared(mesh):
    split = NamedSharding(mesh, PartitionSpec("a"))
    for a, b in [({"x": split}, {"x": 1}), ({"x": split}, {"y": 1}), ({"x": [split]}, {"x": (1,)}),
                 ({}, {}), ({"x": None}, {"x": 1})]:
        assert sharding_utils.validate_sharding_tree(a, b) == reference.validate_sharding_tree(a, b)


def test_arrays_on_every_device(mesh):
    tree = {"w": jax.device_put(jnp.arange(8), NamedSharding(mesh, PartitionSpec("a"))), "n": 3,
            "h": np.ones(2)}
    ours, expected = (module.make_itsharded(tree, mesh) for module in (sharding_utils, reference))
    assert ours["w"].sharding == expected["w"].sharding
    np.testing.assert_array_equal(ours["w"], tree["w"])
    assert ours["n"] == 3 and ours["h"] is tree["h"]
