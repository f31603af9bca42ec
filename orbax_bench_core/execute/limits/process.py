"""Measuring limits from a process that must not import JAX."""

from __future__ import annotations

import os
import signal
import subprocess
import sys

import pydantic

from orbax_bench_core.config.base import ConfigModel
from orbax_bench_core.config.errors import SuiteError
from orbax_bench_core.config.execution import HostMemory
from orbax_bench_core.execute.limits.scratch import existing_directory, scratch
from orbax_bench_core.launch.host_memory import allocator_settings
from orbax_bench_core.results.limits import Limits

_HOST_MEMORY: HostMemory = "reused"
_MODULE = "orbax_bench_core.execute.limits"


class LimitsRequest(ConfigModel):
    """What a process of its own is asked to measure: the arguments of `measure_limits`."""

    path: str
    num_bytes: int
    parallelism: int | None
    dtype: str
    host_memory: HostMemory


def take_limits(
    path: str,
    num_bytes: int,
    parallelism: int | None = None,
    timeout_s: float = 300.0,
    *,
    dtype: str = "float32",
) -> Limits:
    """Measures the limits of this machine and a storage, in a process whose heap keeps its memory.

    Whoever calls this holds the measuring lock: nothing else may measure meanwhile.

    Args:
        path: An existing local directory, or a gs:// URI; nothing stays there.
        num_bytes: Bytes that each probe is to move; fewer if disk or memory are short.
        parallelism: Threads, files and chunks; None takes the devices of an accelerator, or CPUs.
        timeout_s: Seconds that all of it may take.
        dtype: Canonical name of the dtype of the data, which decides how well it compresses.

    Raises:
        SuiteError: It cannot be measured; one line says why.
    """
    with scratch(existing_directory(path)) as folder:
        # The folder is this process's: it goes even if the one that measures is killed.
        request = LimitsRequest(
            path=str(folder),
            num_bytes=num_bytes,
            parallelism=parallelism,
            dtype=dtype,
            host_memory=_HOST_MEMORY,
        )
        limits = _run(request, path, timeout_s)
    return limits.model_copy(update={"path": str(folder.parent)})


def _run(request: LimitsRequest, path: str, timeout_s: float) -> Limits:
    problem = f"cannot measure the limits of {path}"
    try:
        process = subprocess.run(
            [sys.executable, "-m", _MODULE, request.model_dump_json()],
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            timeout=timeout_s,
            check=False,
            env={**os.environ, **allocator_settings(_HOST_MEMORY)},
        )
    except subprocess.TimeoutExpired:
        raise SuiteError(
            f"{problem}: not done after {timeout_s:g} seconds; use fewer bytes"
        ) from None
    if process.returncode < 0:
        name = signal.Signals(-process.returncode).name
        raise SuiteError(f"{problem}: the process was killed by {name}; use fewer bytes")
    if process.returncode > 0:
        reason = process.stderr.strip().splitlines()[-1:]
        raise SuiteError(f"{problem}: {''.join(reason)}")
    try:
        return Limits.model_validate_json(process.stdout.splitlines()[-1])
    except (IndexError, pydantic.ValidationError):
        raise SuiteError(f"{problem}: the process printed no limits") from None
