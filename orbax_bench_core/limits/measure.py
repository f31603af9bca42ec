"""Measurement of all probes in turn, on one machine and one storage. It imports JAX."""

import dataclasses
import datetime
import itertools
import mmap
import os
import re
import shutil
import time
from collections.abc import Iterator, Sequence

import jax

from orbax_bench_core.errors import UserError
from orbax_bench_core.files import AnyPath
from orbax_bench_core.limits.model import Limits, ProbeName, ProbeResult, Surroundings
from orbax_bench_core.limits.probes import PROBES, Probe
from orbax_bench_core.limits.reasons import SENTENCES
from orbax_bench_core.limits.scratch import (
    StaysResident,
    Workload,
    existing_directory,
    fitting_bytes,
    is_remote,
    make_workload,
    scratch,
)
from orbax_bench_core.measure import free_memory_bytes
from orbax_bench_core.provenance import device_provenance, host_provenance
from orbax_bench_core.reasons import NO_REASON, Reasons, because, in_words
from orbax_bench_core.state import available_bytes
from orbax_bench_core.sweep import host_memory_of


def measure_limits(
    path: str,
    *,
    num_bytes: int,
    parallelism: int | None = None,
    dtype: str = "float32",
    repeats: int = 3,
    left_out: Sequence[ProbeName] = (),
) -> Limits:
    """Measures what this machine can do with some bytes at a path, with and without TensorStore.

    Args:
        path: Folder on the storage, local or gs://.
        num_bytes: Bytes that each probe moves; fewer where memory or disk has no room.
        parallelism: Pieces of the data, each moved by a thread; None for one per device.
        dtype: Dtype of the arrays.
        repeats: How often each probe is kept; a first time is discarded.
        left_out: Probes that are not made.

    Raises:
        UserError: Nothing can be written there, or there is no room.
    """
    directory = existing_directory(path)
    free_disk = None if is_remote(directory) else shutil.disk_usage(directory).free
    free_memory = min(free_memory_bytes(), available_bytes() // jax.local_device_count())
    allowed, capped_by = fitting_bytes(num_bytes, free_disk=free_disk, free_memory=free_memory)
    surroundings = Surroundings(
        host_memory=host_memory_of(os.environ),
        load_average=os.getloadavg()[0],
        available_memory_bytes=free_memory,
        free_disk_bytes=free_disk,
        page_bytes=mmap.PAGESIZE,
    )
    taken_at, clock = datetime.datetime.now(datetime.UTC), time.monotonic()
    workload = make_workload(
        directory,
        num_bytes=allowed,
        parallelism=parallelism or jax.local_device_count(),
        dtype=dtype,
        repeats=repeats,
    )
    found = tuple(_measure_all(workload, left_out))
    writes = [result for result in found if PROBES[result.name].writes]
    if not any(result.seconds for result in writes):
        raise UserError(f"nothing can be written: {in_words(SENTENCES, *writes[-1].reason)}")
    return Limits(
        path=str(directory),
        requested_bytes=num_bytes,
        num_bytes=workload.num_bytes,
        capped_by=capped_by,
        num_threads=len(workload.pieces),
        dtype=dtype,
        taken_at=taken_at,
        duration_s=time.monotonic() - clock,
        surroundings=surroundings,
        provenance={**host_provenance(), "devices": device_provenance()},
        probes=found,
    )


def _measure_all(workload: Workload, left_out: Sequence[ProbeName]) -> Iterator[ProbeResult]:
    """Yields what each probe found. Probes that share files get a folder, removed after them."""
    for _, group in itertools.groupby(
        PROBES.items(), lambda item: (item[1].medium, item[1].compressed)
    ):
        with scratch(workload.directory) as folder:
            own = dataclasses.replace(workload, directory=folder)
            for name, probe in group:
                why_not = because("not_compared") if name in left_out else NO_REASON
                yield _measure(name, probe, own, why_not)


def _measure(name: ProbeName, probe: Probe, workload: Workload, why_not: Reasons) -> ProbeResult:
    seconds: list[float] = []
    reason = why_not or _not_applicable(probe, workload.directory)
    if not reason:
        try:
            seconds = probe.measure(workload)
        except StaysResident as failure:
            reason = because("stays_resident", share=failure.args[0])
        except (OSError, ValueError) as failure:
            # TensorStore reports what a storage refuses as a ValueError, with its whole request.
            said = re.split(r"\n| \[", str(failure))[0] or type(failure).__name__
            reason = because("probe_failed", said=said)
    return ProbeResult(
        name=name, num_bytes=workload.num_bytes, seconds=tuple(seconds), reason=reason
    )


def _not_applicable(probe: Probe, directory: AnyPath) -> Reasons:
    if is_remote(directory) and probe.medium == "files":
        return because("no_local_files")
    if is_remote(directory) and probe.cache == "warm":
        return because("no_page_cache")
    if probe.medium == "devices" and jax.default_backend() == "cpu":
        return because("cpu_devices")
    return NO_REASON
