# SPDX-License-Identifier: Apache-2.0
"""Who holds which box, on random meshes, specs and shapes, against JAX."""

import json
import math
import os
import pathlib
import random
import subprocess

os.environ["XLA_FLAGS"] = "--xla_force_host_platform_device_count=64"
os.environ["JAX_PLATFORMS"] = "cpu"

import jax  # noqa: E402
import numpy as np  # noqa: E402
from jax.sharding import Mesh, NamedSharding, PartitionSpec  # noqa: E402

ROOT = pathlib.Path(__file__).resolve().parents[2]
PROBE = pathlib.Path(os.environ.get("CAIRN_BIN", ROOT / "build/dev/bin")) / "cairn_sharding_probe"
CASES = 2000


def random_axes(rng):
    axes, count = [], 1
    for name in rng.sample(["dp", "fsdp", "tp", "sp", "ep"], rng.randint(1, 4)):
        size = rng.choice([n for n in (1, 2, 3, 4, 5, 8, 16) if count * n <= 64])
        axes.append([name, size])
        count *= size
    return axes, count


def random_spec(rng, axes, rank):
    names = [name for name, _ in axes]
    rng.shuffle(names)
    if rng.random() < 0.05:
        names.append(rng.choice([*names, "unknown"]))
    entries = []
    for _ in range(max(0, rank + rng.choice([-1, 0, 0, 0, 0, 0, 0, 1]))):
        taken = [names.pop() for _ in range(min(len(names), rng.choice([0, 0, 1, 1, 2])))]
        entries.append(None if not taken else taken[0] if len(taken) == 1 else taken)
    return entries


def random_shape(rng, axes, spec, rank):
    sizes = dict(axes)
    shape = []
    for entry in [*spec, *[None] * rank][:rank]:
        names = entry if isinstance(entry, list) else [entry]
        parts = math.prod(sizes.get(name, 1) for name in names)
        even = rng.random() < 0.97
        shape.append(rng.choice([1, 1, 2, 3, 0]) * parts if even else rng.randint(0, 9))
    return shape


def random_case(rng):
    axes, count = random_axes(rng)
    ids = rng.sample(range(64), count)
    rank = rng.randint(0, 4)
    spec = random_spec(rng, axes, rank)
    return [axes, ids, spec, random_shape(rng, axes, spec, rank)]


def jax_answer(case):
    """What JAX says; the name of the exception's class if it refuses."""
    axes, ids, spec, shape = case
    devices = np.array([jax.devices()[i] for i in ids]).reshape([size for _, size in axes])
    mesh = Mesh(devices, [name for name, _ in axes])
    entries = [tuple(entry) if isinstance(entry, list) else entry for entry in spec]
    try:
        sharding = NamedSharding(mesh, PartitionSpec(*entries))
        array = jax.device_put(np.zeros(shape, np.int8), sharding)
    except Exception as error:  # noqa: BLE001: DuplicateSpecError is no ValueError
        return type(error).__name__
    shards = {shard.device.id: shard for shard in array.addressable_shards}
    boxes = []
    for device, index in sharding.devices_indices_map(tuple(shape)).items():
        bounds = [part.indices(size)[:2] for part, size in zip(index, shape, strict=True)]
        boxes.append([device.id, [begin for begin, _ in bounds], [end for _, end in bounds]])
    replicas = [shards[i].replica_id for i in ids]
    return [list(sharding.shard_shape(tuple(shape))), boxes, replicas]


def test_boxes_replicas_and_refusals_are_those_of_jax():
    rng = random.Random(1)
    cases = [random_case(rng) for _ in range(CASES)]
    lines = "".join(json.dumps(case) + "\n" for case in cases)
    done = subprocess.run(
        [PROBE, "place"], input=lines.encode(), stdout=subprocess.PIPE, check=True)
    answers = [json.loads(line) for line in done.stdout.splitlines()]
    assert len(answers) == len(cases)
    refusals = set()
    for case, answer in zip(cases, answers, strict=True):
        expected = jax_answer(case)
        if isinstance(answer, str):
            assert isinstance(expected, str), (case, answer)
            refusals.add((answer, expected))
        else:
            assert answer == expected, case
    assert refusals == {
        ("sharding/unknown-axis", "ValueError"),
        ("sharding/axis-twice", "DuplicateSpecError"),
        ("sharding/spec-too-long", "ValueError"),
        ("sharding/uneven", "IndivisibleError"),
    }
    refused = sum(isinstance(answer, str) for answer in answers)
    assert CASES / 20 < refused < CASES / 3
