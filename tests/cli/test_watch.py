# SPDX-License-Identifier: Apache-2.0
"""watch: what can be seen of saves in flight from outside."""

import fcntl
import json
import os
import pty
import re
import shutil
import signal
import struct
import subprocess
import termios

import pytest
from savers import Attempt, Job


@pytest.fixture
def run(tmp_path):
    folder = tmp_path / "run"
    folder.mkdir()
    return folder


@pytest.fixture
def start_job(command, tmp_path):
    jobs = []

    def start(count):
        jobs.append(Job(command.parent, tmp_path / "meet", count))
        return jobs[-1]

    yield start
    for job in jobs:
        job.end()


def look(cairn, run):
    return cairn("watch", run, "--once", "--json").document


def test_a_rank_that_hangs_is_named_with_phase_and_bytes(cairn, run, start_job):
    job = start_job(3)
    job.save(run / "run-1", 1, held=2, operation=30)
    job.wait_until_held(2)
    # The others come as far as they can without it.
    while not all(rank["reported"] for rank in look(cairn, run)["saves"][0]["ranks"][:2]):
        pass
    document = look(cairn, run)
    assert document["latest"] is None and document["leftovers"] == 0
    [save] = document["saves"]
    assert save["path"] == str(run / "run-1") and save["state"] == "alive"
    assert save["process"] == job.ranks[0].pid and save["prefixes"] == ["m"]
    late, first = save["ranks"][2], save["ranks"][0]
    assert late["phase"] == "writing" and late["alive"] and not late["reported"]
    assert late["process"] == job.ranks[2].pid
    assert late["done_bytes"] == 0 and late["total_bytes"] > 1_000_000
    assert late["unchanged_seconds"] >= 0 and late["phase_seconds"] >= 0
    assert first["done_bytes"] == first["total_bytes"] > 1_000_000
    assert save["done_bytes"] == sum(rank["done_bytes"] for rank in save["ranks"])
    assert save["total_bytes"] == sum(rank["total_bytes"] for rank in save["ranks"])

    lines = cairn("watch", run, "--once").out.splitlines()
    header = next(n for n, line in enumerate(lines) if "RANK" in line)
    assert lines[header + 1].split()[:2] == ["2", "writing"], "the slowest comes first"
    assert "0 B of" in lines[header + 1]

    job.go_on(2)
    assert all("bytes" in answer for answer in job.answers())
    assert look(cairn, run)["saves"] == []


def test_a_save_by_one_process_is_seen_in_every_phase(cairn, run, start_job):
    job = start_job(1)
    job.save(run / "first", 0)
    operations = job.answers()[0]["operations"]
    seen = {}
    for operation in range(20, operations, 5):
        job.save(run / f"run-{operation}", operation, held=0, operation=operation)
        job.wait_until_held(0)
        for save in look(cairn, run)["saves"]:
            [rank] = save["ranks"]
            seen.setdefault(rank["phase"], set()).add((rank["done_bytes"], rank["total_bytes"]))
        job.go_on(0)
        assert "bytes" in job.answers()[0]
    [(total, same)] = seen["committing"]
    assert total == same > 1_000_000
    assert (0, total) in seen["writing"] and seen["syncing"] == {(total, total)}


