# SPDX-License-Identifier: Apache-2.0
"""AsyncCheckpointManager, beside the reference's: what one saves, the other loads."""

import collections
import hashlib
import json
import logging
import threading

import cairn
import jax
import jax.numpy as jnp
import ml_dtypes
import numpy as np
import optax
import pytest
import safetensors.numpy
from cairn.serialization import async_manager as ours
from eformer.paths import ePath
from eformer.serialization import async_manager as reference
from jax.sharding import NamedSharding, PartitionSpec

Point = collections.namedtuple("Point", "x y")
MODULES = (ours, reference)


def state():
    return {"layers": [{"kernel": jnp.arange(128.0).reshape(8, 16), "bias": jnp.ones(16)},
                       {"kernel": jnp.ones((8, 16), jnp.bfloat16), "bias": jnp.zeros(16)}],
            "embed": jnp.arange(16).reshape(8, 2), "scale": jnp.float32(3)}


def same(a, b):
    assert jax.tree.structure(a) == jax.tree.structure(b)
    for x, y in zip(jax.tree.leaves(a), jax.tree.leaves(b)):
        assert (x.dtype, x.shape) == (y.dtype, y.shape)
        assert getattr(x, "sharding", None) == getattr(y, "sharding", None)
        np.testing.assert_array_equal(np.asarray(x), np.asarray(y))


@pytest.mark.parametrize("prefix", [None, "model"])
def test_what_one_saves_the_other_loads(tmp_path, line, prefix):
    loaded = []
    for saver in MODULES:
        path = str(tmp_path / saver.__name__)
        assert saver.AsyncCheckpointManager(float_dtype=None).save_tree(
            state(), path, line, prefix=prefix, metadata={"lr": 0.1}) == path
        ours.AsyncCheckpointManager().load(path, None, prefix=prefix)  # waits
        for loader in MODULES:
            tree, about = loader.AsyncCheckpointManager().load(path, line, prefix=prefix)
            assert about["custom_metadata"] == {"lr": 0.1}
            assert set(about) == set(reference.CheckpointMetadata().to_dict())
            loaded.append(tree)
    for tree in loaded:
        same(tree, loaded[-1])


def test_safetensors_of_both(tmp_path, line):
    tree = {"a": {"w": jnp.arange(6.0), "b": jnp.ones(2, jnp.bfloat16)}}
    for saver, loader in (MODULES, reversed(MODULES)):
        path = str(tmp_path / f"{saver.__name__}.safetensors")
        manager = saver.AsyncCheckpointManager(use_tensorstore=False, float_dtype=None)
        manager.save_tree(tree, path, line)
        manager.global_manager.wait_until_finished()
        assert safetensors.numpy.load_file(path)["a.w"].sum() == 15
        for module in (saver, loader):
            one = module.AsyncCheckpointManager()
            for read in (lambda: one.load(path, line), lambda: one.load_tree_parallel(path)):
                got, _ = read()
                assert isinstance(got["a"]["w"], jax.Array)
                same(got, tree)
    assert ours.AsyncCheckpointManager().load(path, line, prefix="tx")[0]["a"]["w"][5] == 5
    assert ours.AsyncCheckpointManager().load(path, None)[1]["version"]


def test_parts_of_a_set_are_found_by_what_their_names_begin_with(tmp_path):
    base = str(tmp_path / "model")
    weights = {"enc": {"w": jnp.ones(8), "v": jnp.ones(8, jnp.int32)}, "dec": {"w": jnp.zeros(8)}}
    index = {"metadata": {"who": "us"}, "weight_map": {}}
    for n, (name, inside) in enumerate(weights.items()):
        flat = {f"{name}.{key}": np.asarray(value) for key, value in inside.items()}
        part = f"model-0000{n + 1}-of-00002.safetensors"
        safetensors.numpy.save_file(flat, str(tmp_path / part))
        index["weight_map"].update(dict.fromkeys(flat, part))
    (tmp_path / "model.safetensors.index.json").write_text(json.dumps(index))
    results = [module.AsyncCheckpointManager().load_tree_parallel(base) for module in MODULES]
    same(results[0][0], results[1][0])
    assert results[0][1] == results[1][1] == {"who": "us"}
    manager = ours.AsyncCheckpointManager()
    assert set(manager.load_tree_parallel(base, prefix_filter="enc.w")[0]) == {"enc"}
    with pytest.raises(KeyError, match="'none'"):
        manager.load_tree_parallel(base, prefix_filter="none")


