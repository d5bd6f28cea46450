#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""clang-tidy over the product sources.

    tools/check_tidy.py BUILD [JOBS]

BUILD is where compile_commands.json is. A source that was clean is not looked at again until it, a
header it includes, its flags or .clang-tidy change: BUILD/tidy remembers it by the digest of what
the preprocessor makes of it, comments included.
"""

import hashlib
import json
import os
import re
import shlex
import subprocess
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
TIDY = "clang-tidy-19"


def product_sources(build: Path):
    entries = json.loads((build / "compile_commands.json").read_text())
    chosen = re.compile(re.escape(f"{ROOT}/cairn/") + r"(?!testing/).*(?<!_test)\.cc$")
    return [entry for entry in entries if chosen.match(entry["file"])]


def digest(entry, rules: bytes) -> str:
    words = shlex.split(entry["command"])
    words = words[next(i for i, word in enumerate(words) if "clang++" in word):]
    words[words.index("-o") + 1] = "-"
    made = subprocess.run([*words, "-E", "-C"], cwd=entry["directory"], check=True,
                          capture_output=True).stdout
    return hashlib.sha256(rules + shlex.join(words).encode() + made).hexdigest()


def check(entry, build: Path, rules: bytes) -> str:
    """What clang-tidy says, or nothing."""
    clean = build / "tidy" / digest(entry, rules)
    if clean.exists():
        return ""
    done = subprocess.run([TIDY, "-p", build, "--quiet", "--warnings-as-errors=*", entry["file"]],
                          capture_output=True, text=True)
    if done.returncode != 0:
        return done.stdout + done.stderr
    clean.touch()
    return ""


def main():
    if len(sys.argv) not in (2, 3):
        sys.exit(__doc__)
    build = Path(sys.argv[1])
    jobs = int(sys.argv[2]) if len(sys.argv) == 3 else os.cpu_count()
    (build / "tidy").mkdir(exist_ok=True)
    version = subprocess.run([TIDY, "--version"], check=True, capture_output=True).stdout
    rules = version + (ROOT / ".clang-tidy").read_bytes()
    start = time.monotonic()
    entries = product_sources(build)
    bad = 0
    with ThreadPoolExecutor(jobs) as pool:
        for findings in pool.map(lambda entry: check(entry, build, rules), entries):
            print(findings, end="", flush=True)
            bad += findings != ""
    print(f"clang-tidy: {len(entries)} sources, {bad} with findings, "
          f"{(time.monotonic() - start) / 60:.1f} minutes")
    sys.exit(1 if bad else 0)


if __name__ == "__main__":
    main()
