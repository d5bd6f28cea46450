# SPDX-License-Identifier: Apache-2.0
"""Disks that fill up, and disks whose power is cut: real ones, mounted for the test."""

import fcntl
import os
import random
import shutil
import struct
import subprocess

import pytest

CUTS = 50
SEED = 20261115
# linux/ext4.h: _IOR('X', 125, __u32); with this argument the journal is not flushed.
EXT4_IOC_SHUTDOWN = 0x8004587D
EXT4_GOING_FLAGS_NOLOGFLUSH = 2

pytestmark = pytest.mark.skipif(os.geteuid() != 0, reason="only root can mount a disk")


class Disk:
    """Something to mount at a place of the test's own."""

    def __init__(self, at, *how):
        self.at = at
        self.how = how
        at.mkdir()

    def mount(self):
        done = subprocess.run(["mount", *self.how, self.at], capture_output=True, text=True)
        if done.returncode != 0:
            pytest.skip(f"mounting is not allowed here: {done.stderr.strip()}")

    def unmount(self):
        subprocess.run(["umount", self.at], check=True)

    def cut_power(self):
        directory = os.open(self.at, os.O_RDONLY)
        try:
            fcntl.ioctl(directory, EXT4_IOC_SHUTDOWN,
                        struct.pack("I", EXT4_GOING_FLAGS_NOLOGFLUSH))
        finally:
            os.close(directory)


@pytest.fixture
def disk(tmp_path):
    """Makes a disk; it is unmounted whatever happens."""
    disks = []

    def make(*how):
        disks.append(Disk(tmp_path / "disk", *how))
        disks[-1].mount()
        return disks[-1]

    yield make
    for each in disks:
        subprocess.run(["umount", "--lazy", each.at], capture_output=True)


def test_a_power_cut_at_any_moment_keeps_what_was_saved(start, disk, tmp_path):
    if shutil.which("mkfs.ext4") is None:
        pytest.skip("mkfs.ext4 is not installed")
    image = tmp_path / "image"
    with image.open("wb") as file:
        file.truncate(64 << 20)
    subprocess.run(["mkfs.ext4", "-q", image], check=True)
    ext4 = disk("-o", "loop", image)
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
        ext4.unmount()
        ext4.mount()
        reader = start()
        found = reader.ask(do="latest", base=base)
        reader.end()
        if saved < 0 and "number" not in found:
            continue
        assert saved <= found.get("number", -1) <= begun, (cut, found, saved, begun)
    last = start()
    assert last.ask(do="own", base=base, number=begun + 1) == {"saved": begun + 1}
    last.end()


def test_a_full_disk_fails_the_save_and_nothing_else(start, disk):
    small = disk("-t", "tmpfs", "-o", "size=1m", "none")
    probe = start()
    path = small.at / "c"
    assert probe.ask(do="save", path=path, number=1) == {"saved": 1}
    said = probe.ask(do="save", path=path, number=2, elements=200_000)
    assert said["reason"] == "storage/no-space", said
    assert str(path) in said["message"], said
    assert not [entry for entry in path.rglob(".cairn-*") if entry.is_dir()]
    assert probe.ask(do="load", path=path) == {"number": 1}
    assert probe.ask(do="save", path=path, number=3) == {"saved": 3}
    assert probe.ask(do="load", path=path) == {"number": 3}
