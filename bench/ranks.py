#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""What many ranks cost each one, and what a load onto another layout costs.

    bench/ranks.py FOLDER [--quick]

FOLDER holds the programs cairn_ranks and cairn_reshard. Prints the tables of docs/scale.md. Growth
exponents come from instructions that callgrind counts, the same on every run; times are the best of
several. --quick takes smaller sizes, to see that it works; its numbers mean nothing.
"""

import json
import math
import re
import subprocess
import sys
import tempfile
from pathlib import Path

# Ratios that a load onto another layout should keep: bytes read / needed, time / as saved.
GOALS = {"8 x 1, as saved": (1.05, None), "4 x 1": (1.05, 1.3), "16 x 1": (1.05, 1.3),
         "3 x 1": (1.05, 1.3), "1 x 8": (1.5, 1.3), "2 x 4": (1.5, 1.3), "1 x 3": (1.5, 1.3)}
# A load as saved whose median is this far above its best was measured on a busy machine.
NOISY = 1.25


def run(*command):
    done = subprocess.run([str(c) for c in command], check=True, stdout=subprocess.PIPE, text=True)
    return [json.loads(line) for line in done.stdout.splitlines()]


def instructions(program: Path, leaves: int, ranks: int) -> int:
    with tempfile.TemporaryDirectory() as folder:
        command = ["valgrind", "--tool=callgrind", f"--callgrind-out-file={folder}/out",
                   program, "plan", str(leaves), str(ranks), "1"]
        done = subprocess.run(command, check=True, capture_output=True, text=True)
    return int(re.search(r"Collected : (\d+)", done.stderr).group(1))


def growth(low: int, high: int, times: float) -> float:
    return math.log(high / low) / math.log(times)


def report_plans(program: Path, leaves: tuple[int, int], ranks: tuple[int, ...]):
    print("\nplan of one rank            save              load")
    for count in leaves:
        for size in ranks:
            cost, = run(program, "plan", count, size, 5)
            print(f"  {count:>7} leaves, {size:>6} ranks"
                  f" {cost['save_s'] * 1e3:6.1f} ms {cost['save_bytes'] / 1e6:6.1f} MB"
                  f"  {cost['load_s'] * 1e3:6.1f} ms {cost['load_bytes'] / 1e6:6.1f} MB")
    few, many = leaves
    base = instructions(program, many, ranks[0])
    over_leaves = growth(instructions(program, few, ranks[0]), base, many / few)
    over_ranks = growth(base, instructions(program, many, ranks[-1]), ranks[-1] / ranks[0])
    print(f"  growth exponent over leaves {over_leaves:.3f} (goal 1.02 at most),"
          f" over ranks {over_ranks:.3f} (goal 0.02 at most);"
          f" {base / many:.0f} instructions a leaf")


def report_joins(program: Path, leaves: int, ranks: tuple[int, ...]):
    print(f"\nrank 0 and the reports of all, {leaves} leaves")
    for size in ranks:
        cost, = run(program, "join", leaves, size)
        nanoseconds = (cost["read_s"] + cost["join_s"]) / cost["ranges"] * 1e9
        print(f"  {size:>6} ranks {cost['ranges']:>8} chunks"
              f"  read {cost['report_bytes'] / 1e6:6.1f} MB in {cost['read_s']:5.2f} s,"
              f" joined in {cost['join_s']:5.2f} s ({nanoseconds:3.0f} ns a chunk),"
              f" {cost['held_bytes'] / 1e6:5.1f} MB held")
        print(f"{'':>13} manifest {cost['manifest_bytes'] / 1e6:6.1f} MB, opened by any rank in"
              f" {cost['open_s']:5.2f} s, {cost['open_bytes'] / 1e6:5.1f} MB held")


def report_meetings(program: Path, ranks: tuple[int, ...]):
    print("\nfile operations of a save, beside the data")
    costs = [run(program, "meet", size)[0] for size in ranks]
    for size, cost in zip(ranks, costs):
        print(f"  {size:>6} ranks: rank 0 {cost['first']:>5}, any other {cost['last']:>3}")
    each = (costs[-1]["first"] - costs[0]["first"]) / (ranks[-1] - ranks[0])
    print(f"  {each:.1f} of rank 0 for each rank more")


def verdict(ratio: float, goal) -> str:
    if goal is None:
        return f"{ratio:5.2f}               "
    return f"{ratio:5.2f} (goal {goal:4.2f}{'' if ratio <= goal else ', MISSED'})".ljust(28)


def report_reshards(program: Path, size: str, times: int):
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "c"
        run(program, "save", path, size)
        rows = run(program, "load", path, size, times)
    same = rows[0]
    noisy = same["median_s"] > NOISY * same["best_s"]
    print(f"\nload of {same['needed'] / 2**20:.0f} MiB, saved by 8 ranks as 8 x 1, warm"
          f"{'   noisy: the median of 8 x 1 is far from its best' if noisy else ''}")
    print("  onto              bytes read / needed          time / as saved")
    for row in rows:
        bytes_goal, time_goal = GOALS[row["layout"]]
        print(f"  {row['layout']:<17} {verdict(row['read'] / row['needed'], bytes_goal)}"
              f" {verdict(row['best_s'] / same['best_s'], time_goal).rstrip()}")
    print("  limit: a checksum covers one chunk, at most 1 MiB of it; the ranks on both sides of a"
          "\n  cut inside it read all of it")


def main():
    arguments = [a for a in sys.argv[1:] if a != "--quick"]
    if len(arguments) != 1:
        sys.exit(__doc__)
    quick = "--quick" in sys.argv
    ranks, reshard = Path(arguments[0]) / "cairn_ranks", Path(arguments[0]) / "cairn_reshard"
    leaves = (1_000, 10_000) if quick else (10_000, 100_000)
    report_plans(ranks, leaves, (16, 16_384) if quick else (16, 1_024, 16_384))
    report_joins(ranks, 100 if quick else 10_000, (16, 1_024) if quick else (16, 1_024, 16_384))
    report_meetings(ranks, (2, 8, 32))
    report_reshards(reshard, "small" if quick else "large", 1 if quick else 9)


if __name__ == "__main__":
    main()
