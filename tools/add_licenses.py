#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""add_licenses.py WHEEL: puts the licences of the libraries that a wheel carries, and of what is
compiled into it, beside its own, as their authors ask of whoever hands them on. Needs Debian, whose
packages say what they are."""

import base64
import csv
import hashlib
import importlib.metadata
import io
import re
import subprocess
import sys
import zipfile
from pathlib import Path

LIBRARIES = Path("/usr/lib/x86_64-linux-gnu")
COMPILED_IN = ["libcli11-dev", "nlohmann-json3-dev"]  # packages of headers alone


def package_of(library: str) -> str:
    """Of Debian. auditwheel has put a digest into the name of the library."""
    path = LIBRARIES / re.sub(r"-[0-9a-f]{8}(?=\.so)", "", library)
    for known in (path, path.resolve(), Path("/") / path.relative_to("/usr")):
        said = subprocess.run(["dpkg", "-S", str(known)], text=True, capture_output=True)
        if said.returncode == 0:
            return said.stdout.partition(":")[0]
    raise SystemExit(f"no package has {path}, which is in the wheel")


def licenses(wheel: zipfile.ZipFile) -> dict[str, bytes]:
    """Texts by the names of files."""
    libraries = [Path(name).name for name in wheel.namelist() if re.search(r"\.libs/.*\.so", name)]
    packages = {*map(package_of, libraries), *COMPILED_IN}
    found = {f"{package}.txt": Path("/usr/share/doc", package, "copyright").read_bytes()
             for package in packages}
    for file in importlib.metadata.files("nanobind") or []:
        if file.name == "LICENSE":
            found["nanobind.txt"] = file.read_binary()
        if file.name == "robin_map.h":  # which begins with its licence
            found["robin-map.txt"] = file.read_binary().partition(b"*/")[0] + b"*/\n"
    return found


def add(path: Path) -> int:
    changed = path.with_suffix(".changed")
    with zipfile.ZipFile(path) as old, \
            zipfile.ZipFile(changed, "w", zipfile.ZIP_DEFLATED) as new:
        texts = licenses(old)
        record, = [name for name in old.namelist() if name.endswith(".dist-info/RECORD")]
        rows = [row for row in csv.reader(io.TextIOWrapper(old.open(record)))]
        for entry in old.infolist():
            if entry.filename != record:
                new.writestr(entry, old.read(entry))
        for name, text in sorted(texts.items()):
            where = f"{Path(record).parent}/licenses/third-party/{name}"
            digest = base64.urlsafe_b64encode(hashlib.sha256(text).digest()).rstrip(b"=").decode()
            rows.insert(-1, [where, f"sha256={digest}", str(len(text))])
            new.writestr(where, text)
        out = io.StringIO()
        csv.writer(out, lineterminator="\n").writerows(rows)
        new.writestr(record, out.getvalue())
    changed.replace(path)
    return len(texts)


if __name__ == "__main__":
    print(f"{add(Path(sys.argv[1]))} licences of others are in the wheel")
