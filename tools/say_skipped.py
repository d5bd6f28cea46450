#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""tools/say_skipped.py BUILD: which tests the last run of ctest skipped, a line for each reason."""
import collections
import pathlib
import re
import sys

# What pytest says of those in its suites, and what GoogleTest says of its own.
PYTEST = re.compile(r"^SKIPPED \[(\d+)\] \S+: (.+)$", re.MULTILINE)
GTEST = re.compile(r"^\S+:\d+: Skipped\n(.+)$", re.MULTILINE)
SUITE = re.compile(r"^skipped: (.+)$", re.MULTILINE)


def main():
    log = pathlib.Path(sys.argv[1], "Testing/Temporary/LastTest.log")
    text = log.read_text(errors="replace")
    skipped = collections.Counter()
    for count, reason in PYTEST.findall(text):
        skipped[reason] += int(count)
    skipped.update(GTEST.findall(text))
    skipped.update(f"{reason} (a whole suite)" for reason in SUITE.findall(text))
    for reason, count in skipped.most_common():
        print(f"skipped: {count} {'test' if count == 1 else 'tests'}: {reason}")


if __name__ == "__main__":
    main()
