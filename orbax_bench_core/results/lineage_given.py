"""What a path that somebody gave is, among the things that have a lineage."""

from __future__ import annotations

import dataclasses
import json
from typing import TYPE_CHECKING, Any, Final

from orbax_bench_core.config.base import checked_path
from orbax_bench_core.config.errors import SuiteError
from orbax_bench_core.results.lineage_file import LINEAGE_FILE, RECORDS

if TYPE_CHECKING:
    from etils import epath

ACCEPTED: Final = (
    "a run directory (local or gs://) or a file in one, a capture of a registry of baselines, what "
    "a step of a local pipeline run wrote, or the name of an artifact in Vertex ML Metadata: "
    "projects/PROJECT/locations/LOCATION/metadataStores/default/artifacts/ID"
)
_DEPTH: Final = 6
"""A record lies four folders below its run directory."""
_OUTPUT: Final = "executor_output.json"


@dataclasses.dataclass(frozen=True, kw_only=True)
class InRun:
    """A run directory, or a file in one.

    Attributes:
        root: The run directory.
        name: What `lineage.json` calls the file; None for the directory.
        record: The record, when the file is one.
    """

    root: str
    name: str | None = None
    record: str | None = None


@dataclasses.dataclass(frozen=True, kw_only=True)
class Artifact:
    """A file that a step of a local pipeline run wrote.

    Attributes:
        path: The file.
        metadata: What the step said of it.
    """

    path: str
    metadata: dict[str, str]


def find_run(path: epath.Path) -> InRun | None:
    """Returns the run directory that a path is or lies in; None outside of any.

    Args:
        path: An existing path.
    """
    folder = path
    for _ in range(_DEPTH):
        if (folder / "run.json").exists():
            break
        if folder == folder.parent:
            return None
        folder = folder.parent
    else:
        return None
    inside = path.relative_to(folder).as_posix()
    if inside in (".", LINEAGE_FILE):
        return InRun(root=str(folder))
    if inside == "run.json":
        return InRun(root=str(folder), name="config")
    if inside.partition("/")[0] == RECORDS:
        record = None if inside == RECORDS else inside
        return InRun(root=str(folder), name=RECORDS, record=record)
    return InRun(root=str(folder), name=inside)


def find_artifact(path: epath.Path) -> Artifact | None:
    """Returns the artifact of ours that a file is; None for any other.

    Beside what a step writes, kfp keeps a file with the metadata of each artifact.

    Args:
        path: An existing file.
    """
    for folder in (path.parent, path.parent.parent):
        try:
            said = json.loads((folder / _OUTPUT).read_bytes())
        except (OSError, ValueError):
            continue
        for artifact in _artifacts(said):
            metadata = artifact.get("metadata", {})
            if "orbax_bench_type" in metadata and str(artifact.get("uri", "")) in (
                str(path),
                str(path.resolve()),
            ):
                texts = {key: value for key, value in metadata.items() if isinstance(value, str)}
                return Artifact(path=str(path), metadata=texts)
    return None


def existing(given: str) -> epath.Path:
    """Returns a path that is there.

    Raises:
        SuiteError: It is not there, or its kind of storage is not known.
    """
    from etils import epath

    try:
        path = epath.Path(checked_path(given))
    except ValueError as error:
        raise SuiteError(str(error)) from None
    if not path.exists():
        raise SuiteError(f"{given} does not exist; lineage takes {ACCEPTED}")
    return path


def not_ours(given: str, found: str) -> SuiteError:
    """Returns the error for something that has no lineage.

    Args:
        given: What was given.
        found: What it is instead.
    """
    return SuiteError(f"{given} is {found}, which has no lineage; lineage takes {ACCEPTED}")


def _artifacts(said: Any) -> list[dict[str, Any]]:
    every = said.get("artifacts", {}) if isinstance(said, dict) else {}
    return [one for kept in every.values() for one in kept.get("artifacts", [])]
