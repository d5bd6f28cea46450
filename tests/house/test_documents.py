# SPDX-License-Identifier: Apache-2.0
"""What the documents show is what is there."""

import os
import re
import subprocess
import textwrap

import pytest

DOCUMENTS = "README.md", "ARCHITECTURE.md", "CONTRIBUTING.md"


@pytest.fixture(scope="module")
def readme(source):
    return (source / "README.md").read_text()


PROGRAMS = {"README.md": "quickstart", "docs/guide/sharding.md": "sharding"}


@pytest.mark.parametrize("document, program", PROGRAMS.items())
def test_the_program_in_a_document_is_the_example(source, document, program):
    example = (source / f"examples/{program}.cc").read_text()
    shown = re.search(r"```cpp\n(.*?)```", (source / document).read_text(), re.S)[1]
    assert example == "// SPDX-License-Identifier: Apache-2.0\n" + shown


@pytest.fixture(scope="module")
def session(command, tmp_path_factory):
    """Runs words as a shell would where the quickstart ran, and gives what they print."""
    folder = tmp_path_factory.mktemp("session")
    path = f"{command.parent}:{os.environ['PATH']}"

    def run(words):
        return subprocess.run(words, shell=True, cwd=folder, env=os.environ | {"PATH": path},
                              stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True).stdout

    return run


def test_the_readme_shows_what_its_commands_print(readme, session):
    assert f"```\n\n    {session('cairn_quickstart')}" in readme
    block = r"^    \$ (.*)\n((?:    (?!\$ ).*\n)*)"
    shown = [(words, textwrap.dedent(out)) for words, out in re.findall(block, readme, re.M)]
    assert [words.split()[0] for words, _ in shown] == ["cairn", "printf", "cairn"]
    for words, out in shown:
        assert session(words) == out


def test_the_guide_to_sharding_shows_what_its_program_prints(source, session):
    printed = textwrap.indent(session("cairn_sharding_example"), "    ")
    assert f"```\n\n{printed}\n" in (source / "docs/guide/sharding.md").read_text()


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
