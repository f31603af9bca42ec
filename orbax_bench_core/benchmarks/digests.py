"""Digests of a checkpoint's content, kept beside it to verify later loads."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

_FILE = "digests.json"


def check(expected: Mapping[str, str], found: Mapping[str, str]) -> None:
    """Compares two digests.

    Args:
        expected: Digest of each leaf as it should be, by dotted path.
        found: Digest of each leaf as it was loaded.

    Raises:
        VerificationError: They differ; the message says where.
    """
    from orbax_bench_core.authoring import VerificationError
    from orbax_bench_core.state.digest import compare

    differences = compare(expected, found)
    if differences:
        raise VerificationError("loaded values differ: " + "; ".join(differences))


def capture(directory: str, tree: Any) -> None:
    """Writes the digest of a tree, one file for all hosts: it does not depend on the layout.

    Args:
        directory: Where `digests.json` goes, local or gs://.
        tree: What was loaded; every process must call.
    """
    import jax

    from orbax_bench_core.state.digest import digest
    from orbax_bench_core.state.locating import absolute

    found = digest(tree)
    if jax.process_index() == 0:
        folder = absolute(directory)
        folder.mkdir(parents=True, exist_ok=True)
        (folder / _FILE).write_text(json.dumps(found, indent=2, sort_keys=True))


def check_captured(directory: str, tree: Any) -> None:
    """Compares a tree with a digest that `capture` wrote, on any layout and number of hosts.

    Args:
        directory: Where `digests.json` is.
        tree: What was loaded; every process must call.

    Raises:
        StateError: There is no such file: a check that cannot be made has not passed.
        VerificationError: The tree differs; the message says where.
    """
    from orbax_bench_core.state.digest import digest
    from orbax_bench_core.state.errors import StateError
    from orbax_bench_core.state.locating import absolute

    file = absolute(directory) / _FILE
    if not file.exists():
        raise StateError(
            f"reference_digests_path {directory!r} holds no {_FILE}; run once with "
            "capture_digests_path to write it"
        )
    check(json.loads(file.read_text()), digest(tree))
