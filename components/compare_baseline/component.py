"""Component that gives the verdict on a run."""

from kfp import dsl

from orbax_bench_components.image import IMAGE


@dsl.component(base_image=IMAGE, install_kfp_package=False)
def compare_baseline(
    output_directory: str,
    verdicts: dsl.Output[dsl.Dataset],
    comparison: dsl.Output[dsl.Markdown],
    report: dsl.Output[dsl.HTML],
    ratios: dsl.Output[dsl.Metrics],
    baseline: str = "",
    samples: dsl.Input[dsl.Dataset] = None,
) -> str:
    """Judges a run: REGRESSION, PASS or INCONCLUSIVE.

    The arms of a paired run are compared in the blocks in which they were measured. Any other run
    is compared with a stored baseline, which can only warn: two runs that were made apart differ
    by more than their code.

    Args:
        output_directory: The run directory that is looked at.
        verdicts: All that was found, as JSON.
        comparison: The verdicts as Markdown.
        report: The verdicts with plots, as a page that needs no other file.
        ratios: Candidate over baseline per point and operation; above 1 is slower.
        baseline: A stored baseline, a registry of them, REGISTRY/NAME with the id, label, commit or
            tag of a capture, or a run directory to compare with; empty for a run that has both
            arms.
        samples: What aggregate wrote; it orders this step after that one.

    Returns:
        The verdict, in one word.
    """
    import shutil

    from orbax_bench_core.analysis.verdicts import compare_stored
    from orbax_bench_core.lineage import (
        artifact_metadata,
        bounded_metrics,
        input_digests,
        output_metadata,
    )
    from orbax_bench_core.records import RunDirectory
    from orbax_bench_core.steps import publish_verdicts

    run = RunDirectory(output_directory)
    found = compare_stored(baseline or output_directory, output_directory)
    publish_verdicts(run, found)
    point_ids = [point.point_id for point in found.points]
    said = {"baseline": baseline or "arm", "verdict": found.word}
    for kind, name, artifact in (
        ("verdicts", "verdicts.json", verdicts),
        ("comparison", "verdicts.md", comparison),
        ("verdicts-report", "verdicts.html", report),
    ):
        with (run.root / name).open("rb") as source, open(artifact.path, "wb") as target:
            shutil.copyfileobj(source, target)
        artifact.metadata.update(output_metadata(run, name, kind, point_ids=point_ids), **said)
    judged = (
        (f"{point.point} {point.point_id} {one.operation} ratio", one.verdict.ratio)
        for point in found.points
        for one in point.operations
        if one.verdict.ratio is not None
    )
    ratios.metadata.update(bounded_metrics(judged))
    of_ratios = artifact_metadata(
        "ratios", run, point_ids=point_ids, inputs=input_digests(run, "verdicts.json")
    )
    ratios.metadata.update(of_ratios, **said)
    return found.word
