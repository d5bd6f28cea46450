# SPDX-License-Identifier: Apache-2.0
"""tree_serialize_leaves and tree_deserialize_leaves: what one system saves, the other loads."""

import collections
import json
import subprocess
import sys
import threading

import cairn
import jax
import jax.numpy as jnp
import ml_dtypes
import numpy as np
import optax
import pytest
from cairn.serialization import serialization as ours
from cairn.serialization._tracker import SaveTracker
from eformer.paths import ePath
from eformer.serialization import serialization as reference
from flax import nnx
from jax.experimental.array_serialization.serialization import GlobalAsyncCheckpointManager
from jax.sharding import NamedSharding, PartitionSpec

DTYPES = ["float32", "int32", "bfloat16", "uint8", "bool"]
Point = collections.namedtuple("Point", "x y")


def random_tree(rng, depth=0):
    kind = rng.integers(0, 4 if depth < 3 else 1)
    if kind == 0 and depth:
        shape = tuple(int(rng.choice([1, 8, 16])) for _ in range(rng.integers(0, 3)))
        dtype = np.dtype(getattr(ml_dtypes, str(name := rng.choice(DTYPES)), name))
        return jax.device_put(rng.integers(0, 2, shape).astype(np.float32).astype(dtype))
    children = [random_tree(rng, depth + 1) for _ in range(rng.integers(1, 4))]
    if kind == 1:
        return children
    if kind == 2:
        return Point(children[0], children[-1])
    return {str(rng.choice(["w", "kernel", "0", "long_name", "b"])) + str(n): child
            for n, child in enumerate(children)}


def same(a, b):
    assert jax.tree.structure(a) == jax.tree.structure(b)
    for x, y in zip(jax.tree.leaves(a), jax.tree.leaves(b)):
        assert (x.dtype, x.shape, x.sharding) == (y.dtype, y.shape, y.sharding)
        np.testing.assert_array_equal(np.asarray(x), np.asarray(y))


def test_what_one_saves_the_other_loads(tmp_path, line):
    rng = np.random.default_rng(5)
    for n in range(12):
        tree, prefix = random_tree(rng), [None, "model"][n % 2]
        loaded = {}
        for saver in (ours, reference):
            path = str(tmp_path / f"{n}-{saver.__name__}")
            saver.tree_serialize_leaves(path, tree, prefix=prefix)
            for loader in (ours, reference):
                loaded[saver, loader] = loader.tree_deserialize_leaves(path, line, prefix=prefix)
        for got in loaded.values():
            same(got, loaded[reference, reference])


def test_key_paths_are_those_of_the_reference():
    rng = np.random.default_rng(6)
    trees = [random_tree(rng) for _ in range(30)]
    trees += [optax.adam(1e-3).init({"w": jnp.ones(2)}),
              nnx.state(nnx.Linear(2, 3, rngs=nnx.Rngs(0))), {},
              jnp.ones(1), None, {"a": None}, {3: 1}, [[], (), {"b": [1]}]]
    for tree in trees:
        for prefix in ("", None, "model"):
            for is_leaf in (None, lambda x: x is None, lambda x: isinstance(x, list)):
                expected = reference.leaf_key_paths(tree, prefix, is_leaf=is_leaf)
                assert ours.leaf_key_paths(tree, prefix, is_leaf=is_leaf) == expected
    for prefix in ("", None, "p"):
        for key in ("", None, "k"):
            assert ours.join_key(prefix, key) == reference.join_key(prefix, key)
    for thing in (jnp.ones(1), np.ones(1), np.float32(1), 1.0, "x", None):
        assert ours.is_array_like(thing) == reference.is_array_like(thing)


def test_keys_of_trees_that_describe_themselves_in_their_own_way():
    class Key:
        def __init__(self, text):
            self.text = text

        def __str__(self):
            return self.text

    @jax.tree_util.register_pytree_with_keys_class
    class Node:
        def tree_flatten_with_keys(self):
            texts = (".dot", "['quoted']", '["double"]', "[7]", "x")
            return [(Key(text), 1) for text in texts], None

        @classmethod
        def tree_unflatten(cls, _, children):
            return list(children)

    assert ours.leaf_key_paths(Node()) == reference.leaf_key_paths(Node())


def test_key_paths_without_jax():
    program = ("import collections, sys\n"
               "from cairn.serialization.serialization import leaf_key_paths\n"
               "P = collections.namedtuple('P', 'x y')\n"
               "tree = {'a': [1, (2, None)], 'p': P(3, {'q': [4]})}\n"
               "print(leaf_key_paths(tree, 'm', is_leaf=lambda x: x == [4]))\n"
               "print('jax' in sys.modules, 'fsspec' in sys.modules)\n")
    done = subprocess.run([sys.executable, "-c", program], text=True, capture_output=True)
    assert done.stdout.splitlines() == [
        "{'a': ['m.a.0', ('m.a.1.0', None)], 'p': P(x='m.p.x', y={'q': 'm.p.y.q'})}",
        "False False"], done


