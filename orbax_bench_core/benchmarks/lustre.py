"""Save and load on a Lustre file system, with a chosen striping of the files."""

from __future__ import annotations

import dataclasses
import shutil
import subprocess
from pathlib import Path
from typing import TYPE_CHECKING

from orbax_bench_core.authoring import (
    BenchmarksGenerator,
    Sweepable,
    TestContext,
    TestResult,
    UnmetNeed,
    benchmark_options,
)
from orbax_bench_core.benchmarks.save_restore import SaveRestore, SaveRestoreOptions
from orbax_bench_core.benchmarks.support.options import await_all_hosts

if TYPE_CHECKING:
    from etils import epath

_MOUNTS = Path("/proc/self/mountinfo")
_STRIPE_UNIT_KB = 64
_ALL_TARGETS = -1


@dataclasses.dataclass(frozen=True, kw_only=True)
class LustreOptions(SaveRestoreOptions):
    """Options of `lustre`, beside those of `save_restore`.

    Attributes:
        stripe_count: Over how many storage targets each file is spread; -1 takes all of them, null
            the file system's own choice.
        stripe_size_kb: How many KiB of a file go to one target before the next, a multiple of 64;
            null takes the file system's own choice.
    """

    stripe_count: Sweepable[int | None] = None
    stripe_size_kb: Sweepable[int | None] = None

    def __post_init__(self) -> None:
        """Refuses a striping that Lustre cannot make."""
        count, size = self.stripe_count, self.stripe_size_kb
        if isinstance(count, int) and count < 1 and count != _ALL_TARGETS:
            raise ValueError(f"stripe_count must be 1 or more, or -1 for all targets, got {count}")
        if isinstance(size, int) and (size < 1 or size % _STRIPE_UNIT_KB):
            raise ValueError(f"stripe_size_kb must be a multiple of {_STRIPE_UNIT_KB}, got {size}")


@benchmark_options(LustreOptions)
class Lustre(BenchmarksGenerator[LustreOptions]):
    """Measures what `save_restore` does, in a directory of Lustre with a given striping.

    It fails where the output directory is not on Lustre. The striping that the files got is noted
    in the record.
    """

    def test_fn(self, context: TestContext[LustreOptions]) -> TestResult:
        """Sets the striping, then runs one save and one load."""
        import jax

        options = context.options
        lfs = _require_lustre(context.path)
        if jax.process_index() == 0:
            _set_striping(lfs, context.path, options)
        await_all_hosts("striped")
        result = SaveRestore().test_fn(context)
        found = _run([lfs, "getstripe", "--directory", str(context.path)])
        result.metrics.notes["striping"] = found.splitlines()
        return result


def file_system(path: epath.Path) -> str:
    """Returns the type of the file system that holds a directory; "" where nobody knows."""
    if "://" in str(path) or not _MOUNTS.exists():
        return ""
    directory, best, kind = Path(path).resolve(), Path(), ""
    for line in _MOUNTS.read_text().splitlines():
        mounted, _, described = line.partition(" - ")
        # The kernel writes a space in a path as \\040.
        point = Path(mounted.split()[4].encode().decode("unicode_escape"))
        if directory.is_relative_to(point) and len(point.parts) >= len(best.parts):
            best, kind = point, described.split()[0]
    return kind


def _require_lustre(path: epath.Path) -> str:
    kind = file_system(path)
    if kind != "lustre":
        where = f"on {kind}" if kind else "not on a file system of this machine"
        raise UnmetNeed(f"lustre needs an output directory on Lustre; {str(path)!r} is {where}")
    lfs = shutil.which("lfs")
    if lfs is None:
        raise UnmetNeed("lustre needs the lfs command to set a striping; install lustre-client")
    return lfs


def _set_striping(lfs: str, path: epath.Path, options: LustreOptions) -> None:
    chosen = []
    if options.stripe_count is not None:
        chosen += ["--stripe-count", str(options.stripe_count)]
    if options.stripe_size_kb is not None:
        chosen += ["--stripe-size", f"{options.stripe_size_kb}K"]
    if chosen:
        _run([lfs, "setstripe", *chosen, str(path)])


def _run(command: list[str]) -> str:
    process = subprocess.run(command, capture_output=True, text=True, check=False)
    if process.returncode:
        raise UnmetNeed(f"{' '.join(command[:2])} failed: {process.stderr.strip()}")
    return process.stdout
