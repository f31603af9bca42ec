"""What an artifact says of itself, so that a verdict can be traced to what it was made from."""

from __future__ import annotations

import json
import os
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any, Final

from orbax_bench_core import baselines
from orbax_bench_core.baselines import find_runs
from orbax_bench_core.config import UserError, parse_suite
from orbax_bench_core.lineage.digests import digest_of, digest_of_file, digests_of_records
from orbax_bench_core.lineage.manifest import (
    BASELINE,
    CHECKPOINT,
    CONFIG,
    RECORDS,
    Lineage,
    Seen,
    absolute,
    checkpoint_digest,
    digest_of_config,
    image,
    lineage_of_records,
    read_lineage,
    versions,
    with_files,
    write_lineage,
)
from orbax_bench_core.records import (
    SCHEMA_VERSION,
    STUDY_FILE,
    UNKNOWN,
    VERDICTS_FILE,
    RunDirectory,
    RunInfo,
)
from orbax_bench_core.sweep import entry_from_json, sides

LISTED: Final = 64
"""So many point ids, or inputs, an artifact names one by one; of more it gives number and digest.
The metadata of an artifact of Vertex AI has 200 KB at most."""
_METRICS_BYTES: Final = 100_000


def artifact_metadata(
    kind: str,
    info: RunInfo | None,
    *,
    point_ids: Sequence[str] = (),
    digest: str = UNKNOWN,
    inputs: Mapping[str, str] | None = None,
    run_directory: str = UNKNOWN,
    config_hash: str = UNKNOWN,
) -> dict[str, str]:
    """Returns the metadata of a pipeline artifact: text only, `unknown` where nothing is known.

    Numbers would not survive: Kubeflow makes all of them floats.

    Args:
        kind: What the artifact is: `records`, `checkpoint`, `samples`, `verdicts`.
        info: The run that it belongs to; None for one that belongs to no run.
        point_ids: The sweep points that it is about.
        digest: SHA-256 of its content, as `sha256:<hex>`.
        inputs: Digest of what it was made from, by name; becomes JSON.
        run_directory: Where the rest of the run lies.
        config_hash: Identity of the suite, for an artifact that belongs to no run.
    """
    reference = image()
    named, separator, of_image = reference.partition("@")
    return {
        "orbax_bench_type": kind,
        "schema_version": str(SCHEMA_VERSION),
        "run_id": UNKNOWN if info is None else info.run_id,
        "run_directory": run_directory,
        "config_hash": config_hash if info is None else info.suite_identity,
        "digest": digest,
        "inputs": json.dumps(_bounded(inputs or {}), sort_keys=True) if inputs else UNKNOWN,
        "image": reference,
        "image_digest": of_image if named and separator else UNKNOWN,
        **_points(point_ids),
        **{f"version_{name}": version for name, version in versions().items()},
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
    lineage = read_lineage(run)
    made = None if lineage is None else lineage.made.get(name)
    return artifact_metadata(
        kind,
        run.read_info(),
        point_ids=point_ids,
        digest=UNKNOWN if made is None else made.digest,
        inputs=None if made is None else made.inputs,
        run_directory=str(run.root),
    )


def records_metadata(
    run_directory: str, info: RunInfo, point_json: str, path: str
) -> dict[str, str]:
    """Returns the metadata of the records of one point, as they travel from step to step.

    Args:
        run_directory: The run directory.
        info: What its `run.json` says.
        point_json: The point, as a line of JSON.
        path: The file with the records.

    Raises:
        OSError: The file, or a record, cannot be read.
    """
    run, point = RunDirectory(run_directory), entry_from_json(point_json)
    inputs = {"point": digest_of(point_json.encode()), CONFIG: digest_of_config(run)}
    kept = digests_of_records(run.root, [point.id]).get(point.id)
    if kept is not None:
        inputs[RECORDS] = kept.digest
    for checkpoint in [side.checkpoint.path for side in sides(point).values()]:
        if checkpoint is not None:
            inputs[f"{CHECKPOINT}{absolute(checkpoint)}"] = checkpoint_digest(checkpoint)
    return artifact_metadata(
        "records",
        info,
        point_ids=[point.id],
        digest=file_digest(path),
        inputs=inputs,
        run_directory=str(run.root),
    )


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
        None,
        digest=UNKNOWN if path is None else checkpoint_digest(path),
        inputs={name: digest_of(text.encode()) for name, text in texts.items() if text},
        config_hash=parse_suite(suite).suite.identity,
    )
    return {**metadata, "path": path or "none"}


def input_digests(run: RunDirectory, *names: str) -> dict[str, str]:
    """Returns the digests that `lineage.json` has of some of its things, by name."""
    lineage = read_lineage(run)
    made = {} if lineage is None else lineage.made
    return {name: made[name].digest for name in names if name in made}


def file_digest(path: str) -> str:
    """Returns the digest of a local file.

    Raises:
        OSError: It cannot be read.
    """
    from etils import epath

    return digest_of_file(epath.Path(Path(path)))


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


