# SPDX-License-Identifier: Apache-2.0
"""ls, show, cat, stats: what is there, as text and as JSON."""

import io
import json
import shutil

import numpy as np
import pytest
from samples import HALF, KERNEL, MOMENTS


def leaves(cairn, path, *options):
    return {(leaf["prefix"], leaf["key"]): leaf
            for leaf in cairn("show", path, "--json", *options).document["leaves"]}


def test_show_draws_the_tree(cairn, checkpoint):
    out = cairn("show", checkpoint).out
    lines = [line.split() for line in out.splitlines()]
    assert lines[0][0] == str(checkpoint)
    assert ["kernel", "float32", "(6,", "8)", "192", "B"] in [line[:6] for line in lines]
    assert ["name", "str", '"tiny', '\\"one\\""'] in lines or '"tiny \\"one\\""' in out
    assert "model  3 arrays, 3 values, 212 B, step 1000" in out
    assert "optimizer  2 arrays, 0 values, 392 B, step 1000" in out
    assert "\x1b" not in out


def test_show_folds_what_lies_deeper(cairn, checkpoint):
    out = cairn("show", checkpoint, "--depth", 1, "--prefix", "model").out
    assert "3 leaves" in out and "1 leaf " in out
    assert "rate" not in out and "optimizer" not in out


def test_show_json_has_the_agreed_members(cairn, checkpoint):
    document = cairn("show", checkpoint, "--json").document
    assert document["step"] == 1000
    assert document["prefixes"] == ["model", "optimizer"]
    assert document["totals"]["arrays"] == 5 and document["totals"]["values"] == 3
    found = leaves(cairn, checkpoint)
    assert set(found) == {("model", key) for key in ("kernel", "layers.0", "empty", "config.name",
                                                     "config.rate", "config.steps")} | {
        ("optimizer", "kernel"), ("optimizer", "count")}
    half = found["model", "layers.0"]
    assert half["path"] == ["layers", "0"]
    assert (half["dtype"], half["shape"], half["bytes"]) == ("bfloat16", [2, 5], 20)
    zarr = checkpoint.name == "zarr2"
    assert half["name"] == ("model/layers/0" if zarr else "layers.0")
    assert found["optimizer", "count"]["shape"] == []
    assert found["model", "config.steps"]["value"] == {"type": "int", "value": "1000"}
    assert found["model", "config.name"]["value"]["value"] == 'tiny "one"'


def test_show_counts_lists_by_number(cairn, originals):
    lines = cairn("show", originals / "flags").out.splitlines()
    assert [line.split()[0] for line in lines[2:-1]] == [str(i) for i in range(11)]


def test_show_opens_what_others_wrote(cairn, fixtures):
    for name, kind in [("eformer_save_tree", "tensorstore index"),
                       ("eformer_safetensors", "safetensors"),
                       ("eformer_safetensors_sharded", "safetensors")]:
        document = cairn("show", fixtures / name / "checkpoint", "--json").document
        expected = json.loads((fixtures / name / "expected.json").read_text())
        assert document["kind"] == kind
        assert document["totals"]["arrays"] == len(expected["leaves"])
        assert document["notes"]


def test_show_opens_one_array_directory(cairn, originals):
    document = cairn("show", originals / "zarr2/model/kernel", "--json").document
    assert document["kind"] == "zarr2 array"
    assert [leaf["shape"] for leaf in document["leaves"]] == [[6, 8]]


def test_a_run_directory_means_its_latest_and_that_is_said(cairn, originals):
    done = cairn("show", originals / "run")
    assert f"taking its latest checkpoint, {originals}/run/run-10" in done.error
    quiet = cairn("show", originals / "run", "--json")
    assert quiet.document["path"] == f"{originals}/run/run-10"
    assert quiet.error == ""
    assert cairn("stats", originals / "run", "--json").document["path"].endswith("run-10")


