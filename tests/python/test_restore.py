# SPDX-License-Identifier: Apache-2.0
"""Trees of the reference, loaded with their containers, and nothing of theirs executed."""

import base64
import collections
import json
import os
import pickle
import shutil
import subprocess
import sys
from pathlib import Path

import cairn
import flax.struct
import jax
import jax.numpy as jnp
import numpy as np
import optax
import pytest
from cairn._pickles import Undecodable, decode
from eformer.serialization import AsyncCheckpointManager as Reference
from flax import nnx
from flax.core import FrozenDict

FIXTURES = Path(__file__).parents[3] / "shared" / "fixtures"
Point = collections.namedtuple("Point", "x y")


@flax.struct.dataclass
class TrainState:
    step: int
    params: dict
    name: str = flax.struct.field(pytree_node=False, default="adam")


def trees():
    linear = nnx.Linear(2, 3, rngs=nnx.Rngs(0))
    return {
        "plain": {"b": jnp.ones(2),
                  "a": [jnp.ones(1), (None, 2, {3: "x", 1: b"y"})], "e": ([], ())},
        "values": [jnp.ones(1), 1.5, 2j, True, -3, 10**30, "text", b"bytes", None],
        "named": Point(jnp.ones(2), Point(None, jnp.zeros(1))),
        "adam": optax.adam(1e-3).init({"w": jnp.ones(2)}),
        "state": TrainState(3, {"w": jnp.ones(2)}, name="sgd"),
        "ordered": collections.OrderedDict(b=jnp.ones(1), a=jnp.zeros(1)),
        "frozen": FrozenDict({"a": {"b": jnp.ones(1)}}),
        "nnx": nnx.state(linear),
        "tx": nnx.state(nnx.Optimizer(linear, optax.adam(1e-3), wrt=nnx.Param)),
        "array": jnp.arange(3),
    }


def same(found, expected):
    assert jax.tree.structure(found) == jax.tree.structure(expected)
    for x, y in zip(jax.tree.leaves(found), jax.tree.leaves(expected), strict=True):
        if hasattr(y, "dtype"):
            assert x.tobytes() == np.asarray(y).tobytes()
        else:
            assert (type(x), x) == (type(y), y)


@pytest.fixture(name="saved", scope="module")
def what_the_reference_saved(tmp_path_factory):
    path = tmp_path_factory.mktemp("reference")
    for name, tree in trees().items():
        jax_tree = jax.tree.map(lambda x: x, tree)
        Reference().save_pytree(jax_tree, str(path), prefix=name)
    return path


@pytest.mark.parametrize("name", list(trees()))
def test_containers_and_values_of_the_reference_come_back(saved, name):
    for allow_pickle in (False, True):
        same(cairn.load(saved, prefix=name, allow_pickle=allow_pickle), trees()[name])


def test_fixtures_of_the_reference():
    for file in sorted(FIXTURES.glob("eformer_save_pytree_*/checkpoint/*_structure.json")):
        prefix = file.name.removesuffix("_structure.json")
        same(cairn.load(file.parent, prefix=prefix),
             cairn.load(file.parent, prefix=prefix, allow_pickle=True))


def edit(saved, tmp_path, name, change):
    path = tmp_path / "c"
    shutil.copytree(saved, path)
    file = path / f"{name}_structure.json"
    content = json.loads(file.read_text())
    change(content)
    file.write_text(json.dumps(content))
    return path


def pickled(thing):
    return base64.b64encode(pickle.dumps(thing)).decode()


class Bomb:
    def __reduce__(self):
        return os.mkdir, (os.environ["BOMB"],)


def test_nothing_is_executed(saved, tmp_path, monkeypatch, caplog):
    monkeypatch.setenv("BOMB", str(tmp_path / "bomb"))
    for member in ("treedef_b64", "value"):
        def arm(content, member=member):
            if member == "value":
                content["nonarray_payload"]["1"] = pickled(Bomb())
            else:
                content["treedef_b64"] = pickled(Bomb())

        path = edit(saved, tmp_path / member, "values", arm)
        found = cairn.load(path, prefix="values")
        assert isinstance(found, dict if member == "treedef_b64" else list)
        assert found["8"] is None if member == "treedef_b64" else found[1] is None
        assert "allow_pickle" in caplog.text if member == "value" else "nested dicts" in caplog.text
        assert not (tmp_path / "bomb").exists()
        with pytest.raises(Exception):
            cairn.load(path, prefix="values", allow_pickle=True)
            cairn.load(path, prefix="values", allow_pickle=True)  # the directory is there
        assert (tmp_path / "bomb").exists()
        (tmp_path / "bomb").rmdir()


