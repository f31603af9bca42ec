"""Files of a registry of baselines, and their models: captures, their samples, and promotions."""

import datetime
import functools
import hashlib
import re
from collections.abc import Iterable
from typing import Any, Final, TypeVar

import pydantic

from orbax_bench_core import config, files
from orbax_bench_core.errors import Problem, UserError, first_fault
from orbax_bench_core.provenance import Source
from orbax_bench_core.records import Record, Versioned, parsed_file

_CAPTURE_ID: Final = re.compile(r"\d{8}T\d{6}Z-[0-9a-f]{8}")
Model = TypeVar("Model", bound=files.ResultModel)


class Baseline(Versioned):
    """Samples of one sweep point in one run."""

    point_id: str  # id of the sweep point, which is also the name of the file
    commit: str  # revision of the code under test, or `unknown`
    captured_at: datetime.datetime  # when it was captured, UTC
    # the record of every measured repeat on every host. A side of a paired run is here as the point
    # that it measured, and still knows its run, block and arm.
    records: tuple[Record, ...]


class CapturedPoint(files.ResultModel):
    """One point of a capture."""

    point_id: str  # id of the sweep point
    point: str  # name of the sweep point
    repeats: int  # measured repeats


class Capture(Versioned):
    """Capture of one run; its raw samples lie in the folder of the same name."""

    id: str  # unique id, which begins with the date
    revision: str  # what it is filed under: a label, or the revision of the code under test
    captured_at: datetime.datetime  # when it was captured, UTC
    run_id: str
    measured_at: datetime.datetime  # when the run began, UTC
    suite: str  # name of the run's suite
    arm: config.Arm | None = None  # which side of a paired run it is; None for a run without arms
    points: tuple[CapturedPoint, ...]  # the points, in the order of the suite
    code: Source = Source()  # the code under test
    provenance: dict[str, Any] = {}  # what ran, and on what, from the first record

    @property
    def reference(self) -> str:
        """Its path in the registry, such as `c0ffee/20260102T120000Z-0123abcd`."""
        return f"{self.revision}/{self.id}"


class Promotion(Versioned):
    """One change of what the baseline is."""

    # one more than the highest that was there, so that clocks decide nothing. Two that were made at
    # the same moment have the same number; both count, ordered by id.
    number: int
    id: str  # unique id
    promoted_at: datetime.datetime  # when, UTC
    # the capture that each point's baseline became, by point id; None when it has none from then on
    points: dict[str, str | None]
    by: dict[str, str] = {}  # user, host and version that promoted
    note: str = ""  # why, in the words of the person who did it


def capture_id(measured_at: datetime.datetime, records: Iterable[Record]) -> str:
    """Returns the id of a capture: the same for the same records, another for any others.

    Args:
        measured_at: When the run began, UTC.
        records: What is captured, in order.

    Returns:
        That time, and 8 hex digits of the SHA-256 of the records.
    """
    content = hashlib.sha256()
    for record in records:
        content.update(record.model_dump_json().encode())
    return f"{measured_at:%Y%m%dT%H%M%SZ}-{content.hexdigest()[:8]}"


def is_capture_id(name: str) -> bool:
    """Returns whether a name is one that `capture_id` makes."""
    return _CAPTURE_ID.fullmatch(name) is not None


def read_model(file: files.AnyPath, model: type[Model], what: str) -> Model:
    """Reads one file, which messages call a `what`.

    Raises:
        UserError: It is missing, too large, no JSON, or of another schema version.
    """
    try:
        return parsed_file(model, files.read_at_most(file), file)
    except OSError as error:
        raise UserError(Problem(f"cannot be read: {error}", file=str(file))) from None
    except pydantic.ValidationError as error:
        version = model.model_fields["schema_version"].default
        said = f"not a {what} of schema version {version}: {first_fault(error)}"
        raise UserError(Problem(said, file=str(file))) from None


read_capture = functools.partial(read_model, model=Capture, what="capture")
read_promotion = functools.partial(read_model, model=Promotion, what="promotion")


def read_baseline(file: files.AnyPath) -> Baseline:
    """Reads one point of a capture, which must be the point that the file is named after.

    Raises:
        UserError: It is missing, damaged, or of another point.
    """
    baseline = read_model(file, Baseline, "baseline")
    ids = {baseline.point_id, file.stem, *(record.point.id for record in baseline.records)}
    if len(ids) > 1:
        message = f"the file's name and content disagree on the point: {', '.join(sorted(ids))}"
        raise UserError(Problem(message, file=str(file)))
    return baseline
