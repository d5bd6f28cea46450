# SPDX-License-Identifier: Apache-2.0
"""Headers judged by Cairn and by the safetensors library, and files of Cairn read by the library.

Two deliberate differences, both refusals: entries of one name that differ, and empty tensors whose
other dimensions cannot be counted. docs/format/safetensors.md has them.
"""

import json
import os
import pathlib
import random
import struct
import subprocess

import ml_dtypes  # noqa: F401, NumPy's bfloat16
import numpy as np
import pytest
import safetensors
import safetensors.flax
import safetensors.numpy

ROOT = pathlib.Path(__file__).resolve().parents[2]
BIN = pathlib.Path(os.environ.get("CAIRN_BIN", ROOT / "build/dev/bin"))

# The library's names of the types, with their bits, in its order.
BITS = {
    "BOOL": 8, "F4": 4, "F6_E2M3": 6, "F6_E3M2": 6, "U8": 8, "I8": 8, "F8_E5M2": 8, "F8_E4M3": 8,
    "F8_E8M0": 8, "F8_E4M3FNUZ": 8, "F8_E5M2FNUZ": 8, "I16": 16, "U16": 16, "F16": 16, "BF16": 16,
    "I32": 32, "U32": 32, "F32": 32, "C64": 64, "F64": 64, "I64": 64, "U64": 64,
}  # fmt: skip
# What the library's writer calls those that it can write from whole bytes.
NAMES = {
    "bool": 1, "uint8": 1, "int8": 1, "float8_e5m2": 1, "float8_e4m3fn": 1, "float8_e8m0fnu": 1,
    "float8_e4m3fnuz": 1, "float8_e5m2fnuz": 1, "int16": 2, "uint16": 2, "float16": 2,
    "bfloat16": 2, "int32": 4, "uint32": 4, "float32": 4, "complex64": 8, "float64": 8,
    "int64": 8, "uint64": 8,
}  # fmt: skip
ODD = [
    "null", "true", "0", "-0", "1.0", "1e0", '"x"', "[]", "{}", "-1", "18446744073709551615",
    "18446744073709551616", "9223372036854775808", "4294967296", '"U8"', '{"U8":null}', "[0]",
    "[0,0]", "01", "1e999", '"\\ud800"', '"\\u0000"', "4",
]  # fmt: skip


def probe(verb, data):
    command = [BIN / "cairn_safetensors_probe", verb]
    return subprocess.run(command, input=data, stdout=subprocess.PIPE, check=True).stdout


def bytes_of(dtype, shape):
    return int(np.prod(shape, dtype=int)) * BITS[dtype] / 8


class Forge:
    """Headers that are right but for a damage now and then."""

    def __init__(self, seed):
        self.random = random.Random(seed)

    def maybe(self, chance):
        return self.random.random() < chance

    def tensors(self):
        position, tensors = 0, []
        for _ in range(self.random.randint(0, 4)):
            dtype = self.random.choice(list(BITS))
            shape = [self.random.choice([0, 1, 2, 4, 8]) for _ in range(self.random.randint(0, 3))]
            if bytes_of(dtype, shape) % 1:
                shape = [8]
            end = position + int(bytes_of(dtype, shape))
            tensors.append((self.random.choice([*"abcdef", ""]), dtype, shape, position, end))
            position = end
        return tensors, position

    def odd_list(self, *values):
        values = [str(value) for value in values]
        values[self.random.randrange(len(values))] = self.random.choice(ODD)
        return f"[{','.join(values)}]"

    def entry(self, dtype, shape, begin, end):
        odd = self.random.choice(ODD)
        fields = {
            "dtype": json.dumps(dtype),
            "shape": json.dumps(shape),
            "data_offsets": f"[{begin},{end}]",
        }
        if self.maybe(0.05):
            fields["dtype"] = self.random.choice([odd, f'{{"{dtype}":null}}'])
        if self.maybe(0.05):
            fields["shape"] = self.random.choice([odd, self.odd_list(0, 1), self.odd_list(4)])
        if self.maybe(0.05):
            wrong = [odd, self.odd_list(begin, end), f"[{end},{begin}]", f"[{begin + 1},{end + 1}]"]
            fields["data_offsets"] = self.random.choice(wrong)
        if self.maybe(0.05):
            return f"[{','.join(list(fields.values())[: self.random.choice([2, 3, 3, 3])])}]"
        members = [f'"{name}":{value}' for name, value in fields.items()]
        if self.maybe(0.1):
            members.append(f'"x":{odd}')
        if self.maybe(0.03):
            members.append(self.random.choice(members))
        if self.maybe(0.03):
            members.pop()
        self.random.shuffle(members)
        return odd if self.maybe(0.02) else f"{{{','.join(members)}}}"

    def header(self):
        tensors, size = self.tensors()
        members = [f"{json.dumps(name)}:{self.entry(*about)}" for name, *about in tensors]
        if self.maybe(0.2):
            values = ['{"a":"b"}', '{"a":"b","a":"c"}', "null", "[]", '{"a":1}', "{}", '{"a":null}']
            members.append(f'"__metadata__":{self.random.choice(values)}')
        if self.maybe(0.03) and members:
            members.append(self.random.choice(members))
        self.random.shuffle(members)
        return f"{{{','.join(members)}}}".encode(), size

    def mutated(self, text):
        text = bytearray(text)
        for _ in range(self.random.randint(1, 2)):
            at = self.random.randrange(len(text) or 1)
            kind = self.random.random()
            if kind < 0.5:
                text[at : at + 1] = [self.random.choice(b'{}[],:"\\0123489-.eE \n\0\xff\xc3\xef')]
            elif kind < 0.75:
                del text[at : at + self.random.randint(1, 3)]
            else:
                start = self.random.randrange(len(text) or 1)
                text[at:at] = text[start : start + 8]
        return bytes(text)

    def file(self):
        header, size = self.header()
        if self.maybe(0.4):
            header = self.mutated(header)
        if self.maybe(0.1):
            header = self.random.choice([b" ", b"\n", b"\xef\xbb\xbf", b""]) + header
            header += self.random.choice([b"   ", b"\t\r\n", b"\0", b"x"])
        size = max(0, size + self.random.choice([0] * 20 + [-1, 1]))
        length = max(0, len(header) + self.random.choice([0] * 50 + [-1, 1, 10**8]))
        return struct.pack("<Q", length) + header + self.random.randbytes(size)


