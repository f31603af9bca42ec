"""Component that measures sweep points."""

import os
from typing import List, Optional  # noqa: UP035 - kfp reads this spelling

from kfp import dsl

IMAGE = os.environ.get("ORBAX_BENCH_IMAGE", "orbax-bench:0.1.0")


@dsl.component(base_image=IMAGE, install_kfp_package=False)
def run_sweep_point(
    pipeline_run: str,
    point: str,
    output_directory: str,
    records: dsl.Output[dsl.Dataset],
    gcp_resources: dsl.OutputPath(str),  # type: ignore[valid-type]
    checkpoint: dsl.Input[dsl.Artifact] = None,
    keep_data: bool = False,
    enable_hlo_dump: bool = False,
    measure_limits: bool = True,
    strict: bool = False,
    lock: bool = True,
    launcher: str = "",
    tpu: str = "",
    slices: int = 1,
    launcher_settings: Optional[List[str]] = None,  # noqa: UP006, UP045
    expect: str = "",
) -> None:
    """Runs every repeat of a batch of sweep points and keeps every raw sample.

    A point with arms is run in blocks of both, until each primary operation has its verdict.

    A failed repeat is a record with status `failed`; the step succeeds, so that one point cannot
    fail a sweep. Retries happen inside, as the suite says. A restarted step continues where it was
    stopped.

    With a launcher the step measures nothing itself: it starts hosts, each in the image of the
    step, which `ORBAX_BENCH_IMAGE` names by digest, and waits for them. So points run on a TPU
    slice of several hosts, or on any TPUs of Vertex AI. Settings of the task apply only to the
    step; resources, node selectors, tolerations, variables and the volume of the hosts are
    `launcher_settings`.

    Args:
        pipeline_run: Id of the pipeline's run, `dsl.PIPELINE_JOB_ID_PLACEHOLDER`: an input that
            differs per run keeps a service from using its cache.
        point: An item of what plan-sweep returned: the ids of points, separated by spaces.
        output_directory: The run directory that plan-sweep began.
        records: The points with the digest of the records of each, as JSON; the records are in the
            run directory.
        gcp_resources: The custom job that the step has created, as Google Cloud Pipeline Components
            name it: Vertex AI links to it, and a restarted step waits for it.
        checkpoint: What the points load; it orders this step after the one that makes it.
        keep_data: Whether the checkpoint data of each repeat stays.
        enable_hlo_dump: Whether XLA writes its HLO protos into the run directory.
        measure_limits: Whether to measure the limits of machine and storage, once per run.
        strict: Whether a failed repeat fails the step.
        lock: Whether to wait until no other orbax-bench measures on the machine.
        launcher: What starts the hosts: `jobset`, `vertex` or another place of `orbax-bench launch
            --on`; empty measures in this step.
        tpu: The slice that they form, as TYPE:TOPOLOGY, such as v5e:4x4; empty for machines without
            TPUs, as many as a point has processes.
        slices: How many such slices.
        launcher_settings: Settings of the launcher, each KEY=VALUE, such as `memory=64Gi` or
            `node_selector={"pool": "bench"}`.
        expect: The devices that must be there, as `PLATFORM[:KIND][:COUNT]`, such as tpu:v5e:8 or
            gpu:h100-80gb:8: with others the step fails before it measures. Empty takes any.
    """
    from orbax_bench_core.engine import as_component
    from orbax_bench_core.launchers import note_job, noted_job

    if noted_job(gcp_resources) is None:
        note_job(gcp_resources)
    as_component("run_sweep_point", locals(), points=[point], noted=gcp_resources)
