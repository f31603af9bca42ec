"""Puts the records of a sweep together."""

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
) -> None:
    """Writes samples, summary and reports of a run from the records of its points.

    Args:
        records: One artifact per sweep point; points that are missing are simply not there.
        output_directory: The run directory.
        samples: Every sample, as Parquet.
        metrics: Median seconds per point and operation.
        summary: The report as Markdown.
        report: The report as a self-contained page.
    """
    import shutil

    from orbax_bench_core.execute.steps import collect_records
    from orbax_bench_core.report.publish import publish
    from orbax_bench_core.results.lineage import artifact_metadata
    from orbax_bench_core.results.run_directory import RunDirectory

    run = RunDirectory(output_directory)
    collect_records(run, [artifact.path for artifact in records])
    found = publish(run)
    for name, artifact in (
        ("samples.parquet", samples),
        ("report.md", summary),
        ("report.html", report),
    ):
        with (run.root / name).open("rb") as source, open(artifact.path, "wb") as target:
            shutil.copyfileobj(source, target)
    for operation in found.operations:
        time = operation.time
        metrics.log_metric(f"{time.point} {time.point_id} {time.operation} s", time.median)
    point_ids = [point.point_id for point in found.points]
    samples.metadata.update(artifact_metadata("samples", run.read_info(), point_ids=point_ids))
