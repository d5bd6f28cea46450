# SPDX-License-Identifier: Apache-2.0
"""Names, values, metadata and file names that would take a terminal over are shown, not obeyed."""

import json
import os
import subprocess

import pytest

# Colours, a title, a rewritten line, a turned direction, a hidden character, C1, a line of its own.
TEXT = "a\x1b[31m\x1b]0;t\x07\r\n\x7f\x9b\u202e\u2066\u200b\u2028b"
ON_DISK = b"n\xff\xfe\x1b[2J\xe2\x80\xae"  # a file's name need not be UTF-8


def is_plain(character):
    code = ord(character)
    return code >= 0x20 and not 0x7f <= code <= 0x9f and not (
        code in (0x200b, 0x200e, 0x200f, 0xfeff) or 0x2028 <= code <= 0x202e
        or 0x2060 <= code <= 0x206f)


def check_plain(words, *streams):
    for bytes_ in streams:
        bad = [c for c in bytes_.decode() if c != "\n" and not is_plain(c)]
        assert not bad, f"{words}: {bad} in {bytes_}"


def write_safetensors(path, names, metadata):
    header = {name: {"dtype": "F32", "shape": [2], "data_offsets": [8 * at, 8 * at + 8]}
              for at, name in enumerate(names)}
    text = json.dumps({"__metadata__": metadata, **header}).encode()
    path.write_bytes(len(text).to_bytes(8, "little") + text + bytes(8 * len(names)))


def mark(folder, step):
    (folder / "metadata.json").write_text(json.dumps(
        {"step": step, "timestamp": TEXT, "is_temporary": False, "metrics": {TEXT: 1.0}}))


@pytest.fixture
def run(cairn, tmp_path):
    """A run of two checkpoints and of directories that pretend to be some."""
    write_safetensors(tmp_path / "m.safetensors", [TEXT, f"x.{TEXT}.y"], {TEXT: TEXT})
    write_safetensors(tmp_path / "other.safetensors", [TEXT + "2", f"x.{TEXT}.y"], {TEXT: TEXT})
    folder = tmp_path / "run"
    for step in (1, 2):
        cairn("convert", tmp_path / "m.safetensors", folder / f"run-{step}")
        mark(folder / f"run-{step}", step)
    strange = folder / os.fsdecode(ON_DISK)
    cairn("convert", tmp_path / "m.safetensors", strange)
    mark(strange, 3)
    torn = folder / TEXT
    torn.mkdir()
    mark(torn, 4)
    return folder


def calls(run):
    file, other = run.parent / "m.safetensors", run.parent / "other.safetensors"
    strange, first = run / os.fsdecode(ON_DISK), run / "run-1"
    (run.parent / "bad.safetensors").write_bytes(b"\x40" + bytes(7) + b'{"' + TEXT.encode() * 3)
    for path in (file, first, strange):
        yield "show", path
        yield "show", path, "--depth", "1"
        yield "stats", path
        yield "verify", path
        yield "cat", path, TEXT
        yield "cat", path, TEXT + "none"
        yield "cat", path, "x." + TEXT
        yield "plan", path, "--mesh", "a=2", "--rules", run.parent / "rules.json"
        yield "plan", path, "--mesh", f"{TEXT}=2"
        yield "diff", path, other
        yield "ls", path
    yield "show", run.parent / "bad.safetensors"
    yield "show", run.parent / TEXT
    yield "ls", run
    yield "watch", run, "--once"
    yield "gc", run, "--keep-last", "1", "--dry-run"
    yield "pin", strange, "--reason", TEXT
    yield "gc", run, "--keep-last", "1", "--dry-run"
    yield "unpin", strange
    yield "promote", strange
    yield "request-save", run, "--reason", TEXT
    yield "watch", run, "--once"
    yield "doctor", strange
    yield "convert", file, run.parent / (TEXT + "out")
    yield "gc", run, "--keep-last", "1"
    yield TEXT,
    yield "show", file, "--" + TEXT
    yield "completion", TEXT


def test_no_verb_lets_a_terminal_be_taken_over(command, run):
    (run.parent / "rules.json").write_text(json.dumps([[".", ["a"]]]))
    for words in calls(run):
        words = [os.fsencode(word) for word in words]
        done = subprocess.run([command, *words], capture_output=True)
        assert done.returncode in (0, 1, 2, 3), words
        check_plain(words, done.stdout, done.stderr)


def test_json_of_every_verb_is_valid_and_plain(command, run):
    (run.parent / "rules.json").write_text(json.dumps([[".", ["a"]]]))
    for words in calls(run):
        words = [os.fsencode(word) for word in words]
        done = subprocess.run([command, *words, "--json"], capture_output=True)
        check_plain(words, done.stdout, done.stderr)
        if done.returncode != 2:
            json.loads(done.stdout)
            assert done.stderr == b""


def test_what_is_escaped_can_be_read(cairn, run):
    out = cairn("show", run / "run-1").out
    assert r"a\x1b[31m\x1b]0;t\x07\r\n\x7f\u009b\u202e\u2066\u200b\u2028b" in out
    assert "\nb" not in out


def test_letters_of_all_scripts_stay(cairn, tmp_path):
    write_safetensors(tmp_path / "m.safetensors", ["\u00e9\u4e2d\u05d0\u0646\u200c\u0647"], {})
    assert "\u00e9\u4e2d\u05d0\u0646\u200c\u0647" in cairn("show", tmp_path / "m.safetensors").out
