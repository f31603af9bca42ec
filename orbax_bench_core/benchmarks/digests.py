"""Digests of a checkpoint's content, kept beside it to verify later loads."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from orbax_bench_core.state.digest import Digest

_FILE = "digests.json"


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


def captured(directory: str) -> Digest:
    """Returns the digest that `capture` wrote, to verify a load on any layout and number of hosts.

    Args:
        directory: Where `digests.json` is.

    Raises:
        StateError: There is no such file: a check that cannot be made has not passed.
    """
    from orbax_bench_core.state.digest import Digest
    from orbax_bench_core.state.errors import StateError
    from orbax_bench_core.state.locating import absolute

    file = absolute(directory) / _FILE
    if not file.exists():
        raise StateError(
            f"reference_digests_path {directory!r} holds no {_FILE}; run once with "
            "capture_digests_path to write it"
        )
    return Digest(json.loads(file.read_text()))
