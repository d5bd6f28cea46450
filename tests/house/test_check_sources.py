# SPDX-License-Identifier: Apache-2.0
"""Each rule of tools/check_sources.py refuses what it is there to refuse, and nothing else."""

import subprocess
import sys
from pathlib import Path

import pytest

SPDX = "// SPDX-License-Identifier: Apache-2.0\n"
HEADER = SPDX + "#pragma once\n"


@pytest.fixture
def check(source, tmp_path):
    """Lays out a small project and returns what the script prints about it."""
    subprocess.run(["git", "init", "-q", tmp_path], check=True)

    def run(files):
        files = {"cairn/room/CMakeLists.txt": "x.cc x.h x_test.cc y.cc\n"} | files
        for name, text in files.items():
            path = tmp_path / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text, encoding="utf-8")
        script = source / "tools" / "check_sources.py"
        done = subprocess.run([sys.executable, script, tmp_path], capture_output=True, text=True)
        assert done.returncode == (1 if done.stdout else 0), done.stderr
        return done.stdout

    return run


def test_accepts_what_follows_the_rules(check):
    assert check({
        "cairn/room/x.h": HEADER + "namespace cairn::room {\nint latest_step();\n}\n",
        "cairn/room/x.cc": SPDX + '#include "cairn/room/x.h"\n\n#include <string>\n',
        "cairn/room/x_test.cc": SPDX + "int fake_thing = 0;\n",
        "tools/a.sh": "#!/bin/sh\n# SPDX-License-Identifier: Apache-2.0\n",
    }) == ""


MACHINE = "/wo" + "rk/main"
BREACHES = {
    "no license": ("cairn/room/x.cc", "int x;\n", ":1: the first line must be the SPDX line"),
    "no license in a script": ("tools/a.sh", "true\n", ":1: the SPDX line must be the first"),
    "not ASCII": ("cairn/room/y.cc", SPDX + "// caf\u00e9\n", ":2: only ASCII"),
    "long line": ("cairn/room/y.cc", SPDX + "//" + "x" * 99 + "\n", ":2: 101 columns"),
    "no end of line": ("cairn/room/y.cc", SPDX + "int x;", ":2: the last line has no end"),
    "machine path": ("README.md", f"see {MACHINE}\n", ":1: a path of somebody's machine"),
    "unfinished": ("cairn/room/y.cc", SPDX + "// TO" + "DO\n", ":2: TO" + "DO"),
    "no pragma": ("cairn/room/x.h", SPDX + "int x();\n", ":1: no #pragma once"),
    "using namespace": ("cairn/room/x.h", HEADER + "using namespace std;\n", ":3: using namespace"),
    "many includes": ("cairn/room/x.h", HEADER + "#include <a>\n" * 15, ":1: includes 15 files"),
    "long source": ("cairn/room/y.cc", SPDX + "\n" * 600, ":600: a source of 601 lines"),
    "long header": ("cairn/room/x.h", HEADER + "\n" * 400, ":400: a header of 402 lines"),
    "long test": ("cairn/room/x_test.cc", SPDX + "\n" * 800, ":800: a test of 801 lines"),
    "hook": ("cairn/room/y.cc", SPDX + "int set_for_testing;\n", ":2: 'set_for_testing'"),
    "camel hook": ("cairn/room/y.cc", SPDX + "class MockStore;\n", ":2: 'MockStore'"),
    "throw": ("cairn/room/y.cc", SPDX + "void f() { throw 1; }\n", ":2: throw"),
    "print": ("cairn/room/y.cc", SPDX + 'void f() { printf("x"); }\n', ":2: printf("),
    "exit": ("cairn/room/y.cc", SPDX + "void f() { std::exit(1); }\n", ":2: std::exit"),
    "sleep": ("cairn/room/y.cc", SPDX + "void f() { usleep(1); }\n", ":2: usleep("),
    "thread": ("cairn/room/y.cc", SPDX + "std::thread t;\n", ":2: std::thread"),
    "plain mutex": ("cairn/room/y.cc", SPDX + "std::mutex m;\n", ":2: std::mutex"),
    "condition": ("cairn/room/y.cc", SPDX + "#ifdef CAIRN_GCS\n#endif\n", ":2: #if about"),
    "has_include": ("cairn/room/y.cc", SPDX + "#if __has_include(<z>)\n#endif\n", ":2: #if about"),
    "foreign header": ("cairn/room/x.h", HEADER + "#include <z.h>\n", ":3: <z.h> in a header"),
    "nobody's header": ("cairn/room/z.h", HEADER, ":1: no CMakeLists.txt names it, and nobody"),
    "not built": ("cairn/room/z.cc", SPDX, ":1: no CMakeLists.txt names it"),
}


@pytest.mark.parametrize("path, text, expected", BREACHES.values(), ids=BREACHES.keys())
def test_refuses(check, path, text, expected):
    assert check({path: text}).startswith(path + expected)


def test_refuses_a_folder_of_too_many_files(check):
    files = {f"cairn/room/y{i}.cc": SPDX for i in range(41)}
    files["cairn/room/CMakeLists.txt"] = "".join(Path(name).name + "\n" for name in files)
    assert check(files) == "cairn/room:1: 41 files in one folder; at most 40\n"


def test_refuses_another_header_before_its_own(check):
    found = check({"cairn/room/x.h": HEADER, "cairn/room/x.cc": SPDX + "#include <string>\n"})
    assert found == 'cairn/room/x.cc:1: the first include must be "cairn/room/x.h"\n'


def test_refuses_a_third_party_header_in_two_files(check):
    text = SPDX + "#include <zstd.h>\n"
    found = check({"cairn/room/x.cc": text, "cairn/room/y.cc": text})
    assert found == "cairn/room/y.cc:2: <zstd.h> belongs to cairn/room/x.cc\n"


def test_refuses_a_reason_of_both_languages(check):
    python = "# SPDX-License-Identifier: Apache-2.0\nraise E('x', \"load/no-mesh\")\n"
    files = {"cairn/room/y.cc": SPDX + 'const char* r = "load/no-mesh";\n',
             "cairn/python/package/cairn/_errors.py": python,
             "cairn/python/package/cairn/a/_b.py": python}
    assert check(files) == ("cairn/python/package/cairn/a/_b.py:2: 'load/no-mesh' is a reason of "
                            "cairn/room/y.cc: let that raise it\n")
    files["cairn/room/y.cc"] = SPDX + 'const char* r = "load/other";\n'
    assert check(files) == ""


ALLOWED = {
    "word inside another": "int latest, greatest, contest_size;\n",
    "word in a comment": "// a test, throw, printf(\nint x;\n",
    "word in a literal": 'const char* x = "throw std::thread test";\n',
    "condition about the compiler": "#if defined(__clang__) && __x86_64__\n#endif\n",
    "number of cores": "unsigned n = std::thread::hardware_concurrency();\n",
    "digit separator": "long x = 1'000'000;  // '\nint y;\n",
}


@pytest.mark.parametrize("text", ALLOWED.values(), ids=ALLOWED.keys())
def test_allows(check, text):
    assert check({"cairn/room/y.cc": SPDX + text}) == ""
