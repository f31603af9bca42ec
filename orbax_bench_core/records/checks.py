"""Checks of the records of a run before it goes on, and what killed writers have left."""

import concurrent.futures
import contextlib
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Final

from orbax_bench_core import files
from orbax_bench_core.errors import Problem, UserError
from orbax_bench_core.files import AnyPath
from orbax_bench_core.records import reading
from orbax_bench_core.records.run_directory import RunDirectory
from orbax_bench_core.records.versions import OtherVersion, check_version
from orbax_bench_core.sweep import SweepEntry

_AT_ONCE: Final = 16
"""An object store answers many requests at once as fast as one."""
_AT_ONCE_HERE: Final = 4
"""Records that are held in memory at once where a disk has them."""


def check_versions(
    run: RunDirectory, entries: Iterable[SweepEntry], *, say: Callable[[str], None] | None = None
) -> None:
    """Checks that every record of some points and pairs is of a schema version that is read.

    Args:
        run: The run directory.
        entries: The points and pairs.
        say: Takes a line for each torn record, whose repeat is measured again.

    Raises:
        UserError: A record is of another version, or cannot be read.
    """
    paths = [
        run.root / place.path
        for entry in entries
        for place in reading.places_of(run.root, entry.id)
    ]
    at_once = _AT_ONCE if "://" in str(run.root) else _AT_ONCE_HERE
    with concurrent.futures.ThreadPoolExecutor(at_once) as pool:
        for path, aside in zip(paths, pool.map(_aside_of_torn, paths), strict=True):
            if say is not None and aside:
                say(
                    f"{path} is torn: its repeat is measured again, and the file kept beside it as "
                    f"{aside}"
                )


def _aside_of_torn(path: AnyPath) -> str:
    """Returns the name under which a record is kept if it is torn; empty for a whole one."""
    data = reading.read_file(path)
    if data is None:
        return ""
    try:
        check_version(data)
    except OtherVersion as other:
        raise UserError(Problem(str(other), file=str(path))) from None
    # Parsing all records takes too long: one that was not written to its end is seen by its last
    # byte.
    return "" if data.rstrip().endswith(b"}") else reading.aside_path(path, data).name


def clear_abandoned(run: RunDirectory, entries: Iterable[SweepEntry]) -> None:
    """Deletes the temporary files that killed writers have left among the records of entries."""
    if "://" in str(run.root):  # an object store shows no object that is not complete
        return
    for entry in entries:
        for path in Path(run.root / "records" / entry.id).glob("*/.*.tmp"):
            with contextlib.suppress(OSError):  # it lies behind a link
                files.refuse_links(path, run.root)
                if files.is_abandoned(path):
                    path.unlink(missing_ok=True)
