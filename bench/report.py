#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Runs the benchmarks of a folder and prints each rate as a share of the limit of its group.

    bench/report.py FOLDER [--quick]

A benchmark is named "group/what", the limit of a group "group/limit:what". All of one program run
interleaved, nine times; the best of each counts, and a group whose limit itself moved says so.
--quick runs each once, to see that it works; its numbers mean nothing.
"""

import json
import subprocess
import sys
from collections import defaultdict
from pathlib import Path

REPETITIONS = 9
# A limit whose median is this far below its best was measured on a busy machine.
NOISY = 0.8


def run(program: Path, quick: bool):
    """Best and median rate of each benchmark: name -> (best, median, unit)."""
    command = [program, "--benchmark_format=json"]
    if quick:
        command += ["--benchmark_min_time=0"]
    else:
        command += [f"--benchmark_repetitions={REPETITIONS}", "--benchmark_min_time=0.05",
                    "--benchmark_enable_random_interleaving=true"]
    done = subprocess.run(command, check=True, capture_output=True, text=True)
    rates = defaultdict(list)
    for row in json.loads(done.stdout)["benchmarks"]:
        if row["run_type"] != "iteration":
            continue
        if row.get("error_occurred"):
            sys.exit(f"{program.name}: {row['name']}: {row['error_message']}")
        unit = "bytes_per_second" if "bytes_per_second" in row else "items_per_second"
        rates[row["run_name"], unit].append(row[unit])
    return {name: (max(values), sorted(values)[len(values) // 2], unit)
            for (name, unit), values in rates.items()}


def show(rate: float, unit: str) -> str:
    return f"{rate / 1e9:8.2f} GB/s" if unit == "bytes_per_second" else f"{rate / 1e6:8.3f} M/s "


def report(results):
    groups = defaultdict(list)
    for name, result in results.items():
        group, what = name.split("/", 1)
        groups[group].append((what, *result))
    for group, rows in groups.items():
        limits = [row for row in rows if row[0].startswith("limit:")]
        (label, limit, median, unit), = limits
        noisy = "   noisy: its median is far from its best" if median < NOISY * limit else ""
        print(f"\n{group:<40} {show(limit, unit)}  limit: {label.removeprefix('limit:')}{noisy}")
        for what, best, _, unit in rows:
            if not what.startswith("limit:"):
                print(f"  {what:<38} {show(best, unit)}  {best / limit:5.2f} of it")


def main():
    arguments = sys.argv[1:]
    quick = "--quick" in arguments
    folders = [argument for argument in arguments if argument != "--quick"]
    if len(folders) != 1:
        sys.exit(__doc__)
    programs = sorted(Path(folders[0]).glob("*_bench"))
    if not programs:
        sys.exit(f"no benchmarks in {folders[0]}")
    for program in programs:
        report(run(program, quick))


if __name__ == "__main__":
    main()
