#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Rules of the sources that neither the compiler nor clang-format checks.

    tools/check_sources.py [ROOT]

Prints one line for each breach, "path:line: what is wrong", and exits 1 if there is one. A product
file is anything in cairn/ but cairn/testing and *_test.cc.
"""

import re
import subprocess
import sys
from collections import defaultdict
from pathlib import Path

CODE = {".h", ".cc"}
SCRIPTS = {".py", ".sh", ".cmake"}
COLUMNS = 100

# Longest file of each kind; what is longer stands in LONG_FILES with the reason.
MAX_LINES = {"source": 600, "header": 400, "test": 800}
LONG_FILES: dict[str, str] = {}
MAX_HEADER_INCLUDES = 14
INCLUDES_ALL = "cairn/cairn.h"  # the one include of a program
MAX_FILES_IN_FOLDER = 40

# What product code may not say, and the files whose business it is.
FORBIDDEN = [
    (r"\bthrow\b", "our code throws nothing", ("cairn/python/",)),  # to Python, which expects it
    (r"\bstd::(abort|exit|terminate|quick_exit)\b|\b_exit\s*\(",
     "the library never ends the program", ("cairn/save/unheard_errors.cc",)),
    (r"\bstd::(cout|cerr|clog)\b|\b(printf|puts|fprintf)\s*\(|\bfmt::print\b",
     "the library prints nothing", ("cairn/cli/", "cairn/base/log.cc")),
    (r"\b(sleep|sleep_for|sleep_until|usleep|nanosleep)\s*\(",
     "nobody sleeps but the clock", ("cairn/base/clock.cc",)),
    (r"\bstd::j?thread\b(?!::(hardware_concurrency|id)\b)",
     "threads are made by the room async alone", ("cairn/async/",)),
    (r"\bstd::async\b|\.detach\s*\(|\bthread_local\b", "not one of our concurrency primitives", ()),
    (r"\bstd::(recursive_|shared_|timed_)?mutex\b|\bstd::condition_variable\b",
     "use the annotated Mutex of async/mutex.h", ("cairn/async/mutex.h",)),
]

# Files that decide what is built in: the only place for an #if about a library.
TABLES = {"open.cc", "registry.cc", "main.cc"}

# <name.h> headers that are the system's own; every other one belongs to a third party.
SYSTEM_HEADER = re.compile(
    r"(sys|linux|netinet|arpa|net)/[a-z_0-9]+\.h|"
    r"(dirent|dlfcn|fcntl|immintrin|nmmintrin|arm_acle|pthread|signal|time|unistd)\.h")
EVERYBODYS_HEADER = re.compile(r"(fmt|gtest|gmock)/")

NOT_CODE = re.compile(
    r'R"(?P<tag>[^(\s]*)\((?:.|\n)*?\)(?P=tag)"|"(?:\\.|[^"\\\n])*"'
    r"|(?<![0-9a-fA-F])'(?:\\.|[^'\\\n])+'|//[^\n]*|/\*(?:.|\n)*?\*/")
# A reason token of an error. Python's _errors.py says which exception each becomes.
REASON = r'"([a-z0-9]+(?:-[a-z0-9]+)*/[a-z0-9]+(?:-[a-z0-9]+)*)"'
PACKAGE = "cairn/python/package/cairn/"
INCLUDE = re.compile(r'^\s*#\s*include\s*([<"])([^>"]+)[>"]', re.M)
# Spelled in pieces so that this file passes its own check.
MACHINE_PATH = re.compile(r"(?<![\w./-])/(?:wo" + r"rk|ro" + r"ot|ho" + r"me)/")
UNFINISHED = re.compile(r"\b(TO" + r"DO|FIX" + r"ME)\b")


class Source:
    """One file: its text, and its code (comments and literals blanked, lines kept)."""

    def __init__(self, root: Path, path: str):
        self.root = root
        self.path = path
        self.text = (root / path).read_text(encoding="utf-8")
        self.lines = self.text.splitlines()
        self.suffix = Path(path).suffix
        self.is_code = self.suffix in CODE
        self.is_header = self.suffix == ".h"
        self.is_test = path.endswith("_test.cc") or path.startswith("cairn/testing/")
        self.is_product = self.is_code and path.startswith("cairn/") and not self.is_test
        self.code = NOT_CODE.sub(blank, self.text) if self.is_code else ""
        self.includes = [(m[1], m[2], self.line_of(m.start(1)))
                         for m in INCLUDE.finditer(self.text)]

    def line_of(self, offset: int) -> int:
        return self.text.count("\n", 0, offset) + 1

    def matches(self, pattern: str, text: str):
        for match in re.finditer(pattern, text, re.M):
            yield self.line_of(match.start()), match


def blank(match: re.Match) -> str:
    return re.sub(r"[^\n]", " ", match[0])


def has_license(source):
    if source.is_code and source.lines[:1] != ["// SPDX-License-Identifier: Apache-2.0"]:
        yield 1, "the first line must be the SPDX line"
    if source.suffix in SCRIPTS and "# SPDX-License-Identifier: Apache-2.0" not in source.lines[:2]:
        yield 1, "the SPDX line must be the first, after a shebang if there is one"


def is_plain_text(source):
    for number, line in enumerate(source.lines, 1):
        if not line.isascii():
            yield number, "only ASCII"
        if (source.is_code or source.suffix in SCRIPTS - {".cmake"}) and len(line) > COLUMNS:
            yield number, f"{len(line)} columns; at most {COLUMNS}"
    if source.text and not source.text.endswith("\n"):
        yield len(source.lines), "the last line has no end"


def keeps_to_itself(source):
    for number, match in source.matches(MACHINE_PATH.pattern, source.text):
        yield number, f"a path of somebody's machine: {match[0]}"
    for number, match in source.matches(UNFINISHED.pattern, source.text):
        yield number, f"{match[0]}: finish it, or write an issue"


def header_is_a_header(source):
    if not source.is_header:
        return
    if "#pragma once" not in source.lines:
        yield 1, "no #pragma once"
    for number, _ in source.matches(r"\busing\s+namespace\b", source.code):
        yield number, "using namespace in a header"
    if len(source.includes) > MAX_HEADER_INCLUDES and source.path != INCLUDES_ALL:
        yield 1, f"includes {len(source.includes)} files; at most {MAX_HEADER_INCLUDES}"


def includes_own_header_first(source):
    own = str(Path(source.path).with_suffix(".h"))
    if source.suffix != ".cc" or not (source.root / own).exists():
        return
    if not source.includes or source.includes[0][1] != own:
        yield 1, f'the first include must be "{own}"'


def is_not_too_long(source):
    if not source.is_code or source.path in LONG_FILES:
        return
    kind = "test" if source.is_test else "header" if source.is_header else "source"
    if len(source.lines) > MAX_LINES[kind]:
        yield MAX_LINES[kind], f"a {kind} of {len(source.lines)} lines; at most {MAX_LINES[kind]}"


def words_of(identifier: str):
    return re.findall(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+", identifier)


def has_no_hooks(source):
    if not source.is_product:
        return
    for number, match in source.matches(r"\b[A-Za-z_]\w*", source.code):
        words = {word.lower().rstrip("s") for word in words_of(match[0])}
        if match[0].startswith("MPI_"):  # named by others
            continue
        if words & {"test", "testing", "mock", "fake"}:
            yield number, f"'{match[0]}' in a product file: what tests need is a product interface"


def says_nothing_forbidden(source):
    if not source.is_product:
        return
    for pattern, rule, owners in FORBIDDEN:
        if source.path.startswith(tuple(owners)):
            continue
        for number, match in source.matches(pattern, source.code):
            yield number, f"{match[0].strip()}: {rule}"


def has_few_conditions(source):
    if not source.is_product or Path(source.path).name in TABLES:
        return
    for number, match in source.matches(r"^[ \t]*#[ \t]*(?:el)?if(?:n?def)?\b(.*)$", source.code):
        names = set(re.findall(r"[A-Za-z_]\w*", match[1])) - {"defined", "and", "or", "not"}
        if not names or "__has_include" in names or not all(n.startswith("__") for n in names):
            yield number, "#if about anything but the compiler or the machine belongs in a table"


RULES = [has_license, is_plain_text, keeps_to_itself, header_is_a_header, includes_own_header_first,
         is_not_too_long, has_no_hooks, says_nothing_forbidden, has_few_conditions]


def third_party_headers_have_one_owner(sources):
    owners = defaultdict(list)
    for source in sources:
        if not source.is_product:
            continue
        for bracket, name, number in source.includes:
            if bracket == '"' or "." not in name or SYSTEM_HEADER.fullmatch(name):
                continue
            if source.path.startswith("cairn/python/") and name.startswith("nanobind/"):
                continue  # the whole room is its owner
            if source.is_header:
                yield source.path, number, f"<{name}> in a header: keep it in a .cc"
            elif not EVERYBODYS_HEADER.match(name):
                owners[name].append((source.path, number))
    for name, places in owners.items():
        for path, number in places[1:]:
            yield path, number, f"<{name}> belongs to {places[0][0]}"


def everything_is_built(root, sources):
    """A source that no CMakeLists.txt names rots unseen, and so does a header nobody includes."""
    included = {name for source in sources for _, name, _ in source.includes}
    for source in sources:
        if not source.is_code or source.path in included:
            continue
        path = Path(source.path)
        names = "|".join(map(re.escape, (path.name, re.sub("_(fuzz|bench)$", "", path.stem))))
        for folder in list(path.parents)[:-1]:
            lists = root / folder / "CMakeLists.txt"
            if lists.exists() and re.search(rf"\b({names})\b", lists.read_text()):
                break
        else:
            yield source.path, 1, "no CMakeLists.txt names it" + (
                ", and nobody includes it" if source.is_header else "")


def folders_are_small(sources):
    """A test beside its code is not one more thing to find."""
    folders = defaultdict(int)
    for source in sources:
        if source.is_code and not source.is_test:
            folders[str(Path(source.path).parent)] += 1
    for folder, count in folders.items():
        if count > MAX_FILES_IN_FOLDER:
            yield folder, 1, f"{count} files in one folder; at most {MAX_FILES_IN_FOLDER}"


def reasons_have_one_home(sources):
    """The library's rules, and the errors they give, are not written again in Python."""
    library = {match[1]: source.path for source in sources if source.is_product
               for _, match in source.matches(REASON, source.text)}
    for source in sources:
        if not source.path.startswith(PACKAGE) or source.path == PACKAGE + "_errors.py":
            continue
        for number, match in source.matches(REASON, source.text):
            if match[1] in library:
                yield source.path, number, (f"'{match[1]}' is a reason of {library[match[1]]}: let "
                                            "that raise it")


def listed_files(root: Path):
    """What git has or would take: nothing built, nothing that was just deleted."""
    command = ["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard"]
    listing = subprocess.run(command, cwd=root, check=True, capture_output=True, text=True)
    kinds = CODE | SCRIPTS | {".md", ".txt", ".json"}
    for path in sorted(set(listing.stdout.split("\0"))):
        if path.startswith(("fuzz/corpus/", "tests/golden/")) or Path(path).suffix not in kinds:
            continue
        if (root / path).is_file():
            yield path


def breaches(root: Path):
    sources = [Source(root, path) for path in listed_files(root)]
    for source in sources:
        for rule in RULES:
            for number, text in rule(source):
                yield source.path, number, text
    yield from third_party_headers_have_one_owner(sources)
    yield from everything_is_built(root, sources)
    yield from folders_are_small(sources)
    yield from reasons_have_one_home(sources)


def main():
    root = Path(sys.argv[1] if len(sys.argv) > 1 else Path(__file__).parent.parent).resolve()
    found = sorted(set(breaches(root)))
    for path, number, text in found:
        print(f"{path}:{number}: {text}")
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
