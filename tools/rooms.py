# SPDX-License-Identifier: Apache-2.0
"""The rooms of a tree: what their CMakeLists.txt declare, and who includes whom."""
import re
from collections import defaultdict
from pathlib import Path

KEYWORDS = {"SEPARATE", "DEPS", "PUBLIC", "SHARED", "PRIVATE", "SOURCES", "GENERATED", "TESTS",
            "TEST_DEPS", "LIBRARIES"}
ROOM = re.compile(r"\bcairn_room\(\s*(\w+)([^)]*)\)")
INCLUDE = re.compile(r'^[ \t]*#[ \t]*include[ \t]*["<](cairn/[^">]+)[">]', re.M)
# What only tests include, and what is above all rooms.
NOT_PRODUCT = ("cairn/testing/", "cairn/cairn.h")
# Stems of tables. A table includes its rows, also those in folders below its own, and its header
# may declare what they define.
TABLES = {"open", "registry", "main", "commands", "bindings"}


class Room:
    """One call of cairn_room()."""

    def __init__(self, folder: Path, name: str, words: list[str]):
        self.folder = folder
        self.name = name
        self.lists = defaultdict(list)
        current = None
        for word in words:
            if word in KEYWORDS:
                current = word
            elif current:
                self.lists[current].append(word)

    def header_list(self, path: str) -> str | None:
        """PUBLIC, SHARED or PRIVATE; None: it names no such header."""
        try:
            name = str(Path(path).relative_to(self.folder))
        except ValueError:
            return None
        return next((k for k in ("PUBLIC", "SHARED", "PRIVATE") if name in self.lists[k]), None)


class Tree:
    """All product files below cairn/, by their paths from the root."""

    def __init__(self, root: Path):
        self.root = root
        self.rooms: list[Room] = []
        for lists in sorted((root / "cairn").rglob("CMakeLists.txt")):
            text = re.sub(r"#[^\n]*", "", lists.read_text())
            for match in ROOM.finditer(text):
                self.rooms.append(
                    Room(lists.parent.relative_to(root), match[1], match[2].split()))
        self.files: dict[str, str] = {}
        for path in sorted((root / "cairn").rglob("*")):
            name = str(path.relative_to(root))
            if (path.suffix in {".h", ".cc"} and not name.endswith("_test.cc")
                    and not name.startswith(NOT_PRODUCT)):
                self.files[name] = path.read_text(encoding="utf-8")
        self.includes = {name: [(m[1], text.count("\n", 0, m.start()) + 1)
                                for m in INCLUDE.finditer(text)]
                         for name, text in self.files.items()}

    def room_of(self, path: str) -> Room | None:
        """The room with the longest folder that the file lies in."""
        parents = set(Path(path).parents)
        inside = [room for room in self.rooms if room.folder in parents]
        return max(inside, key=lambda room: len(room.folder.parts), default=None)

    def edges(self, group) -> dict[tuple[str, str], list[tuple[str, int]]]:
        """Who includes whom by group(path): each edge with the places of its includes. Among
        folders, those of tables that lead to a row in a folder below theirs do not count."""
        found = defaultdict(list)
        for name, includes in self.includes.items():
            for target, line in includes:
                is_row = (group is folder and Path(name).stem in TABLES
                          and Path(name).parent in Path(target).parents[1:])
                if target in self.files and group(name) != group(target) and not is_row:
                    found[group(name), group(target)].append((name, line))
        return found


def folder(path: str) -> str:
    """The folder below cairn/."""
    return str(Path(path).parent.relative_to("cairn"))


def unit(path: str) -> str:
    """A header and its source are one."""
    return str(Path(path).with_suffix(""))


def cycles(edges) -> list[list[str]]:
    """The shortest way round in each group of nodes that reach each other."""
    reach = defaultdict(set)
    for a, b in edges:
        reach[a].add(b)

    def way_round(start):
        ways, seen = [[start]], set()
        while ways:
            way = ways.pop(0)
            for other in sorted(reach[way[-1]]):
                if other == start:
                    return way
                if other not in seen:
                    seen.add(other)
                    ways.append([*way, other])
        return None

    found, told = [], set()
    for way in sorted(filter(None, map(way_round, sorted(reach))), key=len):
        if not told.intersection(way):
            found.append(way)
            told.update(way)
    return found
