# SPDX-License-Identifier: Apache-2.0
"""What tools/check_rooms.py refuses of a small tree: rooms `low`, and `high` above it."""

import subprocess
import sys

import pytest

LOW = "cairn_room(low PUBLIC low.h SHARED shared.h PRIVATE private.h SOURCES low.cc)\n"
HIGH = "cairn_room(high DEPS low PUBLIC high.h SOURCES high.cc)\n"
FILES = {
    "low/CMakeLists.txt": LOW,
    "low/low.h": "int low();\n",
    "low/low.cc": '#include "cairn/low/low.h"\n#include "cairn/low/private.h"\nint low() {\n}\n',
    "low/shared.h": "",
    "low/private.h": "",
    "high/CMakeLists.txt": HIGH,
    "high/high.h": '#include "cairn/low/low.h"\nint high();\n',
    "high/high.cc": ('#include "cairn/high/high.h"\n#include "cairn/low/shared.h"\n'
                     "int high() {\n}\n"),
}


@pytest.fixture
def check(source, tmp_path):
    """Checks that tree with some files put beside or instead of its own; gives the breaches."""

    def run(files=None, *options):
        for name, text in {**FILES, **(files or {})}.items():
            path = tmp_path / "cairn" / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text)
        command = [sys.executable, "-B", source / "tools/check_rooms.py", tmp_path, *options]
        done = subprocess.run(command, capture_output=True, text=True)
        assert done.stderr == ""
        breaches = done.stdout.splitlines()
        assert done.returncode == (1 if breaches else 0)
        return breaches

    return run


def include(*names):
    return "".join(f'#include "cairn/{name}"\n' for name in names)


def test_a_clean_tree_passes(check, tmp_path):
    stamp = tmp_path / "stamp"
    assert check({}, "--stamp", stamp) == []
    assert stamp.exists()


def test_a_breach_leaves_no_stamp(check, tmp_path):
    stamp = tmp_path / "stamp"
    assert check({"low/low.cc": include("high/high.h")}, "--stamp", stamp) != []
    assert not stamp.exists()


@pytest.mark.parametrize("name", ["low/low.cc", "low/low.h"])
@pytest.mark.parametrize("line", ['#include "cairn/high/high.h"', "#  include <cairn/high/high.h>"])
def test_a_room_may_not_include_a_room_that_it_does_not_name(check, name, line):
    breach, = check({"high/high.h": "", "high/high.cc": "", name: f"\n{line}\n"})
    assert breach.startswith(f"cairn/{name}:2: room 'low' may not include room 'high' "
                             "(it may include: low)")


def test_a_room_may_not_include_what_another_keeps_private(check):
    breach, = check({"high/high.cc": include("low/private.h")})
    assert breach.startswith("cairn/high/high.cc:1: cairn/low/private.h is private to room 'low'")


def test_headers_in_no_list_are_private(check):
    breach, = check({"low/unlisted.h": "", "high/high.cc": include("low/unlisted.h")})
    assert "cairn/low/unlisted.h is private to room 'low'" in breach


@pytest.mark.parametrize("name, header", [("low/low.h", "private.h"), ("low/low.h", "shared.h"),
                                          ("high/high.h", "shared.h")])
def test_a_public_header_may_not_include_one_that_is_not(check, name, header):
    breach, = check({name: include(f"low/{header}")})
    assert breach.startswith(f"cairn/{name}:1: users see this header but not cairn/low/{header}")


def test_folders_may_not_include_one_another(check):
    breaches = check({"low/part/a.h": include("low/private.h"),
                      "low/part/b.h": "",
                      "low/low.cc": include("low/part/b.h")})
    assert [breach.split(" (")[0] for breach in breaches] == [
        "cairn/low/low.cc:1: low includes low/part, which includes it in turn",
        "cairn/low/part/a.h:1: low/part includes low, which includes it in turn"]


def test_files_may_not_include_one_another(check):
    # A header and its source count as one: each file by itself closes no circle.
    breaches = check({"low/a.h": "", "low/a.cc": include("low/a.h", "low/b.h"),
                      "low/b.h": "", "low/b.cc": include("low/b.h", "low/c.h"),
                      "low/c.h": include("low/a.h")})
    assert [breach.split(":")[0] for breach in breaches] == [
        "cairn/low/a.cc", "cairn/low/b.cc", "cairn/low/c.h"]
    for breach in breaches:
        assert "(files: cairn/low/a -> cairn/low/b -> cairn/low/c -> cairn/low/a)" in breach


@pytest.mark.parametrize("declared, defined", [
    ("int far(int a,\n        int b);\n", "int far(int a, int b) {\n}\n"),
    ("class Far {\n  int get() const;\n};\n", "int Far::get() const {\n}\n"),
])
def test_what_a_header_declares_its_source_defines(check, declared, defined):
    own = include("low/low.h")
    breach, = check({"low/private.h": declared, "low/low.cc": f"{own}{defined}"})
    assert breach.startswith("cairn/low/low.cc:2: ")
    assert "is declared in cairn/low/private.h; define it in private.cc" in breach


@pytest.mark.parametrize("files", [
    {"low/private.h": "int far();\n", "low/private.cc": "int far() {\n}\n"},  # where it belongs
    {"low/private.h": "int far();\n",
     "low/low.cc": "namespace {\nint far() {\n}\n}  // namespace\n"},
    {"low/private.h": "int far();\n", "low/part/b.cc": "int far() {\n}\n"},  # another folder
    {"low/private.h": "int far();\n", "low/low.cc": "int near() {\n  return far();\n}\n"},
    {"low/private.h": "class Far;\n", "low/low.cc": "int Far::get() {\n}\n"},
])
def test_other_definitions_stand_where_they_like(check, files):
    assert check(files) == []


@pytest.mark.parametrize("table", ["open", "registry", "main", "commands", "bindings"])
def test_rows_of_a_table_define_what_it_declares(check, table):
    assert check({f"low/{table}.h": "int far();\n",
                  "low/low.cc": include(f"low/{table}.h") + "int far() {\n}\n"}) == []


def test_a_table_includes_rows_below_its_folder(check):
    row = {"low/part/row.h": include("low/private.h")}
    assert check({**row, "low/open.h": include("low/private.h"),
                  "low/open.cc": include("low/open.h", "low/part/row.h")}) == []
    assert check({**row, "low/other.cc": include("low/part/row.h")}) != []


def test_a_row_may_not_include_its_table(check):
    breaches = check({"low/part/row.h": include("low/open.h"),
                      "low/open.h": "", "low/open.cc": include("low/open.h", "low/part/row.h")})
    assert [breach.split(" (")[0] for breach in breaches] == [
        "cairn/low/open.cc:2: cairn/low/open includes cairn/low/part/row, "
        "which includes it in turn",
        "cairn/low/part/row.h:1: cairn/low/part/row includes cairn/low/open, "
        "which includes it in turn"]
