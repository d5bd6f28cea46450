# SPDX-License-Identifier: Apache-2.0
"""verify, diff, convert, doctor: the verbs that read or write everything."""

import json
import os
import re
import shutil
import subprocess
import textwrap
from xml.etree import ElementTree

import ml_dtypes
import numpy as np
import pytest
from samples import HALF, KERNEL, flip
from safetensors import safe_open
from safetensors.numpy import load_file, save_file


def test_verify_calls_a_whole_checkpoint_good(cairn, checkpoint):
    assert cairn("verify", checkpoint).out.splitlines()[-1].startswith("good  5 arrays")
    document = cairn("verify", checkpoint, "--json").document
    assert document["good"] is True and document["damages"] == [] and document["unchecked"] == []


def test_verify_names_leaf_and_chunk(cairn, mine):
    flip(mine / "model/kernel/1.0", 5)
    out = cairn("verify", mine, status=1).out
    assert "DAMAGED  leaf kernel, chunk 1.0 of prefix model" in out
    assert f"{mine}/model/kernel/1.0" in out
    assert "1 place in" in out
    document = cairn("verify", mine, "--json", status=1).document
    assert document["good"] is False
    assert [(d["prefix"], d["key"], d["chunk"], d["object"]) for d in document["damages"]] == [
        ("model", "kernel", "1.0", f"{mine}/model/kernel/1.0")]
    cairn("verify", mine, "--prefix", "optimizer")


@pytest.mark.parametrize("damage, reason", [
    (lambda path: path.unlink(), "load/chunk-missing"),
    (lambda path: os.truncate(path, 10), "load/chunk-length"),
    (lambda path: path.write_bytes(path.read_bytes() + b"x"), "load/chunk-length"),
    (lambda path: flip(path.parent / ".zarray", 3), "verify/array-metadata"),
])
def test_verify_tells_damages_apart(cairn, mine, damage, reason):
    damage(mine / "optimizer/count/0")
    damages = cairn("verify", mine, "--json", status=1).document["damages"]
    assert [(d["key"], d["reason"]) for d in damages] == [("count", reason)]


def test_verify_says_what_others_wrote_without_checksums(cairn, fixtures):
    done = cairn("verify", fixtures / "eformer_save_tree/checkpoint")
    assert "have no checksums" in done.out
    document = cairn("verify", fixtures / "eformer_save_tree/checkpoint", "--json").document
    assert len(document["unchecked"]) == document["arrays"]


def test_a_damaged_manifest_is_damage(cairn, mine):
    flip(mine / "model/.cairn.json", 40)
    assert "[checkpoint/manifest-digest]" in cairn("verify", mine, status=1).error


def test_reading_damage_is_refused(cairn, mine, tmp_path):
    flip(mine / "model/kernel/0.0", 0)
    assert "[load/checksum]" in cairn("cat", mine, "model.kernel", status=1).error
    assert "[load/checksum]" in cairn("stats", mine, status=1).error
    assert "[load/checksum]" in cairn("convert", mine, tmp_path / "out", status=1).error
    assert not (tmp_path / "out").exists()
    # What does not touch the damage is still there for everybody.
    assert cairn("cat", mine, "model.kernel", "--slice", "5", "--raw").raw == KERNEL[5].tobytes()


def test_both_layouts_hold_the_same(cairn, originals):
    out = cairn("diff", originals / "zarr2", originals / "safetensors").out
    assert out.startswith("equal  8 leaves")
    document = cairn("diff", originals / "zarr2", originals / "safetensors", "--json").document
    assert document["same"] and document["differences"] == []
    assert document["first"] == str(originals / "zarr2")


def test_diff_measures_and_names(cairn, tmp_path):
    base = {"same": np.ones(3, np.float32), "moved": np.zeros((2, 4), np.float32),
            "cut": np.ones((2, 2), np.float32), "gone": np.ones(1, np.int8)}
    other = dict(base, moved=base["moved"].copy(), cut=np.ones(4, np.float32),
                 new=np.ones(2, np.int8))
    other["moved"][1, 2] = 0.25
    del other["gone"]
    save_file(base, tmp_path / "a.safetensors")
    save_file(other, tmp_path / "b.safetensors")
    words = "diff", tmp_path / "a.safetensors", tmp_path / "b.safetensors"
    document = cairn(*words, "--json", status=1).document
    kinds = {d["key"]: d["kind"] for d in document["differences"]}
    assert kinds == {"moved": "elements", "cut": "shape", "gone": "only_in_first",
                     "new": "only_in_second"}
    moved = next(d for d in document["differences"] if d["key"] == "moved")
    assert (moved["different"], moved["elements"], moved["max_absolute"]) == (1, 8, 0.25)
    out = cairn(*words, status=1).out
    assert "1 of 8 elements differ" in out
    assert out.splitlines()[-1] == "different  4 differences; 1 of 3 common leaves are equal"


