"""Child process that measures limits, without JAX in its parent; limits that are kept between runs.

Those lie below the user's cache. Whatever could change them is in their key: host, kernel, CPU,
memory, devices, versions of all libraries, variables of the environment, the file system or the
bucket, and the workload. What a key cannot show, a disk that has become slow for example, the check
does: it writes a few MiB and copies memory, and its times are compared with those that it took when
the limits were measured.
"""

from __future__ import annotations

import contextlib
import datetime
import hashlib
import json
import math
import os
import signal
import uuid
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any, Final

import numpy as np
import pydantic

from orbax_bench_core.config import ArraySpec, HostMemory, leaves
from orbax_bench_core.errors import UserError
from orbax_bench_core.execute import Host, LocalHost, Output
from orbax_bench_core.files import AnyPath, ResultModel, read_at_most, user_cache, write_atomically
from orbax_bench_core.limits import model
from orbax_bench_core.limits.model import Confirmation, Limits
from orbax_bench_core.limits.probes import timed
from orbax_bench_core.limits.scratch import MIN_BYTES, existing_directory, is_remote, scratch, write
from orbax_bench_core.limits.share import unasked
from orbax_bench_core.provenance import host_provenance, storage_provenance
from orbax_bench_core.records import Record, Run, RunDirectory
from orbax_bench_core.sweep import allocator_settings

_HOST_MEMORY: HostMemory = "reused"
_MODULE = "orbax_bench_core.limits"
_TIMEOUT_S = 300.0
"""Seconds that all probes of one host may take together."""

_MOST_BYTES = 64 << 20
"""Speeds hardly change beyond this, and the time that it takes to measure them does."""


def take_limits(
    path: str,
    num_bytes: int,
    parallelism: int | None = None,
    timeout_s: float = _TIMEOUT_S,
    *,
    dtype: str = "float32",
) -> Limits:
    """Measures the limits of machine and storage, in a process whose heap keeps its memory.

    Args:
        path: Folder on the storage to measure, local or gs://.
        num_bytes: Bytes that each probe moves; fewer where memory or disk has no room.
        parallelism: Threads or shards; None for as many as there are devices.
        timeout_s: Seconds after which the process is ended.
        dtype: Dtype of the arrays.

    Raises:
        UserError: Nothing can be written there, or the time was over.
    """
    # Whoever calls this holds the measuring lock: nothing else may measure meanwhile.
    asked = {"num_bytes": num_bytes, "parallelism": parallelism, "dtype": dtype}
    ((_, found),) = _take(LocalHost(), path, timeout_s, {}, asked)
    if isinstance(found, UserError):
        raise found
    return found


def _take(
    host: Host, path: str, timeout_s: float, variables: Mapping[str, str], asked: Mapping[str, Any]
) -> Iterator[tuple[int, Limits | UserError]]:
    """Yields the limits of each host; `asked` has the arguments of `measure_limits`."""
    with scratch(existing_directory(path)) as folder:
        # The folder is this process's: it goes even if the one that measures is killed.
        outputs = host.run_module(
            _MODULE,
            # An agent replaces the path of the run directory by its own: nothing of it is escaped.
            json.dumps({"path": str(folder), **asked}, ensure_ascii=False),
            variables={**allocator_settings(_HOST_MEMORY), **variables},
            timeout_s=timeout_s,
        )
        for output in outputs:
            found = _read(output, timeout_s)
            if isinstance(found, str):
                yield output.host, UserError(f"cannot measure the limits of {path}: {found}")
            else:
                yield output.host, found.model_copy(update={"path": str(folder.parent)})


def _read(output: Output, timeout_s: float) -> Limits | str:
    """Returns the limits that a process has printed, or why there are none."""
    if output.code is None:
        return f"not done after {timeout_s:g} seconds; use fewer bytes"
    if output.code < 0:
        return f"the process was killed by {signal.Signals(-output.code).name}; use fewer bytes"
    if output.code > 0:
        return "".join(output.err.strip().splitlines()[-1:])
    try:
        return Limits.model_validate_json(output.out.splitlines()[-1])
    except (IndexError, pydantic.ValidationError):
        return "the process printed no limits"


def ensure_limits(
    run: RunDirectory, say: Callable[[str], None], host: Host, *, again: bool = False
) -> None:
    """Measures the limits of a run's storage, unless the run has them or has measured nothing.

    As many bytes are moved as the largest checkpoint of the run has, 1 to 64 MiB, by as many parts
    at once as its mesh has devices; TensorStore does nothing in a way in which no point of the run
    saves or loads. Limits that an earlier run measured on this machine and storage are taken where
    a short check agrees. A failure is said and otherwise changes nothing.
    """
    try:
        if model.read(run) is None:
            _ensure(run, say, host, again=again)
    except (UserError, OSError) as failure:
        say(f"no limits: {failure}")