def test_what_the_latest_was_taken_instead_of_is_said(cairn, originals, tmp_path):
    run = shutil.copytree(originals / "run", tmp_path / "run")
    (run / "run-10/optimizer/count/0").unlink()
    done = cairn("show", run)
    assert "run-10 was skipped: leaf count" in done.error
    assert done.out.startswith(f"{run}/run-9 ")


def test_ls_lists_a_run_newest_first(cairn, originals):
    out = cairn("ls", originals / "run").out.splitlines()
    assert [line.split()[:3] for line in out[1:]] == [
        ["10", "run-10", "2026-01-02T03:04:05"], ["9", "run-9", "2026-01-02T03:04:05"]]
    document = cairn("ls", originals / "run", "--json").document
    first = document["checkpoints"][0]
    assert (first["step"], first["name"], first["prefixes"]) == (10, "run-10", ["optimizer"])
    assert (first["leaves"], first["bytes"], first["marked"]) == (2, 392, True)
    assert first["problem"] is None


def test_ls_names_what_is_wrong_with_each(cairn, fixtures):
    lines = cairn("ls", fixtures / "eformer_run_damaged/checkpoint", "--json").document
    problems = {line["name"]: line["problem"] for line in lines["checkpoints"]}
    assert problems["run-10"] is None
    for name in ("run-11", "run-12", "run-13"):
        assert "metadata.json" in problems[name]
    assert "0.0 is missing" in problems["run-14"]
    assert "tensorstore_index.json" in problems["run-15"]
    text = cairn("ls", fixtures / "eformer_run/checkpoint").out
    assert "temporary" in text and "no mark" in text


def test_ls_takes_one_file_too(cairn, originals, tmp_path):
    cairn("convert", originals / "zarr2", tmp_path / "m.safetensors", "--prefix", "model")
    assert "safetensors" in cairn("ls", tmp_path / "m.safetensors").out


@pytest.mark.parametrize("key, array", [("model.kernel", KERNEL), ("optimizer.kernel", MOMENTS),
                                        ("layers.0", HALF), ("optimizer.count", np.int64(41))])
def test_cat_raw_is_the_array(cairn, checkpoint, key, array):
    assert cairn("cat", checkpoint, key, "--raw").raw == array.tobytes()


@pytest.mark.parametrize("text, index", [
    ("2:4,:", np.s_[2:4, :]), ("-1", np.s_[-1]), (":,-3:", np.s_[:, -3:]), ("5,7", np.s_[5, 7]),
    ("3:3,:", np.s_[3:3, :])])
def test_cat_slices_as_numpy_does(cairn, checkpoint, text, index):
    words = "cat", checkpoint, "model.kernel", "--slice", text
    assert cairn(*words, "--raw").raw == np.ascontiguousarray(KERNEL[index]).tobytes()
    loaded = np.load(io.BytesIO(cairn(*words, "--npy").raw))
    assert loaded.reshape(-1).tolist() == KERNEL[index].reshape(-1).tolist()


def test_cat_npy_opens_in_numpy(cairn, checkpoint):
    kernel = np.load(io.BytesIO(cairn("cat", checkpoint, "optimizer.kernel", "--npy").raw))
    assert kernel.dtype == np.float64 and (kernel == MOMENTS).all()
    half = np.load(io.BytesIO(cairn("cat", checkpoint, "layers.0", "--npy").raw))
    assert (half.view(HALF.dtype).reshape(HALF.shape) == HALF).all()
    count = np.load(io.BytesIO(cairn("cat", checkpoint, "count", "--npy").raw))
    assert count.shape == () and count == 41
    empty = np.load(io.BytesIO(cairn("cat", checkpoint, "empty", "--npy").raw))
    assert empty.shape == (0, 4) and empty.dtype == np.int16


