# SPDX-License-Identifier: Apache-2.0
"""Disks of a test's own: really mounted, and gone with the process that mounted them."""

import contextlib
import ctypes
import fcntl
import os
import shutil
import struct
import subprocess

import pytest

CLONE_NEWNS = 0x00020000
# linux/ext4.h: _IOR('X', 125, __u32); with this argument the journal is not flushed.
EXT4_IOC_SHUTDOWN = 0x8004587D
EXT4_GOING_FLAGS_NOLOGFLUSH = 2


def mount(*words):
    """Nothing, or in a few words why it could not."""
    done = subprocess.run(["mount", *words], capture_output=True, text=True)
    if done.returncode == 0:
        return ""
    first_line = done.stderr.partition("\n")[0]
    return first_line.rpartition(": ")[2] or f"mount ended with {done.returncode}"


def make_mounts_private():
    """From here on nobody else sees what this process mounts, and nothing of it outlives it."""
    if ctypes.CDLL(None, use_errno=True).unshare(CLONE_NEWNS) != 0:
        return os.strerror(ctypes.get_errno())
    return mount("--make-rprivate", "/")


class Disk:
    """A tmpfs or an ext4 of so many bytes, for this process and those it starts from now on; a
    tmpfs also of so many inodes."""

    def __init__(self, folder, kind, size, inodes=0):
        self.at = folder / "disk"
        self.at.mkdir()
        self.how = ["-t", "tmpfs", "-o", f"size={size},nr_inodes={inodes}", "none"]
        if kind == "ext4":
            image = folder / "image"
            with image.open("wb") as file:
                file.truncate(size)
            subprocess.run(["mkfs.ext4", "-q", "-m", "0", image], check=True)
            self.how = ["-o", "loop", image]
        if refusal := make_mounts_private() or mount(*self.how, self.at):
            pytest.skip(f"mounting {kind} is not allowed here: {refusal}")

    def free(self):
        return shutil.disk_usage(self.at).free

    def fill(self, ballast, left=0):
        """Until so many bytes are free, or a little less."""
        with ballast.open("wb", buffering=0) as file, contextlib.suppress(OSError):
            while (room := self.free() - left) > 0:
                file.write(bytes(min(room, 1 << 20)))
                os.fsync(file.fileno())

    def cut_power(self):
        """As a power cut does, it loses what was not synced; then it is there again."""
        directory = os.open(self.at, os.O_RDONLY)
        try:
            fcntl.ioctl(directory, EXT4_IOC_SHUTDOWN,
                        struct.pack("I", EXT4_GOING_FLAGS_NOLOGFLUSH))
        finally:
            os.close(directory)

    def lay_over(self, lower):
        """An overlay whose lower layer is a directory of this disk."""
        parts = {name: self.at / name for name in ("upper", "work", "merged")}
        for part in parts.values():
            part.mkdir()
        options = f"lowerdir={lower},upperdir={parts['upper']},workdir={parts['work']}"
        if refusal := mount("-t", "overlay", "-o", options, "overlay", parts["merged"]):
            pytest.skip(f"mounting an overlay is not allowed here: {refusal}")
        return parts["merged"]

    def mount_again(self):
        subprocess.run(["umount", self.at], check=True)
        problem = mount(*self.how, self.at)
        assert not problem, problem

    def end(self):
        subprocess.run(["umount", "--lazy", "--recursive", self.at], capture_output=True)


def make_disk(folder, kind, size, **limits):
    """Skips the test where that is not allowed."""
    if os.geteuid() != 0:
        pytest.skip("only root can mount a disk")
    if kind == "ext4" and shutil.which("mkfs.ext4") is None:
        if os.environ.get("CI") == "true":
            pytest.fail("CI needs mkfs.ext4")
        pytest.skip("mkfs.ext4 is not installed")
    return Disk(folder, kind, size, **limits)
