# SPDX-License-Identifier: Apache-2.0
"""Trees of the reference, loaded with their containers, and nothing of theirs executed."""

import base64
import collections
import hashlib
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


def leaf_at(tree, path):
    for part in path:
        if isinstance(tree, dict):
            tree = {str(key): value for key, value in tree.items()}[part]
        else:
            tree = tree[int(part)] if part.isdigit() else getattr(tree, part)
    return tree


SIMPLE = {"int": int, "str": str, "float": float, "none": lambda _: None}


@pytest.mark.parametrize("name", ["optax", "safetensors", "tensorstore"])
def test_fixtures_of_the_reference(name):
    folder = FIXTURES / f"eformer_save_pytree_{name}"
    if not folder.is_dir():
        if os.environ.get("CI") == "true":
            pytest.fail("the fixtures are not beside this clone (../shared)")
        pytest.skip("the fixtures are not beside this clone (../shared)")
    expected = json.loads((folder / "expected.json").read_text())["leaves"]
    assert len(expected) >= 3
    for allow_pickle in (False, True):
        for leaf in expected:
            tree = cairn.load(folder / "checkpoint", prefix=leaf["prefix"],
                              allow_pickle=allow_pickle)
            found = leaf_at(tree, leaf["path"])
            if "sha256" in leaf:
                assert hashlib.sha256(found.tobytes()).hexdigest() == leaf["sha256"]
            elif leaf["value"]["type"] in SIMPLE:
                assert found == SIMPLE[leaf["value"]["type"]](leaf["value"].get("value"))


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
               "print(tree._fields, tree.y._fields, 'jax' in sys.modules)\n")
    done = subprocess.run([sys.executable, "-c", program], text=True, capture_output=True)
    assert done.stdout.splitlines() == ["('x', 'y') ('x', 'y') False"], done
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
        assert cairn.load(path, prefix="named")._fields == ("x", "y")
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


def test_the_reference_loads_what_a_program_without_jax_saved(tmp_path):
    source = ("{'b.c': [np.ones(2, 'f'), (None, 2, {3: 'x', 1: b'y'})], 'e': ([], (), {}),"
              " 'v': [1.5, 2j, True, -3, 10**30, -2**40, float('-inf')],"
              " 'n': np.arange(3, dtype='i')}")
    program = ("import sys, cairn\n"
               "import numpy as np\n"
               f"cairn.save({source}, {str(tmp_path / 'c')!r}, prefix='model')\n"
               f"cairn.save(np.arange(2, dtype='i'), {str(tmp_path / 'one')!r}, prefix='model')\n"
               "assert 'jax' not in sys.modules\n")
    subprocess.run([sys.executable, "-c", program], check=True)
    mesh = jax.sharding.Mesh(np.array(jax.devices()[:1]), ("x",))
    found, _ = Reference().load_pytree(str(tmp_path / "c"), mesh, prefix="model")
    same(found, eval(source, {"np": np}))
    one, _ = Reference().load_pytree(str(tmp_path / "one"), mesh, prefix="model")
    same(one, np.arange(2, dtype="i"))


def plant_package(folder):
    (folder / "penzai").mkdir()
    (folder / "penzai" / "__init__.py").write_text("raise SystemExit('executed')\n")


def plant_module(folder):
    (folder / "penzai.py").write_text("raise SystemExit('executed')\n")


def plant_link(folder):
    plant_package(folder / "sub")
    (folder / "penzai").symlink_to("sub/penzai")


@pytest.mark.parametrize("plant", [plant_package, plant_module, plant_link])
def test_nothing_is_imported_from_the_current_directory(saved, tmp_path, plant):
    (tmp_path / "sub").mkdir()
    plant(tmp_path)

    def change(content):
        old, new = (b"".join(b"\x8c" + bytes([len(text)]) + text.encode() + b"\x94"
                             for text in names)
                    for names in (("test_restore", "Point"), ("penzai", "Point")))
        data = base64.b64decode(content["treedef_b64"])
        content["treedef_b64"] = base64.b64encode(data.replace(old, new)).decode()

    path = edit(saved, tmp_path, "named", change)
    program = f"import cairn; print(cairn.load({str(path)!r}, prefix='named')._fields)"
    done = subprocess.run([sys.executable, "-c", program], text=True, capture_output=True,
                          cwd=tmp_path)
    assert (done.returncode, done.stdout) == (0, "('x', 'y')\n"), done
    assert "penzai:Point" in done.stderr
