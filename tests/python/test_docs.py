# SPDX-License-Identifier: Apache-2.0
"""The examples in the docstrings."""

import doctest
import importlib
import pkgutil

import cairn
import pytest


def modules():
    yield "cairn"
    for found in pkgutil.walk_packages(cairn.__path__, "cairn."):
        if found.name != "cairn._core":
            yield found.name


@pytest.mark.parametrize("name", list(modules()))
def test_examples_run(name):
    result = doctest.testmod(importlib.import_module(name))
    assert result.failed == 0


def test_there_are_examples():
    assert sum(doctest.testmod(importlib.import_module(name)).attempted for name in modules()) > 5