def test_convert_goes_both_ways(cairn, originals, tmp_path):
    to = cairn("convert", originals / "zarr2", tmp_path / "st")
    assert to.out.startswith(f"wrote {tmp_path}/st: 5 arrays")
    assert (tmp_path / "st/model.safetensors").is_file()
    cairn("convert", tmp_path / "st", tmp_path / "zarr", "--codec", "zstd:3")
    assert (tmp_path / "zarr/model/kernel/.zarray").is_file()
    for name in ("st", "zarr"):
        assert cairn("diff", originals / "zarr2", tmp_path / name).out.startswith("equal")
        assert cairn("show", tmp_path / name, "--json").document["step"] == 1000
        cairn("verify", tmp_path / name)


def test_convert_does_not_replace_what_it_reads_unless_it_is_told(cairn, originals, tmp_path):
    cairn("convert", originals / "zarr2", tmp_path / "a", "--to-layout", "zarr2")
    same = tmp_path / ".." / tmp_path.name / "a"
    words = ("convert", tmp_path / "a", same, "--dtype", "bfloat16")
    assert "[convert/onto-itself]" in cairn(*words, status=3).error
    assert cairn("diff", originals / "zarr2", tmp_path / "a").out.startswith("equal")
    cairn(*words, "--overwrite")


def test_convert_writes_nothing_that_ends_with_the_command(cairn, originals):
    done = cairn("convert", originals / "zarr2", "memory://x/y", status=2)
    assert "[convert/not-kept]" in done.error


def test_convert_makes_one_bare_file_that_others_read(cairn, originals, tmp_path):
    path = tmp_path / "m.safetensors"
    report = cairn("convert", originals / "zarr2", path, "--prefix", "model", "--json").document
    assert (report["arrays"], report["bytes"]) == (3, 212)
    loaded = load_file(path)
    assert (loaded["kernel"] == KERNEL).all()
    assert (loaded["layers.0"] == HALF).all()
    assert loaded["empty"].shape == (0, 4)
    assert cairn("cat", path, "config.steps").out == "1000\n"


def test_convert_refuses_two_trees_in_one_file(cairn, originals, tmp_path):
    done = cairn("convert", originals / "zarr2", tmp_path / "m.safetensors", status=2)
    assert "[save/one-tree]" in done.error
    assert list(tmp_path.iterdir()) == []


def test_convert_casts_floats_alone_rounded_to_nearest_even(cairn, tmp_path):
    random = np.random.default_rng(5)
    arrays = {"w": random.normal(0, 1, (64, 33)).astype(np.float32),
              "n": np.arange(7, dtype=np.int32)}
    save_file(arrays, tmp_path / "m.safetensors")
    cairn("convert", tmp_path / "m.safetensors", tmp_path / "b.safetensors", "--dtype", "bfloat16")
    loaded = load_file(tmp_path / "b.safetensors")
    assert loaded["w"].tobytes() == arrays["w"].astype(ml_dtypes.bfloat16).tobytes()
    assert loaded["n"].dtype == np.int32


def test_convert_splits_into_parts_with_an_index(cairn, tmp_path):
    arrays = {f"w{i}": np.full((50, 50), i, np.float32) for i in range(5)}
    save_file(arrays, tmp_path / "m.safetensors")
    cairn("convert", tmp_path / "m.safetensors", tmp_path / "parts", "--to-layout", "safetensors",
          "--shard-size", "25KB")
    index = json.loads((tmp_path / "parts/model.safetensors.index.json").read_text())
    parts = set(index["weight_map"].values())
    assert len(parts) == 3
    for name, part in index["weight_map"].items():
        with safe_open(tmp_path / "parts" / part, "numpy") as file:
            assert (file.get_tensor(name) == arrays[name]).all()
    assert cairn("diff", tmp_path / "m.safetensors", tmp_path / "parts").out.startswith("equal")


