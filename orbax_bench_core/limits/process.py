"""Child process that measures limits. Its parent need not import JAX."""

import signal
from collections.abc import Callable, Iterator, Mapping, Sequence
from types import MappingProxyType
from typing import Any

import pydantic

from orbax_bench_core.config import ArraySpec, ConfigModel, HostMemory, leaves
from orbax_bench_core.errors import UserError
from orbax_bench_core.execute import Host, LocalHost, Output
from orbax_bench_core.limits.kept import LimitsCache
from orbax_bench_core.limits.model import (
    HostLimits,
    Limits,
    ProbeName,
    read,
    write,
    write_hosts,
)
from orbax_bench_core.limits.scratch import existing_directory, scratch
from orbax_bench_core.limits.share import unasked
from orbax_bench_core.records import Record, Run, RunDirectory
from orbax_bench_core.sweep import allocator_settings

_HOST_MEMORY: HostMemory = "reused"
_MODULE = "orbax_bench_core.limits"
_TIMEOUT_S = 300.0
_NONE: Mapping[str, str] = MappingProxyType({})

_MOST_BYTES = 64 << 20
"""Speeds hardly change beyond this, and the time that it takes to measure them does."""


class LimitsRequest(ConfigModel):
    """Request to a process that measures limits: the arguments of `measure_limits`."""

    path: str
    num_bytes: int
    parallelism: int | None
    dtype: str
    host_memory: HostMemory
    left_out: Sequence[ProbeName] = ()


def take_limits(
    path: str,
    num_bytes: int,
    parallelism: int | None = None,
    timeout_s: float = _TIMEOUT_S,
    *,
    dtype: str = "float32",
) -> Limits:
    """Measures the limits of machine and storage, in a process whose heap keeps its memory."""
    # Whoever calls this holds the measuring lock: nothing else may measure meanwhile.
    asked: dict[str, Any] = {"num_bytes": num_bytes, "parallelism": parallelism, "dtype": dtype}
    ((_, found),) = _take(LocalHost(), path, timeout_s, **asked)
    if isinstance(found, UserError):
        raise found
    return found


def _take(
    host: Host,
    path: str,
    timeout_s: float,
    *,
    variables: Mapping[str, str] = _NONE,
    **asked: Any,
) -> Iterator[tuple[int, Limits | UserError]]:
    with scratch(existing_directory(path)) as folder:
        # The folder is this process's: it goes even if the one that measures is killed.
        request = LimitsRequest(path=str(folder), host_memory=_HOST_MEMORY, **asked)
        outputs = host.run_module(
            _MODULE,
            request.model_dump_json(),
            variables={**allocator_settings(_HOST_MEMORY), **variables},
            timeout_s=timeout_s,
        )
        for output in outputs:
            try:
                found = _read(output, path, timeout_s)
            except UserError as problem:
                yield output.host, problem
            else:
                yield output.host, found.model_copy(update={"path": str(folder.parent)})


def _read(output: Output, path: str, timeout_s: float) -> Limits:
    problem = f"cannot measure the limits of {path}"
    if output.code is None:
        raise UserError(f"{problem}: not done after {timeout_s:g} seconds; use fewer bytes")
    if output.code < 0:
        name = signal.Signals(-output.code).name
        raise UserError(f"{problem}: the process was killed by {name}; use fewer bytes")
    if output.code > 0:
        reason = output.err.strip().splitlines()[-1:]
        raise UserError(f"{problem}: {''.join(reason)}")
    try:
        return Limits.model_validate_json(output.out.splitlines()[-1])
    except (IndexError, pydantic.ValidationError):
        raise UserError(f"{problem}: the process printed no limits") from None


def ensure_limits(
    run: RunDirectory, say: Callable[[str], None], host: Host, *, again: bool = False
) -> None:
    """Measures the limits of a run's storage, unless the run has them or has measured nothing.

    As many bytes are moved as the largest checkpoint of the run has, up to 64 MiB, by as many parts
    at once as its mesh has devices; TensorStore does nothing in a way in which no point of the run
    saves or loads. Limits that an earlier run measured on this machine and storage are taken where
    a short check agrees. A failure is said and otherwise changes nothing.
    """
    try:
        if read(run) is not None:
            return
    except UserError as damaged:
        say(f"no limits: {damaged}")
        return
    largest = max(Run(run).records(), key=_num_bytes, default=None)
    if largest is None or not _num_bytes(largest):
        return
    asked: dict[str, Any] = {
        "num_bytes": min(_num_bytes(largest), _MOST_BYTES),
        "parallelism": largest.measured.num_devices,
        "dtype": _dtype(largest),
        "left_out": unasked(run.read_info().expansion.plain, str(run.root)),
        "variables": {"JAX_PLATFORMS": "cpu"} if _is_of_a_slice(largest) else {},
    }
    try:
        cache = _cache(run, host, largest, asked)
        known, why = (None, "") if cache is None or again else cache.read()
        if why:
            say(why)
        if known is not None:
            write(run, known)
            return
        say("measuring the limits of this machine and storage (--no-limits skips this)")
        found = dict(_take(host, str(run.root), _TIMEOUT_S, **asked))
        _keep(run, found, say)
        first = found.get(0)
        if cache is not None and len(found) == 1 and isinstance(first, Limits):
            cache.keep(first)
    except (UserError, OSError) as failure:
        say(f"no limits: {failure}")


def _cache(
    run: RunDirectory, host: Host, largest: Record, asked: Mapping[str, Any]
) -> LimitsCache | None:
    """Returns where limits of this machine are kept; None where several hosts measure."""
    if not isinstance(host, LocalHost) or _is_of_a_slice(largest):
        return None
    devices = largest.provenance.get("devices", {})
    return LimitsCache(
        str(run.root), **asked, host_memory=_HOST_MEMORY, devices=devices, module=_MODULE
    )


def _keep(
    run: RunDirectory, found: Mapping[int, Limits | UserError], say: Callable[[str], None]
) -> None:
    """Writes the limits of host 0 and, of a run of several hosts, those of all."""
    hosts = {host: answer for host, answer in found.items() if isinstance(answer, Limits)}
    missing = {host: str(answer) for host, answer in found.items() if isinstance(answer, UserError)}
    for host, reason in missing.items():
        say(f"no limits{f' of host {host}' if len(found) > 1 else ''}: {reason}")
    if len(found) > 1:
        write_hosts(run, HostLimits(hosts=hosts, missing=missing))
    if 0 in hosts:
        write(run, hosts[0])


def _is_of_a_slice(record: Record) -> bool:
    """Returns whether TPUs of several hosts made a record, which no host can open alone."""
    devices = record.provenance.get("devices", {})
    return devices.get("platform") == "tpu" and record.num_hosts > 1


def _num_bytes(record: Record) -> int:
    return 0 if record.state is None else record.state.num_bytes


def _dtype(record: Record) -> str:
    arrays = [leaf for _, leaf in leaves(record.measured.checkpoint.spec or {})]
    largest = max(
        (leaf for leaf in arrays if isinstance(leaf, ArraySpec)),
        key=lambda leaf: leaf.num_bytes,
        default=None,
    )
    return "float32" if largest is None else largest.dtype
