#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Saves and loads from Python beside those of other systems, in one run.

    bench/peers.py PACKAGE [--quick]

PACKAGE is the folder that holds the package `cairn`. Rounds go through all systems in turn; each
number is a ratio of medians: how many times as long as the limit, and as the fastest other system.
Limits are a direct write of the same bytes, a copy into new memory, and a copy into memory that is
there. All saves end in syncfs(); all loads read what the page cache has. --quick takes fewer bytes
and rounds, to see that it works; its numbers mean nothing.
"""

import concurrent.futures
import ctypes
import logging
import mmap
import os
import shutil
import statistics
import sys
import tempfile
import time
from pathlib import Path

DEVICES = 8
os.environ.setdefault("JAX_PLATFORMS", "cpu")
os.environ["XLA_FLAGS"] = f"--xla_force_host_platform_device_count={DEVICES}"
sys.path.insert(0, sys.argv[1])

import cairn  # noqa: E402
import jax  # noqa: E402
import numpy as np  # noqa: E402
import optax  # noqa: E402
import orbax.checkpoint as ocp  # noqa: E402
import safetensors.numpy as st  # noqa: E402
from cairn.serialization import AsyncCheckpointManager  # noqa: E402
from jax.sharding import Mesh, NamedSharding, PartitionSpec  # noqa: E402

WRITE = 8 << 20


class Tree:
    """What is saved: of NumPy, of JAX on several devices, and flat for safetensors."""

    def __init__(self, tree):
        self.numpy = jax.tree.map(np.asarray, tree)
        mesh = Mesh(np.array(jax.devices()), ("x",))
        self.jax = jax.tree.map(lambda leaf: jax.device_put(leaf, NamedSharding(mesh, PartitionSpec(
            *["x"] * (leaf.ndim > 0 and leaf.shape[0] % DEVICES == 0)))), self.numpy)
        self.leaves = jax.tree.leaves(self.numpy)
        self.shardings = [leaf.sharding for leaf in jax.tree.leaves(self.jax)]
        self.flat = {str(n): leaf for n, leaf in enumerate(self.leaves)}
        self.bytes = sum(leaf.nbytes for leaf in self.leaves)


def weights(*shape):
    return np.random.default_rng(len(shape)).standard_normal(shape, np.float32) * np.float32(0.02)


def large(count):
    return Tree({f"w{n}": weights(4096, 4096) for n in range(count)})


def small(count):
    return Tree({f"layer{n}": {f"p{m}": weights(8, 8) for m in range(20)}
                 for n in range(count // 20)})


def state(layers):
    params = {f"layer{n}": {"attention": {name: weights(256, 256) for name in "qkvo"},
                            "up": {"kernel": weights(256, 1024), "bias": weights(1024)},
                            "down": {"kernel": weights(1024, 256), "bias": weights(256)},
                            "norm": {"scale": weights(256)}} for n in range(layers)}
    return Tree({"params": params, "opt": optax.adamw(1e-3).init(params), "step": np.int32(7)})


class Limits:
    """What the machine can do with as many bytes."""

    def __init__(self, size):
        self._from = mmap.mmap(-1, -(-size // mmap.PAGESIZE) * mmap.PAGESIZE)
        self._from.write(b"\1" * len(self._from))
        self._bytes = np.frombuffer(self._from, np.uint8)
        self._to = self._bytes.copy()

    def write(self, path):
        file = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_DIRECT, 0o600)
        os.posix_fallocate(file, 0, len(self._from))
        bytes_ = memoryview(self._from)
        with concurrent.futures.ThreadPoolExecutor(4) as pool:
            list(pool.map(lambda at: os.pwrite(file, bytes_[at:at + WRITE], at),
                          range(0, len(self._from), WRITE)))
        os.fdatasync(file)
        os.close(file)

    def copy_anew(self, path):
        return self._bytes.copy()

    def copy(self, path):
        np.copyto(self._to, self._bytes)


def save_each(tree, path):
    os.mkdir(path)
    for name, leaf in tree.flat.items():
        np.save(f"{path}/{name}.npy", leaf)


def put_all(tree, path):
    read = st.load_file(path)
    return jax.device_put([read[name] for name in tree.flat], tree.shardings)


class Bench:
    """The works on one tree: by what is compared, then by system; the limit comes first."""

    def __init__(self, tree, folder, many_files):
        self._tree, self._folder, self._count = tree, Path(folder), 0
        self._limits = Limits(tree.bytes)
        self._orbax = None if many_files else ocp.StandardCheckpointer()
        self._manager = AsyncCheckpointManager()

    def _orbax_save(self, tree, path):
        self._orbax.save(path, tree)
        self._orbax.wait_until_finished()

    def _managed_save(self, tree, path):
        self._manager.save_pytree(tree, path, prefix="model")
        self._manager.wait_until_finished()

    def saves(self):
        tree = self._tree
        both = {"limit": self._limits.write, "cairn": lambda path: cairn.save(tree.numpy, path),
                "cairn, one file": lambda path: cairn.save(tree.numpy, f"{path}.safetensors"),
                "safetensors": lambda path: st.save_file(tree.flat, path)}
        spread = {"limit": self._limits.write, "cairn": lambda path: cairn.save(tree.jax, path),
                  "cairn manager": lambda path: self._managed_save(tree.jax, path)}
        stall = {"limit": self._limits.copy,
                 "cairn": lambda path: cairn.save_async(tree.numpy, path)}
        lent = {"limit": self._limits.copy, "cairn": lambda path: cairn.save_async(tree.jax, path)}
        if self._orbax is not None:
            both["np.save"] = lambda path: save_each(tree, path)
            both["orbax"] = lambda path: self._orbax_save(tree.numpy, path)
            spread["orbax"] = lambda path: self._orbax_save(tree.jax, path)
            lent["orbax"] = lambda path: self._orbax.save(path, tree.jax)
        return {"save": both, f"save, {DEVICES} devices": spread, "stall": stall,
                f"stall, {DEVICES} devices": lent}

    def loads(self):
        tree, at = self._tree, self._folder / "kept"
        at.mkdir()
        cairn.save(tree.numpy, at / "c")
        cairn.save(tree.jax, at / "j")
        self._managed_save(tree.jax, at / "m")
        st.save_file(tree.flat, at / "s")
        plain = {"limit": self._limits.copy_anew, "cairn": lambda path: cairn.load(at / "c"),
                 "safetensors": lambda path: st.load_file(at / "s")}
        spread = {"limit": self._limits.copy_anew,
                  "cairn": lambda path: cairn.load(at / "j", template=tree.jax),
                  "cairn manager": lambda path: self._manager.load_pytree(
                      at / "m", None, prefix="model", template=tree.jax)[0],
                  "safetensors": lambda path: put_all(tree, at / "s")}
        if self._orbax is not None:
            self._orbax_save(tree.jax, at / "o")
            outline = jax.tree.map(ocp.utils.to_shape_dtype_struct, tree.jax)
            spread["orbax"] = lambda path: self._orbax.restore(at / "o", outline)
        return {"load": plain, f"load, {DEVICES} devices": spread}

    def report(self, rounds):
        for what, works in (self.saves() | self.loads()).items():
            times = {system: [] for system in works}
            for number in range(rounds + 1):  # the first one fills caches
                for system, work in works.items():
                    spent = self._timed(work, durable=what.startswith("save"))
                    if number > 0:
                        times[system].append(spent)
            _show(what, {system: statistics.median(all_) for system, all_ in times.items()})

    def _timed(self, work, durable):
        self._count += 1
        path = self._folder / str(self._count)
        began = time.perf_counter()
        made = work(path)
        if durable:
            self._sync()
        else:
            jax.block_until_ready([leaf for leaf in jax.tree.leaves(made)
                                   if isinstance(leaf, jax.Array)])
        spent = time.perf_counter() - began
        self._clean(made)
        return spent

    def _clean(self, made):
        if isinstance(made, cairn.SaveHandle):
            made.wait()
        if self._orbax is not None:
            self._orbax.wait_until_finished()
        for left in self._folder.iterdir():
            if left.name != "kept":
                shutil.rmtree(left) if left.is_dir() else left.unlink()
        self._sync()

    def _sync(self):
        folder = os.open(self._folder, os.O_RDONLY)
        ctypes.CDLL(None).syncfs(folder)
        os.close(folder)


def _show(what, medians):
    limit = medians.pop("limit")
    others = {name: spent for name, spent in medians.items() if not name.startswith("cairn")}
    best = min(others, key=others.get, default=None)
    for name in [name for name in medians if name.startswith("cairn")]:
        beside = "" if best is None else f"  {medians[name] / others[best]:6.2f} of {best}"
        print(f"  {what:<17} {name:<15} {medians[name] * 1e3:8.1f} ms"
              f"  {medians[name] / limit:7.2f} of the limit{beside}", flush=True)


def main():
    quick = "--quick" in sys.argv[2:]
    logging.disable(logging.WARNING)
    trees = {"large arrays": large(1 if quick else 8),
             "a state of optax": state(1 if quick else 12),
             "small leaves": small(200 if quick else 4000)}
    for name, tree in trees.items():
        print(f"\n{name}: {len(tree.leaves)} leaves, {tree.bytes / 1e6:.0f} MB; times as long as")
        with tempfile.TemporaryDirectory() as folder:
            Bench(tree, folder, many_files=len(tree.leaves) > 1000).report(1 if quick else 3)
    return 0


if __name__ == "__main__":
    sys.exit(main())
