#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""What the Python package costs a program: its import, and what a save or a load takes from a
thread that counts meanwhile.

    bench/python.py PACKAGE [--quick]

PACKAGE is the folder that holds the package `cairn`. The counting thread is compared with itself
when nothing else runs; what it loses, it loses to the interpreter's lock and, where there are no
more cores than threads, to the copying and writing. --quick takes fewer bytes, to see that it
works; its numbers mean nothing.
"""

import statistics
import subprocess
import sys
import tempfile
import threading
import time
from pathlib import Path

IMPORT_BAR = 30.0  # ms beside NumPy

IMPORT = """
import sys, time
import numpy
before = set(sys.modules)
began = time.perf_counter()
import cairn
print(time.perf_counter() - began, {"jax", "torch", "mpi4py"} & set(sys.modules) or "")
"""


def report_import(package: str, runs: int) -> bool:
    times = []
    for _ in range(runs + 1):  # the first one fills caches
        done = subprocess.run([sys.executable, "-c", IMPORT], check=True, text=True,
                              capture_output=True, env={"PYTHONPATH": package})
        spent, _, unwanted = done.stdout.strip().partition(" ")
        if unwanted:
            sys.exit(f"importing cairn imported {unwanted}")
        times.append(float(spent) * 1e3)
    median = statistics.median(times[1:])
    print(f"\nimport cairn, beside NumPy   {median:5.1f} ms, at most {max(times[1:]):.1f}"
          f"   (bar {IMPORT_BAR:.0f} ms)")
    return median < IMPORT_BAR


class Counter(threading.Thread):
    """Counts, and notes its longest pause."""

    def __init__(self):
        super().__init__(daemon=True)
        self.going = True
        self.count = 0
        self.pause = 0.0

    def run(self):
        last = time.perf_counter()
        while self.going:
            self.count += 1
            now = time.perf_counter()
            self.pause = max(self.pause, now - last)
            last = now


def counted(work) -> tuple[float, float, float]:
    """Counts a second while `work` goes on, the longest pause, and how long it took."""
    counter = Counter()
    counter.start()
    began = time.perf_counter()
    work()
    spent = time.perf_counter() - began
    counter.going = False
    counter.join()
    return counter.count / spent, counter.pause, spent


def report_gil(megabytes: int) -> None:
    import cairn
    import numpy as np

    arrays = {f"w{n}": np.full(1 << 22, n, np.float32) for n in range(megabytes // 16)}
    size = sum(array.nbytes for array in arrays.values())
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "c"
        alone, _, _ = counted(lambda: time.sleep(1.0))
        print(f"\na thread that counts while {size / 1e6:.0f} MB go through one call")
        works = {"save": lambda: cairn.save(arrays, path),
                 "save again": lambda: cairn.save(arrays, path),
                 "load": lambda: cairn.load(path),
                 "verify": lambda: cairn.verify(path)}
        for name, work in works.items():
            rate, pause, spent = counted(work)
            print(f"  {name:<11} {size / spent / 1e9:5.2f} GB/s   counts at {rate / alone:4.2f} of"
                  f" its speed alone, longest pause {pause * 1e3:6.1f} ms")


def report_steps(steps: int) -> None:
    from cairn.serialization import CheckpointInterval, Checkpointer

    with tempfile.TemporaryDirectory() as folder:
        run = Checkpointer(folder, None, [CheckpointInterval(every=2 * steps)])
        began = time.perf_counter()
        for step in range(1, steps + 1):
            run.on_step(None, {}, step=step)
        spent = time.perf_counter() - began
        print(f"\non_step() that saves nothing  {spent / steps * 1e6:5.1f} us")


def main() -> int:
    package, quick = sys.argv[1], "--quick" in sys.argv[2:]
    sys.path.insert(0, package)
    good = report_import(package, 3 if quick else 15)
    report_steps(10_000)
    report_gil(64 if quick else 1024)
    return 0 if good or quick else 1


if __name__ == "__main__":
    sys.exit(main())
