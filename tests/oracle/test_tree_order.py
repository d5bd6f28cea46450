# SPDX-License-Identifier: Apache-2.0
"""The order of leaves and their key paths, on random trees, against JAX."""

import collections
import json
import os
import pathlib
import random
import subprocess

import jax.tree_util as jtu

ROOT = pathlib.Path(__file__).resolve().parents[2]
PROBE = pathlib.Path(os.environ.get("CAIRN_BIN", ROOT / "build/dev/bin")) / "cairn_tree_probe"
TREES = 2000

TEXTS = ["", ".", "a.b", "a/b", "%", " ", "0", "10", "2", "-1", "A", "Z", "_", "a", "b", "kernel",
         "\x00", "\n", "\x7f", "\x80", "\xe9", "e\u0301", "\ufffd", "\uffff", "\U00010000",
         "\U0001f600", '"', "\\"]  # fmt: skip
NUMBERS = [-(2**63), -10, -1, 0, 1, 2, 9, 10, 2**63 - 1]
FIELDS = [collections.namedtuple("Moments", "nu mu count"), collections.namedtuple("One", "z")]


def grow(rng, depth=0):
    """A tree for JAX, and the same as the probe reads it."""
    kind = rng.choice(["dict"] * 3 + ["list", "tuple", "fields", "none", "leaf"])
    if kind in ("none", "leaf") or depth == 4:
        return (None, "none") if kind == "none" else (1, "leaf")
    if kind == "fields":
        make = rng.choice(FIELDS)
        keys = list(make._fields)
    else:
        names = rng.choice([TEXTS, NUMBERS])
        keys = rng.sample(names, rng.randrange(6)) if kind == "dict" else range(rng.randrange(5))
    children = [grow(rng, depth + 1) for _ in keys]
    probed = [kind, [[key, child[1]] for key, child in zip(keys, children, strict=True)]]
    values = [child[0] for child in children]
    if kind == "dict":
        return dict(zip(keys, values, strict=True)), probed
    if kind == "fields":
        return make(*values), probed
    return (values if kind == "list" else tuple(values)), probed


def part(entry):
    for name in ("key", "idx", "name"):
        if hasattr(entry, name):
            return str(getattr(entry, name))
    raise AssertionError(entry)


def test_order_and_key_paths_are_those_of_jax():
    rng = random.Random(1)
    pairs = [grow(rng) for _ in range(TREES)]
    lines = "".join(json.dumps(probed) + "\n" for _, probed in pairs)
    done = subprocess.run([PROBE], input=lines.encode(), stdout=subprocess.PIPE, check=True)
    answers = [json.loads(line) for line in done.stdout.splitlines()]
    expected = [
        [[part(entry) for entry in path] for path, _ in jtu.tree_flatten_with_path(tree)[0]]
        for tree, _ in pairs
    ]
    assert sum(map(len, expected)) > 10 * TREES / 4
    assert answers == expected
