#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Folds the notes of changes/unreleased into CHANGELOG.md, for a release.

    tools/gather_changes.py VERSION DATE [ROOT]
    tools/gather_changes.py                       prints what the next release would say

Each note is changes/unreleased/<kind>-<slug>.md, one to three sentences; the kind decides the
heading. The notes are removed. Nothing is written when a note is wrong.
"""

import sys
from pathlib import Path

HEADINGS = {"new": "New", "changed": "Changed", "fixed": "Fixed", "removed": "Removed"}
TITLE = """# Changes

What has changed since the last release stands in [changes/unreleased](changes/unreleased), one note
a file. A release gathers the notes here, newest first (`tools/gather_changes.py`).
"""


def read_notes(folder: Path):
    """Headings in the order of HEADINGS, each with its notes, in order of their names."""
    sections = {kind: [] for kind in HEADINGS}
    paths = sorted(folder.glob("*.md"))
    if not paths:
        sys.exit(f"no notes in {folder}")
    for path in paths:
        kind, dash, _ = path.stem.partition("-")
        if kind not in HEADINGS or not dash:
            sys.exit(f"{path.name}: a note is named <kind>-<slug>.md, the kind one of "
                     f"{', '.join(HEADINGS)}")
        text = " ".join(path.read_text(encoding="utf-8").split())
        if not text:
            sys.exit(f"{path.name}: empty")
        sections[kind].append(text)
    return paths, {HEADINGS[kind]: notes for kind, notes in sections.items() if notes}


def section(title: str, notes_by_heading) -> str:
    text = f"\n## {title}\n"
    for heading, notes in notes_by_heading.items():
        text += f"\n### {heading}\n\n" + "".join(f"- {note}\n" for note in notes)
    return text


def main():
    if len(sys.argv) not in (1, 3, 4):
        sys.exit(__doc__)
    root = Path(sys.argv[3] if len(sys.argv) == 4 else Path(__file__).parent.parent)
    paths, notes = read_notes(root / "changes" / "unreleased")
    if len(sys.argv) == 1:
        print(section("Unreleased", notes), end="")
        return
    version, date = sys.argv[1:3]
    release = section(f"{version} ({date})", notes)
    log = root / "CHANGELOG.md"
    before = log.read_text(encoding="utf-8") if log.exists() else TITLE
    log.write_text(TITLE + release + before.removeprefix(TITLE), encoding="utf-8")
    for path in paths:
        path.unlink()


if __name__ == "__main__":
    main()
