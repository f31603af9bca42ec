"""Batches of a pipeline: which points each step is to measure, which it has, and which lack."""

import json
import re
from collections.abc import Iterable, Mapping, Sequence
from typing import Final

import pydantic

from orbax_bench_core.errors import Problem, UserError
from orbax_bench_core.files import (
    AnyPath,
    ResultModel,
    at_once,
    create_exclusively,
    names_in,
    read_if_there,
    refuse_links,
    write_atomically,
)
from orbax_bench_core.leases import batch_name
from orbax_bench_core.lineage.digests import PointDigest, file_digest, point_digests
from orbax_bench_core.records import RunDirectory

BATCHES: Final = "batches"
_PLANNED: Final = "planned.json"
_PLAN: Final = pydantic.TypeAdapter(dict[str, tuple[str, ...]])
_NAME: Final = re.compile(r"(?P<name>.+)\.(?P<number>[1-9]\d*)\.json")


class Batch(ResultModel):
    """Report of a step that has measured its points."""

    name: str  # the batch
    run_id: str
    status: str  # `failed` when a repeat of any of its points failed, else `passed`
    points: dict[str, str]  # digest of the records of each point, by its id


class NotedBatch(ResultModel):
    """A batch, as `lineage.json` has it."""

    points: int  # how many points it has; 0 where no plan says so
    file: str = ""  # the file in which its step named it; empty when the step left none
    digest: str = ""  # SHA-256 of that file; empty when there is none


def write_planned(root: AnyPath, batches: Iterable[Sequence[str]]) -> None:
    """Writes which steps are to measure which points."""
    refuse_links(root / BATCHES, root)
    named = {batch_name(ids): list(ids) for ids in batches}
    write_atomically(root / BATCHES / _PLANNED, json.dumps(named, indent=1).encode())


def read_planned(root: AnyPath) -> dict[str, tuple[str, ...]]:
    """Returns the ids of the points of each planned batch, by its name; empty without a plan.

    Raises:
        UserError: The file is there, and is no plan.
    """
    data = read_if_there(root / BATCHES / _PLANNED)
    if data is None:
        return {}
    try:
        return _PLAN.validate_json(data)
    except pydantic.ValidationError:
        file = str(root / BATCHES / _PLANNED)
        raise UserError(Problem("not a plan of the steps of a pipeline", file=file)) from None


def name_batch(run: RunDirectory, name: str, point_ids: list[str], status: str) -> str:
    """Names a batch in the run directory, in a file that nothing replaces.

    It has the digest of the records of each of its points. A step that is run again, and finds what
    it found before, leaves the existing file. If it has measured more, it writes one with the
    next number.

    Args:
        run: The run directory.
        name: Name of the batch.
        point_ids: The points that its step was to measure.
        status: How the step ended.

    Returns:
        Path of the file below the run directory.
    """
    refuse_links(run.root / BATCHES, run.root)
    digests = point_digests(run.root, point_ids)
    points = {point_id: digests[point_id].digest for point_id in point_ids if point_id in digests}
    batch = Batch(name=name, run_id=run.read_info().run_id, status=status, points=points)
    data = batch.model_dump_json(indent=1).encode()
    while True:
        newest = _newest(run.root).get(name, 0)
        if newest and read_if_there(_file(run.root, name, newest)) == data:
            return str(_file(run.root, name, newest).relative_to(run.root))
        path = _file(run.root, name, newest + 1)
        if create_exclusively(path, data):
            return str(path.relative_to(run.root))


def note_batches(run: RunDirectory) -> dict[str, NotedBatch]:
    """Returns every batch that was planned or named, by its name."""
    planned, newest = read_planned(run.root), _newest(run.root)
    files = {name: _file(run.root, name, number) for name, number in newest.items()}
    digests = dict(zip(files, at_once(file_digest, files.values()), strict=True))
    return {
        name: NotedBatch(
            points=len(planned.get(name, ())),
            file=str(files[name].relative_to(run.root)) if name in files else "",
            digest=digests.get(name, ""),
        )
        for name in dict.fromkeys([*planned, *files])
    }


def lost_batches(
    run: RunDirectory, points: Mapping[str, PointDigest]
) -> dict[str, tuple[str, ...]]:
    """Returns the planned batches that no step has named and whose points lack records.

    Args:
        run: The run directory.
        points: Digests of the points that have records, by id.

    Returns:
        Ids of the points without records, by the name of the batch; only batches that lack some.
    """
    named = _newest(run.root)
    lost = {
        name: tuple(point_id for point_id in ids if point_id not in points)
        for name, ids in read_planned(run.root).items()
        if name not in named
    }
    return {name: ids for name, ids in lost.items() if ids}


def read_batch(path: AnyPath) -> Batch | None:
    """Returns the report of a step about its batch, or None if the file is torn or missing."""
    try:
        return Batch.model_validate_json(read_if_there(path) or b"")
    except pydantic.ValidationError:
        return None


def _file(root: AnyPath, name: str, number: int) -> AnyPath:
    return root / BATCHES / f"{name}.{number}.json"


def _newest(root: AnyPath) -> dict[str, int]:
    """Returns the number of the newest file of each batch that a step has named."""
    numbers: dict[str, int] = {}
    for match in filter(None, map(_NAME.fullmatch, names_in(root / BATCHES))):
        name = match["name"]
        numbers[name] = max(int(match["number"]), numbers.get(name, 0))
    return dict(sorted(numbers.items()))
