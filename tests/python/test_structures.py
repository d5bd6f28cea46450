# SPDX-License-Identifier: Apache-2.0
"""Containers with classes, saved and loaded without a template."""

import collections
import dataclasses
import subprocess
import sys

import cairn
import equinox
import flax.struct
import jax
import jax.numpy as jnp
import numpy as np
import optax
import pytest
from cairn._statics import NotPlain, dump_statics, parse_statics
from flax import nnx
from flax.core import FrozenDict

Point = collections.namedtuple("Point", "x y")


class Shifted(collections.namedtuple("Shifted", "x by")):
    def __new__(cls, *_):
        raise AssertionError("nobody calls it")


@flax.struct.dataclass
class TrainState:
    step: int
    params: dict
    name: str = flax.struct.field(pytree_node=False, default="adam")
    sizes: tuple = flax.struct.field(pytree_node=False, default=(1, (2.5, None)))


@flax.struct.dataclass
class WithFunction:
    w: jax.Array
    apply: object = flax.struct.field(pytree_node=False)


@dataclasses.dataclass(frozen=True)
class Settings:
    rate: float
    more: dict


def trees():
    linear = nnx.Linear(2, 3, rngs=nnx.Rngs(0))
    return {
        "adam": optax.adam(1e-3).init({"w": jnp.ones(2)}),
        "chain": optax.chain(optax.clip(1.0), optax.adamw(1e-3)).init([jnp.ones(2)]),
        "masked": optax.masked(optax.sgd(0.1, 0.9), {"a": True, "b": False}).init(
            {"a": jnp.ones(1), "b": jnp.ones(1)}),
        "state": TrainState(3, {"w": jnp.ones(2)}, name="sgd"),
        "settings": [Settings(0.1, {"a": Point(1, None)})],
        "ordered": collections.OrderedDict([("b", jnp.ones(1)), ("a", {2: 1, 10: 2})]),
        "frozen": FrozenDict({"a": {"b": jnp.ones(1)}}),
        "nnx": nnx.state(linear),
        "tx": nnx.state(nnx.Optimizer(linear, optax.adam(1e-3), wrt=nnx.Param)),
        "shifted": tuple.__new__(Shifted, (jnp.ones(1), 2)),
    }


@pytest.mark.parametrize("name", list(trees()))
@pytest.mark.parametrize("layout", ["zarr2", "safetensors"])
def test_classes_come_back_without_a_template(tmp_path, name, layout):
    tree = trees()[name]
    cairn.save(tree, tmp_path / "c", layout=layout)
    found = cairn.load(tmp_path / "c")
    assert jax.tree.structure(found) == jax.tree.structure(tree)
    for x, y in zip(jax.tree.leaves(found), jax.tree.leaves(tree), strict=True):
        assert x == y if not hasattr(y, "shape") else x.tobytes() == np.asarray(y).tobytes()
    assert type(found) is type(tree)


def test_variables_have_the_names_of_the_reference(tmp_path):
    cairn.save({"tx": trees()["tx"]}, tmp_path)
    assert "tx.opt_state.0.mu.kernel.value" in [leaf.key for leaf in cairn.open(tmp_path)]


def test_modules_of_equinox_come_back_with_and_without_a_template(tmp_path):
    module = equinox.nn.MLP(2, 3, 4, 2, key=jax.random.key(0))
    arrays = equinox.filter(module, equinox.is_array)
    state = {"model": arrays, "optimizer": optax.adam(1e-3).init(arrays)}
    cairn.save(state, tmp_path)
    for found in cairn.load(tmp_path), cairn.load(tmp_path, template=state):
        assert jax.tree.structure(found) == jax.tree.structure(state)
        again = equinox.combine(found["model"], module)
        assert again(jnp.ones(2)).tobytes() == module(jnp.ones(2)).tobytes()


def test_functions_in_modules_of_equinox_are_named_and_how_to_leave_them_out(tmp_path):
    module = {"m": equinox.nn.MLP(2, 3, 4, 2, key=jax.random.key(0))}
    with pytest.raises(cairn.InvalidArgumentError) as caught:
        cairn.save(module, tmp_path / "c")
    assert "m.activation" in str(caught.value) and "m.final_activation" in str(caught.value)
    assert "equinox.filter(module, equinox.is_array)" in str(caught.value)


