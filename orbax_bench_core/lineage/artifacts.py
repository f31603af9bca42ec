"""Metadata of pipeline artifacts: identity, digest and inputs, as text."""

from __future__ import annotations

import json
import os
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any, Final

from orbax_bench_core.baselines import find_runs
from orbax_bench_core.config import parse_suite
from orbax_bench_core.lineage.digests import (
    checkpoint_digest,
    config_digest,
    content_digest,
    file_digest,
    point_digests,
)
from orbax_bench_core.lineage.manifest import (
    CONFIG,
    RECORDS,
    Made,
    checkpoint_digests,
    current_image,
    package_versions,
    read_manifest,
)
from orbax_bench_core.records import SCHEMA_VERSION, UNKNOWN, RunDirectory
from orbax_bench_core.sweep import entry_from_json

LISTED: Final = 64
"""So many point ids, or inputs, an artifact names one by one; of more it gives number and digest.
The metadata of an artifact of Vertex AI has 200 KB at most."""
_METRICS_BYTES: Final = 100_000
_ON_KUBEFLOW: Final = "KFP_POD_NAME"
"""Set in every step by Kubeflow Pipelines, and by nobody else."""


def artifact_metadata(
    kind: str,
    run: RunDirectory | None = None,
    *,
    point_ids: Sequence[str] = (),
    digest: str = UNKNOWN,
    inputs: Mapping[str, str] | None = None,
) -> dict[str, str]:
    """Returns the metadata of a pipeline artifact: text only, `unknown` where nothing is known.

    Numbers would not survive: Kubeflow makes all of them floats.

    Args:
        kind: What the artifact is: `records`, `checkpoint`, `samples`, `verdicts`.
        run: The run that it belongs to; None for one that belongs to no run.
        point_ids: The sweep points that it is about.
        digest: SHA-256 of its content, as `sha256:<hex>`.
        inputs: Digest of what it was made from, by name; becomes JSON.

    Raises:
        UserError: There is no run here.
    """
    info, image = None if run is None else run.read_info(), current_image()
    named, separator, of_image = image.partition("@")
    return {
        "orbax_bench_type": kind,
        "schema_version": str(SCHEMA_VERSION),
        "run_id": UNKNOWN if info is None else info.run_id,
        "run_directory": UNKNOWN if run is None else str(run.root),
        "config_hash": UNKNOWN if info is None else info.suite_identity,
        "digest": digest,
        "inputs": json.dumps(_bounded(inputs), sort_keys=True) if inputs else UNKNOWN,
        "image": image,
        "image_digest": of_image if named and separator else UNKNOWN,
        **_points(point_ids),
        **{f"version_{name}": version for name, version in package_versions().items()},
    }


def output_metadata(
    run: RunDirectory, name: str, kind: str, *, point_ids: Sequence[str] = ()
) -> dict[str, str]:
    """Returns the metadata of an artifact that holds a file of a run directory.

    Args:
        run: The run directory.
        name: The file, as `lineage.json` calls it.
        kind: What the artifact is.
        point_ids: The sweep points that it is about.

    Raises:
        UserError: There is no run here.
    """
    made = _made(run).get(name, Made(digest=UNKNOWN))
    return artifact_metadata(kind, run, point_ids=point_ids, digest=made.digest, inputs=made.inputs)


def records_metadata(run_directory: str, point_json: str, path: str) -> dict[str, str]:
    """Returns the metadata of the records of one point, as they travel from step to step.

    Args:
        run_directory: The run directory.
        point_json: The point, as a line of JSON.
        path: The file with the records.

    Raises:
        UserError: There is no run here.
        OSError: The file, or a record, cannot be read.
    """
    run, point = RunDirectory(run_directory), entry_from_json(point_json)
    inputs = {
        "point": content_digest(point_json),
        CONFIG: config_digest(run),
        **checkpoint_digests([point]),
    }
    for records in point_digests(run.root, [point.id]).values():
        inputs[RECORDS] = records.digest
    digest = file_digest(path)
    return artifact_metadata("records", run, point_ids=[point.id], digest=digest, inputs=inputs)


def checkpoint_metadata(path: str | None, suite: str, fixture: str) -> dict[str, str]:
    """Returns the metadata of the checkpoint that a suite loads.

    Args:
        path: The checkpoint; None for a suite that loads none.
        suite: The suite file, word for word.
        fixture: The suite file that the checkpoint is generated from; empty for none.

    Raises:
        UserError: The suite is invalid.
    """
    texts = {"suite": suite, "fixture": fixture}
    metadata = artifact_metadata(
        "checkpoint",
        digest=UNKNOWN if path is None else checkpoint_digest(path),
        inputs={name: content_digest(text) for name, text in texts.items() if text},
    )
    identity = parse_suite(suite).suite.identity
    return {**metadata, "config_hash": identity, "path": path or "none"}


def input_digests(run: RunDirectory, *names: str) -> dict[str, str]:
    """Returns the digests that `lineage.json` has of some of its things, by name."""
    return {name: made.digest for name, made in _made(run).items() if name in names}


def run_digests(places: Iterable[str]) -> dict[str, str]:
    """Returns the digest of the records of each run that places hold, by id of the run.

    Args:
        places: Run directories, directories that hold some, or patterns; local or gs://. A run
            that was never published, and a capture, has the word `unknown`.

    Raises:
        UserError: A place holds no run.
    """
    digests = {}
    for run in find_runs(place for place in places if place):
        noted = {} if run.info is None else input_digests(RunDirectory(run.place), RECORDS)
        digests[f"run {run.run_id}"] = noted.get(RECORDS, UNKNOWN)
    return digests


def bounded_metrics(values: Iterable[tuple[str, float]]) -> dict[str, float]:
    """Returns metrics of an artifact, as many as its metadata has room for.

    Args:
        values: Name and value of each, the most important first.

    Returns:
        The first ones, and under `not shown` how many are left out, if any are.
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

    Vertex AI and the local runners take any URI. Kubeflow's launcher fails a step whose artifact
    lies in an object store but not below the pipeline root, and would download all of it in each
    step that takes it; there the artifact is a text file that names the place. Either way its
    metadata has it as `path`.

    Args:
        artifact: An output artifact of a Kubeflow component.
        place: A local path or a URI.

    Raises:
        OSError: The text file cannot be written.
    """
    artifact.metadata["path"] = place
    if _ON_KUBEFLOW in os.environ and "://" in place:
        Path(artifact.path).write_text(place)
    else:
        artifact.uri = place


def _made(run: RunDirectory) -> Mapping[str, Made]:
    manifest = read_manifest(run)
    return {} if manifest is None else manifest.made


def _points(point_ids: Sequence[str]) -> dict[str, str]:
    if not point_ids:
        return {"point_ids": UNKNOWN, "point_count": UNKNOWN, "point_ids_digest": UNKNOWN}
    few = len(point_ids) <= LISTED
    return {
        "point_ids": ",".join(point_ids) if few else "see run.json",
        "point_count": str(len(point_ids)),
        "point_ids_digest": content_digest("\n".join(sorted(point_ids))),
    }


def _bounded(inputs: Mapping[str, str]) -> dict[str, str]:
    if len(inputs) <= LISTED:
        return dict(inputs)
    lines = "".join(f"{name} {digest}\n" for name, digest in sorted(inputs.items()))
    return {f"{len(inputs)} inputs": content_digest(lines)}