def test_functions_callbacks_and_casts_of_safetensors(tmp_path):
    path = str(tmp_path / "c.safetensors")
    safetensors.numpy.save_file({"a.w": np.ones(2, np.float32), "b": np.ones(2, np.int32)}, path)
    for functions in ({"a.w": lambda x: x * 3, "b": lambda x: x}, {"a.w": lambda x: x * 3}, None):
        results = []
        for module in MODULES:
            seen = []

            def note(array, key):
                seen.append((key, str(array.dtype)))
                return array + 1

            tree, _ = module.AsyncCheckpointManager().load_tree_parallel(
                path, functions, callback=note, dtype=jnp.bfloat16)
            results.append((tree, sorted(seen)))
        same(results[0][0], results[1][0])
        assert results[0][1] == results[1][1]
    with pytest.raises(KeyError, match="b"):
        ours.AsyncCheckpointManager().load_tree_parallel(path, {"a.w": lambda x: x}, False)
    assert ours.AsyncCheckpointManager().load_tree_parallel(path, dtype="fp16")[0]["a"]["w"].dtype \
        == np.float16


def test_arrays_go_where_they_are_wanted(tmp_path, grid):
    path = str(tmp_path / "c")
    reference.AsyncCheckpointManager().save_tree(state(), path, grid, prefix="model")
    rules = (("kernel$", PartitionSpec("a", "b")), (r"^layers/\d/b", PartitionSpec("a")),
             (".*", PartitionSpec()))
    same(*(module.AsyncCheckpointManager().load(path, grid, prefix="model",
                                                partition_rules=rules)[0] for module in MODULES))
    shardings = {"layers.0.kernel": NamedSharding(grid, PartitionSpec("b"))}
    manager = ours.AsyncCheckpointManager()
    with pytest.raises(ValueError, match="'embed'.*'layers.0.bias'"):
        manager.load(path, grid, shardings, prefix="model")
    with pytest.raises(KeyError, match="embed.*scale") as caught:
        manager.load(path, None, shardings, False, prefix="model")
    assert caught.value.reason == "load/unnamed-leaves"
    trimmed, _ = manager.load(path, grid, prefix="model",
                              partition_rules=(("kernel|bias|embed", PartitionSpec("a", "b")),))
    assert trimmed["layers"]["0"]["bias"].sharding.spec == PartitionSpec("a")
    assert trimmed["scale"].sharding.is_fully_replicated
    tree, _ = manager.load(path, None, shardings, prefix="model")
    assert tree["layers"]["0"]["kernel"].sharding == shardings["layers.0.kernel"]
    assert isinstance(tree["embed"], np.ndarray)
    tree, _ = manager.load(path, grid, lambda x: x * 2, prefix="model")
    assert float(tree["scale"]) == 6


@pytest.mark.parametrize("chunk_size", [None, 1, 3])
def test_callbacks_see_the_same_keys_in_the_same_order(tmp_path, line, chunk_size):
    path = str(tmp_path / "c")
    reference.AsyncCheckpointManager().save_pytree(state(), path, line, prefix="model")
    for call in ("load", "load_pytree"):
        results = []
        for module in MODULES:
            seen = []

            def note(array, key):
                assert threading.current_thread() is threading.main_thread()
                seen.append((key, isinstance(array, jax.Array)))
                return array * 2

            tree, _ = getattr(module.AsyncCheckpointManager(), call)(
                path, line, prefix="model", callback=note, chunk_size=chunk_size)
            results.append((jax.tree.leaves(tree), seen))
        same(results[0][0], results[1][0])
        assert results[0][1] == results[1][1]


def test_containers_come_back_from_either(tmp_path, line):
    tree = {"opt": optax.adam(1e-3).init({"w": jnp.ones(2)}), "p": (jnp.ones(2), [3, None, "x"]),
            "k": {2: jnp.zeros(1)}}
    for saver in MODULES:
        path = str(tmp_path / saver.__name__)
        manager = saver.AsyncCheckpointManager()
        manager.save_pytree(tree, path, line, prefix="m", extras={"n": 2 ** 70 + 1})
        manager.global_manager.wait_until_finished()
        for loader in MODULES:
            got, extras = loader.AsyncCheckpointManager().load_pytree(path, line, prefix="m")
            assert jax.tree.structure(got) == jax.tree.structure(tree)
            assert extras == {"n": 2 ** 70 + 1}
            assert got["p"][1] == [3, None, "x"]
            leaves = jax.tree.leaves((got["opt"], got["k"]))
            assert {leaf.sharding for leaf in leaves} == {NamedSharding(line, PartitionSpec())}


