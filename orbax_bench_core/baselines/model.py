"""Models of a registry's files: baselines, captures and promotions."""

from __future__ import annotations

import datetime
import hashlib
import re
from collections.abc import Iterable
from typing import Any, Final

from orbax_bench_core.config import Arm
from orbax_bench_core.files import ResultModel
from orbax_bench_core.provenance import Source
from orbax_bench_core.records import SCHEMA_VERSION, Record, SchemaVersion

_CAPTURE_ID: Final = re.compile(r"\d{8}T\d{6}Z-[0-9a-f]{8}")


class Baseline(ResultModel):
    """Samples of one sweep point in one run.

    Attributes:
        schema_version: Version of this layout.
        point_id: Id of the sweep point, which is also the name of the file.
        commit: Revision of the code under test, or `unknown`.
        captured_at: When it was captured, UTC.
        records: The record of every measured repeat on every host. A side of a paired run is here
            as the point that it measured, and still knows its run, block and arm.
    """

    schema_version: SchemaVersion = SCHEMA_VERSION
    point_id: str
    commit: str
    captured_at: datetime.datetime
    records: tuple[Record, ...]


class CapturedPoint(ResultModel):
    """One point of a capture.

    Attributes:
        point_id: Id of the sweep point.
        point: Name of the sweep point.
        repeats: Measured repeats.
    """

    point_id: str
    point: str
    repeats: int


class Capture(ResultModel):
    """Capture of one run; its raw samples lie in the folder of the same name.

    Attributes:
        schema_version: Version of this layout.
        id: Unique id, which begins with the date.
        revision: What it is filed under: a label, or the revision of the code under test.
        captured_at: When it was captured, UTC.
        run_id: The run.
        measured_at: When the run began, UTC.
        suite: Name of the run's suite.
        arm: Which side of a paired run it is; None for a run without arms.
        points: The points, in the order of the suite.
        code: The code under test.
        provenance: What ran, and on what, from the first record.
    """

    schema_version: SchemaVersion = SCHEMA_VERSION
    id: str
    revision: str
    captured_at: datetime.datetime
    run_id: str
    measured_at: datetime.datetime
    suite: str
    arm: Arm | None = None
    points: tuple[CapturedPoint, ...]
    code: Source = Source()
    provenance: dict[str, Any] = {}

    @property
    def reference(self) -> str:
        """Its path in the registry, such as `c0ffee/20260102T120000Z-0123abcd`."""
        return f"{self.revision}/{self.id}"


class Promotion(ResultModel):
    """One change of what the baseline is.

    Attributes:
        schema_version: Version of this layout.
        number: One more than the highest that was there, so that clocks decide nothing. Two that
            were made at the same moment have the same number; both count, ordered by id.
        id: Unique id.
        promoted_at: When, UTC.
        points: The capture that each point's baseline became, by point id; None when it has none
            from then on.
        by: User, host and version that promoted.
        note: Why, in the words of whoever did it.
    """

    schema_version: SchemaVersion = SCHEMA_VERSION
    number: int
    id: str
    promoted_at: datetime.datetime
    points: dict[str, str | None]
    by: dict[str, str] = {}
    note: str = ""


def capture_id(measured_at: datetime.datetime, records: Iterable[Record]) -> str:
    """Returns the id of a capture: the same for the same records, another for any others."""
    content = hashlib.sha256()
    for record in records:
        content.update(record.model_dump_json().encode())
    return f"{measured_at:%Y%m%dT%H%M%SZ}-{content.hexdigest()[:8]}"


def is_capture_id(name: str) -> bool:
    """Returns whether a name is one that `capture_id` makes."""
    return _CAPTURE_ID.fullmatch(name) is not None
