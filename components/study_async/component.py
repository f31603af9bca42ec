"""Component that compares blocking saves with background saves, by the size of the model."""

from kfp import dsl

from orbax_bench_components.image import IMAGE


@dsl.component(base_image=IMAGE, install_kfp_package=False)
def study_async(
    output_directory: str,
    study: dsl.Output[dsl.Dataset],
    summary: dsl.Output[dsl.Markdown],
    report: dsl.Output[dsl.HTML],
    saved: dsl.Output[dsl.Metrics],
    samples: dsl.Input[dsl.Dataset] = None,
) -> None:
    """Sets blocking saves beside saves in the background, for each size that a run has saved.

    Args:
        output_directory: The run directory; its suite sweeps `async_enabled: [false, true]`.
        study: All that was found, as JSON.
        summary: The tables as Markdown.
        report: The tables with plots, as a page that needs no other file.
        saved: Share of the blocked time that each size saves, from 0 to 1.
        samples: What aggregate wrote; it orders this step after that one.
    """
    import shutil

    from orbax_bench_core.lineage import bounded_metrics, output_metadata
    from orbax_bench_core.records import RunDirectory
    from orbax_bench_core.steps import publish_async_study

    run = RunDirectory(output_directory)
    found = publish_async_study(run)
    sizes = [size for series in found.series for size in series.sizes]
    kinds = [kind for size in sizes for kind in (size.blocking, size.background)]
    point_ids = [point_id for kind in kinds for point_id in kind.point_ids]
    for kind, name, artifact in (
        ("study", "async_study.json", study),
        ("study-summary", "async_study.md", summary),
        ("study-report", "async_study.html", report),
    ):
        with (run.root / name).open("rb") as source, open(artifact.path, "wb") as target:
            shutil.copyfileobj(source, target)
        artifact.metadata.update(output_metadata(run, name, kind, point_ids=point_ids))
    shares = (
        (f"{size.checkpoint} {size.background.point_ids[0]} saved", size.saved.value)
        for size in sizes
    )
    saved.metadata.update(bounded_metrics(shares))
    saved.metadata.update(output_metadata(run, "async_study.json", "saved", point_ids=point_ids))
