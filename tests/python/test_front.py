# SPDX-License-Identifier: Apache-2.0
"""The plain verbs: what they take, what they say, what survives."""

import errno
import fcntl
import inspect
import json
import os
import pickle
import shutil
import struct
import subprocess
import sys
import threading
import time

import cairn
import ml_dtypes
import numpy as np
import pytest


def test_several_trees_in_one_checkpoint(tmp_path):
    cairn.save({"w": np.ones(2)}, tmp_path / "c", prefix="model")
    cairn.save({"w": np.zeros(2)}, tmp_path / "c", prefix="optimizer")
    with pytest.raises(ValueError, match="model.*optimizer"):
        cairn.load(tmp_path / "c")
    assert cairn.load(tmp_path / "c", prefix="model")["w"].sum() == 2
    opened = cairn.open(tmp_path / "c")
    assert opened["optimizer.w"][1] == 0
    with pytest.raises(ValueError, match="several trees"):
        opened["w"]
    with pytest.raises(FileNotFoundError) as caught:
        cairn.load(tmp_path / "c", prefix="other")
    assert isinstance(caught.value, ValueError) and caught.value.reason == "load/prefix-missing"


def test_keys_choose_what_is_read(tmp_path):
    cairn.save({"a": {"b.c": np.ones(2), "d": np.ones(3)}, "e": np.ones(4)}, tmp_path / "c")
    assert set(cairn.load(tmp_path / "c", keys=["a"])["a"]) == {"b.c", "d"}
    assert list(cairn.load(tmp_path / "c", keys=[("a", "b.c")])["a"]) == ["b.c"]
    with pytest.raises(KeyError) as caught:
        cairn.load(tmp_path / "c", keys=["a.x"])
    assert caught.value.reason == "load/key-missing"


def test_what_was_saved_beside_the_tree(tmp_path):
    for layout, path in (("zarr2", tmp_path / "c"), ("safetensors", tmp_path / "s.safetensors")):
        cairn.save({"w": np.ones(2)}, path, layout=layout, step=3, metadata={"a": [1, None]})
        about = cairn.open(path).about()
        assert (about["step"], about["metadata"], about["extras"]) == (3, {"a": [1, None]}, {})
        assert about["ranks"] == 1 and about["writer"].startswith("cairn ") and about["time"]
    for n, prefix in enumerate(("model", "optimizer")):
        cairn.save({"w": np.ones(2)}, tmp_path / "two", prefix=prefix, step=n, extras={"n": n})
    opened = cairn.open(tmp_path / "two")
    assert opened.about("model")["extras"] == {"n": 0} and opened.about("optimizer")["step"] == 1
    with pytest.raises(cairn.InvalidArgumentError, match="choose one of: model, optimizer"):
        opened.about()


def test_keys_that_name_nothing_are_refused(tmp_path):
    cairn.save({"w": np.ones(2)}, tmp_path / "c")
    with pytest.raises(cairn.InvalidArgumentError, match="names nothing"):
        cairn.load(tmp_path / "c", keys=[])


def test_numbers_of_other_libraries_are_metadata(tmp_path):
    numbers = {"loss": np.float32(0.5), "count": np.array(3), "good": np.True_}
    cairn.save({"w": np.ones(2)}, tmp_path / "c", metadata=numbers, extras=numbers)
    about = cairn.open(tmp_path / "c").about()
    assert about["metadata"] == about["extras"] == {"loss": 0.5, "count": 3, "good": True}
    with pytest.raises(TypeError, match="ndarray is not JSON serializable"):
        cairn.save({"w": np.ones(2)}, tmp_path / "c", metadata={"all": np.ones(2)})


def test_long_integers_stay_what_they_are(tmp_path):
    numbers = {"seed": 2 ** 128 + 1, "least": -(2 ** 63) - 1, "most": 2 ** 64 - 1}
    cairn.save({"w": np.ones(2)}, tmp_path / "c", metadata=numbers, extras=numbers)
    about = cairn.open(tmp_path / "c").about()
    assert about["metadata"] == about["extras"] == numbers
    with pytest.raises(cairn.InvalidArgumentError, match="too large"):
        cairn.save({"w": np.ones(2)}, tmp_path / "d", extras={"n": 10 ** 400})


