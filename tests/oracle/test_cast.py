# SPDX-License-Identifier: Apache-2.0
"""Casts between float types, bit for bit against ml_dtypes and NumPy.

Three deliberate differences, all in how the expected value is made below:
- from float64, ml_dtypes goes through float32 and so rounds twice; Cairn rounds once;
- a NaN narrowed to float16 is the one quiet NaN with its sign, as for every ml_dtypes type, where
  NumPy keeps part of the payload;
- between the two smallest numbers of float8_e8m0fnu, ml_dtypes rounds up all that is not exact;
  Cairn takes the nearest there too.
"""

import os
import pathlib
import subprocess

import ml_dtypes
import numpy as np
import pytest

ROOT = pathlib.Path(__file__).resolve().parents[2]
PROBE = pathlib.Path(os.environ.get("CAIRN_BIN", ROOT / "build/dev/bin")) / "cairn_cast_probe"

BITS = {
    "float4_e2m1fn": 4, "float6_e2m3fn": 6, "float6_e3m2fn": 6,
    "float8_e3m4": 8, "float8_e4m3": 8, "float8_e4m3b11fnuz": 8, "float8_e4m3fn": 8,
    "float8_e4m3fnuz": 8, "float8_e5m2": 8, "float8_e5m2fnuz": 8, "float8_e8m0fnu": 8,
    "float16": 16, "bfloat16": 16, "float32": 32, "float64": 64,
}  # fmt: skip
SMALL = [name for name, bits in BITS.items() if bits <= 16]
RANDOM_COUNT = 1_000_000


def dtype(name):
    return np.dtype(getattr(ml_dtypes, name, name))


def as_bits(values):
    return values.view(f"u{values.dtype.itemsize}")


def every_value(name):
    """All values of a type of at most 16 bits."""
    count = 1 << BITS[name]
    return np.arange(count, dtype=f"u{dtype(name).itemsize}").view(dtype(name))


def probe(values, to):
    done = subprocess.run(
        [PROBE, values.dtype.name, to], input=values.tobytes(), stdout=subprocess.PIPE, check=True
    )
    return np.frombuffer(done.stdout, dtype(to))


def nearest(values, to):
    """float64 rounded once, by looking the numbers up among all numbers of a small type."""
    grid = every_value(to)
    with np.errstate(invalid="ignore"):
        grid = np.unique(np.abs(grid[np.isfinite(grid)].astype(np.float64)))
    powers = to == "float8_e8m0fnu"
    grid = np.append(grid, 2 * grid[-1] - (0 if powers else grid[-2]))
    halfway = (grid[1:] + grid[:-1]) / 2
    grid[-1] = np.inf
    magnitude = np.abs(values)
    place = np.searchsorted(halfway, magnitude)
    tie = halfway[np.minimum(place, halfway.size - 1)] == magnitude
    place += tie & ((place % 2 == 1) | powers)
    result = np.where(np.isnan(values) | (values == 0), magnitude, grid[place])
    return np.copysign(result, values).astype(np.float32).astype(dtype(to))


def expected(values, to):
    source, target = values.dtype, dtype(to)
    if source == target:
        return values
    with np.errstate(all="ignore"):
        nan = np.isnan(values)
        if source == np.float64 and to in SMALL:
            result = nearest(values, to)
        elif "float8_e8m0fnu" in (source.name, to):  # ml_dtypes knows no direct way
            result = values.astype(np.float32).astype(target)
            wide = values.astype(np.float64)
            if to == "float8_e8m0fnu":
                as_bits(result)[(wide > 2.0**-127) & (wide < 1.5 * 2.0**-127)] = 0
        else:
            result = values.astype(target)
    if target == np.float16:
        as_bits(result)[nan] = np.where(np.signbit(values[nan]), 0xFE00, 0x7E00)
    if source == np.float16 and target == np.float64:
        as_bits(result)[nan] |= 1 << 51
    return result


