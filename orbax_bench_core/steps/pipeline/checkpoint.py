"""Step generate-checkpoint: the checkpoint that a suite loads."""

from __future__ import annotations

from orbax_bench_core.lineage import checkpoint_metadata
from orbax_bench_core.steps.fixture import ensure_checkpoint
from orbax_bench_core.steps.pipeline.again import tried_again
from orbax_bench_core.steps.pipeline.outputs import Output, Outputs


@tried_again
def generate_checkpoint(suite: str, *, fixture: str = "") -> Outputs[str | None]:
    """Make the checkpoint that a suite loads, unless it is there; returns its path, or null.

    Args:
        suite: The suite file, word for word.
        fixture (SUITE): A suite whose first checkpoint is made if missing.

    Returns:
        `checkpoint` lies where the suite looks for it; of a suite that loads none it has no place.

    Raises:
        UserError: It is missing and cannot be made.
    """
    path = ensure_checkpoint(suite, fixture)
    metadata = checkpoint_metadata(path, suite)
    return Outputs(value=path, named={"checkpoint": Output(metadata=metadata, place=path)})
