"""Steps that only our own pipelines have: several components in one.

Kubeflow starts two pods for each step, one after the other, and takes some ten seconds for each. A
pipeline of others takes the components.
"""

# No postponed annotations in this package: kfp reads types from signatures.
from typing import List  # noqa: UP035 - kfp reads this spelling

from kfp import dsl

from orbax_bench_components.image import IMAGE


@dsl.component(base_image=IMAGE, install_kfp_package=False)
def begin_run(
    pipeline_run: str,
    suite: str,
    output_directory: str,
    directory: dsl.OutputPath(str),  # type: ignore[valid-type]
    planned: dsl.Output[dsl.Artifact],
    checkpoint: dsl.Output[dsl.Artifact],
    stored: dsl.Output[dsl.Artifact],
    arms: str = "",
    baseline: str = "",
    fixture: str = "",
    folder_per_run: bool = False,
    slice_name: str = "",
    processes: int = 0,
    points_per_step: int = 0,
    go_on: bool = False,
) -> List[str]:  # noqa: UP006
    """Chooses the folder of a run, plans its suite, and makes the checkpoint that the suite loads.

    A baseline becomes an artifact here, so that a metadata store leads from it to the verdict. An
    importer would know no digest, and Kubeflow would download all that lies below its path into the
    step that takes it, or refuse the path of a mounted claim.

    Args:
        pipeline_run: Id of this run.
        suite: The suite file, word for word.
        output_directory: The run directory, or the folder above those of runs or slices.
        directory: The run directory.
        planned: The suite, from which tables and verdicts descend.
        checkpoint: The checkpoint that the suite loads.
        stored: It points at the baseline, with the digest of what that means now.
        arms: As for plan-sweep.
        baseline: A stored baseline, a registry, a capture in one, or a run directory.
        fixture: As for generate-checkpoint.
        folder_per_run: As for choose-folder.
        slice_name: As for choose-folder.
        processes: As for plan-sweep.
        points_per_step: As for plan-sweep.
        go_on: As for plan-sweep.

    Returns:
        An item for each measuring step: the ids of its points, separated by spaces.
    """
    from pathlib import Path

    from orbax_bench_core.engine import (
        ErrorsAsMessages,
        generate_checkpoint,
        plan_sweep,
        run_folder,
    )
    from orbax_bench_core.lineage import artifact_metadata, baseline_digest, point_at

    with ErrorsAsMessages():
        if baseline:
            digest = baseline_digest(baseline)
            stored.metadata.update(artifact_metadata("baseline", digest=digest, path=baseline))
            point_at(stored, baseline)
        run = run_folder(output_directory, pipeline_run if folder_per_run else "", slice_name)
        Path(directory).parent.mkdir(parents=True, exist_ok=True)
        Path(directory).write_text(run)
        steps = plan_sweep(
            suite,
            run,
            arms=arms,
            processes=processes,
            points_per_step=points_per_step,
            engine_run=pipeline_run,
            go_on=go_on,
        ).into(planned=planned)
        generate_checkpoint(suite, fixture=fixture).into(checkpoint=checkpoint)
        return steps


@dsl.component(base_image=IMAGE, install_kfp_package=False)
def judge_run(
    pipeline_run: str,
    output_directory: str,
    samples: dsl.Output[dsl.Dataset],
    metrics: dsl.Output[dsl.Metrics],
    summary: dsl.Output[dsl.Markdown],
    report: dsl.Output[dsl.HTML],
    tensorboard: dsl.Output[dsl.Artifact],
    verdicts: dsl.Output[dsl.Dataset],
    comparison: dsl.Output[dsl.Markdown],
    verdicts_report: dsl.Output[dsl.HTML],
    ratios: dsl.Output[dsl.Metrics],
    captured: dsl.Output[dsl.Dataset],
    compare_arms: bool = False,
    baseline: str = "",
    only_shows: bool = False,
    allow_inconclusive: bool = False,
    registry: str = "",
    promote: bool = False,
    revision: str = "",
    force: bool = False,
    planned: dsl.Input[dsl.Artifact] = None,
    stored: dsl.Input[dsl.Artifact] = None,
) -> None:
    """Puts records together, judges them, fails if they are not good enough, or captures them.

    A step that fails leaves no artifacts with a service: finish gives it report, metrics and
    verdicts then.

    Args:
        pipeline_run: Id of this run.
        output_directory: The run directory.
        samples: As of aggregate.
        metrics: As of aggregate.
        summary: As of aggregate.
        report: As of aggregate.
        tensorboard: As of aggregate.
        verdicts: As of compare-baseline; empty if nothing is compared.
        comparison: As of compare-baseline.
        verdicts_report: As of compare-baseline.
        ratios: As of compare-baseline.
        captured: What publish-baseline captured; empty if nothing is.
        compare_arms: Whether both arms of the run are compared, without a baseline.
        baseline: A stored baseline to compare the run with; empty for none.
        only_shows: Whether the verdict is an answer, which fails nothing.
        allow_inconclusive: As for enforce-verdict.
        registry: Where to capture a run with a good verdict; empty for nowhere.
        promote: As for publish-baseline.
        revision: As for publish-baseline.
        force: As for publish-baseline.
        planned: What begin-run planned; only the lineage of the artifacts needs it.
        stored: The baseline as an artifact; only the lineage of the verdict needs it.
    """
    from orbax_bench_core.engine import (
        ErrorsAsMessages,
        aggregate,
        compare_baseline,
        enforce_verdict,
        publish_baseline,
    )

    artifacts = locals()
    with ErrorsAsMessages():
        lacking = aggregate(output_directory).into(**artifacts)
        word, file = "", None
        if compare_arms or baseline:
            found = compare_baseline(output_directory, baseline=baseline)
            word = found.into(**{**artifacts, "report": verdicts_report})
            file = verdicts.path
        enforce_verdict(
            "" if only_shows else word,
            verdicts=None if only_shows else file,
            lacking=lacking,
            allow_inconclusive=allow_inconclusive,
        )
        if registry:
            publish_baseline(
                output_directory,
                registry,
                promote=promote,
                revision=revision,
                force=force,
                verdict=word,
                allow_inconclusive=allow_inconclusive,
            ).into(baseline=captured)
