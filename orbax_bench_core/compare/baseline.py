"""Stored baselines: one file per sweep point, with every raw sample inside."""

from __future__ import annotations

import datetime
from typing import TYPE_CHECKING, Literal

import pydantic

from orbax_bench_core.config.errors import Problem, SuiteError
from orbax_bench_core.config.paths import checked_path
from orbax_bench_core.results.files import write_atomically
from orbax_bench_core.results.provenance import host_provenance
from orbax_bench_core.results.record import SCHEMA_VERSION, Record, ResultModel
from orbax_bench_core.results.run_directory import RunDirectory

if TYPE_CHECKING:
    from etils import epath


class Baseline(ResultModel):
    """What one sweep point measured at one revision.

    Attributes:
        schema_version: Version of this layout.
        point_id: Id of the sweep point, which is also the name of the file.
        commit: Revision of the code that ran, or `unknown`.
        captured_at: When it was captured, UTC.
        records: The record of every measured repeat on every host.
    """

    schema_version: Literal[1] = SCHEMA_VERSION
    point_id: str
    commit: str
    captured_at: datetime.datetime
    records: tuple[Record, ...]


def capture(run: RunDirectory, directory: str) -> tuple[epath.Path, list[str]]:
    """Stores a run as a baseline: `<directory>/<commit>/<point id>.json`.

    A point with a failed or missing repeat is left out: it must not take the place of a good one.

    Args:
        run: The run.
        directory: Where baselines are kept, local or gs://.

    Returns:
        The folder of this revision, and the names of the points that were left out.

    Raises:
        SuiteError: The path cannot be honoured or written.
    """
    info = run.read_info()
    commit = host_provenance()["git"]["commit"]
    folder = _path(directory) / commit
    left_out = []
    for point in info.expansion.points:
        repeats = [run.read_repeat(point, index) for index in range(info.num_repeats)]
        if any(repeat.status != "passed" for repeat in repeats):
            left_out.append(point.name)
            continue
        baseline = Baseline(
            point_id=point.id,
            commit=commit,
            captured_at=datetime.datetime.now(datetime.UTC),
            records=tuple(record for repeat in repeats for record in repeat.records.values()),
        )
        try:
            write_atomically(folder / f"{point.id}.json", baseline.model_dump_json().encode())
        except OSError as error:
            raise SuiteError(f"cannot write the baseline: {error}") from None
    return folder, left_out


def load(path: str) -> list[Record]:
    """Returns the measured records of a baseline.

    Args:
        path: A folder that `capture` made, the same spelled `<commit>.json` as Orbax's guide does,
            a folder that holds a single one, or a run directory.

    Raises:
        SuiteError: There is no baseline, or a file is not what its name says.
    """
    folder = _path(path)
    if (folder / "run.json").exists():
        return [record for record in RunDirectory(path).records() if not record.warmup]
    if not folder.exists() and folder.suffix == ".json":
        folder = folder.with_suffix("")
    files = sorted(folder.glob("*.json")) if folder.exists() else []
    if not files and folder.exists():
        revisions = sorted(child for child in folder.iterdir() if child.is_dir())
        if len(revisions) > 1:
            names = ", ".join(revision.name for revision in revisions)
            raise SuiteError(f"{path} holds several baselines; name one of: {names}")
        files = sorted(revisions[0].glob("*.json")) if revisions else []
    if not files:
        raise SuiteError(f"{path} holds no baseline; capture one with --baseline-capture-path")
    return [record for file in files for record in _read(file).records]


def _read(file: epath.Path) -> Baseline:
    try:
        baseline = Baseline.model_validate_json(file.read_bytes())
    except pydantic.ValidationError as error:
        first = error.errors()[0]
        where = ".".join(str(part) for part in first["loc"])
        message = f"not a baseline of schema version {SCHEMA_VERSION}: {where}: {first['msg']}"
        raise SuiteError(Problem(message, file=str(file))) from None
    ids = {baseline.point_id, file.stem, *(record.point.id for record in baseline.records)}
    if len(ids) > 1:
        message = f"the file's name and content disagree on the point: {', '.join(sorted(ids))}"
        raise SuiteError(Problem(message, file=str(file)))
    return baseline


def _path(path: str) -> epath.Path:
    from etils import epath

    try:
        return epath.Path(checked_path(path))
    except ValueError as error:
        raise SuiteError(str(error)) from None
