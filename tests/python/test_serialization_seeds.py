# SPDX-License-Identifier: Apache-2.0
"""Every code block in the pages that the project was made from runs, but for the import.

The pages have lost their line breaks; the same blocks stand in the docstrings of the installed
reference, from where they are taken if the pages have them.
"""

import ast
import contextlib
import doctest
import hashlib
import importlib.util
import io
import os
import re
from pathlib import Path

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from cairn.serialization import (
    AsyncCheckpointManager,
    Checkpointer,
    checkpointer,
    serialization,
    utils,
)
from eformer.serialization import Checkpointer as ReferenceCheckpointer
from jax.sharding import Mesh, NamedSharding, PartitionSpec

PAGES = Path(__file__).parents[3] / "shared" / "seeds"
REFERENCE = Path(importlib.util.find_spec("eformer").origin).parent / "serialization"
FENCED = re.compile(r"```python\n(.*?)```", re.S)

# What cannot run, by hash, and why.
CANNOT = {
    "2e4aa186": "gives on_step() the step by position, which is a TypeError in the reference too",
    "911729a7": "looks into a bucket, and there is no cloud storage yet",
    "afbe2046": "shows a private function that opens a bucket with fsspec",
    "7938cf49": "forgets the mesh; the reference then saves nothing, and on_step() here refuses",
}


def squeezed(text):
    return " ".join(text.split())


def docstrings():
    for file in sorted(REFERENCE.glob("*.py")):
        for node in ast.walk(ast.parse(file.read_text())):
            if isinstance(node, (ast.Module, ast.ClassDef, ast.FunctionDef)):
                yield ast.get_docstring(node) or ""


def blocks_of(docstring):
    """What the page shows, and the code in it."""
    for found in FENCED.finditer(docstring):
        yield found[0], found[1]
    group = []
    for line in [*map(str.strip, docstring.splitlines()), ""]:
        if line.startswith(">>>") or (group and line):
            group.append(line)
        elif group:
            yield "\n".join(group), "\n".join(group)
            group = []


def found_blocks():
    """Blocks by hash, and what of the pages is none of them."""
    pages = {page.name: squeezed(page.read_text()) for page in sorted(PAGES.glob("*.txt"))}
    whole, blocks = dict(pages), {}
    for docstring in docstrings():
        for shown, code in blocks_of(docstring):
            text = squeezed(shown)
            for name in pages:
                if text in whole[name]:
                    blocks[hashlib.sha256(text.encode()).hexdigest()[:8]] = code
                    pages[name] = pages[name].replace(text, "")
    return blocks, pages


@pytest.fixture(name="blocks")
def blocks_in_the_pages():
    if not PAGES.is_dir():
        if os.environ.get("CI") == "true":
            pytest.fail("the pages are not beside this clone (../shared)")
        pytest.skip("the pages are not beside this clone (../shared)")
    return found_blocks()


class World:
    """What the blocks take for granted."""

    def __init__(self, folder):
        self.base = folder / "checkpoints" / "my_model"
        mesh = Mesh(np.array(jax.devices()).reshape(8), ("model",))
        self.names = {
            **vars(serialization), **vars(utils), **vars(checkpointer),
            "AsyncCheckpointManager": AsyncCheckpointManager,
            "Checkpointer": Checkpointer, "Mesh": Mesh, "NamedSharding": NamedSharding,
            "PartitionSpec": PartitionSpec, "jnp": jnp, "mesh": mesh, "my_mesh": mesh,
            "checkpointer": Checkpointer(str(self.base), None,
                                         [checkpointer.CheckpointInterval(every=4)]),
            "state": {"w": jnp.ones(8)}, "model_state": {"dense": {"kernel": jnp.ones((8, 2))}},
            "optimizer_state": {"mu": [jnp.zeros(8)]}, "training_state": {"w": jnp.ones(8)},
            "train_step": lambda *given: jnp.float32(0.5), "dataloader": range(10),
            "loss": jnp.float32(0.5), "acc": 0.9, "final_step": 9, "num_steps": 5,
            "current_step": 2000}

    def run(self, code):
        text = code.replace("/checkpoints", str(self.base.parent))
        if ">>>" not in text:
            exec(compile(_dedented(text), "block", "exec"), self.names)
            return
        for example in doctest.DocTestParser().get_examples(text):
            printed = io.StringIO()
            with contextlib.redirect_stdout(printed):
                exec(compile(example.source, "block", "single"), self.names)
            assert not example.want or printed.getvalue() == example.want


def _dedented(code):
    first = re.match(r"\s*", code)[0]
    return "\n".join(line.removeprefix(first) for line in code.splitlines())


def kernels(world):
    assert world.names["state"]["dense"]["kernel"].sharding.spec == PartitionSpec("model", None)
    assert world.names["meta"]["checksum"]


def weights(world):
    world.names["manager"] = AsyncCheckpointManager()
    world.names["manager"].save({"layer": {"weight": jnp.ones((8, 2))}}, "checkpoint")


