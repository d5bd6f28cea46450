#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Folds the notes of changes/unreleased into CHANGELOG.md, for a release.

    tools/gather_changes.py VERSION DATE [ROOT]

Each note is changes/unreleased/<kind>-<slug>.md, one to three sentences; the kind decides the
heading. The notes are removed. Nothing is written when a note is wrong.
"""

import sys
from pathlib import Path

HEADINGS = {"new": "New", "changed": "Changed", "fixed": "Fixed", "removed": "Removed"}
TITLE = "# Changes\n"


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


def main():
    if len(sys.argv) not in (3, 4):
        sys.exit(__doc__)
    version, date = sys.argv[1:3]
    root = Path(sys.argv[3] if len(sys.argv) == 4 else Path(__file__).parent.parent)
    paths, sections = read_notes(root / "changes" / "unreleased")

    release = f"\n## {version} ({date})\n"
    for heading, notes in sections.items():
        release += f"\n### {heading}\n\n" + "".join(f"- {note}\n" for note in notes)

    log = root / "CHANGELOG.md"
    before = log.read_text(encoding="utf-8") if log.exists() else TITLE
    log.write_text(TITLE + release + before.removeprefix(TITLE), encoding="utf-8")
    for path in paths:
        path.unlink()


if __name__ == "__main__":
    main()