def test_convert_takes_the_chunk_size(cairn, tmp_path):
    save_file({"w": np.zeros((64, 64), np.float32)}, tmp_path / "m.safetensors")
    cairn("convert", tmp_path / "m.safetensors", tmp_path / "z", "--chunk-size", "4KiB")
    leaf = cairn("show", tmp_path / "z", "--json").document["leaves"][0]
    assert leaf["chunks"] == 4


def test_convert_reads_what_others_wrote(cairn, fixtures, tmp_path):
    source = fixtures / "eformer_save_tree/checkpoint"
    cairn("convert", source, tmp_path / "st", "--sha256")
    assert cairn("diff", source, tmp_path / "st").out.startswith("equal")
    assert all(leaf["sha256"] for leaf in
               cairn("show", tmp_path / "st", "--json").document["leaves"])


def test_tensorstore_reads_what_convert_wrote(cairn, tmp_path):
    import tensorstore as ts

    array = np.random.default_rng(1).normal(size=(100, 30)).astype(np.float32)
    save_file({"a.w": array}, tmp_path / "m.safetensors")
    cairn("convert", tmp_path / "m.safetensors", tmp_path / "z", "--codec", "zstd")
    spec = {"driver": "zarr", "kvstore": {"driver": "file", "path": str(tmp_path / "z/a/w")}}
    assert (ts.open(spec).result().read().result() == array).all()


@pytest.mark.parametrize("words, reason", [
    (("--dtype", "float33"), "convert/dtype"),
    (("--dtype", "int8"), "save/float-dtype"),
    (("--codec", "lzma"), "codec/unknown"),
    (("--shard-size", "much"), "size/invalid"),
    (("--to-layout", "safetensors", "--codec", "zstd"), "save/compression-unsupported"),
])
def test_convert_refuses_what_it_cannot_do_before_it_writes(cairn, originals, tmp_path, words,
                                                            reason):
    done = cairn("convert", originals / "zarr2", tmp_path / "out", *words, status=2)
    assert f"[{reason}]" in done.error
    assert not (tmp_path / "out").exists()


@pytest.mark.parametrize("name", ["out", "out.safetensors"])
def test_convert_replaces_a_tree_with_other_leaves_when_told_to(cairn, tmp_path, name):
    for source, key in (("one", "old"), ("two", "new")):
        save_file({key: np.ones(3), "both": np.ones(2)}, tmp_path / f"{source}.safetensors")
    out = tmp_path / name
    for _ in range(2):
        cairn("convert", tmp_path / "one.safetensors", out)
    before = cairn("show", out, "--json").document
    done = cairn("convert", tmp_path / "two.safetensors", out, status=3)
    assert "[save/other-tree]" in done.error and str(out) in done.error
    assert "only the old one has old; only the new one has new" in done.error
    assert "--overwrite" in done.error
    assert cairn("show", out, "--json").document == before
    cairn("convert", tmp_path / "two.safetensors", out, "--overwrite")
    leaves = cairn("show", out, "--json").document["leaves"]
    assert [leaf["key"] for leaf in leaves] == ["both", "new"]


def test_convert_leaves_a_file_that_is_none_of_ours(cairn, tmp_path):
    save_file({"a": np.ones(3)}, tmp_path / "m.safetensors")
    out = tmp_path / "out.safetensors"
    np.savez(tmp_path / "z.npz", a=np.ones(3))
    shutil.move(tmp_path / "z.npz", out)
    error = cairn("convert", tmp_path / "m.safetensors", out, status=3).error
    assert "a zip archive, as torch.save() and numpy.savez() write it" in error
    assert "[save/other-tree]" in error and "a" in np.load(out)
    cairn("convert", tmp_path / "m.safetensors", out, "--overwrite")
    assert list(load_file(out)) == ["a"]


@pytest.fixture(scope="module")
def large(tmp_path_factory):
    """300 MB in three arrays."""
    path = tmp_path_factory.mktemp("large") / "m.safetensors"
    bits = np.random.default_rng(0).integers(0, 2**16, 75_000_000, dtype=np.uint16)
    save_file({"a": bits.reshape(5000, -1), "b": bits[:100_000], "c": bits.reshape(-1, 1000)}, path)
    yield path
    shutil.rmtree(path.parent)


