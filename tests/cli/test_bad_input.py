# SPDX-License-Identifier: Apache-2.0
"""Wrong, damaged and hostile input: the right reason and exit status, and nothing half-written."""

import json
import os
import pickle
import subprocess

import numpy as np
import pytest
from safetensors.numpy import save_file


def names(folder):
    """What lies in a folder, but for the lock, which stays for ever."""
    return sorted(path.name for path in folder.iterdir() if path.name != ".cairn-lock")


@pytest.fixture
def source_file(tmp_path):
    path = tmp_path / "m.safetensors"
    save_file({"w": np.arange(1 << 20, dtype=np.float32)}, path)
    return path


@pytest.fixture
def tmpfs(tmp_path):
    """A function that mounts a small file system."""
    mounted = []

    def mount(options):
        place = tmp_path / "mounted"
        place.mkdir()
        done = subprocess.run(["mount", "-t", "tmpfs", "-o", options, "none", place],
                              capture_output=True, text=True)
        if done.returncode != 0:
            pytest.skip(f"mounting is not allowed here: {done.stderr.strip()}")
        mounted.append(place)
        return place

    yield mount
    for place in mounted:
        subprocess.run(["umount", place], check=True)


@pytest.mark.parametrize("name", ["out", "out.safetensors"])
def test_a_full_disk_leaves_nothing(cairn, tmpfs, source_file, name):
    place = tmpfs("size=1m")
    done = cairn("convert", source_file, place / name, status=3)
    assert "no-space]" in done.error and str(place) in done.error
    assert "free" in done.error
    assert names(place / name if (place / name).is_dir() else place) == []


def test_a_full_disk_leaves_the_checkpoint_that_was_there(cairn, tmpfs, source_file, tmp_path):
    place = tmpfs("size=1m")
    save_file({"w": np.arange(100, dtype=np.float32)}, tmp_path / "small.safetensors")
    cairn("convert", tmp_path / "small.safetensors", place / "c")
    before = names(place / "c")
    cairn("convert", source_file, place / "c", status=3)
    assert names(place / "c") == before
    cairn("verify", place / "c")
    assert cairn("diff", place / "c", tmp_path / "small.safetensors").out.startswith("equal")


@pytest.mark.parametrize("name", ["out", "out.safetensors"])
def test_a_read_only_file_system_is_refused(cairn, tmpfs, source_file, name):
    place = tmpfs("size=1m,ro")
    assert "[fs/read-only]" in cairn("convert", source_file, place / name, status=3).error


def test_a_directory_without_permission_is_refused(command, originals, tmp_path):
    place = tmp_path / "locked"
    place.mkdir(mode=0o555)
    words = [command, "convert", originals / "zarr2", place / "out"]
    if os.getuid() == 0:
        # Root may write anywhere, unless it gives that up.
        without = ["setpriv", "--bounding-set=-dac_override", "--inh-caps=-dac_override"]
        if subprocess.run([*without, "true"]).returncode != 0:
            pytest.skip("root cannot give up its rights here")
        words = [*without, *words]
    done = subprocess.run(words, capture_output=True, text=True)
    assert done.returncode == 3
    assert "[fs/permission]" in done.stderr
    assert names(place) == []


def test_a_file_where_a_directory_is_meant(cairn, source_file, tmp_path):
    (tmp_path / "file").write_text("mine")
    done = cairn("convert", source_file, tmp_path / "file", status=3)
    assert "[fs/not-a-directory]" in done.error and str(tmp_path / "file") in done.error
    assert (tmp_path / "file").read_text() == "mine"


def test_a_directory_where_a_file_is_meant(cairn, source_file, tmp_path):
    (tmp_path / "d.safetensors").mkdir()
    (tmp_path / "d.safetensors/thesis.txt").write_text("mine")
    cairn("convert", source_file, tmp_path / "d.safetensors", status=3)
    assert names(tmp_path / "d.safetensors") == ["thesis.txt"]