def test_keys_leave_the_rest_of_a_template_alone(tmp_path):
    cairn.save({"params": {"w": np.ones(2)}, "opt": [np.ones(3), np.ones(1)], "step": 7},
               tmp_path / "c")
    fresh = {"params": {"w": np.zeros(2)}, "opt": [np.zeros(5)], "step": 0}
    found = cairn.load(tmp_path / "c", template=fresh, keys="params")
    assert found["params"]["w"].tolist() == [1, 1] and found["step"] == 0
    assert found["opt"][0].tolist() == [0] * 5
    cairn.load(tmp_path / "c", out=fresh, keys=["params", "step"])
    assert fresh["params"]["w"].tolist() == [1, 1] and fresh["opt"][0].tolist() == [0] * 5
    with pytest.raises(KeyError, match="the template has no leaf or subtree 'opt.1'"):
        cairn.load(tmp_path / "c", template=fresh, keys=["params", "opt.1"])


def test_a_directory_of_checkpoints_is_none(tmp_path):
    for step in (1, 2):
        cairn.save({"w": np.full(2, step)}, tmp_path / "runs" / f"run-{step}")
    array = tmp_path / "runs" / "run-1" / "w"
    shutil.copytree(array, tmp_path / "torn" / "run-1" / ".cairn-0123" / "new" / "w")
    for base, named in (("runs", r"\(run-2\)"), ("torn", "no checkpoint here")):
        for verb in (cairn.load, cairn.open, cairn.verify):
            with pytest.raises(cairn.MismatchError, match=named) as caught:
                verb(tmp_path / base)
            assert caught.value.reason == "checkpoint/not-a-checkpoint"
    shutil.copytree(array, tmp_path / "runs" / "loose" / "w")
    assert list(cairn.load(tmp_path / "runs")) == ["loose"]


def test_a_file_that_may_not_be_so_large_is_an_error_of_the_system(tmp_path):
    program = ("import cairn, numpy, resource, sys\n"
               "resource.setrlimit(resource.RLIMIT_FSIZE, (100_000, 100_000))\n"
               "try:\n"
               "    cairn.save({'w': numpy.ones(50_000)}, sys.argv[1])\n"
               "except OSError as error:\n"
               "    print(error.errno, error.reason)\n")
    done = subprocess.run([sys.executable, "-c", program, tmp_path / "c"], text=True,
                          capture_output=True)
    assert done.stdout == f"{errno.EFBIG} fs/file-too-large\n", done
    assert not (tmp_path / "c").exists() or not list((tmp_path / "c").glob(".cairn-[0-9a-f]*"))


@pytest.mark.parametrize("dtype", ["int4", "bfloat16", "float8_e5m2", "bool", "complex64"])
def test_bytes_are_those_of_numpy_and_of_the_command(tmp_path, dtype):
    array = np.zeros((3, 5), np.dtype(getattr(ml_dtypes, dtype, dtype)))
    cairn.save({"w": array}, tmp_path / "c")
    leaf = cairn.open(tmp_path / "c")["w"]
    done = subprocess.run([sys.executable, "-m", "cairn", "show", "--json", tmp_path / "c"],
                          capture_output=True, check=True)
    assert leaf.nbytes == array.nbytes == json.loads(done.stdout)["totals"]["bytes"]


def test_slices_read_what_numpy_would_give(tmp_path):
    rng = np.random.default_rng(5)
    array = rng.integers(0, 1000, (7, 1, 9, 4))
    cairn.save({"w": array}, tmp_path / "c", chunk_bytes=64)
    leaf = cairn.open(tmp_path / "c")["w"]
    assert (leaf.shape, leaf.dtype, leaf.nbytes) == (array.shape, array.dtype, array.nbytes)

    def one(size):
        kind = rng.integers(0, 4)
        if kind == 0:
            return int(rng.integers(-size, size))
        if kind == 1:
            return slice(None)
        start, stop = (int(rng.integers(-size - 2, size + 3)) for _ in range(2))
        return slice(start, stop, int(rng.choice([-3, -2, -1, 1, 2, 5])))

    for _ in range(300):
        count = rng.integers(0, 5)
        index = tuple(one(size) for size in array.shape[:count])
        if rng.integers(0, 3) == 0:
            index = (Ellipsis, *(one(size) for size in array.shape[4 - count:]))
        if rng.integers(0, 3) == 0:
            at = rng.integers(0, len(index) + 1)
            index = (*index[:at], None, *index[at:])
        read, expected = leaf[index], array[index]
        np.testing.assert_array_equal(read, expected, err_msg=str(index))
        assert type(read) is type(expected), index
    np.testing.assert_array_equal(np.asarray(leaf), array)
    assert len(leaf) == 7 and [row.shape for row in leaf] == [(1, 9, 4)] * 7
    wrong = (7, (0, 0, 0, 0, 0), -8, "x", True, np.True_, [0, 1], np.array([0, 1]), (..., ...),
             (slice(None), [0]), np.ones(7, bool), 1.5)
    for index in wrong:
        with pytest.raises(IndexError):
            leaf[index]


