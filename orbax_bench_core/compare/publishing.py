"""Storing a run as a baseline, as a step of a pipeline."""

from __future__ import annotations

from orbax_bench_core.compare.registry.capturing import capture_run
from orbax_bench_core.compare.registry.model import Capture
from orbax_bench_core.compare.registry.promoting import promote as promote_capture
from orbax_bench_core.compare.registry.store import Registry
from orbax_bench_core.config.arms import ARMS
from orbax_bench_core.config.errors import SuiteError, did_you_mean
from orbax_bench_core.records.run_directory import RunDirectory


def publish_run(
    run: RunDirectory, registry: str, *, arm: str, promote: bool, revision: str | None
) -> tuple[Capture, str]:
    """Captures a run and, if asked, makes it the baseline of its points.

    Args:
        run: The run.
        registry: The registry, a folder or a gs:// prefix.
        arm: Which side of a paired run.
        promote: Whether it becomes the baseline.
        revision: What to file it under; None takes the commit of the code that ran.

    Returns:
        The capture, and its folder.

    Raises:
        SuiteError: There is nothing to capture, or the registry cannot be written.
    """
    side = next((known for known in ARMS if known == arm), None)
    if side is None:
        raise SuiteError(f"unknown arm {arm!r}; {did_you_mean(arm, ARMS)}")
    store = Registry(registry)
    captured = capture_run(run, store, arm=side, revision=revision)
    if captured.capture is None:
        reasons = "; ".join(f"{name}: {why}" for name, why in captured.left_out.items())
        raise SuiteError(f"no point of {run.root} can be a baseline: {reasons}")
    if promote:
        promote_capture(store, captured.capture.id)
    return captured.capture, str(store.root / captured.capture.reference)