def test_classes_are_only_taken_from_where_they_may_be(saved, tmp_path, caplog):
    program = ("import sys, cairn\n"
               f"tree = cairn.load({str(saved)!r}, prefix='named')\n"
               "print(sorted(tree), sorted(tree['y']), 'jax' in sys.modules)\n")
    done = subprocess.run([sys.executable, "-c", program], text=True, capture_output=True)
    assert done.stdout.splitlines() == ["['x', 'y'] ['x', 'y'] False"], done
    assert "test_restore:Point" in done.stderr

    for module, name in (("subprocess", "Popen"), ("os", "system"), ("builtins", "print"),
                         ("argparse", "Namespace"), ("no_such", "Thing"), ("cairn", "_core")):
        def change(content, module=module, name=name):
            old, new = (b"".join(b"\x8c" + bytes([len(text)]) + text.encode() + b"\x94"
                                 for text in names)
                        for names in (("test_restore", "Point"), (module, name)))
            data = base64.b64decode(content["treedef_b64"])
            assert old in data
            content["treedef_b64"] = base64.b64encode(data.replace(old, new)).decode()

        path = edit(saved, tmp_path / name, "named", change)
        caplog.clear()
        assert set(cairn.load(path, prefix="named")) == {"x", "y"}
        assert "came back as plain ones: y, the tree itself" in caplog.text


def test_what_does_not_fit_is_left_as_nested_dicts(saved, tmp_path, caplog):
    def set_member(member, value):
        return lambda content: content.__setitem__(member, value)

    changes = [set_member("format", "x"), set_member("prefix", "other"),
               set_member("arr_mask", []), set_member("array_relpaths", ["../x", "y"]),
               set_member("treedef_b64", "?"), set_member("treedef_b64", pickled([1, 2])),
               set_member("nonarray_payload", []), set_member("leaf_keys_full", 3),
               set_member("array_relpaths", ["plain/a/0", "plain/c"]),
               lambda content: content.clear()]
    for n, change in enumerate(changes):
        caplog.clear()
        found = cairn.load(edit(saved, tmp_path / str(n), "plain", change), prefix="plain")
        assert found["a"]["0"].shape == (1,) and "nested dicts" in caplog.text, n


def test_the_decoder_bears_any_bytes():
    rng = np.random.default_rng(7)
    seeds = [pickle.dumps(jax.tree.structure(tree), protocol=protocol)
             for tree in trees().values() for protocol in (2, 4)]
    seeds += [pickle.dumps([{"a": (1, 2.5, 2j)}, b"x" * 300, 10**40, Point], protocol=protocol)
              for protocol in range(6)]
    refused = 0
    for n in range(6000):
        data = bytearray(seeds[n % len(seeds)])
        for _ in range(rng.integers(1, 4)):
            at = int(rng.integers(0, len(data)))
            kind = rng.integers(0, 4)
            if kind == 0:
                data[at] = rng.integers(0, 256)
            elif kind == 1:
                del data[at:at + int(rng.integers(1, 9))]
            elif kind == 2:
                data[at:at] = data[:int(rng.integers(0, 30))]
            else:
                data[at:at] = rng.bytes(3)
            if not data:
                break
        try:
            decode(bytes(data))
        except Undecodable:
            refused += 1
    assert 1000 < refused < 6000


def test_pickles_that_grow_when_they_are_made_are_read_in_no_time():
    doubled = b"\x80\x04)" + b"\x94h\x00\x86"  # a pair of the tuple before, again and again
    for n in range(1, 60):
        doubled += b"\x94h" + bytes([n]) + b"\x86"
    assert isinstance(decode(doubled + b"."), tuple)
    with pytest.raises(Undecodable, match="keys"):
        decode(b"\x80\x04}" + doubled[2:] + b"Ns.")
    with pytest.raises(Undecodable, match="no pickle"):
        decode(b"\x80\x04\x8b\xff\xff\xff\x7f")
    cycle = decode(b"\x80\x04]\x94h\x00a.")
    assert cycle[0] is cycle
