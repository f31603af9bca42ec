"""A step that only our own pipelines have: a baseline as an artifact."""

# No postponed annotations in this package: kfp reads types from signatures.
from kfp import dsl

from orbax_bench_components.image import IMAGE


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
