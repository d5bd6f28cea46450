# SPDX-License-Identifier: Apache-2.0
"""The reference system's description of a tree, `<prefix>_structure.json`."""

from __future__ import annotations

import base64
import json
import pickle
import sys
from collections.abc import Callable
from types import NoneType
from typing import Any

from cairn import _core
from cairn._log import logger
from cairn._nodes import is_prng_key, key_of, reference_part

_VALUES = (NoneType, bool, int, float, complex, str, bytes)


def structure_text(prefix: str, tree: Any, extras: str) -> str | None:
    """What lets the reference system load a tree with its containers; None where JAX is not
    imported, or cannot describe the tree."""
    if "jax" not in sys.modules:
        return None
    try:
        return json.dumps(_describe(prefix, tree, extras))
    except Exception as error:  # of whatever the tree's own classes do while they are pickled
        logger.info("no structure for the reference system of '%s': %s", prefix, error)
        return None


def _describe(prefix: str, tree: Any, extras: str) -> dict[str, Any]:
    import jax
    found, treedef = jax.tree_util.tree_flatten_with_path(tree, is_leaf=lambda leaf: leaf is None)
    keys = [_key(prefix, path, reference_part) for path, _ in found]
    mask = [hasattr(leaf, "shape") and hasattr(leaf, "dtype") for _, leaf in found]
    strange = {type(leaf).__qualname__ for (_, leaf), is_array in zip(found, mask, strict=True)
               if not is_array and type(leaf) not in _VALUES}
    strange |= {"jax.random.key" for _, leaf in found if is_prng_key(leaf)}
    if strange:
        raise TypeError(f"a leaf to JAX that is none to us: {', '.join(sorted(strange))}")
    arrays = [n for n, is_array in enumerate(mask) if is_array]
    return {
        "format": "pytree-structure",
        "version": _core.__version__,
        "backend": "tensorstore",
        "prefix": prefix,
        "treedef_b64": _pickled(treedef),
        "leaf_keys_full": keys,
        "arr_mask": mask,
        "array_keys": [keys[n] for n in arrays],
        # A dot inside of a part is encoded: those that are there stand between parts.
        "array_relpaths": [_key(prefix, found[n][0], key_of).replace(".", "/") for n in arrays],
        "nonarray_payload": {str(n): _pickled(leaf) for n, (_, leaf) in enumerate(found)
                             if not mask[n]},
        "safetensors_file": None,
        "extras": json.loads(extras) if extras else {},
    }


def _key(prefix: str, path: tuple[Any, ...], part: Callable[[Any], object]) -> str:
    return f"{prefix}.{_core.key_text([str(part(key)) for key in path])}" if path else prefix


def _pickled(thing: Any) -> str:
    return base64.b64encode(pickle.dumps(thing)).decode("ascii")
