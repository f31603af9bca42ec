"""Cache folder of the environments, with a lock so that one process makes each."""

from __future__ import annotations

import contextlib
import fcntl
import hashlib
import os
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path

from orbax_bench_core.environments.resolve import own_version
from orbax_bench_core.files import user_cache

_OURS = "orbax-bench"


def cache_folder() -> Path:
    """Returns where environments are kept: `ORBAX_BENCH_CACHE`, or below the user's cache."""
    chosen = os.environ.get("ORBAX_BENCH_CACHE")
    if chosen:
        return Path(chosen).expanduser().absolute()
    return user_cache("environments")


@contextlib.contextmanager
def only_process(folder: Path, waiting: Callable[[], None]) -> Iterator[None]:
    """Holds the lock of one environment; the kernel drops it when its holder ends, however."""
    folder.parent.mkdir(parents=True, exist_ok=True)
    with folder.with_suffix(".lock").open("ab") as lock:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            waiting()
            fcntl.flock(lock, fcntl.LOCK_EX)
        yield


def source_folder(cache: Path) -> Path:
    """Returns a folder in `cache` that holds this package alone, made when it is missing.

    Every environment's worker takes the package from there, so both sides of a comparison are
    measured by the same code.
    """
    package = Path(__file__).resolve().parents[1]
    version = own_version(_OURS)
    digest = hashlib.sha256(f"{package} {version}".encode()).hexdigest()[:16]
    folder = cache / f"source-{digest}"
    if folder.exists():
        return folder
    cache.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=cache) as beside:
        made = Path(beside) / folder.name
        made.mkdir()
        (made / package.name).symlink_to(package, target_is_directory=True)
        if version is not None:  # which a worker reads there
            metadata = made / f"orbax_bench-{version}.dist-info" / "METADATA"
            metadata.parent.mkdir()
            metadata.write_text(f"Metadata-Version: 2.1\nName: {_OURS}\nVersion: {version}\n")
        try:
            made.rename(folder)
        except OSError:  # another process has just made it
            if not folder.exists():
                raise
    return folder
