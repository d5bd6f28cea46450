# SPDX-License-Identifier: Apache-2.0
"""Leaves that only JAX has, and what is asked of them: keys, outlines, shardings that cannot be."""

import logging
import subprocess
import sys

import cairn
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from cairn.serialization import AsyncCheckpointManager, Checkpointer
from jax.sharding import AbstractMesh, Mesh, NamedSharding, PartitionSpec, SingleDeviceSharding

MESH = Mesh(np.array(jax.devices()).reshape(4, 2), ("x", "y"))
ROWS = NamedSharding(MESH, PartitionSpec("x"))


@pytest.fixture
def path(tmp_path):
    return tmp_path / "c"


@pytest.mark.parametrize("impl", ["threefry2x32", "rbg"])
def test_keys_go_on_where_they_were(path, impl):
    keys = {"one": jax.random.key(3, impl=impl),
            "many": jax.random.split(jax.random.key(4, impl=impl), 8),
            "spread": jax.device_put(jax.random.split(jax.random.key(5, impl=impl), 8), ROWS)}
    cairn.save(keys, path)
    outlines = jax.tree.map(lambda key: jax.ShapeDtypeStruct(key.shape, key.dtype), keys)
    for loaded in (cairn.load(path), cairn.load(path, template=keys),
                   cairn.load(path, template=outlines)):
        for name, key in keys.items():
            assert loaded[name].dtype == key.dtype and loaded[name].shape == key.shape
            np.testing.assert_array_equal(jax.random.key_data(loaded[name]),
                                          jax.random.key_data(key))
    assert cairn.load(path, template=keys)["spread"].sharding.is_equivalent_to(ROWS, 1)
    np.testing.assert_array_equal(jax.random.normal(cairn.load(path)["one"], (5,)),
                                  jax.random.normal(keys["one"], (5,)))


def test_keys_are_numbers_where_jax_is_not(path):
    cairn.save({"key": jax.random.key(3)}, path)
    program = ("import sys; sys.modules['jax'] = None\n"
               f"import cairn; print(cairn.load({str(path)!r})['key']['key_data'].tolist())")
    done = subprocess.run([sys.executable, "-c", program], text=True, capture_output=True)
    assert done.stdout == "[0, 3]\n", done


def test_a_key_keeps_the_reference_systems_structure_away(path):
    cairn.save({"w": jnp.ones(3), "key": jax.random.key(3)}, path, prefix="model")
    assert not (path / "model_structure.json").exists()


def test_outlines_become_arrays_of_jax_with_their_types(path):
    cairn.save({"w": np.arange(64, dtype=np.float32).reshape(8, 8), "n": np.int32(3)}, path)
    loaded = cairn.load(path, template={
        "w": jax.ShapeDtypeStruct((8, 8), jnp.bfloat16, sharding=ROWS),
        "n": jax.ShapeDtypeStruct((), jnp.int32)})
    assert loaded["w"].dtype == jnp.bfloat16 and loaded["w"].sharding == ROWS
    np.testing.assert_array_equal(loaded["w"], np.arange(64).reshape(8, 8).astype("bfloat16"))
    assert isinstance(loaded["n"], jax.Array) and loaded["n"] == 3
    assert loaded["n"].sharding == jnp.zeros(()).sharding


def test_types_that_no_cast_leads_to_are_all_named(path):
    cairn.save({"a": np.arange(3), "b": np.ones(3), "c": np.ones(2, np.float32)}, path)
    template = {"a": np.zeros(3, np.float32), "b": np.zeros(3, np.int8),
                "c": np.zeros(2, np.float16)}
    with pytest.raises(cairn.MismatchError) as caught:
        cairn.load(path, template=template)
    assert "'a': expected float32, the checkpoint has int64" in str(caught.value)
    assert "'b': expected int8, the checkpoint has float64" in str(caught.value)
    assert "'c'" not in str(caught.value)
    assert cairn.load(path, template=template, strict_shapes=False)["c"].dtype == np.float16


def test_wide_numbers_become_narrow_only_with_a_word(path, caplog):
    cairn.save({"w": np.arange(8.0)}, path)
    with caplog.at_level(logging.WARNING, "cairn"):
        loaded = cairn.load(path, sharding=ROWS)["w"]
    assert loaded.dtype == jnp.float32 and loaded.sharding == ROWS
    assert "w: float64 became float32" in caplog.text


def test_a_device_is_a_sharding(path):
    cairn.save({"w": np.arange(8)}, path)
    device = jax.devices()[3]
    assert cairn.load(path, sharding=device)["w"].sharding == SingleDeviceSharding(device)
    assert cairn.load(path, sharding={"w": device})["w"].sharding == SingleDeviceSharding(device)


