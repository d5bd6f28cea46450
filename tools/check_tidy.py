#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""clang-tidy over the product sources, a dozen of a room at once (CAIRN_UNITY).

    tools/check_tidy.py BUILD [--deep]

BUILD is where compile_commands.json is. --deep: the static analyzer too. Sources that were clean
are not checked again until they, a header they include, their flags or .clang-tidy change:
BUILD/tidy keeps the digest of their preprocessed text, comments included.
"""

import argparse
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
# By default the analyzer skips functions of included files, and here every source is one.
DEEP = ["--checks=clang-analyzer-*", "--extra-arg=-Xclang",
        "--extra-arg=-analyzer-opt-analyze-headers"]


def product_sources(build: Path):
    """The largest first: they take longest."""
    chosen = re.compile(rf"{re.escape(str(build))}/cairn/.*/Unity/unity_\d+_cxx\.cxx")
    entries = [entry for entry in json.loads((build / "compile_commands.json").read_text())
               if chosen.fullmatch(entry["file"])]
    return sorted(entries, key=lambda entry: -size(Path(entry["file"])))


def size(unity: Path) -> int:
    return sum(os.path.getsize(name) for name in re.findall(r'"(.*)"', unity.read_text()))


def digest(entry, rules: bytes) -> str:
    words = shlex.split(entry["command"])
    words = words[next(i for i, word in enumerate(words) if "clang++" in word):]
    words[words.index("-o") + 1] = "-"
    made = subprocess.run([*words, "-E", "-C"], cwd=entry["directory"], check=True,
                          capture_output=True).stdout
    return hashlib.sha256(rules + shlex.join(words).encode() + made).hexdigest()


def check(entry, build: Path, options: list[str], rules: bytes) -> str:
    """What clang-tidy says, or nothing."""
    clean = build / "tidy" / digest(entry, rules)
    if clean.exists():
        return ""
    done = subprocess.run([TIDY, "-p", build, "--quiet", "--warnings-as-errors=*", *options,
                           entry["file"]], capture_output=True, text=True)
    if done.returncode != 0:
        return done.stdout + done.stderr
    clean.touch()
    return ""


def main():
    parser = argparse.ArgumentParser(usage=__doc__)
    parser.add_argument("build", type=Path)
    parser.add_argument("--deep", action="store_true")
    asked = parser.parse_args()
    build = asked.build.resolve()
    options = DEEP if asked.deep else []
    (build / "tidy").mkdir(exist_ok=True)
    version = subprocess.run([TIDY, "--version"], check=True, capture_output=True).stdout
    rules = version + (ROOT / ".clang-tidy").read_bytes() + shlex.join(options).encode()
    start = time.monotonic()
    entries = product_sources(build)
    bad = 0
    with ThreadPoolExecutor(os.cpu_count()) as pool:
        for findings in pool.map(lambda entry: check(entry, build, options, rules), entries):
            print(findings, end="", flush=True)
            bad += findings != ""
    print(f"clang-tidy: {len(entries)} unity sources, {bad} with findings, "
          f"{(time.monotonic() - start) / 60:.1f} minutes")
    sys.exit(1 if bad or not entries else 0)


if __name__ == "__main__":
    main()