def test_rules_of_load_pytree_see_the_prefix(tmp_path, grid):
    path = str(tmp_path / "c")
    reference.AsyncCheckpointManager().save_pytree(state(), path, grid, prefix="model")
    rules = (("^model/layers/0/k", PartitionSpec("a", "b")), (".*", PartitionSpec()))
    for options in ({"partition_rules": rules}, {},
                    {"shardings": {"model.embed": NamedSharding(grid, PartitionSpec("b"))}}):
        same(*(jax.tree.leaves(module.AsyncCheckpointManager().load_pytree(
            path, grid, prefix="model", **options)[0]) for module in MODULES))


def test_templates(tmp_path, line):
    path = str(tmp_path / "c")
    reference.AsyncCheckpointManager().save_pytree(
        {"a": jnp.arange(6.0).reshape(1, 6), "b": jnp.arange(4), "c": [jnp.ones(3)]}, path, line,
        prefix="m", extras={"step": 3})
    good = {"a": jnp.zeros((1, 6)), "b": jnp.zeros(4, jnp.int32), "c": [jnp.zeros(3)]}
    odd = {"a": jnp.zeros(6), "b": jnp.zeros((2, 2), jnp.int32), "c": [jnp.zeros(7)],
           "d": jnp.full(2, 9.0)}
    for template, strict in ((good, True), (good, False), (odd, False)):
        results = [module.AsyncCheckpointManager().load_pytree(
            path, line, prefix="m", template=template, strict_shapes=strict) for module in MODULES]
        kept = {"kept_from_template": ["c.0", "d"]} if template is odd else {}
        assert results[0][1] == results[1][1] | kept == {"step": 3} | kept
        for (path_of, x), y in zip(jax.tree.leaves_with_path(results[0][0]),
                                   jax.tree.leaves(results[1][0])):
            np.testing.assert_array_equal(np.asarray(x), np.asarray(y), str(path_of))
    manager = ours.AsyncCheckpointManager()
    with pytest.raises(KeyError, match="Missing array for key 'd'.*Array shape mismatch for key"):
        manager.load_pytree(path, line, prefix="m", template=odd)
    with pytest.raises(ValueError, match="Array shape mismatch for key 'a'.*'b'.*'c.0'"):
        manager.load_pytree(path, line, prefix="m", template={k: odd[k] for k in "abc"})
    seen = []
    tree, _ = manager.load_pytree(path, None, prefix="m", template=odd, strict_shapes=False,
                                  callback=lambda x, key: seen.append(key) or x)
    assert tree["c"][0] is odd["c"][0] and tree["d"] is odd["d"]
    assert seen == ["m.a", "m.b"]
    assert tree["a"].sharding == odd["a"].sharding


def test_numpy_leaves_values_and_none_come_back(tmp_path, line):
    tree = {"w": np.arange(3), "n": 3, "t": "text", "none": None, "p": Point(np.ones(2), [1.5])}
    manager = ours.AsyncCheckpointManager(enable_validation=True)
    assert manager.save_pytree(tree, tmp_path / "c", prefix="m", extras={"e": [1, float("nan")]}) \
        == str(tmp_path / "c")
    back, extras = manager.load_pytree(tmp_path / "c", None, prefix="m")
    assert (back["n"], back["t"], back["none"], back["p"].y) == (3, "text", None, [1.5])
    assert type(back["p"]) is Point and extras == {"e": [1, None]}
    manager.save_tree(tree, ePath(str(tmp_path / "d")), line)
    back, _ = manager.load(ePath(str(tmp_path / "d")), None)
    assert back["p"] == {"x": pytest.approx([1, 1]), "y": {"0": 1.5}} and back["t"] == "text"
    for bad in ("", None, 3):
        for call in (lambda: manager.save_pytree({}, tmp_path / "e", prefix=bad),
                     lambda: manager.load_pytree(tmp_path / "e", None, prefix=bad)):
            with pytest.raises(ValueError, match="A non-empty string prefix is required"):
                call()


def test_a_flat_dict_of_tuples_is_a_tree(tmp_path):
    manager = ours.AsyncCheckpointManager()
    manager.save_tree({("a", "b"): np.ones(1), ("a", "c"): np.zeros(1)}, tmp_path / "c")
    assert set(manager.load(tmp_path / "c", None)[0]["a"]) == {"b", "c"}


