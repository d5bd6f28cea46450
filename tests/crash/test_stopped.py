# SPDX-License-Identifier: Apache-2.0
"""A process is stopped before each of its file operations in turn. Meanwhile another one saves, or
somebody removes the directory; then it goes on."""

import itertools
import shutil

import pytest


def is_named(process, said):
    """Who is in the way, unless it was stopped when it had the lock and not yet said so."""
    return f"process {process.process.pid} " in said["message"] or "lock" in said["reason"]


def test_two_writers_of_one_prefix(start, quick):
    slow, other, reader = start(), start(), start()
    path = quick / "c"
    for n in itertools.count():
        mine, theirs = 2 * n + 1, 2 * n + 2
        done = slow.stop(do="save", path=path, prefix="m", number=mine, operation=n)
        is_born = any(path.glob(".cairn-" + "?" * 32))
        said = other.ask(do="save", path=path, prefix="m", number=theirs)
        if "saved" in said:
            assert reader.ask(do="load", path=path, prefix="m") == {"number": theirs}
        if done:
            assert (done, said) == ({"saved": mine}, {"saved": theirs})
            break
        done = slow.go_on()
        found = reader.ask(do="load", path=path, prefix="m")["number"]
        if "saved" not in done:
            assert done["reason"] == "commit/prefix-changed", (n, done)
            assert (said, found) == ({"saved": theirs}, theirs), n
        elif "saved" not in said:
            assert said["reason"] == "commit/lock-timeout", (n, said)
            assert is_named(slow, said), (n, said)
            assert found == mine, n
        else:
            assert not is_born, "both replaced what they had found"
            assert found in (mine, theirs), n
    assert n > 50


def test_two_writers_of_two_prefixes(start, quick):
    slow, other, reader = start(), start(), start()
    path = quick / "c"
    assert "saved" in other.ask(do="save", path=path, prefix="q", number=0)
    expected = 0
    for n in itertools.count():
        done = slow.stop(do="save", path=path, prefix="p", number=n, operation=n)
        said = other.ask(do="save", path=path, prefix="q", number=n + 1)
        if "saved" in said:
            expected = n + 1
        else:
            assert said["reason"] == "commit/lock-timeout", (n, said)
        assert reader.ask(do="load", path=path, prefix="q") == {"number": expected}, n
        if done:
            break
        assert slow.go_on() == {"saved": n}
        assert reader.ask(do="load", path=path, prefix="p") == {"number": n}
        assert reader.ask(do="load", path=path, prefix="q") == {"number": expected}, n
    assert n > 50


@pytest.mark.parametrize("take_over", [{}, {"take_over": True}], ids=["asks", "takes-over"])
def test_two_jobs_of_one_run(start, quick, take_over):
    reader = start()
    for n in itertools.count():
        slow, other, base = start(), start(), quick / f"run{n}"
        mine, theirs = 2, 4
        done = slow.stop(do="own", base=base, number=mine, operation=n)
        said = other.ask(do="own", base=base, number=theirs, **take_over)
        before = reader.ask(do="load", path=base / f"run-{mine // 2}")
        stopped = not done
        if stopped:
            done = slow.go_on()
        if "saved" in said and "saved" in done:
            assert before == {"number": mine}, "it saved after it had been taken over"
        elif "saved" in said:
            assert done["reason"] in ("run/taken-over", "run/owned"), (n, done)
            assert is_named(other, done), (n, done)
        else:
            assert said["reason"] in ("run/owned", "commit/lock-timeout"), (n, said)
            assert is_named(slow, said), (n, said)
            assert done == {"saved": mine}
        newest = theirs if "saved" in said else mine
        assert reader.ask(do="latest", base=base) == {"number": newest}, n
        slow.end()
        other.end()
        if not stopped:
            break
    assert n > 50


def test_a_directory_that_is_removed_while_a_save_writes(start, quick):
    slow, reader = start(), start()
    path = quick / "c"
    for n in itertools.count():
        done = slow.stop(do="save", path=path, prefix="m", number=n, operation=n)
        was_there = "number" in reader.ask(do="load", path=path, prefix="m")
        if path.exists():
            shutil.rmtree(path)
        if done:
            assert was_there
            break
        done = slow.go_on()
        if "saved" in done:
            # Either it was removed after the decision, or before there was anything to remove.
            found = reader.ask(do="load", path=path, prefix="m")
            assert was_there or found == {"number": n}, (n, done, found)
        else:
            assert str(path) in done["message"], done
            assert "no such file or directory" in done["message"] or "removed" in done["message"]
        shutil.rmtree(path, ignore_errors=True)
    assert n > 50
