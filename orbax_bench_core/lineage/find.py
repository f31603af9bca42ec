"""Tracing of a path or artifact name: which run or capture it belongs to."""

import importlib.metadata
import re
from typing import Final

from orbax_bench_core.errors import UserError
from orbax_bench_core.files import AnyPath, checked_path
from orbax_bench_core.lineage.check import Finding, check, environment_findings, is_unchanged
from orbax_bench_core.lineage.digests import baseline_digest
from orbax_bench_core.lineage.manifest import CONFIG, LINEAGE_FILE, MeasuredWith
from orbax_bench_core.lineage.signature import SIGNATURE_FILE, sign_lineage, signature_findings
from orbax_bench_core.records import RunDirectory

ACCEPTED: Final = (
    "a run directory (local or gs://) or a file in one, a capture of a registry of baselines, or "
    "the name of an artifact in Vertex ML Metadata: "
    "projects/PROJECT/locations/LOCATION/metadataStores/default/artifacts/ID"
)
_STORE: Final = re.compile(r"projects/[^/]+/locations/[^/]+/metadataStores/[^/]+/artifacts/[^/]+")
_PLUGINS: Final = "orbax_bench.lineage"
_DEPTH: Final = 6
"""A record lies four folders below its run directory."""


def trace(
    given: str,
    endpoint: str | None = None,
    *,
    deep: bool = False,
    sign: str | None = None,
    signed_by: str | None = None,
) -> tuple[Finding, ...]:
    """Returns the inputs of a path, or of an artifact of the metadata store at `endpoint`.

    With `deep` all bytes of checkpoints are read. The private key `sign` signs a manifest if all of
    it still holds; the public keys `signed_by` check a signature.

    Raises:
        UserError: There is no such path or artifact, it has no lineage, or it cannot be signed.
    """
    run, inside = (None, "") if _STORE.fullmatch(given) else _run_around(given)
    flags = {"--sign": sign, "--signed-by": signed_by}
    asked = next((flag for flag, value in flags.items() if value is not None), None)
    if asked is not None and run is None:
        raise UserError(f"{asked}: only the lineage of a run directory is signed, not {given}")
    if sign is not None and inside:
        raise UserError(f"--sign signs a whole run directory: give {run and run.root}, not {given}")
    if run is not None:
        found = check(run, inside, deep=deep)
        if sign is None:
            return (*found, *signature_findings(run, signed_by))
        if is_unchanged(found) is not False:
            signed = sign_lineage(run, sign)
            found += (Finding(what="signature", name=SIGNATURE_FILE, details={"key": signed}),)
        return found
    if _STORE.fullmatch(given):
        stored: tuple[Finding, ...] = _vertex().load()(given, endpoint=endpoint)
        return stored
    from orbax_bench_core.baselines import Registry, is_capture_id

    path = _existing(given)
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


def _run_around(given: str) -> tuple[RunDirectory | None, str]:
    """Returns the run directory that a path is or lies in, and its name there, if it is a file."""
    path = _existing(given)
    around = (path, *path.parents)[:_DEPTH]
    root = next((folder for folder in around if (folder / "run.json").exists()), None)
    if root is None:
        return None, ""
    inside = path.relative_to(root).as_posix()
    names = {".": "", LINEAGE_FILE: "", SIGNATURE_FILE: "", "run.json": CONFIG}
    return RunDirectory(str(root)), names.get(inside, inside)


def _existing(given: str) -> AnyPath:
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


def _capture(given: str, folder: AnyPath) -> tuple[Finding, ...]:
    from orbax_bench_core.baselines import Registry

    registry = Registry(str(folder.parent.parent))
    captures = {capture.id: capture for capture in registry.captures_of(folder.parent.name)}
    if folder.name not in captures:
        raise _not_ours(given, "a capture that was never finished")
    capture = captures[folder.name]
    records = [record for point in registry.of_capture(capture) for record in point.records]
    arm = {} if capture.arm is None else {"arm": capture.arm}
    kept = Finding(
        what="records",
        name=f"run {capture.run_id}",
        depth=1,
        details={
            "records": str(len(records)),
            "points": str(len(capture.points)),
            "suite": capture.suite,
            "measured": f"{capture.measured_at:%Y-%m-%d %H:%M} UTC",
            **arm,
        },
    )
    baseline = Finding(
        what="baseline",
        name=str(folder),
        digest=baseline_digest(str(folder)),
        details={"captured": f"{capture.captured_at:%Y-%m-%d %H:%M} UTC"},
        inputs=(kept.name,),
    )
    return baseline, kept, *environment_findings(map(MeasuredWith.of, records), 2)


def _vertex() -> importlib.metadata.EntryPoint:
    for plugin in importlib.metadata.entry_points(group=_PLUGINS, name="vertex"):
        return plugin
    raise UserError(
        "the name of an artifact in Vertex ML Metadata needs more packages: "
        "pip install 'orbax-bench[vertex]'"
    )