def _points(point_ids: Sequence[str]) -> dict[str, str]:
    if not point_ids:
        return {"point_ids": UNKNOWN, "point_count": UNKNOWN, "point_ids_digest": UNKNOWN}
    few = len(point_ids) <= LISTED
    return {
        "point_ids": ",".join(point_ids) if few else "see run.json",
        "point_count": str(len(point_ids)),
        "point_ids_digest": digest_of("\n".join(sorted(point_ids)).encode()),
    }


def _bounded(inputs: Mapping[str, str]) -> dict[str, str]:
    if len(inputs) <= LISTED:
        return dict(inputs)
    lines = "".join(f"{name} {digest}\n" for name, digest in sorted(inputs.items()))
    return {f"{len(inputs)} inputs": digest_of(lines.encode())}


SAMPLES: Final = "samples.parquet"
_TABLES: Final = (SAMPLES, "summary.csv")
_PAGES: Final = ("report.md", "report.html")
_LIMITS: Final = "limits.json"
_CONCLUSIONS: Final = {
    VERDICTS_FILE: ("verdicts.md", "verdicts.html"),
    STUDY_FILE: ("async_study.md", "async_study.html"),
}
"""What is drawn from the records of a run, and the pages that show it."""


def keep_lineage(run: RunDirectory, lineage: Lineage) -> None:
    """Writes what tables and pages were just made from.

    Args:
        run: The run directory.
        lineage: Its records, and what they were made from.
    """
    records = lineage.made[RECORDS]
    from_records = {RECORDS: records.digest}
    lineage = with_files(run, lineage, [_LIMITS], {})
    limits = lineage.made.get(_LIMITS)
    of_pages = from_records if limits is None else {**from_records, _LIMITS: limits.digest}
    lineage = with_files(run, lineage, _TABLES, from_records)
    lineage = with_files(run, lineage, _PAGES, of_pages)
    earlier = read_lineage(run)
    drawn = {} if earlier is None else earlier.made
    names = [name for data, pages in _CONCLUSIONS.items() for name in (data, *pages)]
    # A conclusion keeps what it was made from, so that it shows when there are other records.
    kept = {name: drawn[name] for name in names if name in drawn}
    write_lineage(run, lineage.model_copy(update={"made": {**lineage.made, **kept}}))


def keep_conclusion(run: RunDirectory, file: str, *, baseline: str | None = None) -> None:
    """Writes what a verdict or a study was just made from.

    Args:
        run: The run directory.
        file: The data of the conclusion, such as `verdicts.json`.
        baseline: The stored baseline that it was compared with, if it was.
    """
    now, known = lineage_of_records(run, run.read_info()), read_lineage(run)
    if known is None:
        seen = Seen()
        for _ in seen.watch(run.records()):
            pass
        known = now.model_copy(update={"ran": seen.ran, "contents": seen.contents})
    inputs = {RECORDS: now.made[RECORDS].digest}
    samples = known.made.get(SAMPLES)
    if samples is not None and samples.inputs == inputs:
        inputs[SAMPLES] = samples.digest
    if baseline is not None:
        inputs[f"{BASELINE}{absolute(baseline)}"] = _digest_if_there(baseline)
    known = known.model_copy(
        update={"points": now.points, "made": {**known.made, RECORDS: now.made[RECORDS]}}
    )
    known = with_files(run, known, [file], inputs)
    write_lineage(run, with_files(run, known, _CONCLUSIONS[file], {file: known.made[file].digest}))


def baseline_digest(path: str) -> str:
    """Returns a digest of the measured records that a baseline means at this moment.

    Where they lie does not count: a promotion that changes what a registry means changes it.

    Args:
        path: What `compare` takes as a baseline.

    Raises:
        UserError: There is no baseline any more.
    """
    found = sorted(
        digest_of(record.model_dump_json().encode()) for record in baselines.load_baseline(path)
    )
    return digest_of("\n".join(found).encode())


def digests_of_runs(places: Sequence[str]) -> dict[str, str]:
    """Returns the digest of the records of each run that places hold, by id of the run.

    Args:
        places: Run directories, directories that hold some, or patterns; local or gs://. A run
            that was never published, and a capture, has the word `unknown`.

    Raises:
        UserError: A place holds no run.
    """
    found = {}
    for run in find_runs([place for place in places if place]):
        digests = {} if run.info is None else input_digests(RunDirectory(run.place), RECORDS)
        found[f"run {run.run_id}"] = digests.get(RECORDS, UNKNOWN)
    return found


def _digest_if_there(baseline: str) -> str:
    try:
        return baseline_digest(baseline)
    except UserError:  # it was there a moment ago, and a verdict is not lost for that
        return UNKNOWN


_ON_KUBEFLOW: Final = "KFP_POD_NAME"
"""Set in every step by Kubeflow Pipelines, and by nobody else."""


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