def test_a_leaf_without_dimensions_is_an_array_too(tmp_path):
    cairn.save({"z": np.float32(3)}, tmp_path / "c")
    leaf = cairn.open(tmp_path / "c")["z"]
    assert np.asarray(leaf).shape == () and np.asarray(leaf, np.float64) == 3 and leaf[()] == 3
    with pytest.raises(TypeError):
        list(leaf)


def test_leaves_are_found_by_text_and_by_parts(tmp_path):
    cairn.save({"a": {"b.c": np.ones(2)}, "n": 3}, tmp_path / "c")
    opened = cairn.open(tmp_path / "c")
    assert ("a", "b.c") in opened and opened.leaves[0].key in opened and "a" not in opened
    with pytest.raises(KeyError, match="subtree"):
        opened["a"]
    with pytest.raises(KeyError, match="value"):
        opened["n"]
    with pytest.raises(TypeError, match="key path"):
        opened[None]


def test_one_key_needs_no_list(tmp_path):
    cairn.save({"ab": np.ones(2), "a": np.ones(3), "b": np.ones(4)}, tmp_path / "c")
    assert list(cairn.load(tmp_path / "c", keys="ab")) == ["ab"]
    with pytest.raises(TypeError, match="bytes"):
        cairn.load(tmp_path / "c", keys=[b"ab"])


def test_paths_of_all_kinds(tmp_path, monkeypatch):
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.chdir(tmp_path)
    names = ["~/home", b"bytes", "with a\nnew line and \u00e9", tmp_path / "path"]
    for number, name in enumerate(names):
        cairn.save({"n": number}, name)
    assert sorted(os.listdir(tmp_path)) == ["bytes", "home", "path", names[2]]
    assert [cairn.load(name)["n"] for name in names] == [0, 1, 2, 3]
    for wrong in ("no\udcffutf8", "with a\0nul"):
        with pytest.raises(cairn.InvalidArgumentError, match="UTF-8|a NUL byte"):
            cairn.save({"n": 1}, wrong)


def test_a_relative_path_stays_where_it_was(tmp_path, monkeypatch):
    (tmp_path / "elsewhere").mkdir()
    monkeypatch.chdir(tmp_path)
    changed = threading.Event()
    saving = cairn.save_async({"w": np.arange(9)}, "c", progress=lambda *_: changed.wait())
    monkeypatch.chdir(tmp_path / "elsewhere")
    changed.set()
    saving.wait()
    opened = cairn.open(tmp_path / "c")
    assert opened["w"][8] == 8 and not os.listdir(".")
    monkeypatch.chdir(tmp_path)
    opened = cairn.open("c")
    monkeypatch.chdir(tmp_path / "elsewhere")
    assert opened["w"][7] == 7


def test_a_path_that_is_none_hinders_no_other(tmp_path):
    done = run("import cairn, sys\n"
               "for _ in range(2):\n"
               "    try:\n"
               "        cairn.save({}, '')\n"
               "    except ValueError as error:\n"
               "        print(error.reason)\n"
               "print(cairn.save({'n': 1}, sys.argv[1])['arrays'])", tmp_path / "c")
    assert (done.stdout.split(), done.stderr) == (["uri/empty", "uri/empty", "0"], "")


def test_tools_see_what_save_takes():
    takes = inspect.signature(cairn.save)
    assert takes.parameters == inspect.signature(cairn.save_async).parameters
    with pytest.raises(TypeError, match="float"):
        cairn.save({}, "c", step=1.5)


def test_a_handle_says_what_it_is(tmp_path):
    saving = cairn.save_async({"n": 1}, tmp_path / "c")
    saving.wait()
    assert repr(saving) == f"<save to {tmp_path / 'c'}: done>"