def test_a_killed_save_is_left_over(cairn, run, start_job):
    job = start_job(1)
    job.save(run / "run-0", 0)
    job.save(run / "run-1", 1, held=0, operation=job.answers()[0]["operations"] // 2)
    job.wait_until_held(0)
    job.end()
    document = look(cairn, run)
    assert document["saves"][0]["state"] == "dead" and document["leftovers"] == 1
    assert document["saves"][0]["ranks"][0]["alive"] is False
    assert "a save that was left by process" in cairn("watch", run, "--once").out


def test_the_latest_and_the_disk_are_said(cairn, run, originals):
    shutil.copytree(originals / "run", run, dirs_exist_ok=True)
    document = look(cairn, run)
    assert document["latest"]["step"] == 10 and document["checkpoints"] == 2
    size = sum(path.stat().st_size for path in run.rglob("*") if path.is_file())
    assert document["bytes"] == size
    assert 0 < document["free_bytes"] < document["disk_bytes"]
    out = cairn("watch", run, "--once").out
    assert "2 checkpoints, the latest run-10, step 10" in out and "free of" in out


def read_until(stream, text):
    """Lines up to the one with the text."""
    lines = []
    for line in stream:
        lines.append(line)
        if text in line:
            return lines
    raise AssertionError(f"no {text!r} in {lines}")


@pytest.mark.parametrize("ending", [signal.SIGINT, signal.SIGTERM])
def test_without_a_terminal_there_is_a_block_for_each_change(command, run, ending):
    attempt = Attempt(run / "run-1", 2)
    attempt.phase(0, "writing", 10, 100)
    watch = subprocess.Popen([command, "watch", run, "--interval", "0.01"], text=True,
                             stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    assert "10%" in "".join(read_until(watch.stdout, "has not come yet"))
    attempt.phase(0, "writing", 40, 100)
    block = "".join(read_until(watch.stdout, "has not come yet"))
    assert "40%" in block and "/s" in block and "\x1b" not in block
    attempt.phase(1, "begin")
    read_until(watch.stdout, "1  begin")
    watch.send_signal(ending)
    rest, error = watch.communicate()
    assert (watch.returncode, error) == (0, "")
    assert rest.count("RANK") == 0, "nothing happened since"


def test_json_of_each_change_is_a_line(command, run):
    attempt = Attempt(run / "run-1", 1)
    watch = subprocess.Popen([command, "watch", run, "--json", "--interval", "0.01"], text=True,
                             stdout=subprocess.PIPE)
    assert json.loads(watch.stdout.readline())["saves"][0]["ranks"][0]["phase"] is None
    attempt.phase(0, "writing", 1, 2)
    assert json.loads(watch.stdout.readline())["saves"][0]["ranks"][0]["done_bytes"] == 1
    watch.send_signal(signal.SIGINT)
    assert watch.wait() == 0
    watch.stdout.close()


def on_screen(command, rows, columns, *words):
    """The command on a terminal of that size, and the end of it that a person has."""
    main, side = pty.openpty()
    fcntl.ioctl(side, termios.TIOCSWINSZ, struct.pack("HHHH", rows, columns, 0, 0))
    child = subprocess.Popen([command, *map(str, words)], stdin=side, stdout=side, stderr=side,
                             start_new_session=True, env=os.environ | {"TERM": "xterm"})
    os.close(side)
    return child, main


def test_a_terminal_is_drawn_over_and_never_overflows(command, run):
    attempt = Attempt(run / "run-1", 40)
    for rank in range(40):
        attempt.phase(rank, "writing a very long thing that nobody can read in one line",
                      done=rank, total=100)
    child, main = on_screen(command, 12, 60, "watch", run, "--interval", "0.01")
    output = b""
    while output.count(b"\x1b[J") < 3:
        output += os.read(main, 4096)
    child.send_signal(signal.SIGINT)
    try:
        while piece := os.read(main, 4096):
            output += piece
    except OSError:
        pass
    os.close(main)
    assert child.wait() == 0
    pictures = output.decode().split("\x1b[J")
    plain = [strip_colours(picture).splitlines() for picture in pictures]
    for lines in plain[:-1]:
        drawn = [line for line in lines if line and not line.startswith("\x1b")]
        assert len(drawn) == 11
        assert all(len(line.rstrip("\r")) <= 60 for line in drawn), drawn
    assert "\x1b[11A\r" in pictures[1]
    assert "and 35 more, of which 0 have written all" in pictures[0]
    assert "\u2588" in pictures[0]


def strip_colours(text):
    return re.sub("\x1b\\[[0-9]*m", "", text)


def test_hostile_files_neither_break_nor_colour_anything(cairn, run):
    attempt = Attempt(run / "run-1", 3)
    attempt.phase(0, "writing\x1b[31m\nRANK", 5, 10, host="h\x07", process=2**70)
    (attempt.folder / "ranks" / "1.phase").write_bytes(b"\xff\x00{")
    (attempt.folder / "ranks" / "1.failed.json").write_text("[")
    (attempt.folder / "ranks" / "2.written.json").mkdir()
    out = cairn("watch", run, "--once").out
    assert "\x1b" not in out and "\x07" not in out
    assert sum(line.startswith("  RANK") for line in out.splitlines()) == 1
    assert "failed: its error cannot be read" in out
    ranks = look(cairn, run)["saves"][0]["ranks"]
    assert [rank["rank"] for rank in ranks] == [0, 1, 2] and ranks[0]["process"] is None


def test_an_abandoned_save_says_why(cairn, run):
    attempt = Attempt(run / "run-1", 2)
    (attempt.folder / "outcome.json").write_text(
        '{"outcome": "abandon", "failure": {"code": "cancelled", "reason": "ranks/died", '
        '"message": "rank 1 died"}}')
    document = look(cairn, run)
    assert document["saves"][0]["state"] == "abandoned"
    assert "rank 1 died" in document["saves"][0]["failure"]
    assert "a save that was given up: rank 1 died" in cairn("watch", run, "--once").out


def test_what_is_no_run_is_refused(cairn, run, tmp_path):
    assert "[fs/not-found]" in cairn("watch", tmp_path / "nothing", "--once", status=3).error
    cairn("watch", run, "--interval", "0", status=2)
    (run / "run-1").mkdir()
    (run / "run-1" / ".cairn-zz").mkdir()
    assert "no checkpoint with a mark yet" in cairn("watch", run, "--once").out
