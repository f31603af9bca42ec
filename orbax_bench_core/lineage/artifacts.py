"""Metadata of pipeline artifacts: one digest, a pointer, and what people filter by, as text."""

import os
from collections.abc import Iterable
from pathlib import Path
from typing import Any, Final

from orbax_bench_core.config import parse_suite
from orbax_bench_core.lineage.digests import checkpoint_digest
from orbax_bench_core.lineage.manifest import Made, package_versions, read_manifest
from orbax_bench_core.provenance import UNKNOWN, image_that_runs
from orbax_bench_core.records import RunDirectory, Versioned

_METRICS_BYTES: Final = 32_000
"""Metrics travel into a step with the rest of its input, in one argument of 128 KiB at most."""
_FILTERED: Final = ("orbax-bench", "jax", "orbax-checkpoint")
"""Packages whose versions people filter by; `lineage.json` has all."""
_ON_KUBEFLOW: Final = "KFP_POD_NAME"
"""Set in every step by Kubeflow Pipelines, and by nobody else."""


def artifact_metadata(
    kind: str, run: RunDirectory | None = None, *, digest: str = UNKNOWN, path: str = UNKNOWN
) -> dict[str, str]:
    """Returns the metadata of a pipeline artifact: text only, `unknown` where nothing is known.

    What it was made from is not here: `lineage.json` in the run directory has it, by digests.
    Numbers would not survive: Kubeflow makes all of them floats.

    Args:
        kind: What the artifact is, such as `verdicts`.
        run: The run directory that it belongs to.
        digest: Digest of its content.
        path: Where it lies.
    """
    info, versions = None if run is None else run.read_info(), package_versions()
    return {
        "orbax_bench_type": kind,
        "schema_version": str(Versioned().schema_version),
        "digest": digest,
        "path": path,
        "run_directory": UNKNOWN if run is None else str(run.root),
        "run_id": UNKNOWN if info is None else info.run_id,
        "suite": UNKNOWN if info is None else info.suite_name,
        "config_hash": UNKNOWN if info is None else info.suite_identity,
        "image": image_that_runs(),
        **{f"version_{name}": versions[name] for name in _FILTERED},
    }


def output_metadata(run: RunDirectory, name: str, kind: str) -> dict[str, str]:
    """Returns the metadata of an artifact that is a file or folder of a run directory.

    Args:
        run: The run directory.
        name: Path of the file or folder in it.
        kind: What it holds.

    Returns:
        Metadata with the digest that the manifest has; `unknown` where it has none.
    """
    manifest = read_manifest(run)
    made = {} if manifest is None else manifest.made
    digest = made.get(name, Made(digest=UNKNOWN)).digest
    return artifact_metadata(kind, run, digest=digest, path=str(run.root / name))


def checkpoint_metadata(path: str | None, suite: str) -> dict[str, str]:
    """Returns the metadata of the checkpoint that a suite loads.

    Args:
        path: The checkpoint; None if the suite loads none.
        suite: The suite as YAML.

    Raises:
        SuiteError: The suite is not valid.
    """
    digest = UNKNOWN if path is None else checkpoint_digest(path)
    parsed = parse_suite(suite).suite
    metadata = artifact_metadata("checkpoint", digest=digest, path=path or "none")
    return {**metadata, "suite": parsed.suite_name, "config_hash": parsed.identity}


def bounded_metrics(values: Iterable[tuple[str, float]]) -> dict[str, float]:
    """Returns metrics of an artifact, numbers alone, as many as a later step can be given.

    Args:
        values: Names and numbers, those that matter most first.

    Returns:
        As many as have room, in that order; `not shown` counts the others.
    """
    kept: dict[str, float] = {}
    left, not_shown = _METRICS_BYTES, 0
    for name, value in values:
        left -= len(name.encode()) + 24  # the number, quotes and separators
        if left < 0:
            not_shown += 1
        else:
            kept[name] = value
    return {**kept, "not shown": not_shown} if not_shown else kept


def point_at(artifact: Any, place: str) -> None:
    """Has an artifact stand for a file or folder where it lies.

    Vertex AI and the local runners take any URI. Kubeflow's launcher downloads what an artifact
    names into each step that takes it, refuses an object that is not below the pipeline root, and a
    URI without a scheme: there the artifact is a text file that names the place. Either way its
    metadata has it as `path`.
    """
    artifact.metadata["path"] = place
    if _ON_KUBEFLOW in os.environ:
        Path(artifact.path).write_text(place)
    else:
        artifact.uri = place


def place_of(artifact: Any) -> str:
    """Returns the place that an artifact stands for, as `point_at` left it."""
    if artifact is None:
        return ""
    return str(artifact.metadata.get("path") or artifact.uri)