def test_damage_is_named(tmp_path):
    cairn.save({"params": {"w": np.arange(1000.0)}}, tmp_path / "c")
    chunk = tmp_path / "c" / "params" / "w" / "0"
    bytes_ = bytearray(chunk.read_bytes())
    bytes_[100] ^= 1
    chunk.write_bytes(bytes_)
    with pytest.raises(cairn.CorruptError) as caught:
        cairn.load(tmp_path / "c")
    assert caught.value.code == "corrupt" and caught.value.reason == "load/checksum"
    assert "params.w" in str(caught.value)
    again = pickle.loads(pickle.dumps(caught.value))
    assert (type(again), again.reason, str(again)) == (
        type(caught.value), caught.value.reason, str(caught.value))
    damage, = cairn.verify(tmp_path / "c")["damages"]
    assert (damage["key"], damage["chunk"]) == ("params.w", "0")


def test_diff_and_ls(tmp_path):
    cairn.save({"w": np.arange(4.0)}, tmp_path / "a", step=1)
    cairn.save({"w": np.array([0, 1, 2.5, 3])}, tmp_path / "b", step=2, layout="safetensors")
    assert cairn.diff(tmp_path / "a", tmp_path / "a")["differences"] == []
    found, = cairn.diff(tmp_path / "a", cairn.open(tmp_path / "b"))["differences"]
    assert (found["key"], found["different"], found["max_absolute"]) == ("w", 1, 0.5)
    assert [entry["step"] for entry in cairn.ls(tmp_path)] == [2, 1]
    with pytest.raises(FileNotFoundError):
        cairn.ls(tmp_path / "nothing")


def test_progress_is_told_and_drawn(tmp_path, capfd):
    told = []
    cairn.save({"w": np.ones(1000)}, tmp_path / "c",
               progress=lambda done, total: told.append((done, total)))
    assert told[0] == (0, 8000) and told[-1] == (8000, 8000)
    cairn.load(tmp_path / "c", progress=True)
    assert "loading ########################" in capfd.readouterr().err


def test_what_a_progress_function_raises_harms_nothing(tmp_path, monkeypatch):
    seen = []
    monkeypatch.setattr(sys, "unraisablehook", lambda raised: seen.append(raised.exc_type))
    cairn.save({"w": np.ones(10)}, tmp_path / "c", progress=lambda done, total: 1 / 0)
    assert set(seen) == {ZeroDivisionError}
    assert cairn.load(tmp_path / "c")["w"].sum() == 10


def test_what_changes_after_the_call_is_not_saved(tmp_path):
    arrays = {str(n): np.full(100_000, n, np.int64) for n in range(20)}
    handle = cairn.save_async(arrays, tmp_path / "c")
    for array in arrays.values():
        array[:] = -1
    arrays.clear()
    handle.wait()
    assert handle.done() and handle.phase == "done" and handle.progress[0] == handle.progress[1]
    loaded = cairn.load(tmp_path / "c")
    for n in range(20):
        assert (loaded[str(n)] == n).all()


def test_a_load_waits_for_the_save_of_its_path(tmp_path):
    for n in range(10):
        cairn.save_async({"n": n, "w": np.full(50_000, n)}, tmp_path / "c")
        assert cairn.load(tmp_path / "c")["n"] == n


def test_metadata_must_be_json(tmp_path):
    cairn.save({"a": 1}, tmp_path / "c", metadata={"note": "\u00e9"}, extras={"list": [1, None]})
    assert json.loads((tmp_path / "c" / "cairn.json").read_text())
    with pytest.raises(ValueError):
        cairn.save({"a": 1}, tmp_path / "d", metadata={"loss": float("nan")})


def run(program, *args, options=()):
    return subprocess.run([sys.executable, *options, "-c", program, *map(str, args)], text=True,
                          capture_output=True, timeout=120)


def test_the_end_of_the_program_waits_for_saves(tmp_path):
    done = run("import cairn, numpy, sys\n"
               "cairn.save_async({'w': numpy.ones(5_000_000)}, sys.argv[1])", tmp_path / "c")
    assert (done.returncode, done.stderr) == (0, "")
    assert cairn.load(tmp_path / "c")["w"].sum() == 5_000_000