@pytest.mark.parametrize("link", ["out", "out/.cairn-lock", "out/w", "out.safetensors"])
def test_links_are_never_written_through(cairn, source_file, tmp_path, link):
    """The target of the link stays as it was; a bare file takes the place of the link itself."""
    target = tmp_path / "target"
    out = tmp_path / link.split("/")[0]
    if "/" in link:
        cairn("convert", source_file, out)
        (tmp_path / link).rename(target)
    elif link == "out":
        target.mkdir()
    else:
        target.write_text("mine")
    (tmp_path / link).symlink_to(target)
    before = (sorted((path, path.is_file() and path.read_bytes()) for path in target.rglob("*"))
              if target.is_dir() else target.read_bytes())
    done = cairn("convert", source_file, out, status=3)
    assert "symlink]" in done.error and "link" in done.error
    after = (sorted((path, path.is_file() and path.read_bytes()) for path in target.rglob("*"))
             if target.is_dir() else target.read_bytes())
    assert after == before
    assert (tmp_path / link).is_symlink()


def test_links_are_followed_when_reading(cairn, originals, source_file, tmp_path):
    (tmp_path / "link").symlink_to(originals / "zarr2")
    assert cairn("verify", tmp_path / "link").out.startswith("good")
    (tmp_path / "hub").mkdir()
    (tmp_path / "hub/model.safetensors").symlink_to(source_file)
    assert cairn("diff", tmp_path / "hub", source_file).out.startswith("equal")


@pytest.mark.parametrize("change, reason", [
    (lambda index: index.update(weight_map={"w": "../m.safetensors"}), "index/part-path"),
    (lambda index: index.update(weight_map={"w": "/etc/passwd"}), "index/part-path"),
    (lambda index: index.update(weight_map={"w": "nowhere.safetensors"}), "missing-part"),
    (lambda index: index.update(weight_map={"w": 3}), "index"),
    (lambda index: index.pop("weight_map"), "index"),
])
def test_a_weight_map_that_lies_is_refused(cairn, source_file, tmp_path, change, reason):
    folder = tmp_path / "parts"
    folder.mkdir()
    index = {"metadata": {}, "weight_map": {"w": "model-00001-of-00001.safetensors"}}
    change(index)
    (folder / "model.safetensors.index.json").write_text(json.dumps(index))
    error = cairn("show", folder, "--json", status=1).document["error"]
    assert reason in error["reason"]
    assert str(folder) in error["where"] + error["message"]


@pytest.mark.parametrize("path, reason", [("../out", "index/unsafe-path"),
                                          ("/etc", "index/unsafe-path"),
                                          ("m/w", "index/duplicate-path")])
def test_an_index_that_lies_is_refused(cairn, tmp_path, path, reason):
    arrays = [{"path": name, "shape": [1], "dtype": "float32"} for name in ("m/w", path)]
    index = {"format": "tensorstore", "version": "2.0", "prefixes": {"m": arrays}}
    (tmp_path / "tensorstore_index.json").write_text(json.dumps(index))
    assert f"[{reason}]" in cairn("show", tmp_path, status=1).error


def test_every_malformed_fixture_ends_with_a_reason(command, fixtures):
    """No crash and no hang: an exit status that we know, and a token."""
    cases = [case for name in ("safetensors_malformed", "zarr2_malformed")
             for case in sorted((fixtures / name).rglob("*"))
             if case.suffix == ".safetensors" or (case.is_dir() and (case / ".zarray").is_file())]
    assert len(cases) > 20
    for case in cases:
        done = subprocess.run([command, "verify", case], capture_output=True, text=True, timeout=60)
        assert done.returncode in (0, 1, 3), f"{case}: {done.returncode}\n{done.stderr}"
        if done.returncode and "DAMAGED" not in done.stdout:
            assert done.stderr.rstrip().endswith("]"), f"{case}: {done.stderr}"


def test_an_unknown_dtype_is_named(cairn, tmp_path):
    header = json.dumps({"w": {"dtype": "F7", "shape": [1], "data_offsets": [0, 4]}}).encode()
    path = tmp_path / "m.safetensors"
    path.write_bytes(len(header).to_bytes(8, "little") + header + b"0000")
    error = cairn("show", path, "--json", status=1).document["error"]
    assert "dtype" in error["reason"] and "F7" in error["message"]


def test_a_truncated_file_is_named(cairn, source_file):
    os.truncate(source_file, 1000)
    error = cairn("show", source_file, "--json", status=1).document["error"]
    assert error["reason"].startswith("safetensors/")
    assert str(source_file) in error["where"] + error["message"]