def test_shardings_that_cannot_be_are_all_named(path):
    cairn.save({"a": np.zeros((4, 4)), "b": np.zeros((4, 4)), "c": np.zeros(4)}, path)
    with pytest.raises(cairn.InvalidArgumentError) as caught:
        cairn.load(path, sharding={"a": PartitionSpec("x"), "b": "everywhere", "c": None,
                                   "d": ROWS})
    for text in ("'a' is a PartitionSpec", "'b' is a str", "there is no array 'd'"):
        assert text in str(caught.value)


def test_a_sharding_without_jax_is_refused(path):
    cairn.save({"a": np.zeros(4)}, path)
    program = f"""
import cairn
try:
    cairn.load({str(path)!r}, sharding="everywhere")
except cairn.InvalidArgumentError as error:
    print(error.reason)
"""
    done = subprocess.run([sys.executable, "-c", program], text=True, capture_output=True)
    assert done.stdout == "load/no-jax\n", done


def test_arrays_that_hold_nothing_are_all_named(path):
    gone, donated = jnp.ones(3), jnp.ones(3)
    gone.delete()
    jax.jit(lambda x: x + 1, donate_argnums=0)(donated)
    with pytest.raises(cairn.InvalidArgumentError) as caught:
        cairn.save({"a": gone, "b": donated, "c": np.ones(3)}, path)
    assert "a is an array of JAX that was deleted" in str(caught.value)
    assert "b is an array of JAX that was deleted" in str(caught.value)
    with pytest.raises(cairn.InvalidArgumentError, match="x is traced"):
        jax.jit(lambda x: cairn.save({"x": x}, path))(jnp.ones(3))
    assert not path.exists()


def test_what_was_committed_to_no_device_is_so_again(tmp_path):
    state = {"w": jax.device_put(jnp.ones(8), ROWS),
             "step": jnp.int32(3), "there": jax.device_put(jnp.ones(2), jax.devices()[2]),
             "key": jax.random.key(1)}
    cairn.save(state, tmp_path / "c")
    loaded = cairn.load(tmp_path / "c", template=state)
    assert not loaded["step"].committed and not loaded["key"].committed
    assert loaded["there"].committed and loaded["there"].devices() == {jax.devices()[2]}
    outline = cairn.load(tmp_path / "c", template={"step": jax.ShapeDtypeStruct((), jnp.int32)})
    assert not outline["step"].committed
    # JAX refuses what is committed to one device together with what lies on several.
    assert jax.jit(lambda w, step: w * step)(loaded["w"], loaded["step"]).sum() == 24
    placed = cairn.load(tmp_path / "c", template={"step": state["step"]},
                        sharding={"step": jax.devices()[1]})
    assert placed["step"].committed and placed["step"].devices() == {jax.devices()[1]}


def test_a_run_commits_nothing_that_was_committed_to_no_device(tmp_path):
    where = NamedSharding(Mesh(np.array(jax.devices()), "x"), PartitionSpec("x"))
    state = {"w": jax.device_put(np.arange(16.0, dtype=np.float32), where), "step": jnp.int32(3),
             "key": jax.random.key(1), "there": jax.device_put(jnp.ones(2), jax.devices()[2])}
    run = Checkpointer(tmp_path / "run", None, [])
    run.on_step(None, state, True, step=1)
    manager = AsyncCheckpointManager()
    manager.save_pytree(state, tmp_path / "tree", prefix="m")
    outline = jax.tree.map(lambda leaf: jax.ShapeDtypeStruct(
        leaf.shape, leaf.dtype, sharding=leaf.sharding if leaf.committed else None), state)
    for template in (state, outline):
        for loaded in (run.load_checkpoint(None, template=template)[0],
                       manager.load_pytree(tmp_path / "tree", None, prefix="m",
                                           template=template)[0]):
            assert {name: leaf.committed for name, leaf in loaded.items()} == \
                {"w": True, "step": False, "key": False, "there": True}
            assert loaded["w"].sharding == where and loaded["there"].devices() == {jax.devices()[2]}
            # JAX refuses what is committed to one device together with what lies on several.
            assert jax.jit(lambda w, step: w + step)(loaded["w"], loaded["step"])[1] == 4


