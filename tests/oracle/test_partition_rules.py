# SPDX-License-Identifier: Apache-2.0
"""Regular expressions against Python's `re`, and rules against eformer's match_partition_rules."""

import json
import os
import pathlib
import random
import re
import string
import subprocess
import warnings

import numpy as np
import pytest
from eformer.escale.partition.constraints import match_partition_rules
from jax.sharding import PartitionSpec

ROOT = pathlib.Path(__file__).resolve().parents[2]
PROBE = pathlib.Path(os.environ.get("CAIRN_BIN", ROOT / "build/dev/bin")) / "cairn_sharding_probe"

PARTS = ["params", "layers", "0", "12", "attn", "q_proj", "kernel", "bias", "MLP", "w-1", "a.b",
         "aa", "ab", "b", "", "x\n", "\xe9", "\u0661", "\u212a", "I", "i\u0131", "\x1c", "\u3000"]
TEXTS = ["", "a", "ab", "aab", "ba", "abab", "a\n", "\n", "\na", "a\nb", "AB", "K", "i", "_", " ",
         "a b"]


def probe(verb, cases):
    lines = "".join(json.dumps(case) + "\n" for case in cases)
    done = subprocess.run([PROBE, verb], input=lines.encode(), stdout=subprocess.PIPE, check=True)
    answers = [json.loads(line) for line in done.stdout.splitlines()]
    assert len(answers) == len(cases)
    return answers