def test_memory_is_not_called_durable(cairn, tmpfs):
    place = tmpfs("size=1m")
    document = cairn("doctor", place, "--json").document
    found = {one["name"]: one for one in document["findings"]}
    assert document["type"] == "tmpfs" and found["locks"]["good"]
    for name in ("directory-sync", "batch-sync"):
        assert not found[name]["good"] and "power cut" in found[name]["meaning"]
    assert "survive" not in cairn("doctor", place).out


FILES = {
    "zip": b"PK\x03\x04" + bytes(60), "npy": b"\x93NUMPY\x01\x00v\x00" + b" " * 60,
    "pickle": b"\x80\x05" + bytes(60), "hdf5": b"\x89HDF\r\n\x1a\n" + bytes(60),
    "gguf": b"GGUF\x03" + bytes(60), "gzip": b"\x1f\x8b\x08" + bytes(60),
    "msgpack": b"\x81\xa6params\x81\xa1w\xc0" + bytes(60),
}


@pytest.mark.parametrize("folder", [False, True])
@pytest.mark.parametrize("kind", list(FILES))
def test_files_of_other_systems_are_named(cairn, tmp_path, kind, folder):
    (tmp_path / "m.safetensors").write_bytes(FILES[kind])
    error = cairn("show", tmp_path if folder else tmp_path / "m.safetensors", "--json",
                  status=3).document["error"]
    assert (error["code"], error["reason"]) == ("unimplemented", f"stranger/{kind}")
    assert "save the tree with cairn" in error["message"]


def test_what_numpy_and_pickle_write_is_named(cairn, tmp_path):
    np.savez(tmp_path / "a.npz", w=np.ones(3))
    np.save(tmp_path / "a.npy", np.ones(3))
    (tmp_path / "a.pkl").write_bytes(pickle.dumps({"w": np.ones(3)}))
    for name, kind in ("a.npz", "zip"), ("a.npy", "npy"), ("a.pkl", "pickle"):
        assert f"[stranger/{kind}]" in cairn("show", tmp_path / name, status=3).error


@pytest.mark.parametrize("name, kind", [
    ("_CHECKPOINT_METADATA", "orbax"), ("_METADATA", "orbax"), ("manifest.ocdbt", "ocdbt"),
    ("__0_0.distcp", "torch-dcp"), ("zarr.json", "zarr3"),
    ("pytorch_model.bin.index.json", "pytorch-bin"), ("pytorch_model.bin", "pytorch-bin")])
def test_directories_of_other_systems_are_named(cairn, tmp_path, name, kind):
    (tmp_path / name).write_text("{}")
    for verb in "show", "verify", "ls":
        assert f"[stranger/{kind}]" in cairn(verb, tmp_path, status=3).error


@pytest.mark.parametrize("name, kind", [("orbax_ocdbt_zarr2", "orbax"), ("orbax_v1", "orbax"),
                                        ("ocdbt_zarr2", "ocdbt")])
def test_checkpoints_that_orbax_wrote_are_named(cairn, fixtures, name, kind):
    assert f"[stranger/{kind}]" in cairn("show", fixtures / name / "checkpoint", status=3).error


def test_a_copy_without_hidden_files_is_told_from_damage(cairn, originals, tmp_path):
    cairn("convert", originals / "flags", tmp_path / "whole", "--to-layout", "zarr2")
    (tmp_path / "copy").mkdir()
    subprocess.run(f"cp -r '{tmp_path}'/whole/* '{tmp_path}/copy'", shell=True, check=True)
    error = cairn("show", tmp_path / "copy", status=3).error
    assert "[checkpoint/manifest-missing]" in error and "hidden files" in error and "cp -r" in error


def test_a_path_is_said_once(cairn, tmp_path):
    assert cairn("show", tmp_path / "none", status=3).error.count(str(tmp_path)) == 1


def test_doctor_takes_no_url_for_a_path(cairn):
    assert "[uri/not-local]" in cairn("doctor", "gs://bucket/x", status=3).error
    assert "[uri/lost-slash]" in cairn("doctor", "gs:/bucket/x", status=2).error
