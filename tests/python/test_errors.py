# SPDX-License-Identifier: Apache-2.0
"""Errors name every leaf that is wrong, not the first alone."""

import json
import subprocess
import sys

import cairn
import jax
import jax.numpy as jnp
import ml_dtypes
import numpy as np
import pytest
from jax.sharding import Mesh, NamedSharding, PartitionSpec

TINY = np.zeros(4, ml_dtypes.uint4)
LONG = "x" * 300


def mesh():
    return Mesh(np.array(jax.devices()), ("x",))


def spread(*spec):
    return NamedSharding(mesh(), PartitionSpec(*spec))


def outline(shape, *spec):
    return jax.ShapeDtypeStruct(shape, jnp.float64, sharding=spread(*spec))


SAVES = {
    "objects": ({"a": np.array([{}]), "b": [object(), lambda: 1], "c": {1, 2},
                 "d": np.array(["text"]), "good": 1}, {}, ["a is", "b.0", "b.1", "c is", "d is"]),
    "keys": ({"a": {1.5: 1}, "b": {(1, 2): 2}}, {}, ["a has the key 1.5", "b has the key (1, 2)"]),
    "types that zarr has not": ({"a": TINY, "b": [TINY]}, {},
                                ["leaf a:", "leaf b.0:", "cast it to uint8"]),
    "types that safetensors has not": (
        {"a": np.zeros(1, np.complex128), "b": [np.zeros(2, ml_dtypes.float8_e3m4)]},
        {"layout": "safetensors"}, ["leaf a:", "leaf b.0:"]),
    "one path for two": ({"a": {0: 1, "0": 2}, "b": [{7: 1, "7": 1}]}, {}, ["'a.0'", "'b.0.7'"]),
    "long keys": ({"a": {LONG: 1}, "b": {LONG: 2}}, {}, ["below 'a'", "below 'b'"]),
}


@pytest.mark.parametrize("name", list(SAVES))
def test_all_that_is_wrong_with_a_tree(tmp_path, name):
    tree, options, places = SAVES[name]
    with pytest.raises(cairn.InvalidArgumentError) as caught:
        cairn.save(tree, tmp_path / "c", **options)
    for place in places:
        assert place in str(caught.value), place
    assert "good" not in str(caught.value)
    assert not (tmp_path / "c").exists()


@pytest.fixture(name="saved", scope="module")
def a_checkpoint(tmp_path_factory):
    path = tmp_path_factory.mktemp("c")
    cairn.save({"a": np.zeros((6, 3)), "b": [np.zeros(5), np.zeros(8)], "n": 3, "text": "t"}, path)
    return path


def loads():
    return {
        "one sharding": ({"sharding": spread("x")}, ValueError, ["leaf a:", "leaf b.0:"], "b.1"),
        "shardings": ({"sharding": {"a": spread("x"), "b": [spread(), spread(None, "x")]}},
                      ValueError, ["leaf a:", "leaf b.1:"], "b.0"),
        "shardings of nothing": ({"sharding": {"z": spread(), "b": [1, spread(), spread()]}},
                                 ValueError, ["'z'", "'b.0' is a int", "'b.2'"], "b.1"),
        "a template's shardings": (
            {"template": {"a": outline((6, 3), "x"), "b": [outline((5,), "x"), np.zeros(8)]}},
            ValueError, ["a is", "b.0 is"], "b.1"),
        "a template's leaves": ({"template": {"a": object(), "b": [np.array([{}]), np.zeros(8)]}},
                                ValueError, ["a is", "b.0 is"], "b.1"),
        "missing": ({"template": {"q": np.zeros(1), "a": np.zeros((6, 3)), "r": [np.zeros(2), 1]}},
                    KeyError, ["Missing array for key 'q'", "'r.0'", "'r.1'"], "'a'"),
        "another structure": ({"template": {"a": [np.zeros((6, 3))], "b": {"0": np.zeros(2)}}},
                              KeyError, ["'a.0'", "mismatch for key 'b.0'"], "b.1"),
        "values": ({"template": {"n": np.zeros(2), "text": np.zeros(()), "a": np.zeros((6, 3))}},
                   ValueError, ["'n': expected (2,)", "'text': expected ()"], "'a'"),
        "values to fill": ({"out": {"n": np.zeros(())}}, ValueError, ["'n': expected ()"], "'a'"),
        "shapes": ({"template": {"a": np.zeros((3, 6)), "b": [np.zeros(4), np.zeros(8)]}},
                   ValueError, ["Array shape mismatch for key 'a'", "'b.0'"], "b.1"),
        "shapes and shardings": (
            {"template": {"a": np.zeros((3, 6)), "b": [outline((5,)), np.zeros(8)]},
             "sharding": {"b": [spread("x"), spread(None, None)]}},
            ValueError, ["mismatch for key 'a'", "leaf b.0:", "leaf b.1:"], "'n'"),
        "keys": ({"keys": ["a", "q", "b.7"]}, KeyError, ["'q'", "'b.7'"], "'a'"),
    }


