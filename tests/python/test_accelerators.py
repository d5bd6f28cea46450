# SPDX-License-Identifier: Apache-2.0
"""Arrays of JAX on a GPU, where there is one."""

import cairn
import jax
import jax.numpy as jnp
import numpy as np
import pytest

pytestmark = pytest.mark.skipif(jax.default_backend() == "cpu", reason="JAX has no GPU")


def test_arrays_go_out_and_come_back_to_the_device(tmp_path):
    tree = {"w": jnp.arange(12.0).reshape(3, 4), "b": jnp.ones(5, jnp.bfloat16),
            "key": jax.random.key(1)}
    cairn.save(tree, tmp_path / "c")
    loaded = cairn.load(tmp_path / "c", template=tree)
    for name in ("w", "b"):
        assert loaded[name].devices() == tree[name].devices()
        np.testing.assert_array_equal(np.asarray(loaded[name]), np.asarray(tree[name]))
    assert isinstance(cairn.load(tmp_path / "c")["w"], np.ndarray)


def test_what_was_there_at_the_call_is_saved(tmp_path):
    step = jax.jit(lambda x: x + 1, donate_argnums=0)
    array = jnp.zeros(1 << 24)
    handle = cairn.save_async({"w": array}, tmp_path / "c")
    for _ in range(5):
        array = step(array)
    array.delete()
    handle.wait()
    assert not cairn.load(tmp_path / "c")["w"].any()


def test_jax_does_not_keep_the_copies(tmp_path):
    array = jnp.ones(1 << 20)
    cairn.save({"w": array}, tmp_path / "c")
    assert array._npy_value is None


def test_between_host_and_device(tmp_path):
    host = jax.devices("cpu")[0]
    array = jnp.arange(8.0)
    cairn.save({"w": array}, tmp_path / "c")
    assert cairn.load(tmp_path / "c", sharding=host)["w"].devices() == {host}
    cairn.save({"w": jax.device_put(array, host)}, tmp_path / "h")
    loaded = cairn.load(tmp_path / "h", sharding=jax.devices()[0])["w"]
    assert loaded.devices() == array.devices()
    np.testing.assert_array_equal(np.asarray(loaded), np.arange(8.0))
