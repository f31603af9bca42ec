"""Files of batches: which points each step of a pipeline is to measure, and which it has."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Final

import pydantic

from orbax_bench_core.errors import Problem, UserError
from orbax_bench_core.files import (
    ResultModel,
    create_exclusively,
    names_in,
    read_if_there,
    refuse_links,
    write_atomically,
)
from orbax_bench_core.leases import batch_name

if TYPE_CHECKING:
    from etils import epath

BATCHES: Final = "batches"
_PLANNED: Final = "planned.json"
_PLAN: Final = pydantic.TypeAdapter(dict[str, tuple[str, ...]])
_NAME: Final = re.compile(r"(?P<name>.+)\.(?P<number>[1-9]\d*)\.json")


class Batch(ResultModel):
    """Report of a step that has measured its points.

    Attributes:
        name: The batch.
        run_id: The run.
        status: `failed` when a repeat of any of its points failed, else `passed`.
        points: Digest of the records of each point, by its id.
    """

    name: str
    run_id: str
    status: str
    points: dict[str, str]


def write_planned(root: epath.Path, batches: Iterable[Sequence[str]]) -> None:
    """Writes which steps are to measure which points."""
    refuse_links(root / BATCHES, root)
    named = {batch_name(ids): list(ids) for ids in batches}
    write_atomically(root / BATCHES / _PLANNED, json.dumps(named, indent=1).encode())


def read_planned(root: epath.Path) -> dict[str, tuple[str, ...]]:
    """Returns the ids of the points of each planned batch, by its name; empty without a plan."""
    data = read_if_there(root / BATCHES / _PLANNED)
    if data is None:
        return {}
    try:
        return _PLAN.validate_json(data)
    except pydantic.ValidationError:
        file = str(root / BATCHES / _PLANNED)
        raise UserError(Problem("not a plan of the steps of a pipeline", file=file)) from None


def write_batch(root: epath.Path, batch: Batch) -> epath.Path:
    """Names a batch in the run directory, in a file that nothing replaces.

    A step that is run again, and finds what it found before, leaves the file that is there. If it
    has measured more, it writes one with the next number.
    """
    refuse_links(root / BATCHES, root)
    data = batch.model_dump_json(indent=1).encode()
    while True:
        newest = newest_batches(root).get(batch.name)
        if newest is not None and read_if_there(newest) == data:
            return newest
        path = root / BATCHES / f"{batch.name}.{1 if newest is None else _number(newest) + 1}.json"
        if create_exclusively(path, data):
            return path


def newest_batches(root: epath.Path) -> Mapping[str, epath.Path]:
    """Returns the newest file of each batch that a step has named, by the name of the batch."""
    numbers: dict[str, int] = {}
    for match in map(_NAME.fullmatch, names_in(root / BATCHES)):
        if match:
            name, number = match["name"], int(match["number"])
            numbers[name] = max(number, numbers.get(name, 0))
    return {
        name: root / BATCHES / f"{name}.{number}.json" for name, number in sorted(numbers.items())
    }


def read_batch(path: epath.Path) -> Batch | None:
    """Returns what a step said of its batch; None where the file is torn or not there."""
    try:
        return Batch.model_validate_json(read_if_there(path) or b"")
    except pydantic.ValidationError:
        return None


def _number(path: epath.Path) -> int:
    match = _NAME.fullmatch(path.name)
    return int(match["number"]) if match else 0
