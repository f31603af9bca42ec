"""Digests that outlive a run: recorded beside a checkpoint, or in a folder of their own."""

from __future__ import annotations

import json
from typing import Final

import jax
from etils import epath

from orbax_bench_core.files import read_json
from orbax_bench_core.state.digests import Digest
from orbax_bench_core.state.tree import StateError

DIGESTS_FILE: Final = "digests.json"
"""File with the content digest of each leaf, one for all hosts: the layout plays no part in it."""


def record_digest(directory: epath.Path, found: Digest) -> None:
    """Writes a digest; every process may call, the first one writes."""
    if jax.process_index() == 0:
        directory.mkdir(parents=True, exist_ok=True)
        text = json.dumps(found, indent=2, sort_keys=True)
        (directory / DIGESTS_FILE).write_text(text)


def recorded_digest(directory: epath.Path) -> Digest | None:
    """Returns the digest that was recorded in a folder; None when there is none."""
    file = directory / DIGESTS_FILE
    if not directory.is_dir() or not file.exists():
        return None
    try:
        content = read_json(file)
    except ValueError:
        content = None
    if not isinstance(content, dict) or not all(isinstance(v, str) for v in content.values()):
        raise StateError(
            f"{str(file)!r} is not a digest per leaf, as capture_digests_path writes it; remove "
            "it, and nothing is compared with it"
        )
    return Digest(content)
