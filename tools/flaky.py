#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Runs every test many times on a busy machine, and lists those that failed at least once.

Twice as many busy processes as there are cores run beside the tests, and the tests run at a lower
priority. The output of each run that had a failure stays in BUILD/flaky. Exits with 1 if any test
failed."""
import argparse
import collections
import os
import pathlib
import re
import subprocess
import sys
import xml.etree.ElementTree

BUSY = "while True: sum(range(10000))"
PYTEST_FAILURE = re.compile(r"^(?:FAILED|ERROR) (\S+)", re.MULTILINE)


def failures_of(report):
    """Names of the tests that failed; of a pytest suite, the single tests where they are known."""
    for case in xml.etree.ElementTree.parse(report).iter("testcase"):
        if case.get("status") != "fail":
            continue
        name = case.get("name")
        inner = PYTEST_FAILURE.findall(case.findtext("system-out") or "")
        yield from (f"{name}: {test}" for test in inner) if inner else (name,)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("build", type=pathlib.Path, help="build folder, such as build/dev")
    parser.add_argument("--runs", type=int, default=20,
                        help="how often each test runs (default: 20)")
    parser.add_argument("--tests", default="",
                        help="regular expression: only tests whose names match")
    options = parser.parse_args()

    kept = options.build.resolve() / "flaky"
    kept.mkdir(exist_ok=True)
    failed = collections.Counter()
    busy = [subprocess.Popen([sys.executable, "-c", BUSY]) for _ in range(2 * os.cpu_count())]
    try:
        for run in range(1, options.runs + 1):
            report, log = kept / f"{run}.xml", kept / f"{run}.log"
            with log.open("w") as out:
                status = subprocess.run(
                    ["nice", "-n", "10", "ctest", "--test-dir", options.build,
                     "--output-on-failure", "--parallel", str(os.cpu_count()),
                     "--output-junit", report, "--tests-regex", options.tests],
                    stdout=out, stderr=out, check=False).returncode
            if not report.exists():
                sys.exit(f"ctest did not run; see {log}")
            names = sorted(failures_of(report))
            failed.update(names)
            report.unlink()
            if status == 0:
                log.unlink()
            print(f"run {run} of {options.runs}: {', '.join(names) or 'all passed'}", flush=True)
    finally:
        for process in busy:
            process.kill()
    for name, times in failed.most_common():
        print(f"{times:3} of {options.runs} failed: {name}")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