@pytest.mark.parametrize("name", list(loads()))
def test_all_that_is_wrong_with_a_load(saved, name):
    options, kind, places, good = loads()[name]
    with pytest.raises(kind) as caught:
        cairn.load(saved, **options)
    for place in places:
        assert place in str(caught.value), place
    assert good not in str(caught.value)
    assert isinstance(caught.value, cairn.Error)


def run_apart(program, *words):
    """What it prints; a program that hangs fails."""
    ended = subprocess.run([sys.executable, "-c", program, *map(str, words)], timeout=120,
                           capture_output=True, text=True, check=False)
    assert ended.returncode == 0, ended.stderr
    return ended.stdout.strip()


OPENS = """
import cairn, sys
try:
    cairn.open(sys.argv[1])
except cairn.CorruptError as error:
    print(error.reason)
"""


def test_a_record_that_names_a_manifest_beside_its_directory(tmp_path):
    cairn.save({"w": np.zeros(3)}, tmp_path / "c", prefix="model")
    record = json.loads((tmp_path / "c/cairn.json").read_text())
    record["prefixes"]["model"]["manifest"] = "m"
    (tmp_path / "c/cairn.json").write_text(json.dumps(record))
    assert run_apart(OPENS, tmp_path / "c") == "record/bad-member"


LOADS_WITH_LITTLE = """
import cairn, resource, sys
most = int(open("/proc/self/statm").read().split()[0]) * resource.getpagesize()
most += int(sys.argv[2]) << 20
resource.setrlimit(resource.RLIMIT_AS, (most, most))
try:
    cairn.load(sys.argv[1])
except cairn.ResourceError as error:
    print(error.reason)
"""


def test_no_memory_for_a_load(tmp_path):
    tensor = {"dtype": "F32", "shape": [0], "data_offsets": [0, 0]}
    header = json.dumps({f"k{i}": tensor for i in range(300_000)}).encode()
    file = tmp_path / "many.safetensors"
    file.write_bytes(len(header).to_bytes(8, "little") + header)
    assert run_apart(LOADS_WITH_LITTLE, file, 300) == "base/out-of-memory"


@pytest.mark.parametrize("mebibytes", [40, 80, 120, 160])
def test_a_save_without_memory_is_an_error(tmp_path, mebibytes):
    """The first exception of a thread needs memory itself."""
    program = f"""if True:
        import resource
        import cairn
        import numpy as np
        leaves = {{f"leaf{{i}}": np.zeros(1, "f4") for i in range(50_000)}}
        cairn.save({{"w": np.zeros(1)}}, {str(tmp_path / "first")!r})
        used = int(open("/proc/self/statm").read().split()[0]) * resource.getpagesize()
        resource.setrlimit(resource.RLIMIT_AS, (used + {mebibytes << 20},) * 2)
        try:
            cairn.save(leaves, {str(tmp_path / "c")!r}, layout="safetensors")
        except cairn.ResourceError as error:
            print(error.reason)"""
    done = subprocess.run([sys.executable, "-c", program], text=True, capture_output=True)
    assert done.returncode == 0, done
    assert done.stdout.strip() in ("", "base/out-of-memory", "fs/no-memory"), done
