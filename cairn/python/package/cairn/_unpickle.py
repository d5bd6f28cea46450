# SPDX-License-Identifier: Apache-2.0
"""Trees that the reference system saved, unpickled: for callers who trust the writer."""

from __future__ import annotations

import base64
import json
import pickle
from typing import Any

from cairn import _core


def unpickled(tree: Any, report: dict[str, Any]) -> Any:
    """The tree of a load, in the containers and with the values that the structure file holds as
    pickles, if the load asked for that (`to_unpickle`) and there is such a file that fits. Raises
    whatever the pickles raise.
    """
    text = report.get("structure")
    if not text:
        return tree
    file = json.loads(text)
    mask, payload = file["arr_mask"], file["nonarray_payload"]
    # Arrays are loaded in the order of the file.
    arrays = iter([_at(tree, key) for key in report["loaded"]])
    leaves = [next(arrays) if is_array else _made(payload[str(n)])
              for n, is_array in enumerate(mask)]
    return _made(file["treedef_b64"]).unflatten(leaves)


def _at(tree: Any, key: str) -> Any:
    for part in _core.parse_key(key) if key else ():
        tree = tree[part]
    return tree


def _made(text: str) -> Any:
    return pickle.loads(base64.b64decode(text, validate=True))