def assert_same(values, to):
    got, want = as_bits(probe(values, to)), as_bits(expected(values, to))
    wrong = np.flatnonzero(got != want)
    rows = [
        f"{as_bits(values)[i]:#x} ({float(values[i])!r}): {got[i]:#x}, not {want[i]:#x}"
        for i in wrong[:10]
    ]
    assert wrong.size == 0, f"{wrong.size} of {values.size} differ: " + "; ".join(rows)


def neighbourhood(points):
    return np.concatenate([np.nextafter(points, -np.inf), points, np.nextafter(points, np.inf)])


def critical_points(to, source):
    """Numbers of a type, the ways halfway between them, and what lies beside those."""
    if BITS[to] > 16:
        grid = np.random.default_rng(2).integers(0, 0x7F7FFFFF, 100_000, np.uint32)
        grid = np.concatenate([grid, grid + 1]).view(np.float32)
    else:
        grid = every_value(to)
    with np.errstate(over="ignore", invalid="ignore"):
        grid = np.unique(np.abs(grid[np.isfinite(grid)].astype(np.float64)))
        grid = np.concatenate([[0.0], grid])
        steps = np.diff(grid)
        beyond = grid[-1] + steps[-1] * np.array([0.5, 1.0, 2.0])
        points = np.concatenate([grid, grid[:-1] + steps / 2, beyond]).astype(source)
    near = neighbourhood(points)
    return np.concatenate([near, -near])


def specials(source):
    info = np.finfo(source)
    bits = f"u{np.dtype(source).itemsize}"
    infinity = int(as_bits(np.array([np.inf], source))[0])
    nans = infinity + np.array([1, 2, (1 << info.nmant) // 2, (1 << info.nmant) - 1], bits)
    tiny = np.array([1, 2, 3, (1 << info.nmant) - 1, 1 << info.nmant], bits)
    ends = np.array([0.0, np.inf, info.max, info.tiny], source)
    positive = np.concatenate([ends, nans.view(source), tiny.view(source)])
    return np.concatenate([positive, (as_bits(positive) | bits_sign(source)).view(source)])


def bits_sign(source):
    return as_bits(np.array([-0.0], source))[0]


@pytest.mark.parametrize("to", BITS)
@pytest.mark.parametrize("source", SMALL)
def test_every_value_of_a_small_type(source, to):
    assert_same(every_value(source), to)


@pytest.mark.parametrize("to", BITS)
@pytest.mark.parametrize("source", [np.float32, np.float64])
def test_numbers_where_rounding_turns(source, to):
    assert_same(np.concatenate([specials(source), critical_points(to, source)]), to)


@pytest.mark.parametrize("to", BITS)
@pytest.mark.parametrize("source", [np.float32, np.float64])
def test_random_bits_and_random_numbers(source, to):
    random = np.random.default_rng(1)
    size = np.dtype(source).itemsize
    anything = np.frombuffer(random.bytes(RANDOM_COUNT * size // 2), source)
    lowest, highest = np.log2(np.finfo(np.float32).tiny) - 30, np.log2(np.finfo(np.float32).max)
    spread = np.exp2(random.uniform(lowest, highest, RANDOM_COUNT // 4))
    near_one = random.standard_normal(RANDOM_COUNT // 4)
    assert_same(np.concatenate([anything, spread.astype(source), near_one.astype(source)]), to)


def test_complex_numbers_are_two_floats():
    bits = np.random.default_rng(3).bytes(16 * 10_000)
    wide = np.frombuffer(bits, np.complex128)
    for values, to in ((wide, "complex64"), (np.frombuffer(bits, np.complex64), "complex128")):
        parts = values.view(f"f{values.dtype.itemsize // 2}")
        with np.errstate(all="ignore"):
            want = parts.astype(f"f{dtype(to).itemsize // 2}")
        assert probe(values, to).tobytes() == want.tobytes()


def test_float64_is_rounded_once():
    """Just above halfway between two bfloat16, and halfway for a float32."""
    value = np.array([1 + 2**-8 + 2**-40])
    assert as_bits(probe(value, "bfloat16"))[0] == 0x3F81
    assert as_bits(value.astype(ml_dtypes.bfloat16))[0] == 0x3F80
