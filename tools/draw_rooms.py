#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""tools/draw_rooms.py [--check]: draws docs/architecture.svg, the rooms and who includes whom.

Each row is a layer: a room includes only rooms in rows below its own. A line leads to each room
that is included, unless the way over another line leads there too. --check says whether the file
is what would be drawn, and exits with 1 if not."""
import argparse
import sys
from pathlib import Path

import rooms

ROOT = Path(__file__).resolve().parent.parent
DRAWING = ROOT / "docs" / "architecture.svg"
WIDTH, BOX_WIDTH, BOX_HEIGHT, GAP, MARGIN = 760, 104, 34, 44, 24


def room_graph(tree):
    """Each room with the rooms that its product files include."""
    graph = {}
    for name in tree.files:
        graph.setdefault(name.split("/")[1], set())
    for a, b in tree.edges(lambda path: path.split("/")[1]):
        graph[a].add(b)
    return graph


def layers(graph):
    """Rooms by the longest way down from each."""
    depth = {}

    def depth_of(room):
        if room not in depth:
            depth[room] = 1 + max((depth_of(below) for below in graph[room]), default=-1)
        return depth[room]

    rows = {}
    for room in sorted(graph):
        rows.setdefault(depth_of(room), []).append(room)
    return [rows[number] for number in sorted(rows)]


def without_detours(graph):
    """Without the lines to rooms that other lines lead to."""
    reach = {}

    def reach_of(room):
        if room not in reach:
            reach[room] = set(graph[room]).union(*map(reach_of, graph[room]))
        return reach[room]

    return {room: {low for low in below
                   if not any(low in reach_of(other) for other in below if other != low)}
            for room, below in graph.items()}


def draw(graph):
    rows = layers(graph)
    height = 2 * MARGIN + len(rows) * BOX_HEIGHT + (len(rows) - 1) * GAP
    place = {}
    for number, row in enumerate(rows):
        y = height - MARGIN - BOX_HEIGHT - number * (BOX_HEIGHT + GAP)
        step = (WIDTH - 2 * MARGIN) / len(row)
        for n, room in enumerate(row):
            place[room] = (MARGIN + step * (n + 0.5), y)
    lines = [f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {height}" '
             'font-family="sans-serif" font-size="14">',
             "<title>The rooms of Cairn: each includes only rooms below it</title>",
             f'<rect width="{WIDTH}" height="{height}" fill="#fff"/>']
    for room, below in sorted(without_detours(graph).items()):
        for other in sorted(below):
            (x, y), (to_x, to_y) = place[room], place[other]
            y += BOX_HEIGHT
            bend = (to_y - y) / 2
            lines.append(f'<path d="M{x:.0f} {y:.0f}C{x:.0f} {y + bend:.0f} {to_x:.0f} '
                         f'{to_y - bend:.0f} {to_x:.0f} {to_y:.0f}" fill="none" stroke="#8a99a8"/>')
    for room, (x, y) in sorted(place.items()):
        lines.append(f'<rect x="{x - BOX_WIDTH / 2:.0f}" y="{y:.0f}" width="{BOX_WIDTH}" '
                     f'height="{BOX_HEIGHT}" rx="5" fill="#eef3f8" stroke="#45607a"/>')
        lines.append(f'<text x="{x:.0f}" y="{y + 22:.0f}" text-anchor="middle" fill="#1c2b39">'
                     f"{room}</text>")
    return "\n".join([*lines, "</svg>", ""])


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--check", action="store_true", help="only say whether it is up to date")
    options = parser.parse_args()
    drawn = draw(room_graph(rooms.Tree(ROOT)))
    if not options.check:
        DRAWING.write_text(drawn)
    elif not DRAWING.exists() or DRAWING.read_text() != drawn:
        print("docs/architecture.svg is not what the sources say; run tools/draw_rooms.py")
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
