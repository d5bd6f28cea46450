# SPDX-License-Identifier: Apache-2.0
"""Loads into the caller's memory."""

import collections

import cairn
import jax
import jax.numpy as jnp
import ml_dtypes
import numpy as np
import pytest

Point = collections.namedtuple("Point", "x y")


def tree():
    return {"w": np.arange(12.0).reshape(3, 4), "p": Point(np.arange(3, dtype=np.int16), 7),
            "l": [np.float32(2.5) * np.ones(2, ml_dtypes.bfloat16), None, "text"],
            "scalar": np.array(3)}


def empty():
    return {"w": np.full((3, 4), -1.0), "p": Point(np.zeros(3, np.int16), 0),
            "l": [np.zeros(2, ml_dtypes.bfloat16), None, ""], "scalar": np.array(0)}


@pytest.mark.parametrize("layout", ["zarr2", "safetensors"])
@pytest.mark.parametrize("compress", [False, True])
def test_arrays_are_filled_in_place(tmp_path, layout, compress):
    if compress and layout == "safetensors":
        pytest.skip("safetensors has no compression")
    cairn.save(tree(), tmp_path / "c", layout=layout, compress=compress)
    out = empty()
    found = cairn.load(tmp_path / "c", out=out)
    assert found["w"] is out["w"] and found["p"].x is out["p"].x and found["l"][0] is out["l"][0]
    assert found["scalar"] is out["scalar"]
    assert (found["p"].y, found["l"][1], found["l"][2]) == (7, None, "text")
    for name, array in (("w", tree()["w"]), ("scalar", tree()["scalar"])):
        np.testing.assert_array_equal(out[name], array)
    np.testing.assert_array_equal(out["p"].x, tree()["p"].x)
    np.testing.assert_array_equal(out["l"][0], tree()["l"][0])


def test_floats_are_cast_and_shapes_may_be_let_differ(tmp_path):
    cairn.save({"w": np.arange(12.0)}, tmp_path)
    out = {"w": np.zeros(12, np.float32)}
    assert cairn.load(tmp_path, out=out)["w"].dtype == np.float32 and out["w"][11] == 11
    other = {"w": np.zeros((3, 4))}
    assert cairn.load(tmp_path, out=other, strict_shapes=False)["w"] is other["w"]
    np.testing.assert_array_equal(other["w"].reshape(-1), np.arange(12.0))
    with pytest.raises(ValueError, match="shape mismatch for key 'w'"):
        cairn.load(tmp_path, out={"w": np.zeros((3, 4))})


def test_views_and_slices_that_are_dense_are_filled(tmp_path):
    cairn.save({"w": np.arange(4.0)}, tmp_path)
    whole = np.zeros(12)
    cairn.load(tmp_path, out={"w": whole[4:8]})
    np.testing.assert_array_equal(whole, [0] * 4 + [0, 1, 2, 3] + [0] * 4)


def test_what_cannot_be_filled_is_named_and_left_alone(tmp_path):
    cairn.save({name: np.arange(4.0) for name in "abcdef"}, tmp_path)
    frozen = np.zeros(4)
    frozen.flags.writeable = False
    good = np.zeros(4)
    with pytest.raises(cairn.InvalidArgumentError) as caught:
        cairn.load(tmp_path, out={"a": jnp.zeros(4), "b": np.zeros(4, ">f8"), "c": good,
                                  "d": np.float64(1), "e": jax.ShapeDtypeStruct((4,), float)})
    for place in ("a is", "b is", "d is", "e is"):
        assert place in str(caught.value)
    with pytest.raises(cairn.Error) as caught:
        cairn.load(tmp_path, out={"a": frozen, "b": np.zeros(8)[::2], "c": good,
                                  "d": np.zeros(4, np.int32)})
    for place in ("leaf a:", "leaf b:", "leaf d:"):
        assert place in str(caught.value) or place[5:-1] in str(caught.value), caught.value
    assert not good.any() and not frozen.any()
    with pytest.raises(ValueError, match="neither template nor sharding"):
        cairn.load(tmp_path, out={}, template={})
