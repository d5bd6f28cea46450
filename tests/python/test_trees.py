# SPDX-License-Identifier: Apache-2.0
"""Trees of Python, saved and loaded: structure, values, every type of element."""

import collections
import dataclasses
import math
import time

import cairn
import ml_dtypes
import numpy as np
import pytest

Point = collections.namedtuple("Point", "x y")


@dataclasses.dataclass
class Settings:
    rate: float
    weights: np.ndarray


DTYPES = ["bool", "int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64",
          "float16", "float32", "float64", "complex64", "complex128", "bfloat16", "int4",
          "float8_e4m3fn", "float8_e5m2", "float8_e4m3fnuz", "float8_e3m4"]


def dtype_of(name):
    return np.dtype(getattr(ml_dtypes, name, name))


def same(a, b):
    assert type(a) is type(b), (a, b)
    if isinstance(a, dict):
        assert sorted(a, key=str) == sorted(b, key=str)
        for key in a:
            same(a[key], b[key])
    elif isinstance(a, (list, tuple)):
        assert len(a) == len(b)
        for x, y in zip(a, b):
            same(x, y)
    elif dataclasses.is_dataclass(a):
        same(vars(a), vars(b))
    elif isinstance(a, np.ndarray):
        assert (a.dtype, a.shape, a.tobytes()) == (b.dtype, b.shape, b.tobytes())
    elif isinstance(a, float) and math.isnan(a):
        assert math.isnan(b)
    else:
        assert a == b


@pytest.mark.parametrize("layout", ["zarr2", "safetensors"])
def test_containers_and_values_come_back_as_they_were(tmp_path, layout):
    tree = {
        "list": [1, 2.5, None, "text", b"\x00\xff", 3 + 2j, True, 10**40, float("nan"), -0.0],
        "tuple": (np.arange(3), ()),
        "point": Point(np.float32(1.5) * np.ones(2, np.float32), {"deep": []}),
        "settings": Settings(0.1, np.eye(3)),
        7: np.zeros((0, 4)),
        "odd keys": {"a.b": 1, "a/b": np.ones(1), "": 2, "..": 3, "%": 4, "\u00e9": 5},
    }
    cairn.save(tree, tmp_path / "c", layout=layout)
    same(cairn.load(tmp_path / "c"), tree)


@pytest.mark.parametrize("name", DTYPES)
@pytest.mark.parametrize("layout", ["zarr2", "safetensors"])
def test_every_type_of_element(tmp_path, name, layout):
    rng = np.random.default_rng(3)
    dtype = dtype_of(name)
    shapes = [(), (5,), (3, 4), (2, 0), (2, 1, 3, 1, 2, 2)]
    if layout == "safetensors" and name in ("int4", "complex128", "float8_e3m4"):
        shapes = []  # the format has no such type
    tree = {str(n): rng.integers(0, 2, shape).astype(np.float32).astype(dtype)
            for n, shape in enumerate(shapes)}
    cairn.save(tree, tmp_path / "c", layout=layout)
    same(cairn.load(tmp_path / "c"), tree)


def test_arrays_lie_in_memory_as_they_like(tmp_path):
    base = np.arange(120).reshape(4, 5, 6)
    tree = {"reversed": base[::-1, ::2, ::-1], "transposed": base.T,
            "fortran": np.asfortranarray(base),
            "repeated": np.broadcast_to(np.arange(6), (3, 6)), "big": base.astype(">i8"),
            "scalar": np.int16(3)}
    cairn.save(tree, tmp_path / "c")
    loaded = cairn.load(tmp_path / "c")
    for key, array in tree.items():
        np.testing.assert_array_equal(loaded[key], array)
    assert loaded["big"].dtype == np.int64