def weights_are_there(world):
    assert world.names["tree"]["layer"]["weight"].sharding.spec == PartitionSpec("model", None)


def model_is_saved(world):
    assert AsyncCheckpointManager().load("checkpoint", None, prefix="model")[0]["dense"]


def steps_are_saved(world):
    run = world.names["checkpointer"]
    run.wait_until_finished()
    assert sorted(path.name for path in world.base.glob("run-*")) == ["run-4", "run-8", "run-9"]
    assert run.load_checkpoint(None)[1]["step"] == 9


def three_trees_are_saved(world):
    run = world.names["checkpointer"]
    state, about = run.load_checkpoint(None)
    assert state["w"].dtype == jnp.bfloat16 and about["learning_rate"] == 0.001
    path = str(world.base / "run-1000")
    assert run.load_checkpoint(None, path=path, discover_latest=False, prefix="optimizer",
                               structured=True)[0]["mu"][0].shape == (8,)
    assert run.load_checkpoint(None, path=path, discover_latest=False)[0]["dense"]


def trees_to_load(world):
    run, names = world.names["checkpointer"], world.names
    run.save_checkpoint(names["model_state"], "run-1000", step=1000)
    run.save_checkpoint(names["optimizer_state"], "run-1000", step=1000, prefix="optimizer",
                        structured=True)
    names["custom_shardings"] = {"dense.kernel": NamedSharding(names["mesh"],
                                                               PartitionSpec("model"))}


def custom_shardings_are_used(world):
    assert world.names["metadata"]["step"] == 1000
    assert world.names["state"]["dense"]["kernel"].sharding.spec == PartitionSpec("model")


def pytrees_to_load(world):
    run, names = world.names["checkpointer"], world.names
    for prefix in ("optimizer", "model", "tx"):
        run.save_pytree(names["model_state"], prefix, step=1000)
    AsyncCheckpointManager().save_pytree(names["model_state"], world.base.parent / "run-1000",
                                         prefix="model")


def pytrees_are_loaded(world):
    names = world.names
    assert names["optimizer_state"]["dense"]["kernel"].shape == (8, 2)
    assert names["metadata"]["step"] == 1000 and names["state"] is not None


def pytree_is_saved(world):
    tree, about = world.names["checkpointer"].load_pytree(None, prefix="model")
    assert tree["dense"] and about["learning_rate"] == 0.001


def array_to_move(world):
    world.names["mesh"] = Mesh(np.array(jax.devices()), ("data",))
    world.names["my_array"] = jnp.ones(8)


def array_is_moved(world):
    assert world.names["resharded"].sharding == world.names["new_sharding"]


def policies_are_made(world):
    assert (world.names["interval"].every, world.names["interval"].until) == (50, 1000)
    assert [policy.until for policy in world.names["policies"]] == [1000, None]


def paths_are_made(world):
    assert world.names["paths"] == {"a": "/checkpoint/model/layer1/weight",
                                    "b": "/checkpoint/model/layer1/bias"}


# What is there before a block runs, and what must be there after it.
BLOCKS = {
    "d7ae0fd0": (None, kernels), "9fb352dc": (None, model_is_saved),
    "766a7a18": (weights, weights_are_there), "1990ff63": (None, policies_are_made),
    "481a23dc": (None, steps_are_saved), "81fc91b6": (None, three_trees_are_saved),
    "728be5f6": (trees_to_load, custom_shardings_are_used), "066761ab": (None, paths_are_made),
    "3c35c521": (None, pytree_is_saved), "d83b6e3d": (pytrees_to_load, pytrees_are_loaded),
    "0eeecc4c": (array_to_move, array_is_moved), "79a361ce": (None, None),
    "38ab2fe6": (None, None), "a442072c": (None, None),
}


def test_all_blocks_are_known(blocks):
    found, rest = blocks
    assert set(found) == set(BLOCKS) | set(CANNOT)
    for name, text in rest.items():
        assert "```" not in text and ">>>" not in text, name


@pytest.mark.parametrize("block", BLOCKS)
def test_a_block(blocks, tmp_path, monkeypatch, block):
    monkeypatch.chdir(tmp_path)
    before, after = BLOCKS[block]
    world = World(tmp_path)
    if before is not None:
        before(world)
    world.run(blocks[0][block])
    if after is not None:
        after(world)
    world.names["checkpointer"].wait_until_finished()


def test_what_cannot_run_cannot_run_there_either(tmp_path):
    for kind in (Checkpointer, ReferenceCheckpointer):
        with pytest.raises(TypeError, match="positional"):
            kind(str(tmp_path), None, []).on_step({}, None, False, 3)
        with pytest.raises(TypeError, match="step"):
            kind(str(tmp_path), None, []).on_step({}, 3)
    with pytest.raises(ValueError, match="mesh"):
        Checkpointer(str(tmp_path), None, []).on_step({}, step=3)
