# SPDX-License-Identifier: Apache-2.0
"""A room that includes what it may not include does not build."""

import subprocess

import pytest

PROJECT = """
cmake_minimum_required(VERSION 3.25)
project(house LANGUAGES CXX)
find_package(Threads REQUIRED)
find_package(fmt REQUIRED)
include({source}/cmake/CairnRoom.cmake)
add_subdirectory(cairn/low)
add_subdirectory(cairn/high)
"""


@pytest.fixture
def make_room(source, tmp_path):
    """Builds rooms `low` and `high` (above it), where a file of `low` has the given text."""
    (tmp_path / "CMakeLists.txt").write_text(PROJECT.format(source=source))
    (tmp_path / "cmake").symlink_to(source / "cmake")
    for room, deps in ("low", ""), ("high", "DEPS low"):
        folder = tmp_path / "cairn" / room
        folder.mkdir(parents=True)
        (folder / "CMakeLists.txt").write_text(
            f"cairn_room({room} {deps} PUBLIC {room}.h SOURCES {room}.cc)\n"
            f"target_include_directories(cairn_{room} PUBLIC {tmp_path})\n")
        (folder / f"{room}.h").write_text("#pragma once\n")
    (tmp_path / "cairn/high/high.cc").write_text('#include "cairn/low/low.h"\n')

    def build(name, text):
        (tmp_path / "cairn/low" / name).write_text(text)
        if name != "low.cc":
            (tmp_path / "cairn/low/low.cc").write_text("")
        subprocess.run(["cmake", "-S", tmp_path, "-B", tmp_path / "build", "-G", "Ninja"],
                       check=True, capture_output=True)
        command = ["cmake", "--build", tmp_path / "build"]
        return subprocess.run(command, capture_output=True, text=True)

    return build


def test_a_room_may_include_the_rooms_it_names(make_room):
    done = make_room("low.cc", '#include "cairn/low/low.h"\n')
    assert done.returncode == 0, done.stdout


@pytest.mark.parametrize("name", ["low.cc", "low.h"])
@pytest.mark.parametrize("include", ['#include "cairn/high/high.h"',
                                     "#  include <cairn/high/high.h>"])
def test_a_room_may_not_include_a_room_above_it(make_room, name, include):
    done = make_room(name, f"{include}\n")
    assert done.returncode != 0
    assert "room 'low' may not include room 'high' (it may include: low)" in done.stdout
