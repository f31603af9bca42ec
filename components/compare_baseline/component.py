"""Sets a run beside a baseline."""

from kfp import dsl

from orbax_bench_components.image import IMAGE


@dsl.component(base_image=IMAGE, install_kfp_package=False)
def compare_baseline(
    baseline: str,
    output_directory: str,
    comparison: dsl.Output[dsl.Markdown],
    ratios: dsl.Output[dsl.Metrics],
    samples: dsl.Input[dsl.Dataset] = None,
) -> None:
    """Gives the ratio of each operation's median to a baseline's, by point id, and no verdict.

    Args:
        baseline: A stored baseline or a run directory to compare with.
        output_directory: The run directory that is looked at.
        comparison: The comparison as Markdown; it says that it is no verdict.
        ratios: Candidate over baseline per point and operation; above 1 is slower.
        samples: What aggregate wrote; it orders this step after that one.
    """
    from orbax_bench_core.compare.baseline import load
    from orbax_bench_core.compare.ratios import compare
    from orbax_bench_core.report.comparison import comparison_markdown
    from orbax_bench_core.results.lineage import artifact_metadata
    from orbax_bench_core.results.run_directory import RunDirectory

    candidate = RunDirectory(output_directory)
    found = compare(load(baseline), candidate.records())
    with open(comparison.path, "w") as page:
        page.write(comparison_markdown(found))
    for row in found.ratios:
        if row.ratio is not None:
            ratios.log_metric(f"{row.point} {row.point_id} {row.operation} ratio", row.ratio)
    point_ids = sorted({row.point_id for row in found.ratios})
    comparison.metadata.update(
        artifact_metadata("comparison", candidate.read_info(), point_ids=point_ids),
        baseline=baseline,
        verdict="none",
    )
