# SPDX-License-Identifier: Apache-2.0
"""Notes of unreleased changes become a section of the change log."""

import subprocess
import sys

import pytest


@pytest.fixture
def gather(source, tmp_path):
    notes = tmp_path / "changes" / "unreleased"
    notes.mkdir(parents=True)

    def run(version, files):
        for name, text in files.items():
            (notes / name).write_text(text)
        script = source / "tools" / "gather_changes.py"
        return subprocess.run([sys.executable, script, version, "2026-01-31", tmp_path],
                              capture_output=True, text=True)

    return run


def test_folds_notes_by_kind_newest_release_first(gather, source, tmp_path):
    assert gather("0.1.0", {"new-zarr.md": "Reads zarr.\n"}).returncode == 0
    notes = {"fixed-b.md": "No longer\nlate.\n", "fixed-a.md": "Right.\n", "new-x.md": "A verb.\n"}
    assert gather("0.2.0", notes).returncode == 0
    title, _, releases = (tmp_path / "CHANGELOG.md").read_text().partition("\n## ")
    assert title == (source / "CHANGELOG.md").read_text().partition("\n## ")[0]
    assert "## " + releases == """## 0.2.0 (2026-01-31)

### New

- A verb.

### Fixed

- Right.
- No longer late.

## 0.1.0 (2026-01-31)

### New

- Reads zarr.
"""
    assert list((tmp_path / "changes" / "unreleased").iterdir()) == []


@pytest.mark.parametrize("name, text", [("other-x.md", "x"), ("new.md", "x"), ("new-x.md", " \n")])
def test_refuses_a_wrong_note_and_changes_nothing(gather, tmp_path, name, text):
    done = gather("0.1.0", {"new-good.md": "Good.\n", name: text})
    assert done.returncode == 1
    assert done.stderr.startswith(name)
    assert not (tmp_path / "CHANGELOG.md").exists()
    assert (tmp_path / "changes" / "unreleased" / "new-good.md").exists()


def test_prints_what_the_next_release_would_say_and_changes_nothing(source):
    notes = sorted((source / "changes/unreleased").glob("*.md"))
    if not notes:
        pytest.skip("nothing has changed since the last release")
    script = source / "tools" / "gather_changes.py"
    done = subprocess.run([sys.executable, script], capture_output=True, text=True, check=True)
    assert done.stdout.startswith("\n## Unreleased\n\n### ")
    assert done.stdout.count("\n- ") == len(notes)
    assert sorted((source / "changes/unreleased").glob("*.md")) == notes


def test_refuses_to_make_an_empty_release(gather):
    assert gather("0.1.0", {}).returncode == 1
