# SPDX-License-Identifier: Apache-2.0
"""The names of `eformer.serialization`: a program that uses that changes one import."""

from __future__ import annotations

from cairn.serialization import fsspec_utils

__all__ = ["fsspec_utils"]
