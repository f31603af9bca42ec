"""Component that names the folder of a run."""

import os

from kfp import dsl

IMAGE = os.environ.get("ORBAX_BENCH_IMAGE", "orbax-bench:0.1.0")


@dsl.component(base_image=IMAGE, install_kfp_package=False)
def choose_folder(
    pipeline_run: str, output_directory: str, folder_per_run: bool = False, slice_name: str = ""
) -> str:
    """Names the folder of one run, of one slice, or of both.

    Kubeflow does not reliably put strings together outside of steps (kubeflow/pipelines#11035).

    Args:
        pipeline_run: Id of this run.
        output_directory: The folder above it.
        folder_per_run: Whether this run has its own folder.
        slice_name: Name of the slice; empty for no folder per slice.

    Returns:
        The folder; that of a run begins with the time in UTC.
    """
    from orbax_bench_core.engine import ErrorsAsMessages, run_folder

    with ErrorsAsMessages():
        return run_folder(output_directory, pipeline_run if folder_per_run else "", slice_name)
