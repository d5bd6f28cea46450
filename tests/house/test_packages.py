# SPDX-License-Identifier: Apache-2.0
"""tools/install_packages.sh says what is wrong where it can not do its work."""

import subprocess

import pytest


@pytest.fixture
def install(source, tmp_path):
    """Runs the script where only the commands given exist, each a small script."""

    def run(*sets, **commands):
        for name in "bash", "cat", "dirname", "env", "grep", "ls", "sed", "sort", "xargs", "echo":
            (tmp_path / name).symlink_to(f"/usr/bin/{name}")
        for name, text in commands.items():
            path = tmp_path / name.replace("_", "-")
            path.write_text("#!/bin/bash\n" + text)
            path.chmod(0o755)
        environment = {"PATH": str(tmp_path), "LOG": str(tmp_path / "log")}
        return subprocess.run([source / "tools/install_packages.sh", *sets], env=environment,
                              capture_output=True, text=True)

    return run


def test_does_nothing_when_all_is_there(install):
    done = install("build", "test", dpkg_query="echo -n installed", apt_get="exit 1", id="exit 1")
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")


def test_needs_root_or_sudo(install):
    done = install("test", dpkg_query="exit 1", apt_get="exit 1", id="echo 1000")
    assert done.returncode == 1
    assert "neither root nor sudo; ask somebody to run: apt-get install clang" in done.stderr


def test_needs_debian(install):
    done = install("build")
    assert done.returncode == 1
    assert "this is not Debian; install what corresponds to: cmake" in done.stderr


def test_knows_its_sets(install):
    done = install("nonsense")
    assert done.returncode == 1
    assert "no set 'nonsense'; there are: bench build clang test" in done.stderr


# Each writes its verb to $LOG; the second fails its first install.
APT = 'echo "$4" >>"$LOG"\n'
APT_WITH_OLD_LISTS = APT + '[ "$(cat "$LOG")" != install ]\n'


def test_leaves_the_lists_alone_when_they_have_everything(install, tmp_path):
    done = install("bench", dpkg_query="exit 1", apt_get=APT, id="echo 1000", sudo='exec "$@"',
                   apt_cache="exit 0")
    assert done.returncode == 0, done.stderr
    assert (tmp_path / "log").read_text().split() == ["install"]


def test_updates_the_lists_when_they_lack_a_package(install, tmp_path):
    done = install("bench", dpkg_query="exit 1", apt_get=APT, id="echo 0", apt_cache="exit 100")
    assert done.returncode == 0, done.stderr
    assert (tmp_path / "log").read_text().split() == ["update", "install"]


def test_tries_again_with_new_lists_when_the_old_ones_name_what_is_gone(install, tmp_path):
    done = install("bench", dpkg_query="exit 1", apt_get=APT_WITH_OLD_LISTS, id="echo 0",
                   apt_cache="exit 0")
    assert done.returncode == 0, done.stderr
    assert (tmp_path / "log").read_text().split() == ["install", "update", "install"]


def test_says_what_it_could_not_install(install):
    done = install("bench", dpkg_query="exit 1", apt_get="exit 1", id="echo 0", apt_cache="exit 0")
    assert done.returncode == 1
    assert "could not fetch the lists of packages" in done.stderr
