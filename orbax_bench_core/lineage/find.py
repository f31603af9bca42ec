"""Tracing of a path or artifact name: which run, capture or pipeline output it belongs to."""

from __future__ import annotations

import contextlib
import importlib.metadata
import re
from typing import TYPE_CHECKING, Final

from orbax_bench_core.baselines import Registry, is_capture_id
from orbax_bench_core.errors import UserError, did_you_mean
from orbax_bench_core.files import checked_path, read_json
from orbax_bench_core.lineage.batch_files import BATCHES
from orbax_bench_core.lineage.digests import baseline_digest, file_digest
from orbax_bench_core.lineage.link import Link
from orbax_bench_core.lineage.manifest import CONFIG, LINEAGE_FILE, RECORDS, MeasuredWith
from orbax_bench_core.lineage.sources import environment_links
from orbax_bench_core.lineage.verify import Verifier
from orbax_bench_core.provenance import UNKNOWN
from orbax_bench_core.records import RunDirectory

if TYPE_CHECKING:
    from etils import epath


ACCEPTED: Final = (
    "a run directory (local or gs://) or a file in one, a capture of a registry of baselines, what "
    "a step of a local pipeline run wrote, or the name of an artifact in Vertex ML Metadata: "
    "projects/PROJECT/locations/LOCATION/metadataStores/default/artifacts/ID"
)
_STORE: Final = re.compile(r"projects/[^/]+/locations/[^/]+/metadataStores/[^/]+/artifacts/[^/]+")
_PLUGINS: Final = "orbax_bench.lineage"
_DEPTH: Final = 6
"""A record lies four folders below its run directory."""
_OUTPUT: Final = "executor_output.json"
"""Beside what a step writes, kfp keeps this file with the metadata of each artifact."""


def trace(given: str, endpoint: str | None = None, *, deep: bool = False) -> Link:
    """Returns the chain of a path, or of the name of an artifact in a metadata store."""
    if _STORE.fullmatch(given):
        stored: Link = _vertex().load()(given, endpoint=endpoint)
        return stored
    path = _existing(given)
    root = _run_around(path)
    if root is not None:
        return _in_run(root, path.relative_to(root).as_posix(), deep=deep)
    metadata = None if path.is_dir() else _artifact_metadata(path)
    if metadata is not None:
        return _artifact(str(path), metadata, deep=deep)
    for folder in (path,) if path.is_dir() else (path.with_suffix(""), path.parent):
        if is_capture_id(folder.name):
            return _capture(given, folder)
    if not path.is_dir():
        raise _not_ours(given, "a file outside of any run directory")
    registry = Registry(str(path))
    if registry.exists() and (captures := registry.captures()):
        raise UserError(
            f"{given} is a registry of {len(captures)} captures; give one, such as "
            f"{given.rstrip('/')}/{captures[-1].reference}"
        )
    raise _not_ours(given, "a directory without run.json")


def _existing(given: str) -> epath.Path:
    from etils import epath

    try:
        path = epath.Path(checked_path(given))
    except ValueError as error:
        raise UserError(str(error)) from None
    if not path.exists():
        raise UserError(f"{given} does not exist; lineage takes {ACCEPTED}")
    return path


def _not_ours(given: str, what: str) -> UserError:
    return UserError(f"{given} is {what}, which has no lineage; lineage takes {ACCEPTED}")


def _run_around(path: epath.Path) -> epath.Path | None:
    """Returns the run directory that a path is or lies in; None outside of any."""
    around = (path, *path.parents)[:_DEPTH]
    return next((folder for folder in around if (folder / "run.json").exists()), None)


def _in_run(root: epath.Path, inside: str, *, deep: bool) -> Link:
    """Returns the chain of a run directory or, given where it lies in one, of a file."""
    run = Verifier(RunDirectory(str(root)), deep=deep)
    known = run.names()
    if inside.startswith(f"{RECORDS}/"):
        return run.record(inside)
    if inside.startswith(f"{BATCHES}/"):
        return run.batch(inside)
    if inside in (".", LINEAGE_FILE):
        # Without a manifest the run is of an earlier release, or not published yet.
        return run.chain(known[0] if run.recorded else RECORDS)
    name = CONFIG if inside == "run.json" else inside
    if run.recorded and name not in (*known, CONFIG):
        raise UserError(f"{root} says nothing of {name}: {did_you_mean(name, known)}")
    return run.chain(name)


def _artifact_metadata(path: epath.Path) -> dict[str, str] | None:
    """Returns what a step of a local pipeline run said of its output; None for any other file."""
    for folder in (path.parent, path.parent.parent):
        try:
            output = read_json(folder / _OUTPUT)
        except (OSError, ValueError):
            continue
        with contextlib.suppress(AttributeError, TypeError):  # another program's file of this name
            listed = output.get("artifacts", {}).values()
            for artifact in (each for run in listed for each in run.get("artifacts", [])):
                metadata = artifact.get("metadata", {})
                here = str(artifact.get("uri", "")) in (str(path), str(path.resolve()))
                if here and "orbax_bench_type" in metadata:
                    return {key: value for key, value in metadata.items() if isinstance(value, str)}
    return None


def _artifact(path: str, metadata: dict[str, str], *, deep: bool) -> Link:
    recorded = metadata.get("digest", UNKNOWN)
    return Link.checked(
        metadata["orbax_bench_type"],
        path,
        recorded=recorded,
        digest=file_digest(path),
        details={"made by": f"orbax-bench {metadata.get('version_orbax-bench', UNKNOWN)}"},
        made_from=(_run_of_artifact(metadata, recorded, deep=deep),),
    )


def _run_of_artifact(metadata: dict[str, str], digest: str, *, deep: bool) -> Link:
    place = metadata.get("run_directory", UNKNOWN)
    if place == UNKNOWN:
        return Link(what="run", name=metadata.get("run_id", UNKNOWN), status="not checked")
    directory = RunDirectory(place)
    if not directory.exists():
        return Link(what="run", name=place, status="missing")
    run = Verifier(directory, deep=deep)
    return run.chain(run.name_of(digest) or RECORDS)


def _capture(given: str, folder: epath.Path) -> Link:
    registry = Registry(str(folder.parent.parent))
    captures = {capture.id: capture for capture in registry.captures_of(folder.parent.name)}
    if folder.name not in captures:
        raise _not_ours(given, "a capture that was never finished")
    capture = captures[folder.name]
    wanted = [(capture.reference, point.point_id) for point in capture.points]
    records = [record for point in registry.baselines(wanted) for record in point.records]
    arm = {} if capture.arm is None else {"arm": capture.arm}
    kept = Link(
        what=RECORDS,
        name=f"run {capture.run_id}",
        status="not checked",
        details={
            "records": str(len(records)),
            "points": str(len(capture.points)),
            "suite": capture.suite,
            "measured": f"{capture.measured_at:%Y-%m-%d %H:%M} UTC",
            **arm,
        },
        made_from=environment_links(map(MeasuredWith.of, records)),
    )
    return Link(
        what="baseline",
        name=str(folder),
        status="not checked",
        digest=baseline_digest(str(folder)),
        details={"captured": f"{capture.captured_at:%Y-%m-%d %H:%M} UTC"},
        made_from=(kept,),
    )


def _vertex() -> importlib.metadata.EntryPoint:
    for plugin in importlib.metadata.entry_points(group=_PLUGINS, name="vertex"):
        return plugin
    raise UserError(
        "the name of an artifact in Vertex ML Metadata needs more packages: "
        "pip install 'orbax-bench[vertex]'"
    )
