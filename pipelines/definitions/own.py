"""Steps that only our own pipelines have: the folder of a run, and a baseline as an artifact."""

# No postponed annotations in this package: kfp reads types from signatures.
from kfp import dsl

from orbax_bench_components.image import IMAGE


@dsl.component(base_image=IMAGE, install_kfp_package=False)
def choose_folder(
    pipeline_run: str, output_directory: str, folder_per_run: bool = False, slice_name: str = ""
) -> str:
    """Names the folder of one run, of one slice, or of both.

    Kubeflow does not reliably put strings together outside of steps (kubeflow/pipelines#11035).

    Args:
        pipeline_run: Id of this run.
        output_directory: What the folder is to lie below.
        folder_per_run: Whether this run has a folder of its own.
        slice_name: Name of the slice; empty gives slices no folder of their own.

    Returns:
        The folder; that of a run begins with the time in UTC.
    """
    from orbax_bench_core.steps.pipeline import ErrorsAsMessages, run_folder

    with ErrorsAsMessages():
        below = output_directory.rstrip("/")
        chosen = run_folder(below, pipeline_run) if folder_per_run else below
        return f"{chosen}/{slice_name}" if slice_name else chosen


@dsl.component(base_image=IMAGE, install_kfp_package=False)
def bring_baseline(
    pipeline_run: str,  # noqa: ARG001 - keeps a service from answering out of its cache
    baseline: str,
    stored: dsl.Output[dsl.Artifact],
) -> None:
    """Makes an artifact of a stored baseline, so that a metadata store leads from it to a verdict.

    An importer would know no digest, and Kubeflow would download all that lies below its path into
    the step that takes it, or refuse the path of a mounted claim.

    Args:
        pipeline_run: Id of this run.
        baseline: A stored baseline, a registry, a capture in one, or a run directory.
        stored: It points there, with the digest of what the baseline means now.
    """
    from orbax_bench_core.lineage import artifact_metadata, baseline_digest, point_at
    from orbax_bench_core.steps.pipeline import ErrorsAsMessages

    with ErrorsAsMessages():
        digest = baseline_digest(baseline)
        stored.metadata.update(artifact_metadata("baseline", digest=digest, path=baseline))
        point_at(stored, baseline)
