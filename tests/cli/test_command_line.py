# SPDX-License-Identifier: Apache-2.0
"""Help, usage, colours, pipes and completion."""

import json
import os
import pty
import shlex
import subprocess

import pytest

VERBS = ["ls", "show", "cat", "stats", "plan", "verify", "diff", "convert", "gc", "promote", "pin",
         "unpin", "watch", "request-save", "doctor", "completion"]


def test_help_lists_every_verb(cairn):
    out = cairn("--help").out
    for verb in VERBS:
        assert f"\n  {verb} " in out
    assert "Exit status: 0 success" in out
    assert "Verbs:" in out


@pytest.mark.parametrize("verb", VERBS)
def test_every_verb_has_help(cairn, verb):
    out = cairn(verb, "--help").out
    assert f"cairn {verb}" in out


def test_version_says_what_is_built_in(cairn):
    lines = cairn("--version").out.splitlines()
    assert lines[0].startswith("cairn 0.") and lines[0].endswith(")")
    assert "zarr2, safetensors" in lines[1]


@pytest.mark.parametrize("words", [(), ("dance",), ("show",), ("show", ".", "--deep"),
                                   ("show", ".", "--depth", "0"), ("cat", "."),
                                   ("cat", ".", "w", "--raw", "--npy"), ("completion", "csh"),
                                   ("convert", "a", "b", "--to-layout", "pickle"),
                                   ("ls", "--threads", "-1"), ("ls", "--threads", "9" * 20),
                                   ("watch", ".", "--interval", "nan"),
                                   ("request-save", ".", "--wait", "--timeout", "nan")])
def test_wrong_usage_is_exit_2_with_a_hint(cairn, words):
    done = cairn(*words, status=2)
    assert "--help" in done.error and done.out == ""


def test_an_unknown_verb_is_named(cairn):
    assert "there is no verb 'dance'" in cairn("dance", status=2).error


@pytest.mark.parametrize("number", ["x", "0", "-1", "1.5"])
@pytest.mark.parametrize("words", [("show", ".", "--depth"),
                                   ("plan", ".", "--mesh", "a=1", "--ranks")])
def test_a_wrong_number_is_named_in_a_short_sentence(cairn, words, number):
    complaint = cairn(*words, number, status=2).error.splitlines()[0]
    assert f"{words[-1]}: '{number}' is not a whole number of at least 1" in complaint
    assert len(complaint) < 80
    assert "N >= 1" in cairn(words[0], "--help").out


@pytest.mark.parametrize("shell, check", [("bash", ["bash", "-n"]), ("zsh", None), ("fish", None)])
def test_completion_scripts(cairn, shell, check):
    script = cairn("completion", shell).out
    for verb in VERBS:
        assert verb in script
    if check:
        done = subprocess.run(check, input=script, text=True, capture_output=True)
        assert (done.returncode, done.stderr) == (0, "")


def complete(command, script, *words, where=None):
    """What bash offers for the last word."""
    quoted = " ".join(f"'{word}'" for word in words)
    ask = (f"{script}\ncompopt() {{ :; }}\nCOMP_WORDS=({quoted}); "
           f"COMP_CWORD={len(words) - 1}; _cairn; printf '%s\\n' \"${{COMPREPLY[@]}}\"")
    path = f"{command.parent}:{os.environ['PATH']}"
    done = subprocess.run(["bash", "-c", ask], text=True, capture_output=True, cwd=where,
                          env=os.environ | {"PATH": path})
    assert done.stderr == ""
    return done.stdout.splitlines()


def test_bash_completes_verbs_keys_and_options(cairn, command, originals):
    script = cairn("completion", "bash").out
    zarr = str(originals / "zarr2")
    assert complete(command, script, "cairn", "ver") == ["verify"]
    assert complete(command, script, "cairn", "cat", zarr, "la") == ["layers.0"]
    assert complete(command, script, "cairn", "cat", zarr, "kernel", "--sl") == ["--slice"]
    assert complete(command, script, "cairn", "show", zarr[:-1]) == [zarr]


def test_bash_never_expands_the_names_of_a_checkpoint(cairn, command, tmp_path):
    names = ["`touch x`", "$(touch y)", "two words", "*"]
    header = json.dumps({name: {"dtype": "U8", "shape": [0], "data_offsets": [0, 0]}
                         for name in names}).encode()
    file = tmp_path / "a.safetensors"
    file.write_bytes(len(header).to_bytes(8, "little") + header)
    script = cairn("completion", "bash").out
    offered = complete(command, script, "cairn", "cat", str(file), "", where=tmp_path)
    assert sorted(map(shlex.split, offered)) == sorted([name] for name in names)
    assert list(tmp_path.iterdir()) == [file]


def on_terminal(command, *words, **environment):
    """Standard output and error of a call whose streams are a terminal."""
    main, side = pty.openpty()
    clean = {name: value for name, value in os.environ.items() if name != "NO_COLOR"}
    child = subprocess.Popen([command, *map(str, words)], stdin=side, stdout=side, stderr=side,
                             env=clean | {"TERM": "xterm"} | environment)
    os.close(side)
    output = b""
    while True:
        try:
            piece = os.read(main, 4096)
        except OSError:
            break
        if not piece:
            break
        output += piece
    os.close(main)
    child.wait()
    return output.decode()


def test_colours_are_for_terminals_that_want_them(command, originals):
    words = "show", originals / "zarr2"
    assert "\x1b[1m" in on_terminal(command, *words)
    assert "\x1b" not in on_terminal(command, *words, NO_COLOR="1")
    assert "\x1b" not in on_terminal(command, *words, TERM="dumb")
    assert "\x1b" not in on_terminal(command, *words, "--json")


def test_a_terminal_gets_a_bar(command, tmp_path):
    import numpy as np
    from safetensors.numpy import save_file

    save_file({"w": np.zeros(40 << 20, np.uint8)}, tmp_path / "m.safetensors")
    out = on_terminal(command, "verify", tmp_path / "m.safetensors")
    assert "\r" in out and "100%" in out and "\u2588" in out


def test_a_closed_pipe_ends_it_quietly(command, originals):
    shell = f"'{command}' cat '{originals}/zarr2' model.kernel --all | head -n 1"
    done = subprocess.run(["bash", "-c", shell], capture_output=True, text=True)
    assert done.stdout.startswith("0 1 2")
    assert "cairn:" not in done.stderr and done.returncode == 0


def test_a_full_disk_behind_standard_output_is_a_failure(command, originals):
    with open("/dev/full", "wb") as full:
        done = subprocess.run([command, "show", originals / "zarr2"], stdout=full,
                              stderr=subprocess.PIPE)
    assert done.returncode == 3
    assert b"standard output" in done.stderr
