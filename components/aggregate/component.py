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
    from orbax_bench_core.steps.pipeline import aggregate

    aggregate(output_directory, records=[artifact.path for artifact in records]).into(
        samples=samples, metrics=metrics, summary=summary, report=report, tensorboard=tensorboard
    )
