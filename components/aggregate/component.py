"""Component that puts the records of a sweep together."""

from typing import List  # noqa: UP035 - kfp reads this spelling

from kfp import dsl

from orbax_bench_components.image import IMAGE


@dsl.component(base_image=IMAGE, install_kfp_package=False)
def aggregate(
    records: dsl.Input[List[dsl.Dataset]],  # noqa: UP006
    output_directory: str,
    samples: dsl.Output[dsl.Dataset],
    metrics: dsl.Output[dsl.Metrics],
    summary: dsl.Output[dsl.Markdown],
    report: dsl.Output[dsl.HTML],
    tensorboard: dsl.Output[dsl.Artifact],
) -> None:
    """Writes samples, summary and reports of a run from the records of its points.

    Args:
        records: One artifact per sweep point; points that are missing are simply not there.
        output_directory: The run directory.
        samples: Every sample, as Parquet.
        metrics: Median seconds per point and operation, as many as an artifact has room for.
        summary: The report as Markdown.
        report: The report as a self-contained page.
        tensorboard: The folder of TensorBoard's event files, where it lies in the run directory.
    """
    import shutil

    from orbax_bench_core.lineage import (
        artifact_metadata,
        bounded_metrics,
        input_digests,
        output_metadata,
        point_at,
    )
    from orbax_bench_core.records import RunDirectory, checked_record_files
    from orbax_bench_core.steps import collect_records, publish

    run = RunDirectory(output_directory)
    collect_records(run, checked_record_files(artifact.path for artifact in records))
    found = publish(run)
    point_ids = [point.point_id for point in found.points]
    for kind, name, artifact in (
        ("samples", "samples.parquet", samples),
        ("summary", "report.md", summary),
        ("report", "report.html", report),
    ):
        artifact.metadata.update(output_metadata(run, name, kind, point_ids=point_ids))
        with (run.root / name).open("rb") as source, open(artifact.path, "wb") as target:
            shutil.copyfileobj(source, target)
    times = (operation.time for operation in found.operations)
    medians = ((f"{time.point} {time.point_id} {time.operation} s", time.median) for time in times)
    metrics.metadata.update(bounded_metrics(medians))
    for kind, artifact in (("metrics", metrics), ("tensorboard", tensorboard)):
        metadata = artifact_metadata(
            kind, run, point_ids=point_ids, inputs=input_digests(run, "records")
        )
        artifact.metadata.update(metadata)
    point_at(tensorboard, str(run.root / "tensorboard"))
