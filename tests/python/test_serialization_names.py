# SPDX-License-Identifier: Apache-2.0
"""Whatever a program imports from eformer.serialization, it can import from cairn.serialization."""

import importlib
import inspect
import pkgutil
import subprocess
import sys
import types

import eformer.serialization
import jax
import jax.numpy as jnp
import numpy as np
import pytest

# Names of other parts of eformer that its modules happen to import; no part of serialization.
ELSEWHERE = {"PyTree", "ePath", "ePathLike", "get_logger", "logger"}


def modules():
    yield ""
    for found in pkgutil.iter_modules(eformer.serialization.__path__):
        yield f".{found.name}"


def is_theirs(name, thing):
    if name.startswith("_") or name in ELSEWHERE:
        return False
    if isinstance(thing, types.ModuleType):
        return thing.__name__.startswith("eformer.serialization")
    if name.isupper() or "put_dtype" in name:
        return True
    return getattr(thing, "__module__", "").startswith("eformer.")


def public_names():
    for module in modules():
        for name, thing in vars(importlib.import_module("eformer.serialization" + module)).items():
            if is_theirs(name, thing):
                yield module, name


def takes_as_much(ours, theirs):
    """Every call that suits their parameters suits ours."""
    mine, wanted = (inspect.signature(thing).parameters for thing in (ours, theirs))
    kinds = [kind for kind in mine.values() if kind.kind is not kind.VAR_KEYWORD]
    for place, (name, parameter) in enumerate(wanted.items()):
        if parameter.kind is parameter.VAR_KEYWORD:
            assert any(kind.kind is kind.VAR_KEYWORD for kind in mine.values())
            continue
        assert name in mine, name
        assert parameter.kind is parameter.KEYWORD_ONLY or kinds[place].name == name, name
        assert parameter.default is parameter.empty or mine[name].default is not parameter.empty
    for name, parameter in mine.items():
        assert name in wanted or parameter.default is not parameter.empty, name


def test_there_are_as_many_as_expected():
    assert len(list(public_names())) > 80


@pytest.mark.parametrize("module, name", list(public_names()))
def test_a_name(module, name):
    theirs = getattr(importlib.import_module("eformer.serialization" + module), name)
    ours = getattr(importlib.import_module("cairn.serialization" + module), name)
    if not callable(theirs) or name == "put_dtype":
        return
    takes_as_much(ours, theirs)
    for method in vars(theirs) if isinstance(theirs, type) else ():
        if method.startswith("_"):
            continue
        assert hasattr(ours, method), method
        if callable(getattr(theirs, method)):
            takes_as_much(getattr(ours, method), getattr(theirs, method))


PRIVATE = {
    "serialization": ["_keyentry_to_str", "_is_none", "_fs_paths_from_key_paths",
                      "_fully_replicated_sharding", "_sharding_from_leaf"],
    "async_manager": ["_is_none"],
    "checkpointer": ["_read_checkpoint_metadata", "_write_checkpoint_metadata"],
}


@pytest.mark.parametrize("module, name", [(module, name) for module, names in PRIVATE.items()
                                          for name in names])
def test_a_private_name_that_programs_import(module, name):
    theirs, ours = (getattr(importlib.import_module(f"{package}.serialization.{module}"), name)
                    for package in ("eformer", "cairn"))
    takes_as_much(ours, theirs)


def test_private_names_answer_as_those_of_the_reference(tmp_path):
    ours, theirs = (importlib.import_module(f"{package}.serialization.serialization")
                    for package in ("cairn", "eformer"))
    mesh = jax.sharding.Mesh(np.array(jax.devices()).reshape(4, 2), ("a", "b"))
    tree = {"w": jnp.ones(2), "l": [np.ones(2), 1, 1.5, True], "text": "x"}
    for path, leaf in jax.tree_util.tree_flatten_with_path(tree)[0]:
        assert [*map(ours._keyentry_to_str, path)] == [*map(theirs._keyentry_to_str, path)]
        for where in (mesh, None):
            assert ours._sharding_from_leaf(leaf, where) == theirs._sharding_from_leaf(leaf, where)
    keys = {"a": "model.w", "b": ["model.l.0"]}
    assert ours._fs_paths_from_key_paths(str(tmp_path), keys) == \
        theirs._fs_paths_from_key_paths(str(tmp_path), keys)
    assert ours._is_none(None) and not ours._is_none(0)
    checkpointer = importlib.import_module("cairn.serialization.checkpointer")
    checkpointer._write_checkpoint_metadata(str(tmp_path), 7, True)
    mark = checkpointer._read_checkpoint_metadata(str(tmp_path))
    assert (mark["step"], mark["is_temporary"]) == (7, True) and set(mark) == \
        {"step", "timestamp", "is_temporary"}


def test_importing_it_imports_nothing_large():
    program = ("import sys, pkgutil, importlib, cairn.serialization\n"
               "for found in pkgutil.iter_modules(cairn.serialization.__path__):\n"
               "    importlib.import_module('cairn.serialization.' + found.name)\n"
               "print({'jax', 'torch', 'fsspec', 'ml_dtypes', 'google.cloud', 'msgpack', 'flax'}"
               " & set(sys.modules))")
    done = subprocess.run([sys.executable, "-c", program], text=True, capture_output=True)
    assert done.stdout.strip() == "set()", done
