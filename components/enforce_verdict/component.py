"""Component that fails a pipeline whose candidate has regressed."""

from kfp import dsl

from orbax_bench_components.image import IMAGE


@dsl.component(base_image=IMAGE, install_kfp_package=False)
def enforce_verdict(
    verdict: str,
    allow_inconclusive: bool = False,
    verdicts: dsl.Input[dsl.Dataset] = None,
) -> None:
    """Succeeds on PASS and fails on REGRESSION, so that the pipeline's own state is the verdict.

    Args:
        verdict: What compare-baseline returned.
        allow_inconclusive: Whether INCONCLUSIVE is as good as PASS; never where an arm lacks an
            operation.
        verdicts: What compare-baseline wrote; the message names what has regressed.
    """
    from orbax_bench_core.steps.pipeline import enforce_verdict

    path = verdicts.path if verdicts else None
    enforce_verdict(verdict, verdicts=path, allow_inconclusive=allow_inconclusive)
