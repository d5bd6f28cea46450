# SPDX-License-Identifier: Apache-2.0
"""`<prefix>_structure.json`: what we save, the reference loads with its containers."""

import collections
import dataclasses
import json

import cairn
import flax.struct
import jax
import jax.numpy as jnp
import numpy as np
import optax
import pytest
from cairn.serialization import AsyncCheckpointManager as Ours
from cairn.serialization.serialization import leaf_key_paths
from eformer.serialization import AsyncCheckpointManager as Reference
from eformer.serialization.serialization import leaf_key_paths as reference_paths
from jax.sharding import Mesh, NamedSharding, PartitionSpec

Point = collections.namedtuple("Point", "x y")


@flax.struct.dataclass
class TrainState:
    step: int
    params: dict
    opt_state: tuple
    name: str = flax.struct.field(pytree_node=False, default="adam")


class Keyless:
    """A node that JAX knows without keys."""

    def __init__(self, first, second):
        self.both = (first, second)


jax.tree_util.register_pytree_node(Keyless, lambda node: (node.both, None),
                                   lambda _, both: Keyless(*both))


@dataclasses.dataclass
class Unregistered:
    rate: float


def params():
    return {"layers": [{"kernel": jnp.arange(6.0).reshape(2, 3), "bias": jnp.ones(3)}],
            "embed": np.arange(4, dtype=np.int8)}


def states():
    adam = optax.adam(1e-3).init(params())
    return {
        "dict": {"b": jnp.ones(2), "a": {"z": 1, "y": jnp.zeros((0, 3))},
                 "n": {10: None, 9: jnp.ones(1)}},
        "list": [jnp.ones(2), [None, "text", b"bytes", 2.5, True, 3j, 10**30]],
        "tuple": (jnp.ones(2), (), (np.float32(1.5), None)),
        "named": Point(jnp.ones(2), Point(None, jnp.bfloat16(1))),
        "adam": adam,
        "state": TrainState(7, params(), adam, name="x"),
        "ordered": collections.OrderedDict(b=jnp.ones(1), a=jnp.zeros(1)),
        "odd": {"a.b": jnp.ones(1), "a/b": jnp.zeros(2), "": jnp.ones(3), "..": 1},
        "array": jnp.arange(3),
        "values": {"n": 3, "array": jnp.ones(())},
    }


def same(found, expected):
    assert jax.tree.structure(found) == jax.tree.structure(expected)
    for x, y in zip(jax.tree.leaves(found), jax.tree.leaves(expected), strict=True):
        if hasattr(y, "dtype"):
            assert (x.dtype, x.shape) == (y.dtype, y.shape)
            np.testing.assert_array_equal(np.asarray(x), np.asarray(y))
        else:
            assert (type(x), x) == (type(y), y)


@pytest.fixture(name="mesh")
def mesh_of_one_axis():
    return Mesh(np.array(jax.devices()), ("a",))


def test_the_reference_loads_what_we_save_with_its_containers(tmp_path, mesh):
    for name, tree in states().items():
        cairn.save(tree, tmp_path, prefix=name, extras={"epoch": 3})
    for name, tree in states().items():
        loaded, extras = Reference().load_pytree(str(tmp_path), mesh, prefix=name)
        same(loaded, tree)
        assert extras == {"epoch": 3}


@pytest.mark.parametrize("saver", [Reference, Ours])
@pytest.mark.parametrize("loader", [Reference, Ours])
@pytest.mark.parametrize("has_template", [True, False])
def test_nodes_without_keys_go_both_ways(tmp_path, mesh, saver, loader, has_template):
    tree = {"cu": Keyless(jnp.ones(8), [Keyless(jnp.zeros(4), jnp.arange(2))])}
    manager = saver(float_dtype=None)
    manager.save_pytree(tree, str(tmp_path), mesh, prefix="m")
    manager.global_manager.wait_until_finished()
    template = jax.tree.map(jnp.zeros_like, tree) if has_template else None
    loaded, _ = loader().load_pytree(str(tmp_path), mesh, prefix="m", template=template)
    same(loaded, tree)
    assert leaf_key_paths(tree, "m")["cu"].both[0] == \
        reference_paths(tree, "m")["cu"].both[0] == "m.cu.<flat index 0>"


def test_the_reference_loads_sharded_arrays_by_its_rules(tmp_path, mesh):
    tree = {"w": jax.device_put(jnp.arange(64.0).reshape(8, 8),
                                NamedSharding(mesh, PartitionSpec("a"))), "deep": [jnp.ones(8)]}
    cairn.save(tree, tmp_path, prefix="model.part")
    rules = (("deep", PartitionSpec("a")), (".*", PartitionSpec(None, "a")))
    loaded, _ = Reference().load_pytree(str(tmp_path), mesh, prefix="model.part",
                                        partition_rules=rules)
    same(loaded, tree)
    assert loaded["w"].sharding == NamedSharding(mesh, PartitionSpec(None, "a"))


def test_it_comes_and_goes_with_its_prefix(tmp_path, mesh):
    file = tmp_path / "m_structure.json"
    cairn.save({"w": jnp.ones(2)}, tmp_path, prefix="m")
    cairn.save([jnp.ones(3)], tmp_path, prefix="m", overwrite=True)
    same(Reference().load_pytree(str(tmp_path), mesh, prefix="m")[0], [jnp.ones(3)])
    assert json.loads(file.read_text())["leaf_keys_full"] == ["m.0"]
    assert json.loads((tmp_path / "cairn.json").read_text())["prefixes"]["m"]["entries"] == [
        "m", "m_structure.json"]
    # JAX cannot describe it.
    cairn.save([jnp.ones(3), Unregistered(0.1)], tmp_path, prefix="m", overwrite=True)
    assert not file.exists()
    cairn.save({"w": jnp.ones(2)}, tmp_path, prefix="n", layout="safetensors")
    cairn.save({"w": jnp.ones(2)}, tmp_path)
    assert not list(tmp_path.glob("*_structure.json"))


def test_that_of_the_reference_goes_when_its_prefix_is_replaced(tmp_path):
    Reference().save_pytree({"w": jnp.ones(2)}, str(tmp_path), prefix="m")
    (tmp_path / "other_structure.json").write_text("mine")
    cairn.save([Unregistered(0.1), np.ones(2)], tmp_path, prefix="m", overwrite=True)
    assert [path.name for path in tmp_path.glob("*_structure.json")] == ["other_structure.json"]
    with pytest.raises(cairn.AlreadyExistsError, match="other_structure.json"):
        cairn.save({"w": jnp.ones(2)}, tmp_path, prefix="other")
    assert (tmp_path / "other_structure.json").read_text() == "mine"


def test_what_cannot_be_pickled_is_saved_without(tmp_path, caplog):
    @flax.struct.dataclass
    class Local:
        w: jax.Array

    with caplog.at_level("INFO", logger="cairn"):
        cairn.save(Local(jnp.ones(2)), tmp_path, prefix="m")
    assert "no structure for the reference system of 'm'" in caplog.text
    assert not (tmp_path / "m_structure.json").exists()
    assert cairn.load(tmp_path, template=Local(jnp.zeros(2))).w.sum() == 2
