"""What an environment consists of: what tells it from others, and what uv is given."""

from __future__ import annotations

import hashlib
import json
import os
import platform
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path

from orbax_bench_core.environments.ours import own_versions, worker_requirements
from orbax_bench_core.environments.requirements import Requirement
from orbax_bench_core.environments.uv import run_uv

_SCHEMA = 1


def key(requirements: Sequence[Requirement]) -> str:
    """Returns what tells an environment from others with other content.

    Args:
        requirements: What the suite asks for.
    """
    content = {
        "schema": _SCHEMA,
        "requirements": [requirement.content for requirement in requirements],
        "worker": worker_requirements(),
        "preferred": own_versions(),
        "python": [sys.version, os.path.realpath(sys.executable), platform.machine()],
    }
    return hashlib.sha256(json.dumps(content).encode()).hexdigest()[:16]


def installable(home: Path, requirement: Requirement, folder: Path) -> str:
    """Returns a requirement as uv can be trusted with it.

    Left to itself, uv takes a folder's wheel from its cache as long as the project file is as it
    was, whatever happened to the sources.

    Args:
        home: Where a wheel goes that is built.
        requirement: The requirement.
        folder: The suite's folder.

    Raises:
        EnvironmentFailed: The wheel cannot be built.
    """
    if requirement.path is None:
        return requirement.given
    if requirement.path.is_file():
        return requirement.at(requirement.path)
    wheels = Path(tempfile.mkdtemp(prefix="wheel-", dir=home))
    run_uv(
        *("build", "--wheel", "--python", sys.executable),
        *("--out-dir", str(wheels), str(requirement.path)),
        folder=folder,
    )
    return requirement.at(next(wheels.glob("*.whl")))
