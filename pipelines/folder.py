"""The step that names a folder where several runs or slices share one output directory."""

from kfp import dsl

from orbax_bench_components.image import IMAGE


@dsl.component(base_image=IMAGE, install_kfp_package=False)
def choose_folder(output_directory: str, run: str = "", slice_name: str = "") -> str:
    """Names the folder of one run, of one slice, or of both.

    Kubeflow does not reliably put strings together outside of steps (kubeflow/pipelines#11035).

    Args:
        output_directory: What the folder is to lie below.
        run: Id of this run; empty gives runs no folder of their own.
        slice_name: Name of the slice; empty gives slices no folder of their own.

    Returns:
        The folder; that of a run begins with the time in UTC.
    """
    import datetime

    parts = [output_directory.rstrip("/")]
    if run:
        parts.append(f"{datetime.datetime.now(datetime.UTC):%Y-%m-%dT%H%M%SZ}-{run[:8]}")
    if slice_name:
        parts.append(slice_name)
    return "/".join(parts)