def test_cat_prints_rows(cairn, checkpoint):
    done = cairn("cat", checkpoint, "model.kernel", "--slice", "0:2,:3")
    assert done.out == "0 1 2\n8 9 10\n"
    assert done.error == "float32 (2, 3)\n"
    assert cairn("cat", checkpoint, "config.name").out == '"tiny \\"one\\""\n'
    assert cairn("cat", checkpoint, "model.config.rate").out == "0.5\n"


def test_cat_json_has_the_agreed_members(cairn, checkpoint):
    words = "cat", checkpoint, "optimizer.kernel", "--slice", "0,:2", "--json"
    document = cairn(*words).document
    assert (document["key"], document["prefix"], document["path"]) == (
        "kernel", "optimizer", ["kernel"])
    assert (document["dtype"], document["values"]) == ("float64", [-5, -4])
    value = cairn("cat", checkpoint, "model.config.steps", "--json").document
    assert (value["key"], value["path"]) == ("config.steps", ["config", "steps"])
    assert value["value"] == {"type": "int", "value": "1000"}


def test_a_key_that_two_prefixes_have_is_refused_with_both(cairn, checkpoint):
    done = cairn("cat", checkpoint, "kernel", status=2)
    assert "kernel of prefix model, kernel of prefix optimizer" in done.error
    assert "[load/key-ambiguous]" in done.error
    assert cairn("cat", checkpoint, "kernel", "--prefix", "model", "--raw").raw == KERNEL.tobytes()


@pytest.mark.parametrize("words, status, reason", [
    (("cat", "CKPT", "nowhere"), 3, "load/key-missing"),
    (("cat", "CKPT", "count", "--prefix", "other"), 3, "load/prefix-missing"),
    (("cat", "CKPT", "config.rate", "--raw"), 2, "cat/not-an-array"),
    (("stats", "CKPT", "nowhere"), 3, "load/key-missing"),
    (("show", "CKPT/nowhere"), 3, "checkpoint/not-found"),
    (("verify", "CKPT/.."), 3, "checkpoint/not-a-checkpoint"),
])
def test_what_is_not_there_is_named(cairn, checkpoint, tmp_path, words, status, reason):
    here = shutil.copytree(checkpoint, tmp_path / "empty/c")
    (tmp_path / "bare").mkdir()
    words = [word.replace("CKPT/..", str(tmp_path / "bare")).replace("CKPT", str(here))
             for word in words]
    assert f"[{reason}]" in cairn(*words, status=status).error
    error = cairn(*words, "--json", status=status).document["error"]
    assert error["reason"] == reason and error["code"] and error["message"]


def test_stats_agree_with_numpy(cairn, tmp_path):
    from safetensors.numpy import save_file

    random = np.random.default_rng(3)
    arrays = {"w": random.normal(5, 2, (300, 70)).astype(np.float32),
              "h": random.normal(0, 1, 1000).astype(np.float16),
              "i": random.integers(-9, 9, (50, 3)).astype(np.int32)}
    arrays["w"][0, :4] = [np.nan, np.inf, -np.inf, 0]
    save_file(arrays, tmp_path / "m.safetensors")
    document = cairn("stats", tmp_path / "m.safetensors", "--json").document
    assert len(document["leaves"]) == 3
    for leaf in document["leaves"]:
        array = arrays[leaf["key"]]
        wide = array.astype(np.float64)
        good = wide[np.isfinite(wide)]
        assert leaf["elements"] == array.size
        assert leaf["nan"] == np.isnan(wide).sum() and leaf["inf"] == np.isinf(wide).sum()
        assert leaf["zeros"] == (array == 0).sum()
        assert (leaf["min"], leaf["max"]) == (good.min(), good.max())
        assert leaf["mean"] == pytest.approx(good.mean(), rel=1e-12)
        assert leaf["std"] == pytest.approx(good.std(), rel=1e-9)
    text = cairn("stats", tmp_path / "m.safetensors", "w").out.splitlines()
    assert len(text) == 2 and text[0].split()[0] == "LEAF"
