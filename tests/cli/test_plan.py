# SPDX-License-Identifier: Apache-2.0
"""plan: how a load onto a mesh would go, without reading any array."""

import json
import os
import re
from xml.etree import ElementTree

import numpy as np
import pytest

SPLIT = [["^kernel$", ["fsdp", "tp"]], [".", []]]


@pytest.fixture
def rules(tmp_path):
    """rules([...]): a file of rules."""

    def write(content):
        path = tmp_path / "rules.json"
        path.write_text(content if isinstance(content, str) else json.dumps(content))
        return path

    return write


def rows(out):
    """The table of ranks, as lists of words."""
    return [line.split() for line in out.splitlines() if re.match(r" *\d+  ", line)]


def test_the_table_has_a_row_for_each_rank(cairn, checkpoint, rules):
    out = cairn("plan", checkpoint, "--mesh", "fsdp=2,tp=2", "--rules", rules(SPLIT)).out
    assert out.startswith("RANK  ARRAYS  NEEDED   READ  AMPLIFICATION  REQUESTS")
    assert [row[0] for row in rows(out)] == ["0", "1", "2", "3"]
    assert "5 arrays onto 4 ranks of fsdp=2,tp=2: 604 B needed, " in out
    assert "rank 0 reads most" in out


def test_json_has_the_agreed_members(cairn, checkpoint, rules):
    words = "plan", checkpoint, "--mesh", "fsdp=2,tp=2", "--rules", rules(SPLIT), "--json"
    document = cairn(*words).document
    assert document["mesh"] == [{"name": "fsdp", "size": 2}, {"name": "tp", "size": 2}]
    assert [rank["rank"] for rank in document["ranks"]] == [0, 1, 2, 3]
    # A quarter of each kernel, and the small arrays, which rank 0 reads for all.
    assert {rank["needed_bytes"] for rank in document["ranks"]} == {192 // 4 + 384 // 4 + 28}
    assert [rank["told_bytes"] for rank in document["ranks"]] == [0, 28, 28, 28]
    totals = document["totals"]
    assert (totals["arrays"], totals["needed_bytes"], totals["told_bytes"]) == (5, 604, 0)
    for member in "read_bytes", "requests":
        assert totals[member] == sum(rank[member] for rank in document["ranks"])
    assert totals["amplification"] == pytest.approx(totals["read_bytes"] / 604)
    assert document["largest_rank"] == 0
    specs = {(leaf["prefix"], leaf["key"]): leaf["spec"] for leaf in document["leaves"]}
    assert specs["model", "kernel"] == ["fsdp", "tp"] and specs["optimizer", "count"] == []


def test_the_largest_leaf_that_is_split_is_drawn(cairn, originals, rules):
    words = "plan", originals / "zarr2", "--mesh", "fsdp=2,tp=2", "--rules", rules(SPLIT)
    out = cairn(*words).out
    drawn = out[out.index("optimizer: kernel"):].splitlines()
    assert drawn[0] == ("optimizer: kernel  float64 (6, 8), 6 chunks of (1, 8), "
                        "P('fsdp', 'tp')")
    assert [line.split() for line in drawn[3:]] == [
        [f"{row}:{row + 1}", "0,1" if row < 3 else "2,3"] for row in range(6)]
    drawing = cairn(*words, "--json").document["drawing"]
    assert (drawing["key"], drawing["grid"], drawing["cells_are"]) == ("kernel", [6, 1], "chunks")
    assert drawing["cells"][0] == {"at": [0, 0], "ranks": [0, 1]}
    assert drawing["held"][3] == {"begin": [3, 4], "end": [6, 8], "ranks": [3]}


def test_a_tensor_in_one_piece_is_drawn_in_the_parts_that_ranks_hold(cairn, originals, rules):
    out = cairn("plan", originals / "safetensors", "--mesh", "fsdp=2,tp=2", "--rules",
                rules(SPLIT), "--leaf", "model.kernel").out
    assert [line.split() for line in out.splitlines()[-3:]] == [
        ["0:", "4:"], ["0:3", "0", "1"], ["3:6", "2", "3"]]


def test_cells_that_all_ranks_read_are_stars(cairn, originals, rules):
    out = cairn("plan", originals / "zarr2", "--mesh", "tp=2", "--rules",
                rules([["^kernel$", [None, "tp"]], [".", []]]), "--leaf", "optimizer.kernel").out
    assert [line.split()[-1] for line in out.splitlines()[-6:]] == ["*"] * 6


def test_fewer_ranks_hold_several_devices_each(cairn, originals, rules):
    words = "plan", originals / "zarr2", "--mesh", "fsdp=2,tp=2", "--rules", rules(SPLIT)
    document = cairn(*words, "--ranks", 2, "--json").document
    assert [rank["needed_bytes"] for rank in document["ranks"]] == [316, 316]
    # The cut goes through a chunk of 64 bytes, which both read.
    assert document["totals"]["read_bytes"] == 604 + 64
    alone = cairn(*words, "--ranks", 1, "--prefix", "model", "--json").document
    assert alone["totals"]["needed_bytes"] == 212
    assert {leaf["prefix"] for leaf in alone["leaves"]} == {"model"}


def test_without_rules_everybody_has_everything(cairn, originals):
    document = cairn("plan", originals / "zarr2", "--mesh", "x=3", "--json").document
    assert [rank["needed_bytes"] for rank in document["ranks"]] == [604] * 3
    assert [rank["read_bytes"] for rank in document["ranks"]] == [604, 0, 0]
    assert document["ranks"][1]["amplification"] is None


def test_checks_read_whole_blocks(cairn, tmp_path, rules):
    from safetensors.numpy import save_file

    save_file({"w": np.zeros((4096, 1024), np.float32)}, tmp_path / "w.safetensors")
    cairn("convert", tmp_path / "w.safetensors", tmp_path / "c", "--to-layout", "safetensors")
    words = "plan", tmp_path / "c", "--mesh", "x=4096", "--rules", rules([[".", ["x"]]]), "--json"
    # 4 KiB rows, blocks of 1 MiB.
    assert cairn(*words).document["totals"]["amplification"] == 256
    assert cairn(*words, "--check").document["totals"]["amplification"] == 256
    assert cairn(*words, "--no-check").document["totals"]["amplification"] == 1
    text = cairn(*words[:-1]).out
    assert "... 4064 more ranks; --json lists all" in text
    assert "4096 x 1 cells do not fit here" in text


def test_no_array_is_read(cairn, mine, rules):
    words = "plan", mine, "--mesh", "fsdp=2,tp=2", "--rules", rules(SPLIT), "--json"
    before = cairn(*words).document
    for chunk in mine.glob("*/**/[0-9]*"):
        if chunk.is_file():
            chunk.unlink()
    assert cairn(*words).document == before


def test_the_svg_is_xml_with_a_shape_for_each_cell(cairn, checkpoint, rules, tmp_path):
    svg = tmp_path / "plan.svg"
    svg.write_text("old")
    out = cairn("plan", checkpoint, "--mesh", "fsdp=2,tp=2", "--rules", rules(SPLIT), "--svg",
                svg).out
    assert out.endswith(f"wrote {svg}\n")
    root = ElementTree.parse(svg).getroot()
    name = "{http://www.w3.org/2000/svg}"
    assert root.tag == name + "svg"
    assert root.find(name + "title").text == "optimizer: kernel"
    groups = root.findall(name + "g")
    titles = [group.find(name + "title").text for group in groups if group.get("class") == "held"]
    assert titles == [f"held by rank {rank}" for rank in range(4)]
    cells = [group for group in groups if group.get("class") == "cell"]
    assert len(cells) == (6 if checkpoint.name == "zarr2" else 4)
    words = [text.text for text in root.findall(name + "text")]
    assert words[:2] == ["optimizer: kernel", words[1]] and words[1].startswith("float64 (6, 8), ")
    assert words[-4:] == [f"rank {rank}" for rank in range(4)]


def test_names_are_escaped_in_the_svg(cairn, tmp_path):
    from safetensors.numpy import save_file

    odd = "<w> & \"x\" \u00e9 \x01"
    save_file({odd: np.zeros((4, 4), np.float32)}, tmp_path / "m.safetensors")
    cairn("plan", tmp_path / "m.safetensors", "--mesh", "x=2", "--svg", tmp_path / "odd.svg")
    root = ElementTree.parse(tmp_path / "odd.svg").getroot()
    assert "<w>" in root.find("{http://www.w3.org/2000/svg}title").text


def test_a_file_that_cannot_be_written_is_an_error(cairn, originals, tmp_path):
    words = "plan", originals / "zarr2", "--mesh", "x=2", "--svg"
    cairn(*words, tmp_path / "nowhere/plan.svg", status=3)
    (tmp_path / "folder").mkdir()
    cairn(*words, tmp_path / "folder", status=3)
    target = tmp_path / "target"
    target.write_text("keep me")
    os.symlink(target, tmp_path / "link.svg")
    cairn(*words, tmp_path / "link.svg", status=3)
    assert target.read_text() == "keep me"


@pytest.mark.parametrize("words, content, status, reason", [
    (("--mesh", "fsdp"), SPLIT, 2, "mesh/syntax"),
    (("--mesh", "fsdp=2,fsdp=2"), SPLIT, 2, "mesh/axis-name"),
    (("--mesh", "fsdp=0,tp=2"), SPLIT, 2, "mesh/axis-size"),
    (("--mesh", "fsdp=9999999999,tp=9999999999"), SPLIT, 2, "mesh/axis-size"),
    (("--mesh", "fsdp=2,tp=2", "--ranks", 3), SPLIT, 2, "mesh/rank-count"),
    (("--mesh", "fsdp=2"), SPLIT, 2, "sharding/unknown-axis"),
    (("--mesh", "fsdp=4,tp=2"), SPLIT, 2, "sharding/uneven"),
    (("--mesh", "fsdp=2,tp=2"), None, 2, "load/no-sharding"),
    (("--mesh", "fsdp=2,tp=2"), [["kernel", []]], 2, "rules/no-match"),
    (("--mesh", "fsdp=2,tp=2"), "[", 2, "rules/json"),
    (("--mesh", "fsdp=2,tp=2"), [["a(", []]], 2, "regex/syntax"),
    (("--mesh", "x=2", "--rules", "nowhere.json"), None, 3, "storage/not-found"),
    (("--mesh", "x=2", "--leaf", "kernel"), None, 2, "load/key-ambiguous"),
    (("--mesh", "x=2", "--leaf", "nowhere"), None, 3, "load/key-missing"),
    (("--mesh", "x=2", "--leaf", "config.rate"), None, 2, "plan/not-an-array"),
    (("--mesh", "x=2", "--leaf", "empty", "--svg", "no.svg"), None, 2, "plan/nothing-to-draw"),
    (("--mesh", "x=2", "--prefix", "other"), None, 3, "load/prefix-missing"),
])
def test_what_is_wrong_is_named(cairn, checkpoint, rules, words, content, status, reason):
    if content is not None:
        words += "--rules", rules(content)
    assert f"[{reason}]" in cairn("plan", checkpoint, *words, status=status).error
    document = cairn("plan", checkpoint, *words, "--json", status=status).document
    assert document["error"]["reason"] == reason


def test_a_bad_expression_is_named_with_rule_and_position(cairn, originals, rules):
    path = rules([[".", []], ["ab(", []]])
    error = cairn("plan", originals / "zarr2", "--mesh", "x=2", "--rules", path, status=2).error
    assert str(path) in error and "rule 1" in error and "at position " in error


@pytest.mark.parametrize("words", [(), ("--mesh", "x=2", "--ranks", "0")])
def test_wrong_usage(cairn, originals, words):
    assert "--help" in cairn("plan", originals / "zarr2", *words, status=2).error


def test_what_others_wrote_can_be_planned(cairn, fixtures):
    path = fixtures / "eformer_save_tree/checkpoint"
    document = cairn("plan", path, "--mesh", "x=2", "--json").document
    assert document["totals"]["needed_bytes"] > 0
