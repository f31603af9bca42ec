"""`lineage.json`: what the files of a run directory were made from, by digests."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any, Final, Literal

import pydantic

from orbax_bench_core.lineage.digests import (
    PointRecords,
    digest_of_all,
    digest_of_checkpoint,
    digest_of_file,
    digest_of_run_file,
    digests_of_records,
)
from orbax_bench_core.records import (
    PACKAGES,
    UNKNOWN,
    Record,
    ResultModel,
    RunDirectory,
    RunInfo,
    package_version,
    write_atomically,
)
from orbax_bench_core.sweep import sides

LINEAGE_FILE: Final = "lineage.json"
LINEAGE_VERSION: Final = 1
RECORDS: Final = "records"
CONFIG: Final = "config"
CHECKPOINT: Final = "checkpoint:"
"""Begins the name of a checkpoint; its path follows."""
BASELINE: Final = "baseline:"
"""Begins the name of what a run was compared with; its path follows."""

_MOST: Final = 64
"""As many different environments or contents of checkpoints are kept."""


class Ran(ResultModel):
    """What records were measured with.

    Attributes:
        environment: Name of the environment; empty for that of the command.
        image: The container image, or `unknown`.
        python: Version of Python.
        versions: Versions of packages.
        commit: Commit of the code, or `unknown`.
    """

    environment: str
    image: str
    python: str
    versions: dict[str, str]
    commit: str


class Made(ResultModel):
    """One thing that was made, and what from.

    Attributes:
        digest: SHA-256 of its content.
        inputs: Digest of each thing that it was made from, at that time, by name: a file of the run
            directory, `records`, `config`, `checkpoint:<path>` or `baseline:<path>`.
        versions: Versions of the packages that made it.
        image: The image that it was made in, or `unknown`.
    """

    digest: str
    inputs: dict[str, str] = {}
    versions: dict[str, str] = {}
    image: str = UNKNOWN


class Lineage(ResultModel):
    """All of `lineage.json`.

    Attributes:
        schema_version: Version of this layout.
        run_id: The run.
        config_hash: Identity of its suite.
        points: The records of each sweep point.
        made: What was made, by name.
        ran: What the records were measured with, each combination once.
        contents: Bytes of the different contents that were saved or loaded, by digest.
    """

    schema_version: Literal[1] = LINEAGE_VERSION
    run_id: str
    config_hash: str
    points: dict[str, PointRecords] = {}
    made: dict[str, Made] = {}
    ran: tuple[Ran, ...] = ()
    contents: dict[str, int] = {}


class Seen:
    """Notes what records were measured with, as they pass by."""

    def __init__(self) -> None:
        self._ran: dict[Any, Ran] = {}
        self._point: tuple[str, str | None] | None = None
        self.contents: dict[str, int] = {}

    def watch(self, records: Iterable[Record]) -> Iterator[Record]:
        """Yields `records` as they are."""
        for record in records:
            found = _ran(record)
            key = found.model_dump_json()
            if len(self._ran) < _MOST:
                self._ran.setdefault(key, found)
            point = (record.point_id, record.arm)
            if record.state is not None and point != self._point:
                self._point = point  # repeats of one point save the same
                if record.state.digest and len(self.contents) < _MOST:
                    self.contents[f"sha256:{record.state.fingerprint}"] = record.state.num_bytes
            yield record

    @property
    def ran(self) -> tuple[Ran, ...]:
        """What they were measured with, each combination once, in the order of their coming."""
        return tuple(self._ran.values())


def read_lineage(run: RunDirectory) -> Lineage | None:
    """Returns what `lineage.json` says; None where it is missing or cannot be read."""
    try:
        return Lineage.model_validate_json((run.root / LINEAGE_FILE).read_bytes())
    except (OSError, pydantic.ValidationError):
        return None


def write_lineage(run: RunDirectory, lineage: Lineage) -> None:
    """Writes `lineage.json`."""
    write_atomically(run.root / LINEAGE_FILE, lineage.model_dump_json(indent=1).encode())


def lineage_of_records(run: RunDirectory, info: RunInfo) -> Lineage:
    """Returns the beginning of a chain: the records, the suite, and the checkpoints that it loads.

    Args:
        run: The run directory.
        info: What its `run.json` says.

    Raises:
        UserError: A record is of another schema version.
        OSError: A record cannot be read.
    """
    points = digests_of_records(run.root, [point.id for point in info.expansion.points])
    inputs = {CONFIG: digest_of_config(run)}
    for path in checkpoint_paths(info):
        inputs[f"{CHECKPOINT}{absolute(path)}"] = checkpoint_digest(path)
    records = Made(digest=digest_of_all(points), inputs=inputs)
    return Lineage(
        run_id=info.run_id,
        config_hash=info.suite_identity,
        points=points,
        made={RECORDS: records},
    )


def with_files(
    run: RunDirectory, lineage: Lineage, names: Iterable[str], inputs: Mapping[str, str]
) -> Lineage:
    """Returns a chain with files that were just made by this process, from the same inputs.

    Args:
        run: The run directory.
        lineage: The chain so far.
        names: The files; one that is not there is left out.
        inputs: Digest of each thing that they were made from, by name.
    """
    made = dict(lineage.made)
    for name in names:
        path = run.root / name
        if path.exists():
            made[name] = Made(
                digest=digest_of_file(path),
                inputs=dict(inputs),
                versions=versions(),
                image=image(),
            )
    return lineage.model_copy(update={"made": made})


def digest_of_config(run: RunDirectory) -> str:
    """Returns the digest of `run.json` but for its status: the suite, its points and its rules.

    Raises:
        OSError: There is none.
        ValueError: It is no JSON object.
    """
    return digest_of_run_file((run.root / "run.json").read_bytes())


def checkpoint_paths(info: RunInfo) -> list[str]:
    """Returns the existing checkpoints that a run loads, in the order of its points."""
    points = (point for entry in info.expansion.points for point in sides(entry).values())
    return list(dict.fromkeys(point.checkpoint.path for point in points if point.checkpoint.path))


def checkpoint_digest(path: str) -> str:
    """Returns the digest of a checkpoint, or `unknown` where it cannot be reached from here."""
    from etils import epath

    try:
        return digest_of_checkpoint(epath.Path(path))
    except OSError:
        return UNKNOWN


def absolute(path: str) -> str:
    """Returns a path that means the same wherever a command is called; a URI as it is."""
    return path if "://" in path else str(Path(path).absolute())


def versions() -> dict[str, str]:
    """Returns the versions of the packages in this process."""
    return {name: package_version(name) for name in PACKAGES}


def image() -> str:
    """Returns the image that this process runs in, or `unknown`."""
    return os.environ.get("ORBAX_BENCH_IMAGE") or UNKNOWN


def _ran(record: Record) -> Ran:
    found = record.provenance
    environment, git = record.measured.environment, found.get("git")
    return Ran(
        environment="" if environment is None else environment.name,
        image=str(found.get("image", UNKNOWN)),
        python=str(found.get("python", UNKNOWN)),
        versions={name: str(value) for name, value in found.get("versions", {}).items()},
        commit=str(git.get("commit", UNKNOWN)) if isinstance(git, dict) else UNKNOWN,
    )