def test_casts_happen_where_they_are_asked_for(tmp_path, line):
    tree = {"f": jnp.ones(3), "i": jnp.ones(3, jnp.int32)}

    def dtypes(manager, name, **options):
        manager.save_tree(tree, tmp_path / name, line, **options)
        loaded = manager.load(tmp_path / name, line)[0]
        return str(loaded["f"].dtype), str(loaded["i"].dtype)

    plain = ours.AsyncCheckpointManager()
    assert dtypes(plain, "a") == ("float32", "int32")
    assert dtypes(plain, "b", float_dtype="fp16") == ("float16", "int32")
    assert dtypes(ours.AsyncCheckpointManager(float_dtype=jnp.bfloat16), "c") \
        == ("bfloat16", "int32")
    assert plain.load(tmp_path / "a", line, dtype=jnp.bfloat16)[0]["f"].dtype == ml_dtypes.bfloat16
    plain.save_pytree(tree, tmp_path / "d", prefix="m", dtype=jnp.float16)
    back = plain.load_pytree(tmp_path / "d", line, prefix="m")[0]
    assert back["f"].dtype == np.float16
    assert plain.load_pytree(tmp_path / "d", line, prefix="m", dtype="bf16")[0]["f"].dtype \
        == ml_dtypes.bfloat16


def test_compression(tmp_path, line):
    sizes = []
    for compress in (False, True):
        path = tmp_path / str(compress)
        manager = ours.AsyncCheckpointManager(enable_compression=compress)
        manager.save_tree({"w": jnp.zeros((64, 64))}, path, line)
        manager.wait_until_finished()
        sizes.append((path / "w" / "0.0").stat().st_size)
        same(reference.AsyncCheckpointManager().load(str(path), line)[0], {
            "w": jax.device_put(jnp.zeros((64, 64)), NamedSharding(line, PartitionSpec()))})
    assert sizes[0] == 64 * 64 * 4 and sizes[1] < 1000


def test_validation(tmp_path, line):
    path = tmp_path / "c"
    manager = ours.AsyncCheckpointManager(enable_validation=True)
    manager.save_tree({"w": jnp.arange(5.0), "none": None}, path, line)
    _, about = manager.load(path, line)
    assert about["checksum"] == {"w": reference.AsyncCheckpointManager.compute_checksum(
        jnp.arange(5.0))}
    assert about["array_metadata"] == {"w": {"dtype": "float32", "shape": [5]}}
    text = (path / ".cairn-manifest.json").read_text()
    wrong = text.replace(about["checksum"]["w"], "0" * 64)
    (path / ".cairn-manifest.json").write_text(wrong)
    record = (path / "cairn.json").read_text()
    (path / "cairn.json").write_text(record.replace(
        hashlib.sha256(text.encode()).hexdigest(), hashlib.sha256(wrong.encode()).hexdigest()))
    assert wrong != text
    for load in (lambda: manager.load(path, line),
                 lambda: ours.AsyncCheckpointManager().load(path, line, validate=True)):
        with pytest.raises(cairn.CorruptError, match="(?i)sha-?256"):
            load()
    assert manager.load(path, line, validate=False)[0]["w"][4] == 4


def test_damage_is_seen_without_being_asked_for(tmp_path):
    path = tmp_path / "c"
    manager = ours.AsyncCheckpointManager(blocking=True)
    manager.save_tree({"w": np.arange(5.0)}, path)
    chunk = bytearray((path / "w" / "0").read_bytes())
    chunk[7] ^= 1
    (path / "w" / "0").write_bytes(chunk)
    with pytest.raises(ValueError, match="leaf w"):
        manager.load(path, None)


def test_gather_functions(tmp_path, grid):
    array = jax.device_put(jnp.arange(16.0).reshape(8, 2), NamedSharding(grid, PartitionSpec("a")))
    manager = ours.AsyncCheckpointManager()
    for name, functions in (("a", True), ("b", {"x": {"w": lambda x: x * 2}}),
                            ("c", {("x", "w"): lambda x: x * 2}), ("d", {"x.w": lambda x: x * 2})):
        manager.save_tree({"x": {"w": array, "n": None}}, tmp_path / name, grid, functions)
        expected = array if functions is True else array * 2
        got = manager.load(tmp_path / name, None)[0]["x"]["w"]
        np.testing.assert_array_equal(got, np.asarray(expected))


@pytest.mark.parametrize("use_tensorstore", [True, False])
def test_gathering_changes_nothing(tmp_path, grid, caplog, use_tensorstore):
    array = jax.device_put(jnp.arange(16.0).reshape(8, 2), NamedSharding(grid, PartitionSpec("a")))
    manager = ours.AsyncCheckpointManager(use_tensorstore=use_tensorstore)
    for n in range(2):
        manager.save_tree({"w": array, "n": 3}, tmp_path / f"{n}", grid, do_all_gather=True,
                          cpu_offload=bool(n), float_dtype="bf16")
        loaded = manager.load(tmp_path / f"{n}", None)[0]
        assert loaded["w"].dtype == ml_dtypes.bfloat16 and loaded["n"] == 3
        np.testing.assert_array_equal(loaded["w"], np.asarray(array))
    manager.save_pytree({"w": array}, tmp_path / "p", grid, prefix="m", do_all_gather=True)
    np.testing.assert_array_equal(manager.load_pytree(tmp_path / "p", None, prefix="m")[0]["w"],
                                  np.asarray(array))
    said = [record for record in caplog.records if "do_all_gather" in record.message]
    assert len(said) == int(use_tensorstore)


