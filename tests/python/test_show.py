# SPDX-License-Identifier: Apache-2.0
"""An opened checkpoint as people see it."""

from html.parser import HTMLParser

import cairn
import jax
import jax.numpy as jnp
import numpy as np
from jax.sharding import Mesh, NamedSharding, PartitionSpec


class Page(HTMLParser):
    """Texts of a page, and how deep its elements lie in each other."""

    def __init__(self, text):
        super().__init__()
        self.open, self.texts, self.depth = [], [], 0
        self.feed(text)
        assert not self.open

    def handle_starttag(self, tag, attrs):
        self.open.append(tag)
        self.depth = max(self.depth, self.open.count("details"))

    def handle_endtag(self, tag):
        assert self.open.pop() == tag

    def handle_data(self, data):
        self.texts.append(data.strip())


def save(path):
    mesh = Mesh(np.array(jax.devices()), ("x",))
    kernel = jax.device_put(jnp.zeros((8, 4)), NamedSharding(mesh, PartitionSpec("x", None)))
    cairn.save({"layers": [{"kernel": kernel, "bias": jnp.ones(4, jnp.bfloat16)}],
                "<b>&": {"n\n": 1, "text": "<script>" * 50}, "step": 100}, path, prefix="model")


def test_a_tree_with_types_sizes_and_shardings(tmp_path):
    save(tmp_path)
    lines = repr(cairn.open(tmp_path)).splitlines()
    assert lines[0] == f"{tmp_path}  cairn zarr2  2 arrays, 136 B"
    assert [" ".join(line.split()) for line in lines[1:]] == [
        "model 2 arrays, 136 B", "layers 2 arrays, 136 B", "0 2 arrays, 136 B",
        "bias bfloat16[4] 8 B", "kernel float32[8, 4] 128 B P('x', None)", "<b>& 0 arrays, 0 B",
        "n\\n = 1", "text = '" + "<script>" * 9 + "<scr...", "step = 100"]
    assert lines[4].startswith("        bias    ") and lines[9].startswith("    step    ")


def test_a_page_is_well_formed_and_escaped(tmp_path):
    save(tmp_path)
    page = Page(cairn.open(tmp_path)._repr_html_())
    assert page.depth == 4
    for text in ("model", "kernel", "float32[8, 4]  128 B  P('x', None)", "<b>&", "= 100"):
        assert text in page.texts
    assert "<script>" not in cairn.open(tmp_path)._repr_html_()


def test_large_checkpoints_are_cut(tmp_path):
    cairn.save({f"{n:04}": {"v": n} for n in range(3000)}, tmp_path)
    opened = cairn.open(tmp_path)
    assert repr(opened).splitlines()[-1] == "  ... and 2970 more leaves"
    assert len(repr(opened).splitlines()) == 62
    page = Page(opened._repr_html_())
    assert page.texts.count("v") == 1000 and page.texts[-1] == "... and 2000 more leaves"


def test_the_tree_is_made_of_leaves_and_values(tmp_path):
    cairn.save({"a": [np.arange(3), {"b": 2}]}, tmp_path / "one")
    tree = cairn.open(tmp_path / "one").tree
    np.testing.assert_array_equal(tree["a"]["0"][1:], [1, 2])
    assert tree["a"]["1"] == {"b": 2}
    cairn.save(np.arange(3), tmp_path / "array", prefix="p")
    array = cairn.open(tmp_path / "array")
    assert array.tree["p"].shape == (3,) and array["p"][1] == 1
    assert array["p"].name == "p" and (tmp_path / "array/p/.zarray").is_file()
    cairn.save(5, tmp_path / "value")
    assert cairn.open(tmp_path / "value").tree == 5
    assert "= 5" in repr(cairn.open(tmp_path / "value"))


def test_a_tree_inside_of_the_place_of_an_array_is_still_opened(tmp_path):
    cairn.save({"tx": np.ones(1)}, tmp_path, layout="safetensors")
    cairn.save({"a": np.ones(2)}, tmp_path, layout="safetensors", prefix="tx")
    opened = cairn.open(tmp_path)
    assert {leaf.shape for leaf in opened} == {(1,), (2,)} and repr(opened)