def test_what_only_code_can_make_comes_back_as_a_dict_and_is_named(tmp_path, caplog):
    tree = {"f": WithFunction(jnp.ones(2), jnp.sin), "d": collections.defaultdict(lambda: 1, a=1)}
    cairn.save(tree, tmp_path)
    found = cairn.load(tmp_path)
    assert set(found["f"]) == {"w"} and found["d"] == {"a": 1} and type(found["d"]) is dict
    assert "test_structures:WithFunction" in caplog.text and ": f" in caplog.text
    caplog.clear()
    again = cairn.load(tmp_path, template=tree)
    assert type(again["f"]) is WithFunction and again["f"].apply is jnp.sin
    assert again["d"]["new"] == 1 and not caplog.text


def test_classes_that_are_not_imported_are_not_imported(tmp_path):
    cairn.save({"p": Point(np.ones(1), 2), "s": Settings(1.5, {})}, tmp_path)
    program = ("import sys, cairn\n"
               f"tree = cairn.load({str(tmp_path)!r})\n"
               "print(type(tree['p']).__module__ == 'test_structures', tree['p'].y, tree['s'],\n"
               "      'test_structures' in sys.modules)\n")
    done = subprocess.run([sys.executable, "-c", program], text=True, capture_output=True)
    assert done.stdout.splitlines() == ["False 2 {'rate': 1.5, 'more': {}} False"], done
    assert "test_structures:Point" in done.stderr and "test_structures:Settings" in done.stderr


def test_ordered_and_default_dicts_need_no_jax(tmp_path):
    tree = collections.OrderedDict(
        [("z", np.ones(1)), (3, collections.defaultdict(None, b=1, a=2)), ("a", {})])
    cairn.save(tree, tmp_path / "with")
    done = subprocess.run([sys.executable, "-c", (
        "import cairn, sys\n"
        "tree = cairn.load(sys.argv[1] + '/with')\n"
        "print(type(tree), list(tree), type(tree[3]), type(tree['a']), 'jax' in sys.modules)\n"
        "cairn.save(tree, sys.argv[1] + '/without')"), tmp_path], text=True, capture_output=True)
    assert (done.stdout, done.stderr) == (
        "<class 'collections.OrderedDict'> ['z', 3, 'a'] <class 'collections.defaultdict'> "
        "<class 'dict'> False\n", "")
    for name in "with", "without":
        found = cairn.load(tmp_path / name)
        assert jax.tree.structure(found) == jax.tree.structure(tree)
        assert list(found) == list(tree) and found[3] == tree[3]


def test_static_parts_go_there_and_back():
    things = [None, True, 1, 10**30, "text", 1.5, -0.0, float("inf"), b"\x00\xff", (), [], {},
              (1, [2, {"a": (None,), 3: "b"}]), {(1, 2): 3}, np.dtype("float32"),
              np.dtype(jnp.bfloat16), np.float32(1.5), np.int64(-3), np.bool_(True),
              jnp.bfloat16(2).dtype.type(2), nnx.Param, Point, Settings]
    for thing in things:
        back = parse_statics(dump_statics(thing))
        assert (type(back), back) == (type(thing), thing)
    for thing in (print, object(), np.ones(1), int, Point(1, 2), dataclasses, "x" * (1 << 20),
                  np.str_("x"), np.datetime64(0, "s"), np.void(b"x")):
        with pytest.raises(NotPlain):
            dump_statics(thing)
    endless = []
    endless.append(endless)
    with pytest.raises(NotPlain):
        dump_statics(endless)


def test_static_parts_that_nobody_wrote_are_refused():
    for text in ("", "{", '{"a": 1, "b": 2}', "{}", '{"class": "subprocess:Popen"}',
                 '{"class": "os:system"}', '{"class": 3}', '{"other": []}', '{"dict": [[[], 1]]}',
                 '{"bytes": "?"}', '{"float": "x"}', '{"tuple": 3}', '{"dtype": "no"}',
                 '{"scalar": ["int8", "AAA="]}', '{"scalar": ["int8", ""]}',
                 '{"scalar": ["no", "AA=="]}', '{"scalar": ["O", "AAAAAAAAAAA="]}',
                 '{"scalar": 3}', "[" * 100_000):
        with pytest.raises(NotPlain):
            parse_statics(text)