def test_weak_types_are_weak_again(tmp_path):
    mesh = Mesh(np.array(jax.devices()[:4]), "x")
    spread = jax.jit(lambda: jnp.full((8,), 0.25), out_shardings=NamedSharding(
        mesh, PartitionSpec("x")))
    state = {"rate": jax.jit(lambda rate: rate / 2)(0.5), "spread": spread(),
             "w": jnp.ones(3, jnp.bfloat16), "strong": jnp.float32(2)}
    assert state["rate"].weak_type and state["spread"].weak_type
    cairn.save(state, tmp_path / "c")
    outline = jax.eval_shape(lambda state: state, state)
    run = Checkpointer(tmp_path / "run", None, [])
    run.on_step(None, state, True, step=1)
    for loaded in (cairn.load(tmp_path / "c", template=state),
                   cairn.load(tmp_path / "c", template=outline),
                   run.load_checkpoint(None, template=state)[0]):
        assert {name: leaf.weak_type for name, leaf in loaded.items()} == \
            {"rate": True, "spread": True, "w": False, "strong": False}
        assert (loaded["rate"] * loaded["w"]).dtype == jnp.bfloat16
        assert loaded["rate"] == 0.25 and (loaded["spread"] == state["spread"]).all()
    placed = cairn.load(tmp_path / "c", template=state)["spread"]
    assert placed.sharding == state["spread"].sharding and placed.committed
    cast = cairn.load(tmp_path / "c", template={**outline, "rate": jnp.bfloat16(0)})
    assert not cast["rate"].weak_type


def test_a_mesh_without_devices_is_refused(tmp_path):
    cairn.save({"w": np.ones(8)}, tmp_path / "c")
    nowhere = NamedSharding(AbstractMesh((8,), ("x",)), PartitionSpec("x"))
    for options in ({"sharding": nowhere},
                    {"template": {"w": jax.ShapeDtypeStruct((8,), float, sharding=nowhere)}}):
        with pytest.raises(cairn.InvalidArgumentError, match="abstract mesh"):
            cairn.load(tmp_path / "c", **options)


KINDS = {
    "numpy": lambda shape: np.full(shape, 7.0, np.float32),
    "generic": lambda shape: np.float32(7),
    "jax": lambda shape: jax.numpy.full(shape, 7.0, "float32"),
    "spread": lambda shape: jax.device_put(
        np.full(shape, 7.0, np.float32),
        NamedSharding(Mesh(np.array(jax.devices()[:2]), ("x",)), PartitionSpec())),
    "outline": lambda shape: jax.ShapeDtypeStruct(shape, "float32"),
}


@pytest.mark.parametrize("kind", KINDS)
def test_leaves_of_the_template_stay_where_nothing_fits(tmp_path, kind):
    cairn.save({"w": np.ones((2, 3), np.float32)}, tmp_path)
    template = {"w": KINDS[kind]((5,)), "new": KINDS[kind]((2, 2))}
    loaded = cairn.load(tmp_path, template=template, strict_shapes=False)
    for name in ("w", "new"):
        kept = loaded[name] is template[name] if kind != "numpy" else (loaded[name] == 7).all()
        assert kept and loaded[name].shape == template[name].shape


@pytest.mark.parametrize("kind", ["numpy", "jax", "outline"])
def test_arrays_are_reshaped_where_that_is_allowed(tmp_path, kind):
    cairn.save({"w": np.arange(6, dtype=np.float32).reshape(2, 3)}, tmp_path)
    template = {"w": KINDS[kind]((3, 2))}
    loaded = cairn.load(tmp_path, template=template, strict_shapes=False)["w"]
    assert type(loaded) is type(jax.numpy.ones(1) if kind == "outline" else template["w"])
    assert np.asarray(loaded).tolist() == [[0, 1], [2, 3], [4, 5]]


def test_arrays_are_reshaped_onto_a_mesh(tmp_path):
    cairn.save({"w": np.arange(6, dtype=np.float32)}, tmp_path)
    template = {"w": KINDS["spread"]((2, 3))}
    rows = NamedSharding(template["w"].sharding.mesh, PartitionSpec("x"))
    for sharding in (template["w"].sharding, rows):
        template = {"w": jax.device_put(template["w"], sharding)}
        loaded = cairn.load(tmp_path, template=template, strict_shapes=False)["w"]
        assert loaded.sharding == sharding
        assert np.asarray(loaded).tolist() == [[0, 1, 2], [3, 4, 5]]


def test_keys_of_the_template_stay_too(tmp_path):
    cairn.save({"w": np.ones(2)}, tmp_path)
    for key in (jax.random.key(0), jax.eval_shape(lambda: jax.random.key(0))):
        assert cairn.load(tmp_path, template={"k": key}, strict_shapes=False)["k"] is key