def peak_bytes(command, *words):
    """Peak resident memory of one call, and how it ended. The call is made from a small process,
    because a child's peak begins with the size of the process that it was forked from."""
    code = ("import resource, subprocess, sys\n"
            "status = subprocess.run(sys.argv[1:], stdout=subprocess.DEVNULL,"
            " stderr=subprocess.DEVNULL).returncode\n"
            "print(status, resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss)")
    done = subprocess.run(["python3", "-S", "-c", code, command, *map(str, words)],
                          capture_output=True, text=True, check=True)
    status, kilobytes = map(int, done.stdout.split())
    assert status == 0
    return kilobytes * 1024


@pytest.mark.parametrize("words", [("--to-layout", "zarr2"), ("--to-layout", "safetensors"),
                                   ("--to-layout", "zarr2", "--codec", "zstd:1",
                                    "--chunk-size", "8MiB")])
def test_convert_streams(command, large, tmp_path, words):
    if "asan" in os.environ["CAIRN_BUILD"] or "tsan" in os.environ["CAIRN_BUILD"]:
        pytest.skip("sanitizers take memory of their own")
    peak = peak_bytes(command, "convert", large, tmp_path / "out", "--threads", 2, *words)
    shutil.rmtree(tmp_path / "out")
    assert peak < 200e6


def test_progress_is_lines_without_a_terminal(cairn, large):
    done = cairn("verify", large)
    lines = done.error.splitlines()
    assert lines[0].startswith("verify ....") and "#### 100%  " in lines[-1]
    assert 2 <= len(lines) <= 11
    assert "\x1b" not in done.error and "\r" not in done.error
    assert cairn("verify", large, "--json").error == ""


def test_a_small_checkpoint_needs_no_progress(cairn, checkpoint):
    assert cairn("verify", checkpoint).error == ""


def test_doctor_looks_and_leaves_nothing(cairn, tmp_path):
    out = cairn("doctor", tmp_path).out
    assert out.startswith(str(tmp_path)) and "locks" in out and "free of" in out
    document = cairn("doctor", tmp_path, "--json").document
    assert {"name", "good", "value", "meaning"} == set(document["findings"][0])
    assert document["available_bytes"] <= document["total_bytes"]
    assert list(tmp_path.iterdir()) == []
    assert "[fs/not-found]" in cairn("doctor", tmp_path / "nowhere", status=3).error


STORY = [
    "only an unfinished save lies in it",
    "resuming from step 40, on 2 ranks",
    "equal  100 losses, digit by digit",
    "equal  10 leaves, 78.0 KiB compared bit for bit",
    "+------^------^------^-------^------X------^",
    "zarr2 ################ 100%  32.5 MiB of 32.5 MiB",
    "safetensors ################ 100%  32.5 MiB of 32.5 MiB",
    "embed           bfloat16  (8192, 512)  8.0 MiB",
    "DAMAGED  leaf layers.2.mlp.up, chunk 0.0 of prefix model",
    "equal  38 leaves, 32.5 MiB compared bit for bit",
]


def run_demonstration(source, programs, folder):
    return subprocess.run([source / "examples/demo/run.sh", programs], text=True,
                          capture_output=True, env=os.environ | {"TMPDIR": str(folder)})


def test_the_demonstration_tells_its_story(command, source, build, tmp_path):
    drawing = build / "demo-losses.svg"
    drawing.unlink(missing_ok=True)
    done = run_demonstration(source, command.parent, tmp_path)
    assert done.returncode == 0, done.stdout + done.stderr
    for step in STORY:
        assert step in done.stdout
    assert "\x1b" not in done.stdout
    assert list(tmp_path.iterdir()) == []
    plot = re.search(r"^loss .*?in the middle of a save\n", done.stdout, re.S | re.M)[0]
    assert textwrap.indent(plot, "    ") in (source / "README.md").read_text()
    curves = ElementTree.parse(drawing).getroot().findall("{http://www.w3.org/2000/svg}polyline")
    assert [len(curve.get("points").split()) for curve in curves] == [100, 50, 61]


@pytest.mark.parametrize("verb", ["ls", "verify", "diff"])
def test_the_demonstration_fails_with_any_of_its_steps(command, source, tmp_path, verb):
    programs = tmp_path / "bin"
    programs.mkdir()
    for name in "cairn_training", "cairn_demo_draw", "cairn_demo_save":
        (programs / name).symlink_to(command.with_name(name))
    script = f'#!/bin/sh\n[ "$1" != {verb} ] && exec {command} "$@"\nexit 3\n'
    (programs / "cairn").write_text(script)
    (programs / "cairn").chmod(0o755)
    done = run_demonstration(source, programs, tmp_path)
    assert done.returncode != 0
    assert "That was all" not in done.stdout