def test_what_cannot_be_saved_is_listed_whole_and_nothing_is_written(tmp_path):
    tree = {"good": np.ones(2), "text": np.array(["x"]),
            "deep": [object(), {"when": np.datetime64(1, "s")}],
            "objects": np.array([{}], dtype=object), "keys": {1.5: 2},
            "masked": np.ma.masked_array([1, 2], [True, False]), "half": "\udcff",
            "halves": {"\udcff": 1}, "long": 10**5000}
    with pytest.raises(cairn.InvalidArgumentError) as caught:
        cairn.save(tree, tmp_path / "c")
    assert caught.value.reason == "python/unsupported-leaf"
    for place in ("text", "deep.0", "deep.1.when", "objects", "keys",
                  "masked is a masked array", "half is a text", "halves has the key",
                  "long is an integer"):
        assert place in str(caught.value)
    assert "good" not in str(caught.value)
    assert not (tmp_path / "c").exists()


def test_a_container_that_holds_itself_is_refused(tmp_path):
    ring = []
    ring.append(ring)
    with pytest.raises(cairn.InvalidArgumentError, match="contain itself"):
        cairn.save(ring, tmp_path / "c")
    cairn.save({}, tmp_path / "c")
    for where in ("template", "out"):
        with pytest.raises(cairn.InvalidArgumentError, match="contain itself"):
            cairn.load(tmp_path / "c", **{where: ring})


def test_a_class_that_is_gone_comes_back_as_plain(tmp_path):
    gone = collections.namedtuple("Gone", "a b")
    cairn.save({"t": gone(1, 2)}, tmp_path / "c")
    loaded = cairn.load(tmp_path / "c")["t"]
    assert loaded == (1, 2) and loaded.a == 1 and type(loaded).__name__ == "Gone"


def test_a_template_gives_structure_and_checks_shapes(tmp_path):
    cairn.save({"a": np.ones((2, 3)), "b": Point(1, np.zeros(4))}, tmp_path / "c")
    template = {"b": Point(0, np.empty(4)), "a": np.empty((2, 3))}
    same(cairn.load(tmp_path / "c", template=template),
         {"a": np.ones((2, 3)), "b": Point(1, np.zeros(4))})
    wrong = {"a": np.empty((3, 3)), "b": Point(0, np.empty(5))}
    with pytest.raises(ValueError) as caught:
        cairn.load(tmp_path / "c", template=wrong)
    assert "'a'" in str(caught.value) and "'b.y'" in str(caught.value)
    assert cairn.load(tmp_path / "c", template={"a": np.empty((3, 2)), "b": Point(0, np.empty(4))},
                      strict_shapes=False)["a"].shape == (3, 2)
    with pytest.raises(KeyError, match="Missing array for key 'c'"):
        cairn.load(tmp_path / "c", template={"c": np.empty(1)})


class Pair(Point):
    def __new__(cls, both):
        return super().__new__(cls, both, both)


class Several(list):
    label = "none"


def test_a_template_keeps_classes_with_their_own_ways(tmp_path):
    several = Several([np.ones(2), 1])
    several.label = "some"
    tree = {"pair": Pair(np.ones(3)), "several": several}
    cairn.save(tree, tmp_path / "c")
    loaded = cairn.load(tmp_path / "c", template=tree)
    assert type(loaded["pair"]) is Pair and loaded["pair"].y.sum() == 3
    assert type(loaded["several"]) is Several and loaded["several"].label == "some"
    assert loaded["several"][1] == 1 and loaded["several"][0] is not several[0]


def test_casts_are_rounded_to_nearest_even(tmp_path):
    values = np.random.default_rng(1).standard_normal(1000).astype(np.float32)
    expected = values.astype(ml_dtypes.bfloat16)
    cairn.save({"w": values, "n": np.arange(3)}, tmp_path / "c", dtype="bfloat16")
    loaded = cairn.load(tmp_path / "c")
    same(loaded, {"w": expected, "n": np.arange(3)})
    same(cairn.load(tmp_path / "c", dtype=np.float32)["w"], expected.astype(np.float32))


def test_tuples_of_classes_not_written_in_python(tmp_path):
    tree = {"time": time.gmtime(0)}
    cairn.save(tree, tmp_path)
    loaded = cairn.load(tmp_path, template=tree)
    assert type(loaded["time"]) is time.struct_time and loaded == tree
