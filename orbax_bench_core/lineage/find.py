"""The chain of whatever `orbax-bench lineage` was given."""

from __future__ import annotations

import dataclasses
import importlib.metadata
import json
import re
from typing import TYPE_CHECKING, Any, Final

from orbax_bench_core.baselines import Capture, Registry, is_capture_id
from orbax_bench_core.config import UserError, checked_path, did_you_mean
from orbax_bench_core.lineage.artifacts import baseline_digest, file_digest
from orbax_bench_core.lineage.manifest import LINEAGE_FILE, RECORDS, Seen
from orbax_bench_core.lineage.verify import Link, RunLineage, environment_link, status_of
from orbax_bench_core.records import UNKNOWN, RunDirectory

if TYPE_CHECKING:
    from etils import epath


_STORE: Final = re.compile(r"projects/[^/]+/locations/[^/]+/metadataStores/[^/]+/artifacts/[^/]+")
_PLUGINS: Final = "orbax_bench.lineage"


def chain_of(given: str, endpoint: str | None = None) -> Link:
    """Returns the chain of a path, or of the name of an artifact in a metadata store.

    Args:
        given: What was given on the command line.
        endpoint: Another address of the metadata store.

    Raises:
        UserError: It has no lineage, or cannot be read.
    """
    if _STORE.fullmatch(given):
        return _stored_elsewhere(given, endpoint)
    path = existing(given)
    run = find_run(path)
    if run is not None:
        return _of_run(run)
    if path.is_dir():
        return _of_folder(given, path)
    artifact = find_artifact(path)
    if artifact is not None:
        return _of_artifact(artifact)
    if is_capture_id(path.stem):
        return _of_capture(given, path.parent / path.stem)
    if is_capture_id(path.parent.name):
        return _of_capture(given, path.parent)
    raise not_ours(given, "a file outside of any run directory")


def _of_run(found: InRun) -> Link:
    run = RunLineage(RunDirectory(found.root), baseline_digest)
    if found.record is not None:
        return run.record(found.record)
    known = run.names()
    if not run.recorded:  # of an earlier release, or not published yet
        return run.chain(found.name or RECORDS)
    name = found.name or known[0]
    if name not in (*known, "config"):
        raise UserError(f"{found.root} says nothing of {name}: {did_you_mean(name, known)}")
    return run.chain(name)


def _of_folder(given: str, path: epath.Path) -> Link:
    if is_capture_id(path.name):
        return _of_capture(given, path)
    registry = Registry(str(path))
    captures = registry.captures() if registry.exists() else []
    if captures:
        newest = captures[-1].reference
        raise UserError(
            f"{given} is a registry of {len(captures)} captures; give one, such as "
            f"{given.rstrip('/')}/{newest}"
        )
    raise not_ours(given, "a directory without run.json")


def _of_artifact(artifact: Artifact) -> Link:
    said = artifact.metadata
    recorded, now = said.get("digest", UNKNOWN), file_digest(artifact.path)
    return Link(
        what=said["orbax_bench_type"],
        name=artifact.path,
        status=status_of(recorded, now),
        digest=now,
        recorded=recorded,
        details={"made by": f"orbax-bench {said.get('version_orbax-bench', UNKNOWN)}"},
        made_from=(_run_of_artifact(said),),
    )


def _run_of_artifact(said: dict[str, str]) -> Link:
    place = said.get("run_directory", UNKNOWN)
    if place == UNKNOWN:
        return Link(what="run", name=said.get("run_id", UNKNOWN), status="not checked")
    directory = RunDirectory(place)
    if not directory.exists():
        return Link(what="run", name=place, status="missing")
    run = RunLineage(directory, baseline_digest)
    return run.chain(run.named(said.get("digest", UNKNOWN)) or RECORDS)


def _of_capture(given: str, folder: epath.Path) -> Link:
    registry = Registry(str(folder.parent.parent))
    captures = {one.id: one for one in registry.captures_of(folder.parent.name)}
    if folder.name not in captures:
        raise not_ours(given, "a capture that was never finished")
    capture = captures[folder.name]
    wanted = [(capture.reference, point.point_id) for point in capture.points]
    records = [record for one in registry.baselines(wanted) for record in one.records]
    seen = Seen()
    for _ in seen.watch(records):
        pass
    kept = Link(
        what=RECORDS,
        name=f"run {capture.run_id}",
        status="not checked",
        details={
            "records": str(len(records)),
            "points": str(len(capture.points)),
            **_suite(capture),
        },
        made_from=tuple(map(environment_link, seen.ran)),
    )
    return Link(
        what="baseline",
        name=str(folder),
        status="not checked",
        digest=baseline_digest(str(folder)),
        details={"captured": f"{capture.captured_at:%Y-%m-%d %H:%M} UTC"},
        made_from=(kept,),
    )


def _suite(capture: Capture) -> dict[str, str]:
    arm = {} if capture.arm is None else {"arm": capture.arm}
    return {"suite": capture.suite, "measured": f"{capture.measured_at:%Y-%m-%d %H:%M} UTC", **arm}


def _stored_elsewhere(name: str, endpoint: str | None) -> Link:
    find: Any = _vertex().load()
    link: Link = find(name, endpoint=endpoint)
    return link


def _vertex() -> importlib.metadata.EntryPoint:
    for found in importlib.metadata.entry_points(group=_PLUGINS, name="vertex"):
        return found
    raise UserError(
        "the name of an artifact in Vertex ML Metadata needs more packages: "
        "pip install 'orbax-bench[vertex]'"
    )


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
        UserError: It is not there, or its kind of storage is not known.
    """
    from etils import epath

    try:
        path = epath.Path(checked_path(given))
    except ValueError as error:
        raise UserError(str(error)) from None
    if not path.exists():
        raise UserError(f"{given} does not exist; lineage takes {ACCEPTED}")
    return path


def not_ours(given: str, found: str) -> UserError:
    """Returns the error for something that has no lineage.

    Args:
        given: What was given.
        found: What it is instead.
    """
    return UserError(f"{given} is {found}, which has no lineage; lineage takes {ACCEPTED}")


def _artifacts(said: Any) -> list[dict[str, Any]]:
    every = said.get("artifacts", {}) if isinstance(said, dict) else {}
    return [one for kept in every.values() for one in kept.get("artifacts", [])]