def python_regex(pattern):
    """The compiled expression, or None if Python refuses it."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            regex = re.compile(pattern)
        except (re.error, OverflowError, ValueError):
            return None
    # Flag t, which nobody documented, is gone from later Pythons.
    return None if regex.flags & 1 else regex


def python_finds(regex, text):
    """None where Python 3.11 finds a bug in itself."""
    try:
        return regex.search(text) is not None
    except SystemError:
        return None


class Forge:
    """Expressions that are mostly right."""

    LITERALS = [*"aaabbbkKiI01_/- ", ".", "\\.", "\\/", "\\-", "\n", "\\n", "\\t", "\\x61",
                "\\u0061", "\\U00000061", "\\012", "\\07", "\xe9", "\u0131", "\\\xe9", "\\ ", "#",
                "&", "~", "}", "]"]
    CLASSES = ["\\d", "\\D", "\\w", "\\W", "\\s", "\\S"]
    RANGES = ["a-c", "a-z", "A-Z", "0-9", "\\d-a", "b-a", "!-~", "-", "a-"]
    SET_ESCAPES = ["\\b", "\\]", "\\\\", "\\-", "\\^", "\\7"]
    OTHERS = ["\\1", "\\2", "(?P=n)", "(?(1)a|b)", "(?(n)a|)", "(?(2)a)", "(?#c)", "(?# \\) )",
              "#c\n", " "]
    FLAGS = ["", "", "", "", "(?i)", "(?m)", "(?s)", "(?x)", "(?i)(?m)", "(?ix)", "(?u)"]
    ANCHORS = ["^", "$", "\\A", "\\Z", "\\b", "\\B"]
    REPEATS = ["*", "+", "?", "{2}", "{1,2}", "{,1}", "{1,}", "{0}", "{,}", "{", "{}", "{a}",
               "{2,1}"]
    OPENINGS = ["(", "(", "(?:", "(?:", "(?P<n>", "(?P<m>", "(?=", "(?!", "(?<=", "(?<!", "(?>",
                "(?i:", "(?-i:", "(?s:", "(?m:", "(?ms-i:", "(?x:", "(?-x:", "(?u:"]
    FOREIGN = ["\\z", "\\h", "\\R", "\\K", "\\Qa\\E", "\\N", "\\X", "\\p{L}", "\\g1", "\\g{1}",
               "\\k<n>", "\\G", "\\C", "\\x{61}", "\\o{61}", "\\cA", "\\8", "\\99", "\\400",
               "(?R)", "(?1)", "(?&n)", "(?<n>a)", "(?'n'a)", "(?|a|b)", "(*ACCEPT)", "(*UTF)",
               "(?^:a)", "(?n)", "(?J)", "(?a)", "(?C)", "[[:alpha:]]", "[:alpha:]", "[[.a.]]",
               "(?i)", "(?x)", "(?P>n)", "(?P=k)", "(?)", "(?-)", "(?i-:a)", "(?i-i:a)", "(?L)",
               "(?au)", "(?", "(?P", "(?<", "(?#a", "\\"]

    def __init__(self, seed):
        self.random = random.Random(seed)

    def set(self):
        members = []
        for _ in range(self.random.randint(1, 3)):
            kind = self.random.random()
            if kind < 0.3:
                members.append(self.random.choice(self.RANGES))
            elif kind < 0.5:
                members.append(self.random.choice([*self.CLASSES, *self.SET_ESCAPES]))
            else:
                members.append(self.random.choice([*self.LITERALS, "[", "^", "$", ":", "|"]))
        return f"[{self.random.choice(['', '', '^', ']', '^]'])}{''.join(members)}]"

    def atom(self, depth):
        kind = self.random.random()
        if depth > 0 and kind < 0.25:
            return self.random.choice(self.OPENINGS) + self.branches(depth - 1) + ")"
        if kind < 0.3:
            return self.random.choice(self.OTHERS)
        if kind < 0.45:
            return self.set()
        if kind < 0.6:
            return self.random.choice([*self.CLASSES, ".", "."])
        if kind < 0.7:
            return self.random.choice(self.ANCHORS)
        return self.random.choice(self.LITERALS)

    def sequence(self, depth):
        text = ""
        for _ in range(self.random.choice([0, 1, 1, 2, 2, 3])):
            text += self.atom(depth)
            if self.random.random() < 0.3:
                text += self.random.choice(self.REPEATS)
                text += self.random.choice(["", "", "", "?", "+"])
        return text

    def branches(self, depth):
        return "|".join(self.sequence(depth) for _ in range(self.random.choice([1, 1, 1, 2, 3])))

    def pattern(self):
        text = self.random.choice(self.FLAGS)
        text += self.branches(3)
        if self.random.random() < 0.1:
            at = self.random.randint(0, len(text))
            text = text[:at] + self.random.choice(self.FOREIGN) + text[at:]
        if self.random.random() < 0.1 and text:
            at = self.random.randrange(len(text))
            text = text[:at] + self.random.choice([*string.printable, ""]) + text[at + 1 :]
        return text

    def key(self):
        if self.random.random() < 0.5:
            return self.random.choice(TEXTS)
        return "/".join(self.random.choices(PARTS, k=self.random.randint(0, 4)))


@pytest.mark.parametrize("seed", range(2))
def test_expressions_are_found_where_python_finds_them(seed):
    forge = Forge(seed)
    cases = [[forge.pattern(), [forge.key() for _ in range(20)]] for _ in range(10_000)]
    compared = 0
    for (pattern, texts), answer in zip(cases, probe("search", cases), strict=True):
        expected = python_regex(pattern)
        if answer == "regex/unsupported":
            continue
        if expected is None:
            assert answer == "regex/syntax", pattern
            continue
        assert isinstance(answer, list), (pattern, answer)
        for text, found in zip(texts, answer, strict=True):
            wanted = python_finds(expected, text)
            if found != "regex/limit" and wanted is not None:
                assert found == wanted, (pattern, text)
                compared += 1
    assert compared > 50_000


def test_categories_and_cases_are_those_of_python():
    chars = [chr(c) for c in range(0x3000)] + list("\u3000\ufb05\ufb06\uff11\U0001d7d8\U00010400")
    patterns = [r"\d", r"\w", r"\s", r"\S", r"[^\W\d]", "."]
    cases = [[pattern, chars] for pattern in patterns]
    cased = [c for c in chars if c.lower() != c or c.upper() != c or c.casefold() != c]
    cases += [["(?i)" + re.escape(c), cased] for c in cased]
    for (pattern, texts), answer in zip(cases, probe("search", cases), strict=True):
        regex = re.compile(pattern)
        assert answer == [regex.search(text) is not None for text in texts], pattern


def spec_of(entries):
    return PartitionSpec(*[tuple(e) if isinstance(e, list) else e for e in entries])


def random_rules_case(forge):
    axes = [None, "fsdp", "tp", ["dp", "fsdp"]]
    rules = []
    while len(rules) < forge.random.randint(1, 5):
        pattern = forge.random.choice([forge.pattern(), "kernel$", "layers/[0-9]+/", ".*", "bias"])
        if python_regex(pattern) is not None:
            rules.append([pattern, forge.random.choices(axes, k=forge.random.randint(0, 4))])
    leaves = {}
    for _ in range(5):
        shape = forge.random.choices([1, 2, 8], k=forge.random.randint(0, 4))
        leaves[forge.key()] = None if forge.random.random() < 0.1 else shape
    strict = forge.random.random() < 0.7
    return [rules, list(leaves.items()), forge.random.choice([0, 2, 16]), strict]


class NoArray:
    """A leaf without a shape."""


def reference_answer(case):
    """What eformer says; None where no rule matches."""
    rules, leaves, min_size, strict = case
    rules = [(pattern, spec_of(entries)) for pattern, entries in rules]
    # Keys of dicts are sorted by JAX, so each leaf is asked for alone.
    specs = []
    for key, shape in leaves:
        leaf = NoArray() if shape is None else np.zeros(shape, np.int8)
        try:
            specs.append(match_partition_rules(rules, {key: leaf}, min_size, strict)[key])
        except ValueError:
            return None
    return specs


def test_rules_match_as_in_the_reference():
    forge = Forge(99)
    cases = [random_rules_case(forge) for _ in range(2000)]
    matched = refused = 0
    for case, answer in zip(cases, probe("rules", cases), strict=True):
        if answer in ("regex/unsupported", "regex/limit"):
            continue
        expected = reference_answer(case)
        if expected is None:
            assert answer == "rules/no-match", case
            refused += 1
        else:
            assert [spec_of(entries) for entries in answer] == expected, case
            matched += 1
    assert matched > 500 and refused > 100