def test_an_interrupt_ends_the_waiting_and_not_the_save(tmp_path):
    done = run("import cairn, numpy, os, signal, sys, threading\n"
               "copied = threading.Event()\n"
               "def interrupt(done, total):\n"
               "    if done == total:\n"
               "        copied.wait()\n"
               "        os.kill(os.getpid(), signal.SIGINT)\n"
               "try:\n"
               "    saving = cairn.save_async({'w': numpy.ones(5_000_000)}, sys.argv[1],\n"
               "                              progress=interrupt)\n"
               "    copied.set()\n"
               "    saving.wait()\n"
               "    signal.pause()\n"
               "except KeyboardInterrupt:\n"
               "    print('interrupted')", tmp_path / "c")
    assert (done.returncode, done.stdout, done.stderr) == (0, "interrupted\n", "")
    assert cairn.load(tmp_path / "c")["w"].sum() == 5_000_000


def test_a_forked_child_saves_too(tmp_path):
    done = run("import cairn, numpy, os, sys, warnings\n"
               "big = [numpy.ones(1 << 18)] * 8  # threads help with it\n"
               "cairn.save({'w': big}, sys.argv[1])\n"
               "warnings.simplefilter('ignore')  # Python 3.12 warns of any fork with threads\n"
               "child = os.fork()\n"
               "if child == 0:\n"
               "    cairn.save({'w': big[:7]}, sys.argv[1], overwrite=True)\n"
               "    os._exit(0)\n"
               "sys.exit(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]))", tmp_path / "c")
    assert (done.returncode, done.stderr) == (0, "")
    assert len(cairn.load(tmp_path / "c")["w"]) == 7


def test_a_forked_child_is_told_that_its_parents_saves_are_not_its_own(tmp_path):
    done = run("import cairn, fcntl, logging, numpy, os, struct, sys, warnings\n"
               "from cairn.serialization import AsyncCheckpointManager, Checkpointer\n"
               "warnings.simplefilter('ignore')\n"
               "logging.disable()\n"
               "tree, base = {'w': numpy.ones(9)}, sys.argv[1]\n"
               "manager, run = AsyncCheckpointManager(), Checkpointer(base + '/run', None, [])\n"
               "def hold(path):\n"
               "    cairn.save(tree, path)\n"
               "    lock = os.open(path + '/.cairn-lock', os.O_RDWR)\n"
               "    whole_file = struct.pack('hhqqi4x', fcntl.F_WRLCK, os.SEEK_SET, 0, 0, 0)\n"
               "    fcntl.fcntl(lock, 37, whole_file)  # F_OFD_SETLK: as another writer would\n"
               "    return lock\n"
               "locks = hold(base + '/run/run-1'), hold(base + '/c')\n"
               "manager.save_tree(tree, base + '/c')\n"
               "handle, = manager.saves_in_flight()\n"
               "run.on_step(None, tree, True, step=1)\n"
               "child = os.fork()\n"
               "if child == 0:\n"
               "    waits = handle.wait, manager.wait_until_finished, run.wait_until_finished\n"
               "    for each in waits:\n"
               "        try:\n"
               "            each()\n"
               "        except cairn.Error as error:\n"
               "            print(error.reason, flush=True)\n"
               "    manager.save_tree(tree, base + '/new')\n"
               "    manager.wait_until_finished()\n"
               "    del handle, manager, run\n"
               "    os._exit(0)\n"
               "status = os.waitpid(child, 0)[1]\n"
               "for lock in locks:\n"
               "    os.close(lock)\n"
               "handle.wait()\n"
               "run.wait_until_finished()\n"
               "sys.exit(os.waitstatus_to_exitcode(status))", tmp_path)
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout.split() == ["save/parent-process"] * 3
    assert cairn.load(tmp_path / "new")["w"].sum() == 9


def test_daemon_threads_harm_no_end_of_a_program(tmp_path):
    done = run("import cairn, numpy, sys, threading\n"
               "saved = threading.Event()\n"
               "def save(number):\n"
               "    try:\n"
               "        while True:\n"
               "            cairn.save({'w': numpy.ones(9)}, f'{sys.argv[1]}/{number}')\n"
               "            cairn.load(f'{sys.argv[1]}/{number}')\n"
               "            saved.set()\n"
               "    except cairn.CancelledError as error:\n"
               "        assert error.reason == 'python/exiting'\n"
               "for number in range(4):\n"
               "    threading.Thread(target=save, args=[number], daemon=True).start()\n"
               "saved.wait()", tmp_path)
    assert (done.returncode, done.stderr) == (0, "")


