"""Component that gives the verdict on a run."""

import os

from kfp import dsl

IMAGE = os.environ.get("ORBAX_BENCH_IMAGE", "orbax-bench:0.1.0")


@dsl.component(base_image=IMAGE, install_kfp_package=False)
def compare_baseline(
    pipeline_run: str,
    output_directory: str,
    verdicts: dsl.Output[dsl.Dataset],
    comparison: dsl.Output[dsl.Markdown],
    report: dsl.Output[dsl.HTML],
    ratios: dsl.Output[dsl.Metrics],
    baseline: str = "",
    samples: dsl.Input[dsl.Dataset] = None,
    stored: dsl.Input[dsl.Artifact] = None,
) -> str:
    """Judges a run: REGRESSION, PASS or INCONCLUSIVE.

    The arms of a paired run are compared in the blocks in which they were measured. Any other run
    is compared with a stored baseline, which only warns below 2x: two separate runs differ by more
    than their code.

    Args:
        pipeline_run: Id of the pipeline's run, `dsl.PIPELINE_JOB_ID_PLACEHOLDER`: an input that
            differs per run keeps a service from using its cache.
        output_directory: The run directory to judge.
        verdicts: All results, as JSON.
        comparison: The verdicts as Markdown.
        report: The verdicts with plots, as a page that needs no other file.
        ratios: Candidate over baseline per point and operation, where above 1 is slower, and the
            verdict.
        baseline: A stored baseline, a registry of them, REGISTRY/NAME with the id, label, commit or
            tag of a capture, or a run directory to compare with; empty for a run that has both
            arms.
        samples: What aggregate wrote; it orders this step after that one.
        stored: The baseline as an artifact, from publish-baseline or an importer, so that a
            metadata store leads from it to this verdict; in place of `baseline`.

    Returns:
        The verdict, in one word.
    """
    from orbax_bench_core.engine import as_component
    from orbax_bench_core.lineage import place_of

    return as_component("compare_baseline", locals(), baseline=baseline or place_of(stored))