def test_two_prefixes_and_a_tree_without(tmp_path, line):
    path = str(tmp_path / "c")
    ours.tree_serialize_leaves(path, {"w": jnp.ones(2)}, prefix="model")
    assert list(ours.tree_deserialize_leaves(path, line)) == ["w"]
    ours.tree_serialize_leaves(ePath(path), {"m": jnp.zeros(2)}, prefix="tx")
    for module in (ours, reference):
        with pytest.raises(ValueError, match="No prefix specified.*model.*tx"):
            module.tree_deserialize_leaves(path, line)
        with pytest.raises(ValueError, match="Prefix 'no' not found.*model.*tx"):
            module.tree_deserialize_leaves(path, line, prefix="no")
        assert list(module.tree_deserialize_leaves(path, line, prefix="tx")) == ["m"]
    ours.tree_serialize_leaves(path, {"z": jnp.ones(1)})
    for module in (ours, reference):
        assert list(module.tree_deserialize_leaves(path, line)) == ["z"]


def test_indexes_of_other_programs(tmp_path, line):
    path = tmp_path / "c"
    reference.tree_serialize_leaves(str(path), {"w": {"k": jnp.arange(3)}, "b": jnp.ones(2)},
                                    prefix="model")
    index = json.loads((path / "tensorstore_index.json").read_text())
    arrays = index["prefixes"]["model"]
    for text in ({"format": "tensorstore", "arrays": arrays},
                 {"format": "tensorstore", "version": "easydel", "prefixes": {"model": arrays}}):
        (path / "tensorstore_index.json").write_text(json.dumps(text))
        for prefix in ["model", None] if "arrays" in text else ["model"]:
            same(*(module.tree_deserialize_leaves(str(path), line, prefix=prefix)
                   for module in (ours, reference)))
    (path / "tensorstore_index.json").write_text('{"format": "other", "arrays": []}')
    for module in (ours, reference):
        with pytest.raises(ValueError, match="format|other"):
            module.tree_deserialize_leaves(str(path), line)
    (path / "tensorstore_index.json").unlink()
    assert ours.tree_deserialize_leaves(path, line)["model"]["w"]["k"][2] == 2
    with pytest.raises(FileNotFoundError):
        ours.tree_deserialize_leaves(tmp_path / "no", line)


def test_without_an_index_the_arrays_are_there(tmp_path, line):
    path = tmp_path / "c"
    ours.tree_serialize_leaves(path, {"w": jnp.ones(2)}, prefix="m", write_index=False)
    assert not (path / "tensorstore_index.json").exists()
    assert ours.tree_deserialize_leaves(path, line, prefix="m")["w"].sum() == 2


def test_arrays_go_where_they_are_wanted(tmp_path, grid, line):
    path = str(tmp_path / "c")
    tree = {"layers": [{"kernel": jnp.arange(128.0).reshape(8, 16), "bias": jnp.ones(16)}],
            "embed": jnp.zeros((16, 8)), "n": jnp.ones(())}
    ours.tree_serialize_leaves(path, tree, prefix="model")
    rules = (("kernel$", PartitionSpec("b", "a")), (r"layers/\d/b", PartitionSpec("a")),
             (".*", PartitionSpec()))
    same(*(module.tree_deserialize_leaves(path, grid, prefix="model", partition_rules=rules)
           for module in (ours, reference)))
    shardings = {"layers.0.kernel": NamedSharding(grid, PartitionSpec("a")),
                 "layers.0.bias": NamedSharding(grid, PartitionSpec("b")),
                 "embed": NamedSharding(line, PartitionSpec("a")),
                 "n": NamedSharding(grid, PartitionSpec())}
    expected = reference.tree_deserialize_leaves(path, grid, prefix="model", shardings=shardings)
    nested = {"layers": [{"kernel": shardings["layers.0.kernel"], "bias": PartitionSpec("b")}],
              "embed": shardings["embed"], "n": shardings["n"]}
    for given in (shardings, nested):
        same(ours.tree_deserialize_leaves(path, grid, prefix="model", shardings=given), expected)
    for module in (ours, reference):
        with pytest.raises(ValueError, match="No sharding specified for 'embed'"):
            module.tree_deserialize_leaves(path, grid, prefix="model")
        with pytest.raises(ValueError, match="embed"):
            module.tree_deserialize_leaves(path, grid, prefix="model", partition_rules=rules[:2])
    with pytest.raises(ValueError, match="'embed'.*'layers.0.bias'.*'layers.0.kernel'.*'n'"):
        ours.tree_deserialize_leaves(path, grid, prefix="model")
    with pytest.raises(ValueError, match="rule 0"):
        ours.tree_deserialize_leaves(path, grid, partition_rules=(("(", PartitionSpec()),))


