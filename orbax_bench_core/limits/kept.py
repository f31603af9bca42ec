"""Limits that are kept between runs: by machine, storage and versions, confirmed by a short check.

They lie below the user's cache. Whatever could change them is in their key: host, kernel, CPU,
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
import os
import time
import uuid
from collections.abc import Callable
from pathlib import Path
from typing import Any, Final

import pydantic

from orbax_bench_core.files import AnyPath, ResultModel, read_at_most, user_cache, write_atomically
from orbax_bench_core.limits.model import Confirmation, Limits
from orbax_bench_core.limits.scratch import existing_directory, is_remote, scratch
from orbax_bench_core.provenance import host_provenance, storage_provenance

FOLDER: Final = "ORBAX_BENCH_LIMITS"
"""Variable of the folder in which limits are kept; `none` has every run measure them."""

MOST_AGE: Final = datetime.timedelta(days=7)
MOST_APART: Final = 1.5
"""Ratio of a check to the one before, either way, from which on limits are measured again."""

_CHECKED_BYTES: Final = 4 << 20
_REMOTE_BYTES: Final = 1 << 20
_TRIES: Final = 4
_MOST_TRIES: Final = 20
"""The best of so many hardly depends on what else a machine does."""
_NONE: Final = "none"
_NAME_LENGTH: Final = 20


class Check(ResultModel):
    """Seconds of a write that reaches the storage, and of a copy in memory; the best of some."""

    write_s: pydantic.PositiveFloat
    copy_s: pydantic.PositiveFloat

    def best(self, other: Check) -> Check:
        """Returns the lesser of both times of each."""
        return Check(
            write_s=min(self.write_s, other.write_s), copy_s=min(self.copy_s, other.copy_s)
        )

    def apart(self, other: Check) -> float:
        """Returns the larger of the two ratios of times, taken the way in which it is above 1."""
        pairs = ((self.write_s, other.write_s), (self.copy_s, other.copy_s))
        return max(max(mine / theirs, theirs / mine) for mine, theirs in pairs)


class _Kept(ResultModel):
    key: dict[str, Any]
    check: Check
    limits: Limits


class LimitsCache:
    """Kept limits of one machine with one storage, for one workload."""

    def __init__(self, path: str, **asked: Any) -> None:
        self._directory = existing_directory(path)
        host = host_provenance()
        self._key = {
            "host": host["host"],
            "image": host["image"],
            "python": host["python"],
            "versions": host["versions"],
            "environment": host["environment"],
            "storage": {**storage_provenance(str(self._directory)), **_device(self._directory)},
            **asked,
        }
        text = json.dumps(self._key, sort_keys=True).encode()
        folder = _folder()
        name = f"{hashlib.sha256(text).hexdigest()[:_NAME_LENGTH]}.json"
        self._file = None if folder is None else folder / name

    def read(self) -> tuple[Limits | None, str]:
        """Returns the limits that are kept, if they still hold."""
        if self._file is None:
            return None, ""
        try:
            kept = _Kept.model_validate_json(read_at_most(self._file))
        except FileNotFoundError:
            return None, ""
        except (OSError, pydantic.ValidationError):
            return None, f"{self._file} with kept limits is damaged, or of another release"
        if kept.key != self._key:
            return None, ""
        now, since = datetime.datetime.now(datetime.UTC), kept.limits.taken_at
        when = f"{since:%Y-%m-%d %H:%M} UTC"
        if now - since > MOST_AGE:
            return None, f"the limits of {when} are older than {MOST_AGE.days} days"
        apart = self._check(kept.check).apart(kept.check)
        if apart > MOST_APART:
            return None, f"a short check differs by a factor of {apart:.2g} from that of {when}"
        found = kept.limits.model_copy(
            update={
                "path": str(self._directory),
                "confirmed": Confirmation(at=now, ratio=apart),
            }
        )
        said = (
            f"the limits of this machine and storage were measured at {when}, and a short check "
            "agrees (--new-limits measures them again)"
        )
        return found, said

    def keep(self, limits: Limits) -> None:
        """Keeps limits that were just measured. A cache that cannot be written is left alone."""
        if self._file is None:
            return
        with contextlib.suppress(OSError):
            kept = _Kept(key=self._key, check=self._check(), limits=limits)
            write_atomically(self._file, kept.model_dump_json(indent=1).encode(), durable=False)

    def _check(self, before: Check | None = None) -> Check:
        """Makes the check, and goes on while others seem to be in the way."""
        count = _REMOTE_BYTES if is_remote(self._directory) else _CHECKED_BYTES
        data = os.urandom(count)
        room = bytearray(count)
        found: Check | None = None
        with scratch(self._directory) as folder:
            for index in range(_MOST_TRIES):
                now = Check(
                    write_s=_seconds(lambda: _write(folder, data)),
                    copy_s=_seconds(lambda: room.__setitem__(slice(None), data)),
                )
                found = now if found is None else found.best(now)
                enough = index + 1 >= _TRIES
                if before is not None and enough and found.apart(before) <= MOST_APART:
                    break
        assert found is not None
        return found


def _folder() -> Path | None:
    """Returns where limits are kept; None where the user wants none to be."""
    chosen = os.environ.get(FOLDER)
    if chosen:
        return None if chosen == _NONE else Path(chosen).expanduser().absolute()
    return user_cache("limits")


def _device(directory: AnyPath) -> dict[str, Any]:
    """Returns which file system a local directory is on: mounts may lie over each other."""
    return {} if is_remote(directory) else {"device": Path(directory).stat().st_dev}


def _seconds(operation: Callable[[], object]) -> float:
    began = time.perf_counter()
    operation()
    return time.perf_counter() - began


def _write(folder: AnyPath, data: bytes) -> None:
    file = folder / uuid.uuid4().hex
    if is_remote(folder):
        file.write_bytes(data)
        return
    with Path(file).open("wb", buffering=0) as opened:
        opened.write(data)
        os.fsync(opened.fileno())
