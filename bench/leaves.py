#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Planning must grow linearly with leaves, and looking at many must be quick.

    bench/leaves.py LEAVES_PROGRAM CAIRN_COMMAND [--quick]

Counts instructions with callgrind (the same on every run, whatever else the machine does) for
10,000 and 100,000 leaves and prints the growth exponent; then saves 100,000 leaves and times
`cairn show` and `cairn --version`.
"""

import math
import re
import subprocess
import sys
import tempfile
import time
from pathlib import Path


def instructions(program: str, count: int) -> int:
    with tempfile.TemporaryDirectory() as folder:
        command = ["valgrind", "--tool=callgrind", f"--callgrind-out-file={folder}/out",
                   program, "plan", str(count)]
        done = subprocess.run(command, check=True, capture_output=True, text=True)
    return int(re.search(r"Collected : (\d+)", done.stderr).group(1))


def seconds(*command: str) -> float:
    """Best of five."""
    best = math.inf
    for _ in range(5):
        start = time.perf_counter()
        subprocess.run(command, check=True, stdout=subprocess.DEVNULL)
        best = min(best, time.perf_counter() - start)
    return best


def main():
    arguments = [a for a in sys.argv[1:] if a != "--quick"]
    if len(arguments) != 2:
        sys.exit(__doc__)
    program, command = arguments
    few, many = (1_000, 10_000) if "--quick" in sys.argv else (10_000, 100_000)
    low, high = instructions(program, few), instructions(program, many)
    exponent = math.log(high / low) / math.log(many / few)
    print(f"\nplan of a save and a load               {few:>7} leaves {low:>14,} instructions")
    print(f"                                        {many:>7} leaves {high:>14,} instructions")
    print(f"  {high / many:.0f} instructions a leaf, growth exponent {exponent:.3f}")
    with tempfile.TemporaryDirectory() as folder:
        path = str(Path(folder) / "c")
        start = time.perf_counter()
        subprocess.run([program, "save", str(many), path], check=True)
        saved = time.perf_counter() - start
        shown = seconds(command, "show", path)
        started = seconds(command, "--version")
        print(f"save of {many} leaves of 512 bytes, durable   {saved:6.2f} s")
        print(f"cairn show of them                          {shown:6.3f} s")
        print(f"cairn --version                             {started * 1000:6.1f} ms")


if __name__ == "__main__":
    main()
