# SPDX-License-Identifier: Apache-2.0
"""Jobs of processes that save and load, and what they should find."""

import json
import os
import signal
import subprocess
from pathlib import Path

import numpy

PROBE = Path(os.environ["CAIRN_BIN"]) / "cairn_job_probe"
LONG = 60
SHORT = 4
SHAPES = {"rows": (48, 40), "columns": (40, 48), "both": (48, 96), "large": (24, 100_000),
          "all": (7,)}
RULES = [["rows|large", ["x"]], ["columns", [None, "x"]], ["both", ["x", "y"]], [".*", []]]


def whole(key, step):
    shape = SHAPES[key]
    return numpy.arange(step, step + numpy.prod(shape), dtype=numpy.int32).reshape(shape)


class Job:
    """Processes that meet in a directory, each told what to do one line at a time."""

    def __init__(self, directory, count, ranks=None):
        self.ranks = {}
        for rank in range(count) if ranks is None else ranks:
            environment = os.environ | {"RANK": str(rank), "WORLD_SIZE": str(count)}
            self.ranks[rank] = subprocess.Popen([PROBE, directory], env=environment, text=True,
                                                stdin=subprocess.PIPE, stdout=subprocess.PIPE)

    def tell(self, order, special=None):
        for rank, process in self.ranks.items():
            line = order | ((special or {}).get(rank, {}))
            process.stdin.write(json.dumps(line) + "\n")
            process.stdin.flush()

    def answers(self, ranks=None):
        return {rank: json.loads(self.ranks[rank].stdout.readline())
                for rank in (self.ranks if ranks is None else ranks)}

    def do(self, order, special=None):
        self.tell(order, special)
        return self.answers()

    def end(self):
        for process in self.ranks.values():
            process.send_signal(signal.SIGCONT)
            process.kill()
            process.wait()
            process.stdin.close()
            process.stdout.close()


def saving(path, step, mesh, layout="zarr2", seconds=LONG):
    return {"do": "save", "path": str(path), "step": step, "mesh": mesh, "layout": layout,
            "seconds": seconds}


def loading(path, mesh, out, rules=None):
    out.mkdir()
    names = [name for name, _ in mesh]
    usable = rules or [[regex, [axis if axis in names else None for axis in spec]]
                       for regex, spec in RULES]
    return {"do": "load", "path": str(path), "mesh": mesh, "rules": usable, "out": str(out)}


def check_boxes(answers, expected):
    """Every box that a rank got is that slice of the whole array, and together they cover it."""
    covered = {}
    for rank, answer in answers.items():
        assert "boxes" in answer, (rank, answer)
        for box in answer["boxes"]:
            array = expected[box["key"]]
            index = tuple(slice(b, e) for b, e in zip(box["begin"], box["end"]))
            shape = [e - b for b, e in zip(box["begin"], box["end"])]
            found = numpy.fromfile(box["file"], dtype=array.dtype).reshape(shape)
            numpy.testing.assert_array_equal(found, array[index])
            covered.setdefault(box["key"], numpy.zeros(array.shape, bool))[index] = True
    assert covered.keys() == expected.keys()
    assert all(mask.all() for mask in covered.values())


def numbers(step):
    return {key: whole(key, step) for key in SHAPES}
