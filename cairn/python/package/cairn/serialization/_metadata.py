# SPDX-License-Identifier: Apache-2.0
"""What is stored about a checkpoint besides its arrays."""

from __future__ import annotations

import json
import math
import os
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any, ClassVar

from cairn import _core
from cairn._json import dump, parse_object
from cairn._log import logger

VERSION = f"cairn {_core.__version__}"


@dataclass
class CheckpointMetadata:
    """What `checkpoint_metadata.json` says.

        >>> CheckpointMetadata(custom_metadata={"lr": 0.1}).to_dict()["custom_metadata"]
        {'lr': 0.1}
        >>> CheckpointMetadata.from_dict({"version": "2", "their": 1}).to_dict()["their"]
        1
    """

    version: str = VERSION
    timestamp: str | None = None
    checksum: dict[str, str] | None = None
    array_metadata: dict[str, dict[str, Any]] | None = None
    framework_version: str | None = None
    custom_metadata: dict[str, Any] | None = None
    _others: ClassVar[Mapping[str, Any]] = {}  # of an object that was made from a dict

    def to_dict(self) -> dict[str, Any]:
        """Without a time of its own, the present one."""
        return {
            **self._others,
            "version": self.version,
            "timestamp": self.timestamp or datetime.now().isoformat(),
            "checksum": self.checksum or {},
            "array_metadata": self.array_metadata or {},
            "framework_version": self.framework_version,
            "custom_metadata": self.custom_metadata or {},
        }

    @classmethod
    def from_dict(cls, data: Mapping[str, Any]) -> CheckpointMetadata:
        """Fields that are not known here are kept for to_dict()."""
        made = cls(version=data.get("version", VERSION), timestamp=data.get("timestamp"),
                   checksum=data.get("checksum", {}),
                   array_metadata=data.get("array_metadata", {}),
                   framework_version=data.get("framework_version"),
                   custom_metadata=data.get("custom_metadata", {}))
        known = made.to_dict()
        vars(made)["_others"] = {name: value for name, value in data.items() if name not in known}
        return made


def json_text(value: Mapping[str, Any] | None) -> str:
    """As the library takes it. JSON has no NaN and no infinities: they become null."""
    if value is None:
        return ""
    try:
        return dump(value)
    except ValueError:
        logger.warning("NaN and infinities are stored as null: JSON has none")
        return dump(_finite(json.loads(dump(value, allow_nan=True))))


def _finite(value: Any) -> Any:
    if isinstance(value, dict):
        return {name: _finite(one) for name, one in value.items()}
    if isinstance(value, list):
        return [_finite(one) for one in value]
    return None if isinstance(value, float) and not math.isfinite(value) else value


def described(report: Mapping[str, Any], metadata: Any) -> dict[str, Any]:
    """What `checkpoint_metadata.json` says, with the metadata of the tree that was loaded."""
    text = report["description"]
    found = {} if text is None else \
        parse_object(text, os.path.join(report["path"], "checkpoint_metadata.json"))
    if report["foreign"]:
        return metadata or {} if text is None else found
    if metadata is None:
        return found
    if text is None:
        found = {**CheckpointMetadata().to_dict(), "timestamp": None}
    return {**found, "custom_metadata": metadata}
