# SPDX-License-Identifier: Apache-2.0
"""The names of `eformer.serialization`: a program that uses that changes one import.
RetentionRules is ours."""

from __future__ import annotations

from cairn.serialization import fsspec_utils
from cairn.serialization.async_manager import AsyncCheckpointManager
from cairn.serialization.base_manager import CheckpointManager
from cairn.serialization.checkpointer import (
    Checkpointer,
    CheckpointInterval,
    RetentionRules,
)
from cairn.serialization.serialization import tree_deserialize_leaves, tree_serialize_leaves

__all__ = ["AsyncCheckpointManager", "CheckpointInterval", "CheckpointManager", "Checkpointer",
           "RetentionRules", "fsspec_utils", "tree_deserialize_leaves", "tree_serialize_leaves"]
