# SPDX-License-Identifier: Apache-2.0
"""What the documents show is what is there."""

import re
import subprocess

import pytest

DOCUMENTS = "README.md", "ARCHITECTURE.md", "CONTRIBUTING.md"


@pytest.fixture(scope="module")
def readme(source):
    return (source / "README.md").read_text()


def test_the_program_in_the_readme_is_the_example(source, readme):
    example = (source / "examples/quickstart.cc").read_text()
    shown = re.search(r"```cpp\n(.*?)```", readme, re.S)[1]
    assert example == "// SPDX-License-Identifier: Apache-2.0\n" + shown


def test_the_program_says_what_the_readme_says(command, readme, tmp_path):
    program = command.with_name("cairn_quickstart")
    done = subprocess.run([program], cwd=tmp_path, capture_output=True, text=True, check=True)
    assert f"```\n\n    {done.stdout}" in readme


@pytest.mark.parametrize("document", DOCUMENTS)
def test_the_targets_of_make_exist(source, document):
    targets = re.findall(r"^([a-z]+):", (source / "Makefile").read_text(), re.M)
    text = (source / document).read_text()
    mentioned = set(re.findall(r"(?:^    |`)make ([a-z]+)", text, re.M))
    assert mentioned <= set(targets)


@pytest.mark.parametrize("document", DOCUMENTS)
def test_the_files_that_are_named_exist(source, document):
    text = (source / document).read_text()
    places = re.findall(r"`((?:[a-z_0-9]+/)+[a-z_0-9*]*(?:\.[a-z]+)?)`", text)
    places += re.findall(r"\]\(([^)#:]+)\)", text)
    missing = [place for place in places
               if not any(list(root.glob(place)) for root in (source, source / "cairn"))]
    assert missing == []