@pytest.mark.skipif(sys.version_info >= (3, 13), reason="the module has another name there")
def test_another_interpreter_cannot_import_it():
    done = run("import warnings; warnings.simplefilter('ignore')\n"
               "import _xxsubinterpreters as interpreters\n"
               "try:\n"
               "    interpreters.run_string(interpreters.create(),\n"
               "        'import warnings; warnings.simplefilter(\"ignore\"); import cairn')\n"
               "except Exception as error:\n"
               "    print(error)")
    assert "main interpreter" in done.stdout and (done.returncode, done.stderr) == (0, "")


def test_nothing_is_left_at_the_end(tmp_path):
    done = run("import cairn, cairn.serialization, numpy, sys\n"
               "class Ring: pass\n"
               "ring = Ring()\n"
               "ring.saving = cairn.save_async({'w': numpy.ones(9)}, sys.argv[1],\n"
               "                               progress=lambda *_: ring)\n"
               "ring.opened = cairn.open(sys.argv[1])\n"
               "ring.opened.ring = ring\n"
               "repr(ring.opened), cairn.verify(sys.argv[1]), cairn.load(sys.argv[1])\n"
               "run = cairn.serialization.Checkpointer(sys.argv[1] + '/run', None, [])\n"
               "run.ring = ring\n"
               "try:\n"
               "    cairn.load(sys.argv[1] + '/none')\n"
               "except cairn.Error as error:\n"
               "    ring.error = error", tmp_path, options=["-X", "dev", "-W", "error"])
    assert (done.returncode, done.stderr) == (0, "")


def test_importing_it_imports_nothing_large():
    done = run("import sys, cairn\n"
               "print({'jax', 'torch', 'mpi4py', 'ml_dtypes'} & set(sys.modules))")
    assert done.stdout.strip() == "set()", done


def test_a_thread_goes_on_while_a_save_is_held_in_the_store(tmp_path):
    cairn.save({"w": np.zeros(3)}, tmp_path / "c")
    lock = os.open(tmp_path / "c/.cairn-lock", os.O_RDWR)
    whole_file = struct.pack("hhqqi4x", fcntl.F_WRLCK, os.SEEK_SET, 0, 0, 0)
    fcntl.fcntl(lock, 37, whole_file)  # F_OFD_SETLK: as another writer would
    main, end = threading.main_thread().ident, time.monotonic() + 60
    seen = []

    def count():
        while sys._current_frames()[main].f_code.co_name != "save" and time.monotonic() < end:
            pass
        seen.extend(n for n in range(200_000))
        os.close(lock)

    thread = threading.Thread(target=count)
    thread.start()
    cairn.save({"w": np.ones(3)}, tmp_path / "c")
    thread.join()
    assert len(seen) == 200_000
    assert cairn.load(tmp_path / "c")["w"].all()


def test_saves_with_steps_are_a_run(tmp_path, caplog):
    for step in (900, 1000):
        cairn.save({"w": np.full(3, step)}, tmp_path / str(step), step=step)
    assert [entry["step"] for entry in cairn.ls(tmp_path)] == [1000, 900]
    from cairn.serialization import Checkpointer
    run = Checkpointer(tmp_path, None, [])
    tree, about = run.load_checkpoint_if_any(None)
    assert tree["w"][0] == 1000 and about["step"] == 1000
    assert "discovery" not in caplog.text


def test_saves_without_a_step_are_named_when_nothing_is_resumed(tmp_path, caplog):
    cairn.save({"w": np.ones(3)}, tmp_path / "mine")
    from cairn.serialization import Checkpointer
    assert Checkpointer(tmp_path, None, []).load_checkpoint_if_any(None) is None
    assert "saved without a step: mine" in caplog.text


def test_a_place_elsewhere_is_no_directory_here(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    cairn.save({"w": np.ones(3)}, "ckpts/1", step=1)
    for ask in (cairn.ls, cairn.load, cairn.verify, lambda at: cairn.save({"w": 1}, at)):
        with pytest.raises(NotImplementedError, match="gs://"):
            ask("gs://bucket/ckpts")
    from cairn.serialization import Checkpointer
    with pytest.raises(NotImplementedError, match="gs://"):
        Checkpointer("gs://bucket/ckpts", None, []).save_checkpoint({"w": 1}, "run-1", step=1)
    assert [entry["name"] for entry in cairn.ls("ckpts")] == ["1"]
