#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""tools/check_rooms.py [ROOT] [--stamp FILE]: rules of who includes whom in cairn/.

Prints one line for each breach, "path:line: what is wrong and what to do", and exits 1 if there is
one. Every build runs it; --stamp touches a file when all is well."""
import argparse
import re
import sys
from collections import defaultdict
from pathlib import Path

import rooms

# A definition at namespace scope: nothing indented, no macro, no control flow.
DEFINITION = re.compile(
    r"^(?!namespace|using|typedef|return|class|struct|enum|template|static|constexpr|#|//|\})"
    r"[A-Za-z_][\w:<>,&*\s\[\]().-]*?\b(?P<name>~?\w+(?:::~?\w+)*)"
    r"\((?P<rest>[^;{}]*(?:\{\}[^;{}]*)*)\{",
    re.M)
UNNAMED = re.compile(r"^namespace \{$.*?^\}  // namespace$", re.M | re.S)
COMMENT = re.compile(r"//[^\n]*")


def includes_what_it_may(tree):
    for name, includes in tree.includes.items():
        room = tree.room_of(name)
        for target, line in includes:
            other = tree.room_of(target)
            if room is None or other is None or room is other:
                continue
            if other.name not in room.lists["DEPS"]:
                may = ", ".join([room.name, *room.lists["DEPS"]])
                yield name, line, (
                    f"room '{room.name}' may not include room '{other.name}' (it may include: "
                    f"{may}); move what both need to a lower room, or name it in DEPS if it is "
                    "lower")
            elif other.header_list(target) not in ("PUBLIC", "SHARED"):
                yield name, line, (
                    f"{target} is private to room '{other.name}'; use one of its public headers, "
                    f"or list it under SHARED in {other.folder}/CMakeLists.txt")
            elif room.header_list(name) == "PUBLIC" and other.header_list(target) != "PUBLIC":
                yield name, line, (
                    f"users see this header but not {target}, which is not PUBLIC; include it in "
                    "the source, or make it PUBLIC")


def public_headers_stand_alone(tree):
    for name, includes in tree.includes.items():
        room = tree.room_of(name)
        if room is None or room.header_list(name) != "PUBLIC":
            continue
        for target, line in includes:
            if tree.room_of(target) is room and room.header_list(target) != "PUBLIC":
                yield name, line, (f"users see this header but not {target}, which is not PUBLIC; "
                                   "include it in the source, or make it PUBLIC")


def has_no_cycles(tree):
    for group, what in (rooms.folder, "folders"), (rooms.unit, "files"):
        edges = tree.edges(group)
        for way in rooms.cycles(edges):
            for a, b in zip(way, way[1:] + way[:1]):
                yield *edges[a, b][0], (
                    f"{a} includes {b}, which includes it in turn ({what}: "
                    f"{' -> '.join([*way, way[0]])}); move what both need to a third place")


def definitions(text: str):
    """Names defined at namespace scope and seen by others: "save_tree", "Checkpoint::prefix"."""
    text = COMMENT.sub("", UNNAMED.sub(lambda m: re.sub(r"[^\n]", "", m[0]), text))
    for match in DEFINITION.finditer(text):
        yield match["name"], text.count("\n", 0, match.start()) + 1


def declares(header: str, name: str) -> bool:
    """Does the text of a header declare the function, or the class that it is a member of?"""
    if "::" in name:
        owner = name.split("::")[0]
        return re.search(rf"^(?:class|struct) {owner}\b[^;]*\{{", header, re.M) is not None
    return re.search(rf"^[A-Za-z_][^\n;]*\b{name}\(", header, re.M) is not None


def defines_what_its_header_declares(tree):
    """In each folder: what x.h declares is defined in x.cc, or in the rows if x is a table."""
    headers = defaultdict(list)
    for name, text in tree.files.items():
        if name.endswith(".h") and Path(name).stem not in rooms.TABLES:
            headers[Path(name).parent].append((name, COMMENT.sub("", text)))
    for name, text in tree.files.items():
        own = str(Path(name).with_suffix(".h"))
        if not name.endswith(".cc"):
            continue
        for defined, line in definitions(text):
            if own in tree.files and declares(tree.files[own], defined):
                continue
            for header, declaring in headers[Path(name).parent]:
                if declares(declaring, defined):
                    yield name, line, (f"{defined} is declared in {header}; define it in "
                                       f"{Path(header).stem}.cc, or declare it in a header of "
                                       f"this source's name")


RULES = [includes_what_it_may, public_headers_stand_alone, has_no_cycles,
         defines_what_its_header_declares]


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("root", nargs="?", type=Path, default=Path(__file__).parent.parent)
    parser.add_argument("--stamp", type=Path, help="touched if there is no breach")
    options = parser.parse_args()
    tree = rooms.Tree(options.root.resolve())
    found = sorted({breach for rule in RULES for breach in rule(tree)})
    for path, line, text in found:
        print(f"{path}:{line}: {text}")
    if found:
        return 1
    if options.stamp:
        options.stamp.touch()
    return 0


if __name__ == "__main__":
    sys.exit(main())
