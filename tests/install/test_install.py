# SPDX-License-Identifier: Apache-2.0
"""Somebody installs Cairn and builds a program of three files against it."""

import os
import re
import subprocess

import pytest

SAID = "1 array, 6 bytes, 2 leaves, checkpoint/not-found\n"


def run(*command, **environment):
    changed = os.environ | {name: str(value) for name, value in environment.items()}
    done = subprocess.run(list(map(str, command)), env=changed, text=True, capture_output=True)
    assert done.returncode == 0, f"{command}\n{done.stdout}\n{done.stderr}"
    return done.stdout


@pytest.fixture(scope="module")
def prefix(build, tmp_path_factory):
    """Where Cairn is installed: not where it was built, and not where it was first put."""
    first = tmp_path_factory.mktemp("first") / "cairn"
    run("cmake", "--install", build, "--prefix", first)
    return first.rename(tmp_path_factory.mktemp("moved") / "cairn")


@pytest.fixture(scope="module")
def consumer(source):
    return source / "tests/install/consumer"


def test_cmake_finds_it(prefix, consumer, tmp_path):
    run("cmake", "-S", consumer, "-B", tmp_path, "-G", "Ninja", f"-DCMAKE_PREFIX_PATH={prefix}")
    run("cmake", "--build", tmp_path)
    assert run(tmp_path / "consumer", tmp_path / "saved") == SAID


def test_cmake_refuses_another_minor_version(prefix, consumer, tmp_path):
    text = (consumer / "CMakeLists.txt").read_text()
    (tmp_path / "CMakeLists.txt").write_text(text.replace("cairn 0.1", "cairn 0.9"))
    done = subprocess.run(["cmake", "-S", tmp_path, "-B", tmp_path / "build", "-G", "Ninja",
                           f"-DCMAKE_PREFIX_PATH={prefix}"], text=True, capture_output=True)
    assert done.returncode != 0
    assert "cairnConfig.cmake, version: 0.1.0" in done.stderr


def test_pkg_config_finds_it(prefix, consumer, tmp_path):
    files = consumer / "main.cc", consumer / "other.cc"
    package = prefix / "lib/pkgconfig"
    flags = run("pkg-config", "--cflags", "--libs", "cairn", PKG_CONFIG_PATH=package).split()
    run("g++", "-std=c++20", "-o", tmp_path / "consumer", *files, *flags)
    where = {"LD_LIBRARY_PATH": prefix / "lib"}
    assert run(tmp_path / "consumer", tmp_path / "saved", **where) == SAID


@pytest.fixture
def mpi(prefix):
    if not (prefix / "lib/libcairn_mpi.so").exists():
        if os.environ.get("CI") == "true":
            pytest.fail("CI needs MPI")
        pytest.skip("built without MPI")
    return "MPI is not initialised; call MPI_Init_thread() first\n"


@pytest.fixture(scope="module")
def mpi_consumer(source):
    return source / "tests/install/mpi_consumer"


def test_cmake_finds_the_library_for_mpi(prefix, mpi, mpi_consumer, tmp_path):
    run("cmake", "-S", mpi_consumer, "-B", tmp_path, "-G", "Ninja", f"-DCMAKE_PREFIX_PATH={prefix}")
    run("cmake", "--build", tmp_path)
    assert run(tmp_path / "consumer") == mpi


def test_pkg_config_finds_the_library_for_mpi(prefix, mpi, mpi_consumer, tmp_path):
    package = prefix / "lib/pkgconfig"
    flags = run("pkg-config", "--cflags", "--libs", "cairn-mpi", PKG_CONFIG_PATH=package).split()
    run("g++", "-std=c++20", "-o", tmp_path / "consumer", mpi_consumer / "main.cc", *flags,
        f"-Wl,-rpath-link,{prefix}/lib")
    assert run(tmp_path / "consumer", LD_LIBRARY_PATH=prefix / "lib") == mpi


def test_cmake_says_when_there_is_no_library_for_mpi(prefix, mpi_consumer, tmp_path):
    config = prefix / "lib/cmake/cairn"
    bare = tmp_path / "cairn/lib/cmake/cairn"
    bare.mkdir(parents=True)
    for name in "cairnConfig.cmake", "cairnConfigVersion.cmake":
        (bare / name).write_text((config / name).read_text())
    (bare / "cairnTargets.cmake").write_text("add_library(cairn::cairn INTERFACE IMPORTED)\n")
    done = subprocess.run(["cmake", "-S", mpi_consumer, "-B", tmp_path / "build", "-G", "Ninja",
                           f"-DCMAKE_PREFIX_PATH={tmp_path}/cairn"], text=True, capture_output=True)
    assert done.returncode != 0
    assert "built without MPI" in done.stderr


def test_every_installed_header_needs_only_installed_headers(prefix, tmp_path):
    include = prefix / "include"
    headers = sorted(path.relative_to(include) for path in include.rglob("*.h"))
    assert headers
    program = tmp_path / "all.cc"
    program.write_text("".join(f'#include "{header}"\n' for header in headers))
    strict = "-std=c++20", "-Wall", "-Wextra", "-Werror", "-fsyntax-only"
    run("g++", *strict, f"-I{include}", program)


@pytest.mark.parametrize(("library", "name"), [("libcairn.so", "cairn::parse_json"),
                                               ("libcairn_mpi.so", "cairn::coord::open_mpi")])
def test_the_library_shows_only_its_own_names(prefix, request, library, name):
    if "mpi" in library:
        request.getfixturevalue("mpi")
    listing = run("nm", "--dynamic", "--defined-only", "--demangle", prefix / "lib" / library)
    names = [line.split(maxsplit=2)[2] for line in listing.splitlines()]
    ours = re.compile(r"((typeinfo|typeinfo name|vtable|VTT|guard variable) for |"
                      r"(non-)?virtual thunk to )?cairn::")
    assert [shown for shown in names if not ours.match(shown)] == []
    assert any(name in shown for shown in names)


def test_the_command_runs_where_it_was_put(prefix):
    run(prefix / "bin/cairn", "--version")


@pytest.mark.parametrize("place", ["bash-completion/completions/cairn", "zsh/site-functions/_cairn",
                                   "fish/vendor_completions.d/cairn.fish"])
def test_each_shell_finds_its_completion(prefix, place):
    assert "cairn" in (prefix / "share" / place).read_text()


def test_the_soname_has_the_minor_version(prefix):
    assert "libcairn.so.0.1]" in run("readelf", "--dynamic", prefix / "lib/libcairn.so")
