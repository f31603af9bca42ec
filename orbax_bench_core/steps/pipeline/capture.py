"""Step publish-baseline: a run as a capture in a registry."""

from __future__ import annotations

from orbax_bench_core.baselines import publish_run
from orbax_bench_core.errors import UserError, shown
from orbax_bench_core.lineage import artifact_metadata, baseline_digest
from orbax_bench_core.records import RunDirectory
from orbax_bench_core.steps.pipeline.again import tried_again
from orbax_bench_core.steps.pipeline.enforcement import WORDS
from orbax_bench_core.steps.pipeline.outputs import Output, Outputs
from orbax_bench_core.steps.point import SAID


@tried_again
def publish_baseline(
    output_directory: str,
    registry: str,
    *,
    arm: str = "candidate",
    promote: bool = False,
    revision: str = "",
    force: bool = False,
    verdict: str = "",
    allow_inconclusive: bool = False,
) -> Outputs[str]:
    """Capture a run in a registry of baselines; returns the id of the capture, or none.

    It holds every raw sample. enforce-verdict lets a comparison with what was measured apart
    through, which only warns: here it counts, lest the next run is compared with a slower one.

    Args:
        output_directory: The run directory.
        registry: The registry: a folder or a gs:// prefix.
        arm: Which side of a paired run: `baseline` or `candidate`.
        promote: Make it the baseline of its points.
        revision: File it under this; by default the commit of the code under test.
        force: Promote code with changes that no commit has.
        verdict (WORD): What compare-baseline returned; REGRESSION and INCONCLUSIVE are not
            captured.
        allow_inconclusive: Capture what is INCONCLUSIVE as well.

    Returns:
        The value is the id of the capture, and empty where there is none; `baseline` is its folder
        in the registry.

    Raises:
        UserError: The run cannot be a baseline, or the word is no verdict.
    """
    if verdict not in WORDS:
        raise UserError(f"not a verdict: {shown(verdict)}; it is one of {', '.join(WORDS[1:])}")
    run = RunDirectory(output_directory)
    if verdict not in ("", "PASS", *(["INCONCLUSIVE"] if allow_inconclusive else [])):
        print(f"{SAID}{output_directory} is not captured: {verdict}", flush=True)
        metadata = artifact_metadata("baseline", run, path=registry) | {"not_captured": verdict}
        return Outputs(value="", named={"baseline": Output(metadata=metadata)})
    captured, folder = publish_run(
        run, registry, arm=arm, promote=promote, revision=revision or None, force=force
    )
    place = str(folder)
    metadata = artifact_metadata("baseline", run, digest=baseline_digest(place), path=place)
    metadata |= {
        "revision": captured.revision,
        "capture": captured.id,
        "code": captured.code.words,
    }
    named = {"baseline": Output(metadata=metadata, place=place)}
    return Outputs(value=captured.id, named=named)