def test_without_a_mesh_arrays_are_of_numpy(tmp_path):
    ours.tree_serialize_leaves(tmp_path / "c", {"w": np.arange(4.0), "n": 3, "s": ["text"]})
    loaded = ours.tree_deserialize_leaves(tmp_path / "c", None)
    assert isinstance(loaded["w"], np.ndarray) and loaded["w"].dtype == np.float64
    assert (loaded["n"], loaded["s"]) == (3, {"0": "text"})
    with pytest.raises(ValueError, match="mesh"):
        ours.tree_deserialize_leaves(tmp_path / "c", None,
                                     partition_rules=((".", PartitionSpec()),))


def test_functions_and_callbacks_see_each_array_in_order(tmp_path, line):
    tree = {"b": [jnp.ones(8), jnp.ones(8)], "a": Point(jnp.ones(2), jnp.ones(3)), "c": jnp.ones(1)}
    path = str(tmp_path / "c")
    ours.tree_serialize_leaves(path, tree, prefix="m")
    for chunk_size in (None, 0, 1, 2, 100):
        results = []
        for module in (ours, reference):
            seen = []

            def note(array, key):
                seen.append((key, threading.current_thread() is threading.main_thread()))
                return array * 2

            results.append((module.tree_deserialize_leaves(path, line, prefix="m", callback=note,
                                                           chunk_size=chunk_size), seen))
        same(results[0][0], results[1][0])
        assert results[0][1] == results[1][1]
    doubled = ours.tree_deserialize_leaves(path, line, prefix="m",
                                           shardings={"c": lambda x: x + isinstance(x, jax.Array)})
    assert doubled["c"][0] == 2


def test_a_manager_of_jax_covers_the_save(tmp_path, line):
    manager, told = GlobalAsyncCheckpointManager(), []
    path = tmp_path / "c"
    ours.tree_serialize_leaves(path, {"w": jnp.ones(2)}, manager,
                               commit_callback=lambda: told.append((path / "cairn.json").exists()))
    manager.wait_until_finished()
    assert told == [True]
    assert ours.tree_deserialize_leaves(path, line, manager)["w"].sum() == 2

    def fail():
        raise RuntimeError("the callback failed")

    ours.tree_serialize_leaves(path, {"w": jnp.ones(2)}, manager, commit_callback=fail)
    with pytest.raises(RuntimeError, match="the callback failed"):
        manager.wait_until_finished()
    manager.check_for_errors()


def test_a_tracker_covers_saves(tmp_path):
    tracker, told = SaveTracker(), []
    for name in "ab":
        ours.tree_serialize_leaves(tmp_path / name, {"w": np.ones(2)}, tracker,
                                   commit_callback=lambda name=name: told.append(name))
    tracker.wait_until_finished()
    assert sorted(told) == ["a", "b"]
    ours.tree_serialize_leaves(tmp_path / "a", {"w": np.ones(2)}, tracker,
                               commit_callback=lambda: 1 / 0)
    with pytest.raises(cairn.Error, match="ZeroDivisionError"):
        tracker.wait_until_finished()
    tracker.check_for_errors()
    tracker.wait_until_finished()
    with pytest.raises(TypeError, match="no manager"):
        ours.tree_serialize_leaves(tmp_path / "a", {}, "manager")


def test_the_callback_comes_once_after_the_commit(tmp_path):
    told = []
    path = tmp_path / "c"
    ours.tree_serialize_leaves(f"file://{path}", {"w": np.ones(2)},
                               commit_callback=lambda: told.append((path / "cairn.json").exists()))
    assert told == [True]
    with pytest.raises(NotImplementedError, match="hf://"):
        ours.tree_serialize_leaves("hf://x", {}, commit_callback=lambda: told.append(0))
    assert told == [True]


def test_one_array_is_a_tree(tmp_path, line):
    for saver in (ours, reference):
        path = str(tmp_path / saver.__name__)
        saver.tree_serialize_leaves(path, jnp.arange(3), prefix="p")
        same(*(module.tree_deserialize_leaves(path, line, prefix="p")
               for module in (ours, reference)))
    split = NamedSharding(line, PartitionSpec("a"))
    ours.tree_serialize_leaves(path, jnp.arange(8), prefix="p")
    for given in (split, {"p": split}):
        loaded = ours.tree_deserialize_leaves(path, line, prefix="p", shardings=given)
        assert loaded["p"].sharding == split
