# SPDX-License-Identifier: Apache-2.0
"""Disks that fill up, and disks whose power is cut: real ones, mounted for the test."""

import os
import random
import shutil
import subprocess

import pytest

CUTS = 50
SEED = 20261115
MIB = 1 << 20
KINDS = pytest.mark.parametrize("kind", ["tmpfs", "ext4"])


def test_a_power_cut_at_any_moment_keeps_what_was_saved(disk, start):
    ext4 = disk("ext4", 64 * MIB)
    print("seed", SEED)
    rng = random.Random(SEED)
    base = ext4.at / "run"
    begun = saved = -1
    for cut in range(CUTS):
        job = start(with_ticks=True)
        job.tell(do="train", base=base, **{"from": begun + 1})
        said = []
        while cut % 3 == 0 and not any("saved" in line for line in said):
            said.append(job.answer())
        job.wait_for_operations(rng.randrange(1, 1000))
        ext4.cut_power()
        said += job.kill()
        job.end()
        begun = max([begun, *(line["begun"] for line in said if "begun" in line)])
        saved = max([saved, *(line["saved"] for line in said if "saved" in line)])
        ext4.mount_again()
        reader = start()
        found = reader.ask(do="latest", base=base)
        reader.end()
        if saved < 0 and "number" not in found:
            continue
        assert saved <= found.get("number", -1) <= begun, (cut, found, saved, begun)
    last = start()
    assert last.ask(do="own", base=base, number=begun + 1) == {"saved": begun + 1}
    last.end()


@KINDS
def test_a_disk_that_is_full_to_any_degree_fails_the_save_and_nothing_else(disk, start, kind):
    small = disk(kind, 2 * MIB)
    probe = start()
    path, ballast = small.at / "c", small.at / "ballast"
    assert probe.ask(do="save", path=path, number=0) == {"saved": 0}
    before, there = 0, content_of(path)
    fits = False
    block = os.statvfs(small.at).f_frsize
    for number, left in enumerate(range(0, 64 * block, block), start=1):
        small.fill(ballast, left)
        said = probe.ask(do="save", path=path, number=number)
        ballast.unlink()
        if said == {"saved": number}:
            fits, before, there = True, number, content_of(path)
        else:
            assert not fits, "it had less room before"
            is_full(said, path)
            assert content_of(path) == there, left
        assert probe.ask(do="load", path=path) == {"number": before}, left
    assert fits


def is_full(said, path):
    assert said["reason"] == "storage/no-space", said
    assert str(path) in said["message"], said


def content_of(path):
    return {str(file): file.read_bytes() for file in path.rglob("*")
            if file.is_file() and file.name != ".cairn-lock"}


class Run:
    """A run on a disk that holds three of its checkpoints, and not four."""

    def __init__(self, disk, probe, **rules):
        self.base = disk.at / "run"
        self.bytes = disk.free() * 2 // 7
        self.probe = probe
        self.order = {"base": self.base, "elements": self.bytes // 8, **rules}

    def save(self, step):
        return self.probe.ask(do="own", number=2 * step, **self.order)

    def steps(self):
        """Those of checkpoints that are whole; nothing else lies there."""
        found = sorted(int(mark.parent.name[4:]) for mark in self.base.glob("run-*/metadata.json"))
        for step in found:
            said = self.probe.ask(do="load", path=self.base / f"run-{step}", **self.order)
            assert said == {"number": 2 * step}, step
        assert self.probe.ask(do="latest", **self.order) == {"number": 2 * found[-1]}
        left = [path for path in self.base.rglob(".cairn-*") if path.is_dir()]
        assert not left, left
        return found


@KINDS
def test_saves_that_do_not_fit_fail_and_the_others_go_on(disk, start, kind):
    small = disk(kind, 12 * MIB)
    run = Run(small, start())
    for step in (1, 2, 3):
        assert run.save(step) == {"saved": 2 * step}
    there = content_of(run.base)
    for step in (4, 5, 4):
        is_full(run.save(step), run.base / f"run-{step}")
        assert run.steps() == [1, 2, 3]
        assert content_of(run.base) == there
    shutil.rmtree(run.base / "run-1")
    assert run.save(6) == {"saved": 12}
    assert run.steps() == [2, 3, 6]


@KINDS
def test_a_disk_that_is_full_to_the_last_byte_can_be_cleaned(disk, start, kind, command):
    small = disk(kind, 12 * MIB)
    run = Run(small, start())
    for step in (1, 2, 3):
        assert run.save(step) == {"saved": 2 * step}
    small.fill(small.at / "ballast")
    is_full(run.save(4), run.base / "run-4")
    done = subprocess.run([command, "gc", run.base, "--keep-last", "1"], text=True,
                          capture_output=True)
    assert done.returncode == 0, done.stdout + done.stderr
    assert run.steps() == [3]
    assert run.save(4) == {"saved": 8}


def test_a_floor_counts_what_is_only_waiting_to_be_deleted(disk, start, command):
    small = disk("tmpfs", 12 * MIB)
    run = Run(small, start())
    for step in (1, 2):
        assert run.save(step) == {"saved": 2 * step}
    (run.base / ".cairn-trash/old").mkdir(parents=True)
    small.fill(run.base / ".cairn-trash/old/array", run.bytes // 2)
    subprocess.run([command, "gc", run.base, "--min-free", str(run.bytes)], check=True)
    assert run.steps() == [1, 2]


@KINDS
@pytest.mark.parametrize("rule", ["keep", "quota", "floor"])
def test_retention_makes_room_for_the_next_save(disk, start, kind, rule):
    small = disk(kind, 12 * MIB)
    run = Run(small, start())
    # All mean the same: two stay, and a third fits beside them.
    run.order[rule] = {"keep": 2, "quota": run.bytes * 5 // 2, "floor": run.bytes * 5 // 4}[rule]
    for step in range(1, 9):
        assert run.save(step) == {"saved": 2 * step}
    assert run.steps() == [7, 8]


def test_a_disk_without_inodes_is_called_so(disk, start):
    small = disk("tmpfs", 12 * MIB, inodes=40)
    probe = start()
    path = small.at / "c"
    assert probe.ask(do="save", path=path, number=0) == {"saved": 0}
    for number in range(40):
        try:
            (small.at / f"ballast-{number}").touch()
        except OSError:
            break
    said = probe.ask(do="save", path=path, number=1)
    is_full(said, path)
    assert "no inodes left" in said["message"]
    assert probe.ask(do="load", path=path) == {"number": 0}


def test_checkpoints_in_the_lower_layer_of_an_overlay_are_replaced_and_removed(disk, start):
    """As in a container whose image has them."""
    base = disk("tmpfs", 32 * MIB)
    first = Run(base, start())
    for step in (1, 2, 3):
        assert first.save(step) == {"saved": 2 * step}
    first.probe.end()
    there = content_of(first.base)
    run = Run(base, start(), keep=2)
    run.base = run.order["base"] = base.lay_over(base.at) / "run"
    assert run.save(3) == {"saved": 6}
    for step in (4, 5):
        assert run.save(step) == {"saved": 2 * step}
        assert run.steps() == [step - 1, step]
    assert content_of(first.base) == there