def test_switched_off(tmp_path, caplog):
    manager = ours.AsyncCheckpointManager(enable=False)
    with caplog.at_level(logging.INFO, "cairn"):
        assert manager.save_tree({"w": np.ones(2)}, tmp_path / "c") == str(tmp_path / "c")
    assert "switched off" in caplog.text and not list(tmp_path.iterdir())


def test_what_a_save_says(tmp_path, caplog):
    with caplog.at_level(logging.INFO, "cairn"):
        manager = ours.AsyncCheckpointManager(blocking=True)
        for _ in range(2):
            manager.save_tree({"w": np.ones(2)}, tmp_path / "c")
        assert len(caplog.records) == 1 and "without a mesh" in caplog.text
        ours.AsyncCheckpointManager(verbose=True, blocking=True).save_pytree(
            {"w": np.ones(2)}, tmp_path / "c", prefix="m")
        assert "writing" in caplog.text


def test_no_index_no_cloud_no_surprises(tmp_path, line):
    manager = ours.AsyncCheckpointManager()
    manager.save_pytree({"w": np.ones(2)}, tmp_path / "c", prefix="m", write_index=False)
    manager.wait_until_finished()
    assert not ours.AsyncCheckpointManager.is_tensorstore(tmp_path / "c")
    reference.tree_serialize_leaves(str(tmp_path / "r"), {"a": {"w": jnp.ones(2)}}, prefix="m")
    (tmp_path / "r" / "tensorstore_index.json").unlink()
    assert list(manager.load(tmp_path / "r", line)[0]) == ["m"]
    assert list(manager.load(tmp_path / "r", line, prefix="m")[0]) == ["a"]
    with pytest.raises(FileNotFoundError, match="'tx' not found"):
        manager.load(tmp_path / "r", line, prefix="tx")
    with pytest.raises(FileNotFoundError):
        manager.load(tmp_path / "no", line)
    with pytest.raises(NotImplementedError, match="gcs_bucket.*cloud"):
        ours.AsyncCheckpointManager(gcs_bucket="b")
    with pytest.raises(ValueError, match="while_saving"):
        ours.AsyncCheckpointManager(while_saving="perhaps")
    assert (manager.enable, manager.float_dtype, manager.verbose, manager.use_tensorstore,
            manager.enable_validation, manager.enable_compression) \
        == (None, None, False, True, False, False)


def test_static_calls_answer_as_the_reference(tmp_path, line):
    reference.AsyncCheckpointManager().save_tree({"w": jnp.ones(2)}, str(tmp_path / "c"), line)
    for path in ("c", "no", "c/tensorstore_index.json", "no/tensorstore_index.json", "c/"):
        given = [str(tmp_path) + "/" + path, tmp_path / path, ePath(str(tmp_path / path))]
        for one in given:
            mine, theirs = (module.AsyncCheckpointManager for module in MODULES)
            assert mine.is_tensorstore(one) == theirs.is_tensorstore(one)
            assert str(mine.safe_loadpath(one)) == str(theirs.safe_loadpath(one))
    manager = ours.AsyncCheckpointManager()
    assert manager.load(tmp_path / "c" / "tensorstore_index.json", None)[0]["w"].sum() == 2
    rng = np.random.default_rng(2)
    for array in (rng.random((3, 4)), rng.random((3, 4)).T, jnp.ones(3, jnp.bfloat16),
                  np.float32(1), 3, np.zeros((0, 2))):
        assert mine.compute_checksum(array) == theirs.compute_checksum(array)


def test_metadata_is_that_of_the_reference():
    mine, theirs = (module.CheckpointMetadata for module in MODULES)
    for data in ({}, {"version": "1", "timestamp": "t", "checksum": {"a": "b"}},
                 {"custom_metadata": {"x": 1}, "timestamp": "t", "framework_version": "f"}):
        assert {**mine.from_dict(data).to_dict(), "version": 0, "timestamp": 0} \
            == {**theirs.from_dict(data).to_dict(), "version": 0, "timestamp": 0}
    assert mine.from_dict({"timestamp": "t", "odd": 1}).to_dict()["odd"] == 1
    assert mine("v", "t") == mine(version="v", timestamp="t")
