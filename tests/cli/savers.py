# SPDX-License-Identifier: Apache-2.0
"""Processes that save, and can be held while they do; attempts as the format describes them."""

import fcntl
import json
import os
import signal
import struct
import subprocess

FOREVER = 600


class Job:
    """Ranks that save together, as cairn_job_probe does it."""

    def __init__(self, binaries, meeting, count):
        where = "alone" if count == 1 else meeting
        self.ranks = [
            subprocess.Popen([binaries / "cairn_job_probe", where], text=True,
                             stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                             env=os.environ | {"RANK": str(rank), "WORLD_SIZE": str(count)})
            for rank in range(count)]

    def save(self, path, step, held=None, operation=0):
        """All begin a save. The rank `held` stops itself before that file operation."""
        for rank, process in enumerate(self.ranks):
            order = {"do": "save", "path": str(path), "step": step, "layout": "zarr2",
                     "mesh": [["x", len(self.ranks)]], "seconds": FOREVER}
            if rank == held:
                order |= {"trouble": "stop", "operation": operation}
            process.stdin.write(json.dumps(order) + "\n")
            process.stdin.flush()

    def wait_until_held(self, rank):
        _, status = os.waitpid(self.ranks[rank].pid, os.WUNTRACED)
        assert os.WIFSTOPPED(status)

    def go_on(self, rank):
        self.ranks[rank].send_signal(signal.SIGCONT)

    def answers(self):
        return [json.loads(process.stdout.readline()) for process in self.ranks]

    def end(self):
        for process in self.ranks:
            process.kill()
            process.wait()
            process.stdin.close()
            process.stdout.close()


class Attempt:
    """The directory of an attempt, made by hand, whose writer is this process."""

    def __init__(self, checkpoint, ranks, alive=True):
        self.folder = checkpoint / (".cairn-" + "0123456789abcdef" * 2)
        (self.folder / "ranks").mkdir(parents=True)
        about = {"attempt": self.folder.name[7:], "host": "somewhere", "process": 4711,
                 "boot_id": "x", "started": "2026-01-01T00:00:00+00:00", "ranks": ranks,
                 "run_id": "", "generation": 0, "mark_sha256": None, "prefixes": [["model", ""]]}
        self.lock = open(self.folder / "attempt.json", "w")
        self.lock.write(json.dumps(about))
        self.lock.flush()
        if alive:
            fcntl.fcntl(self.lock, fcntl.F_OFD_SETLK,
                        struct.pack("hhqqi4x", fcntl.F_WRLCK, os.SEEK_SET, 0, 0, 0))

    def phase(self, rank, phase, done=0, total=0, **others):
        text = {"phase": phase, "done": done, "total": total, "host": "somewhere", "process": rank,
                "since": "2026-01-01T00:00:00+00:00", "time": "2026-01-01T00:00:01+00:00",
                "boot_id": "x"}
        aside = self.folder / "aside"
        aside.write_text(json.dumps(text | others) + "\n")
        aside.rename(self.folder / "ranks" / f"{rank}.phase")
