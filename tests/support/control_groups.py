"""Control groups with little memory, as the container of a pod has."""

import contextlib
import os
from collections.abc import Iterator
from pathlib import Path

import pytest

_ROOT = Path("/sys/fs/cgroup")


@contextlib.contextmanager
def little_memory(limit_bytes: int) -> Iterator[list[str]]:
    """Makes a control group, and yields words before a command that run it in the group."""
    unified = (_ROOT / "cgroup.controllers").exists()
    group = (_ROOT if unified else _ROOT / "memory") / f"orbax-bench-test-{os.getpid()}"
    limit = group / ("memory.max" if unified else "memory.limit_in_bytes")
    try:
        group.mkdir()
    except OSError as refused:
        pytest.skip(f"needs the right to make a control group: {refused}")
    try:
        if not limit.exists():
            pytest.skip("the control groups of this machine do not limit memory")
        limit.write_text(str(limit_bytes))
        yield ["sh", "-c", f'echo $$ > {group}/cgroup.procs && exec "$@"', "sh"]
    finally:
        group.rmdir()
