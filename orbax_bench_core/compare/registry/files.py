"""Reading the files of a registry, several at a time."""

from __future__ import annotations

import concurrent.futures
from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING, Final, TypeVar

import pydantic

from orbax_bench_core.compare.registry.model import Baseline
from orbax_bench_core.config.base import checked_path
from orbax_bench_core.config.errors import Problem, SuiteError
from orbax_bench_core.records.record import SCHEMA_VERSION, ResultModel

if TYPE_CHECKING:
    from etils import epath

Model = TypeVar("Model", bound=ResultModel)
Given = TypeVar("Given")
Found = TypeVar("Found")

_AT_ONCE: Final = 16
"""An object store answers many requests at once as fast as one."""


def registry_path(path: str) -> epath.Path:
    """Returns a path, or says why it cannot be honoured.

    Raises:
        SuiteError: The path is neither local nor gs://.
    """
    from etils import epath

    try:
        return epath.Path(checked_path(path))
    except ValueError as error:
        raise SuiteError(str(error)) from None


def read_model(file: epath.Path, model: type[Model], what: str) -> Model:
    """Reads one file.

    Args:
        file: The file.
        model: What it should hold.
        what: What to call that.

    Raises:
        SuiteError: The file holds something else, or cannot be read.
    """
    try:
        return model.model_validate_json(file.read_bytes())
    except OSError as error:
        raise SuiteError(Problem(f"cannot be read: {error}", file=str(file))) from None
    except pydantic.ValidationError as error:
        first = error.errors()[0]
        where = ".".join(str(part) for part in first["loc"])
        message = f"not a {what} of schema version {SCHEMA_VERSION}: {where}: {first['msg']}"
        raise SuiteError(Problem(message, file=str(file))) from None


def read_baseline(file: epath.Path) -> Baseline:
    """Reads one point of a capture, which must be the point that the file is named after.

    Raises:
        SuiteError: The file holds something else, or cannot be read.
    """
    baseline = read_model(file, Baseline, "baseline")
    ids = {baseline.point_id, file.stem, *(record.point.id for record in baseline.records)}
    if len(ids) > 1:
        message = f"the file's name and content disagree on the point: {', '.join(sorted(ids))}"
        raise SuiteError(Problem(message, file=str(file)))
    return baseline


def read_each(read: Callable[[Given], Found], given: Iterable[Given]) -> list[Found]:
    """Returns what `read` returns for each of `given`, in their order."""
    with concurrent.futures.ThreadPoolExecutor(_AT_ONCE) as pool:
        return list(pool.map(read, given))


def json_files(folder: epath.Path) -> list[epath.Path]:
    """Returns the JSON files directly in a folder, by name; none where there is no folder."""
    found = (file for file in folder.glob("*.json") if not file.name.startswith("."))
    return sorted(found) if folder.exists() else []