def _ensure(run: RunDirectory, say: Callable[[str], None], host: Host, *, again: bool) -> None:
    largest = max(Run(run).records(), key=_num_bytes, default=None)
    if largest is None or not _num_bytes(largest):
        return
    asked: dict[str, Any] = {
        # Of a small checkpoint the limit is the speed at the fewest bytes that can be measured.
        "num_bytes": min(max(_num_bytes(largest), MIN_BYTES), _MOST_BYTES),
        "parallelism": largest.measured.num_devices,
        "dtype": _dtype(largest),
        "left_out": unasked(run.read_info().expansion.plain, str(run.root)),
    }
    # No host can open its chips of a slice alone.
    devices = largest.provenance.get("devices", {})
    of_a_slice = devices.get("platform") == "tpu" and largest.num_hosts > 1
    cache = None
    if isinstance(host, LocalHost) and not of_a_slice and (folder := _folder()) is not None:
        cache = LimitsCache(folder, str(run.root), **asked, devices=devices)
        known, why = (None, "") if again else cache.read()
        if why:
            say(why)
        if known is not None:
            model.write(run, known)
            return
    say("measuring the limits of this machine and storage (--no-limits skips this)")
    variables = {"JAX_PLATFORMS": "cpu"} if of_a_slice else {}
    found = dict(_take(host, str(run.root), _TIMEOUT_S, variables, asked))
    hosts = {index: one for index, one in found.items() if isinstance(one, Limits)}
    missing = {index: str(one) for index, one in found.items() if isinstance(one, UserError)}
    for index, reason in missing.items():
        say(f"no limits{f' of host {index}' if len(found) > 1 else ''}: {reason}")
    if len(found) > 1:
        model.write(run, model.HostLimits(hosts=hosts, missing=missing))
    if 0 in hosts:
        model.write(run, hosts[0])
        if cache is not None:
            cache.keep(hosts[0])


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


FOLDER: Final = "ORBAX_BENCH_LIMITS"
"""Variable of the folder in which limits are kept; `none` has every run measure them."""

MOST_AGE: Final = datetime.timedelta(days=7)
MOST_APART: Final = 1.5
"""Ratio of a check to the one before, either way, from which on limits are measured again."""

_CHECKED_BYTES: Final = 4 << 20
_REMOTE_BYTES: Final = 1 << 20
"""Bytes that a check of kept limits moves, on a disk and in a bucket."""
_TRIES: Final = 4
_MOST_TRIES: Final = 20
"""The best of so many hardly depends on what else a machine does."""
_KEPT_NOWHERE: Final = "none"
_NAME_LENGTH: Final = 20


class Check(ResultModel):
    """Seconds of a write that reaches the storage, and of a copy in memory; the best of some."""

    write_s: pydantic.PositiveFloat
    copy_s: pydantic.PositiveFloat

    def apart(self, other: Check) -> float:
        """Returns the larger of the two ratios of times, taken the way in which it is above 1."""
        pairs = ((self.write_s, other.write_s), (self.copy_s, other.copy_s))
        return max(max(mine / theirs, theirs / mine) for mine, theirs in pairs)


class _Kept(ResultModel):
    key: dict[str, Any]
    check: Check
    limits: Limits


class LimitsCache:
    """Kept limits of one machine with one storage, for one workload, in a folder."""

    def __init__(self, folder: Path, path: str, **asked: Any) -> None:
        self._directory = existing_directory(path)
        host = host_provenance()
        self._key: dict[str, Any] = {
            "host": host["host"],
            "image": host["image"],
            "python": host["python"],
            "versions": host["versions"],
            "environment": host["environment"],
            "storage": storage_provenance(str(self._directory)),
            **asked,
        }
        if not is_remote(self._directory):  # mounts may lie over each other
            self._key["storage"]["device"] = Path(self._directory).stat().st_dev
        text = json.dumps(self._key, sort_keys=True).encode()
        self._file = folder / f"{hashlib.sha256(text).hexdigest()[:_NAME_LENGTH]}.json"

    def read(self) -> tuple[Limits | None, str]:
        """Returns the limits that are kept, if they still hold."""
        try:
            kept = _Kept.model_validate_json(read_at_most(self._file))
        except FileNotFoundError:
            return None, ""
        except (OSError, pydantic.ValidationError):
            return None, f"{self._file} with kept limits is damaged, or of another release"
        now, since = datetime.datetime.now(datetime.UTC), kept.limits.taken_at
        when = f"{since:%Y-%m-%d %H:%M} UTC"
        if now - since > MOST_AGE:
            return None, f"the limits of {when} are older than {MOST_AGE.days} days"
        apart = self._check(kept.check).apart(kept.check)
        if apart > MOST_APART:
            return None, f"a short check differs by a factor of {apart:.2g} from that of {when}"
        found = kept.limits.model_copy(
            update={"path": str(self._directory), "confirmed": Confirmation(at=now, ratio=apart)}
        )
        said = (
            f"the limits of this machine and storage were measured at {when}, and a short check "
            "agrees (--new-limits measures them again)"
        )
        return found, said

    def keep(self, limits: Limits) -> None:
        """Keeps limits that were just measured. A cache that cannot be written is left alone."""
        with contextlib.suppress(OSError):
            kept = _Kept(key=self._key, check=self._check(), limits=limits)
            write_atomically(self._file, kept.model_dump_json(indent=1).encode(), durable=False)

    def _check(self, before: Check | None = None) -> Check:
        """Makes the check, and goes on while others seem to be in the way."""
        count = _REMOTE_BYTES if is_remote(self._directory) else _CHECKED_BYTES
        data = os.urandom(count)
        room = bytearray(count)
        write_s = copy_s = math.inf
        with scratch(self._directory) as folder:
            for index in range(_MOST_TRIES):
                write_s = min(write_s, timed([lambda: _write(folder, data)]))
                copy_s = min(copy_s, timed([lambda: room.__setitem__(slice(None), data)]))
                found = Check(write_s=write_s, copy_s=copy_s)
                enough = index + 1 >= _TRIES
                if before is not None and enough and found.apart(before) <= MOST_APART:
                    break
        return found


def _folder() -> Path | None:
    """Returns where limits are kept; None if the user wants none to be."""
    chosen = os.environ.get(FOLDER)
    if chosen:
        return None if chosen == _KEPT_NOWHERE else Path(chosen).expanduser().absolute()
    return user_cache("limits")


def _write(folder: AnyPath, data: bytes) -> None:
    file = folder / uuid.uuid4().hex
    if is_remote(folder):
        file.write_bytes(data)
    else:
        write(Path(file), np.frombuffer(data, np.uint8))