def library_tensors(file):
    """What the library reads; None if it refuses the file."""
    try:
        read = safetensors.deserialize(file)
    except safetensors.SafetensorError:
        return None
    return sorted((name, t["dtype"], t["shape"], bytes(t["data"])) for name, t in read)


def cairn_tensors(file, verdict):
    return sorted((*about, file[begin:end]) for *about, begin, end in verdict)


def is_deliberate(file, reason):
    """Does the library read this although Cairn is right to refuse it?"""
    text = file[8 : 8 + struct.unpack("<Q", file[:8])[0]]
    pairs = json.loads(text, object_pairs_hook=lambda pairs: pairs)
    names = [name for name, _ in pairs if name != "__metadata__"]
    return reason == "safetensors/shape-overflow" or len(names) > len(set(names))


@pytest.mark.parametrize("seed", range(4))
def test_cairn_accepts_the_headers_that_the_library_accepts(seed):
    forge = Forge(seed)
    files = [forge.file() for _ in range(10_000)]
    sized = b"".join(struct.pack("<I", len(file)) + file for file in files)
    verdicts = [json.loads(line) for line in probe("judge", sized).splitlines()]
    assert len(verdicts) == len(files)
    accepted = 0
    for file, verdict in zip(files, verdicts, strict=True):
        expected = library_tensors(file)
        if isinstance(verdict, str):
            assert expected is None or is_deliberate(file, verdict), (verdict, file)
        else:
            assert expected == cairn_tensors(file, verdict), file
            accepted += 1
    assert 1000 < accepted < 9000


def library_file(tensors, metadata):
    keep = {name: np.frombuffer(data + b"\0", np.uint8) for name, (_, _, data) in tensors.items()}
    specs = {
        name: safetensors.TensorSpec(
            dtype=dtype, shape=shape, data_ptr=keep[name].ctypes.data, data_len=len(data)
        )
        for name, (dtype, shape, data) in tensors.items()
    }
    return bytes(safetensors.serialize(specs, metadata=metadata))


def header_of(file):
    length = struct.unpack("<Q", file[:8])[0]
    return 8 + length, file[8 : 8 + length].rstrip(b" ")


def random_set(seed):
    maker = random.Random(seed)
    tensors = {}
    for i in range(maker.randint(0, 30)):
        dtype = maker.choice(list(NAMES))
        shape = [maker.choice([0, 1, 2, 3, 5]) for _ in range(maker.randint(0, 3))]
        size = int(np.prod(shape, dtype=int)) * NAMES[dtype]
        data = maker.randbytes(size) if dtype != "bool" else bytes(maker.choices([0, 1], k=size))
        name = maker.choice(["", "a.b", "\u00e9\n", '"\\', "\x01\x7f", "\U0001f600/"]) + str(i)
        tensors[name] = (dtype, shape, data)
    return tensors


@pytest.mark.parametrize("seed", range(20))
def test_the_library_reads_what_cairn_writes(seed, tmp_path):
    metadata = {"note": "\u00e9 \"q\" \n"} if seed % 2 else None
    library = library_file(random_set(seed), metadata)
    cairn = probe("rewrite", library)
    assert library_tensors(cairn) == library_tensors(library)
    start, text = header_of(cairn)
    assert start % 4096 == 0
    assert text == header_of(library)[1]
    path = tmp_path / "model.safetensors"
    path.write_bytes(cairn)
    with safetensors.safe_open(path, "np") as file:
        assert file.metadata() == metadata


def test_its_loaders_for_arrays_read_what_cairn_writes(tmp_path):
    arrays = {
        name: np.arange(6).reshape(2, 3).astype(name)
        for name in ("bool", "int8", "uint64", "float16", "bfloat16", "float32", "complex64")
    }
    arrays["empty"] = np.zeros((2, 0), np.float32)
    path = tmp_path / "model.safetensors"
    path.write_bytes(probe("rewrite", safetensors.numpy.save(arrays)))
    for load in (safetensors.numpy.load_file, safetensors.flax.load_file):
        loaded = load(path)
        assert loaded.keys() == arrays.keys()
        # JAX without x64 narrows uint64.
        for name in arrays.keys() - {"uint64"}:
            assert np.asarray(loaded[name]).tobytes() == arrays[name].tobytes(), name
            assert loaded[name].dtype == arrays[name].dtype


def test_an_empty_set_is_a_file_that_the_library_reads():
    cairn = probe("rewrite", library_file({}, None))
    assert len(cairn) == 4096
    assert library_tensors(cairn) == []
