"""The chain of whatever `orbax-bench lineage` was given."""

from __future__ import annotations

import importlib.metadata
import re
from typing import TYPE_CHECKING, Any, Final

from orbax_bench_core.compare.registry.model import Capture, is_capture_id
from orbax_bench_core.compare.registry.store import Registry
from orbax_bench_core.config.errors import SuiteError, did_you_mean
from orbax_bench_core.records.machine import UNKNOWN
from orbax_bench_core.records.run_directory import RunDirectory
from orbax_bench_core.report.keep_lineage import baseline_digest
from orbax_bench_core.results.lineage import file_digest
from orbax_bench_core.results.lineage_chain import Link, status_of
from orbax_bench_core.results.lineage_file import RECORDS, Seen
from orbax_bench_core.results.lineage_given import (
    Artifact,
    InRun,
    existing,
    find_artifact,
    find_run,
    not_ours,
)
from orbax_bench_core.results.lineage_walk import RunLineage, environment_link

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
        SuiteError: It has no lineage, or cannot be read.
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
        raise SuiteError(f"{found.root} says nothing of {name}: {did_you_mean(name, known)}")
    return run.chain(name)


def _of_folder(given: str, path: epath.Path) -> Link:
    if is_capture_id(path.name):
        return _of_capture(given, path)
    registry = Registry(str(path))
    captures = registry.captures() if registry.exists() else []
    if captures:
        newest = captures[-1].reference
        raise SuiteError(
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
    raise SuiteError(
        "the name of an artifact in Vertex ML Metadata needs more packages: "
        "pip install 'orbax-bench[vertex]'"
    )
