# SPDX-License-Identifier: Apache-2.0
"""Processes that are the ranks of a job, told what to do one line at a time."""

import json
import os
import subprocess
from pathlib import Path

PROBE = Path(os.environ["CAIRN_BIN"]) / "cairn_rank_probe"
LONG = 60  # seconds; nobody waits that long unless something is wrong
SHORT = 1


class Rank:
    """One process. It says when it is open, then answers each call()."""

    def __init__(self, directory, rank, count):
        environment = os.environ | {"RANK": str(rank), "WORLD_SIZE": str(count)}
        self.process = subprocess.Popen([PROBE, directory], env=environment, text=True,
                                        stdin=subprocess.PIPE, stdout=subprocess.PIPE)

    def call(self, operation, phase, seconds=LONG, text=""):
        self.process.stdin.write(json.dumps([operation, phase, seconds, text]) + "\n")
        self.process.stdin.flush()

    def answer(self):
        return json.loads(self.process.stdout.readline())

    def leave(self):
        self.process.stdin.close()
        assert self.process.wait(LONG) == 0

    def kill(self):
        self.process.kill()
        self.process.wait()
        self.process.stdin.close()


class Job:
    """All ranks of a job, or those that `ranks` names, in the order in which they are started."""

    def __init__(self, directory, count, ranks=None):
        order = range(count) if ranks is None else ranks
        self.ranks = {rank: Rank(directory, rank, count) for rank in order}
        for rank, process in self.ranks.items():
            assert process.answer() == {"rank": rank, "count": count}

    def all(self, operation, phase, seconds=LONG, ranks=None):
        """The answers by rank; each rank sends its own number. The deadline is that of rank 0,
        which judges; the others have one of their own only where rank 0 takes no part."""
        taking_part = self.ranks if ranks is None else ranks
        for rank in taking_part:
            own = seconds if rank == 0 or 0 not in taking_part else LONG
            self.ranks[rank].call(operation, phase, own, str(rank))
        return {rank: self.ranks[rank].answer() for rank in taking_part}

    def meets(self, phase):
        return all(answer == {"got": []} for answer in self.all("barrier", phase).values())

    def leave(self):
        for rank in self.ranks.values():
            rank.leave()

    def kill(self):
        for rank in self.ranks.values():
            rank.kill()
