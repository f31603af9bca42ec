"""Stored baselines of a suite: capture of a run, and load of what to compare with."""

from __future__ import annotations

import contextlib
from typing import TYPE_CHECKING

from orbax_bench_core.baselines.capturing import capture_run, resolved
from orbax_bench_core.baselines.model import Capture, is_capture_id
from orbax_bench_core.baselines.naming import resolve_baseline
from orbax_bench_core.baselines.store import (
    Registry,
    json_files,
    read_baseline,
    read_each,
    registry_path,
)
from orbax_bench_core.baselines.summary import read_summary
from orbax_bench_core.config import Arm
from orbax_bench_core.errors import UserError
from orbax_bench_core.records import Record, Run, RunDirectory
from orbax_bench_core.sweep import Pair

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from etils import epath


def capture_into(run: RunDirectory, directory: str) -> tuple[epath.Path, dict[str, str]]:
    """Stores a run in a registry: `<directory>/<commit>/<capture id>/<point id>.json`.

    A point with a failed or missing repeat is left out: it must not take the place of a good one.
    """
    registry = Registry(directory)
    captured = capture_run(run, registry)
    folder = registry.root / captured.revision
    if captured.capture is not None:
        folder /= captured.capture.id
    return folder, captured.left_out


def load_baseline(
    path: str, *, arm: Arm = "candidate", left_out: list[str] | None = None
) -> list[Record]:
    """Returns the measured records of a baseline."""
    path = resolve_baseline(path)
    folder = registry_path(path)
    run = RunDirectory(str(folder))
    if run.exists():
        found = measured_records(Run(run).records(), arm)
        if left_out is not None:
            left_out += run.strays
        if not found:
            raise UserError(
                f"{run.root} has no repeat that was measured yet; run its suite into it first"
            )
        return found
    if folder.suffix == ".json" and not folder.is_dir():
        folder = folder.with_suffix("")
    files = json_files(folder)
    points = [file for file in files if not is_capture_id(file.stem)]
    if points:
        return [record for read in read_each(read_baseline, points) for record in read.records]
    if files:
        parent = Registry(str(folder.parent))
        return _records(parent, _newest(parent.captures_of(folder.name)))
    return _of_registry(Registry(str(folder)), path)


def check_baseline(path: str) -> None:
    """Checks that there is a baseline to compare with, of whatever kind."""
    if read_summary(path) is None:
        load_baseline(path)


@contextlib.contextmanager
def told_before(baseline: str) -> Iterator[None]:
    """Tells what is wrong with a baseline before what is wrong with its candidate, read inside.

    The candidate is read first, for its points choose among captures; a person gave it second.
    """
    try:
        yield
    except UserError as wrong:
        try:
            check_baseline(baseline)
        except UserError as first:
            raise UserError(*first.problems, *wrong.problems) from None
        raise


def measured_records(records: Iterable[Record], arm: Arm) -> list[Record]:
    """Returns the records that are no warm-ups.

    Of paired runs they are those of one arm, as records of the points that it measured.
    """
    return [
        resolved(record)
        for record in records
        if not record.warmup and (not isinstance(record.point, Pair) or record.arm == arm)
    ]


def _of_registry(registry: Registry, path: str) -> list[Record]:
    current = registry.current()
    if current:
        return _records(registry, current)
    captures = registry.captures()
    if not captures and not registry.root.exists():
        raise UserError(
            f"{path} does not exist; give a run directory, a registry of baselines or a capture in "
            "one"
        )
    if not captures:
        raise UserError(
            f"{path} holds no run and no baseline; give a run directory, or store a run in it with "
            "`orbax-bench baseline capture`"
        )
    revisions = sorted({capture.revision for capture in captures})
    if len(revisions) > 1:
        names = ", ".join(f"{path.rstrip('/')}/{revision}" for revision in revisions)
        raise UserError(
            f"{path} holds several baselines, and none is promoted; name one of: {names}, or "
            "choose one for all with `orbax-bench baseline promote`"
        )
    return _records(registry, _newest(captures))


def _newest(captures: Iterable[Capture]) -> dict[str, str]:
    """Returns the reference of the newest capture of each point, by point id."""
    return {point.point_id: capture.reference for capture in captures for point in capture.points}


def _records(registry: Registry, chosen: dict[str, str]) -> list[Record]:
    wanted = ((reference, point_id) for point_id, reference in chosen.items())
    return [record for read in registry.baselines(wanted) for record in read.records]
