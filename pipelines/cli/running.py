"""Running a job to its end on each target."""

from __future__ import annotations

import json
import os
import re
import tempfile
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import IO, Any

from rich.console import Console

from orbax_bench_core.config import UserError
from orbax_bench_core.sweep import benchmark_environment
from orbax_bench_pipelines.job import Job, as_text
from orbax_bench_pipelines.registry import Finished
from orbax_bench_pipelines.target import Target

Say = Callable[[str], None]
_GRAVITY = (0, 4, 1, 3)
"""Exit codes, the one that matters most last: a REGRESSION on one of several slices counts."""
_COLOURS = re.compile(r"\x1b\[[0-9;]*m")


def planned(job: Job) -> str:
    """Returns what a run of the job would send, or start here, as JSON.

    Args:
        job: What would run.
    """
    target = job.placement.target
    if target is Target.KFP:
        from orbax_bench_pipelines import kubeflow

        return as_text(kubeflow.planned(job))
    if target is Target.VERTEX:
        from orbax_bench_pipelines.vertex import Vertex

        return as_text(Vertex(job, dry=True).planned())
    here = {
        "target": target,
        "pipeline": job.pipeline.name,
        "parameters": dict(job.arguments),
        "settings": {name: str(getattr(job.settings, name)) for name in job.settings.given},
    }
    return json.dumps(here, indent=2)


def run_job(job: Job, suite: str, console: Console) -> str | None:
    """Runs a job and waits for its end.

    Args:
        job: What to run.
        suite: The suite file, beside which benchmark classes are looked for.
        console: Where to say how it goes.

    Returns:
        Why it failed; None when every step succeeded.

    Raises:
        SubmissionFailed: A service refused it or answers no more.
        UserError: It cannot be run as asked.
    """
    say = partial(console.print, markup=False, highlight=False)
    target = job.placement.target
    if target is Target.KFP:
        return _on_kubeflow(job, say)
    if target is Target.VERTEX:
        return _on_vertex(job, say)
    return _here(job, suite, say)


def conclude(job: Job, failure: str | None, console: Console) -> int:
    """Shows what a run found and returns the exit code.

    Args:
        job: What ran.
        failure: Why it failed; None when it did not.
        console: Where to show it.
    """
    directory = job.arguments["output_directory"]
    folders = [str(shape.name) for shape in job.settings.tpu] if len(job.settings.tpu) > 1 else [""]
    codes = []
    for folder in folders:
        place = f"{directory}/{folder}".rstrip("/")
        if not _reachable(place):
            console.print(f"This machine cannot read {place}; the results are there.")
            codes.append(int(failure is not None))
            continue
        found = job.pipeline.conclude(Finished(place, job.arguments, failure), console)
        codes.append(found or int(failure is not None))
        console.print(f"Run directory: {place}", markup=False, soft_wrap=True)
    if failure is not None:
        console.print("[red]The pipeline failed:[/]", _COLOURS.sub("", failure), soft_wrap=True)
    return max(codes, key=_GRAVITY.index)


def _reachable(directory: str) -> bool:
    from orbax_bench_core.records import RunDirectory

    try:
        RunDirectory(directory).read_info()
    except (UserError, OSError, ImportError):
        return False
    return True


def _on_kubeflow(job: Job, say: Say) -> str | None:
    from orbax_bench_pipelines.kubeflow import Kubeflow

    cluster = Kubeflow(job)
    run_id = cluster.submit()
    say(f"Run: {cluster.link(run_id)}")
    return cluster.wait(run_id, say)


def _on_vertex(job: Job, say: Say) -> str | None:
    from orbax_bench_pipelines.vertex import Vertex

    vertex = Vertex(job)
    say(f"Run: {vertex.submit()}\n{vertex.link}")
    return vertex.wait(say)


def _here(job: Job, suite: str, say: Say) -> str | None:
    from orbax_bench_pipelines.local import PipelineFailed

    pipeline = job.pipeline.build(job.placement)
    with tempfile.NamedTemporaryFile(
        "w", prefix="orbax-bench-", suffix=".log", delete=False
    ) as log:
        try:
            _start(job, pipeline, suite, log, say)
        except PipelineFailed as failure:
            return f"{failure}\nWhat its steps printed: {log.name}"
        except UserError:
            Path(log.name).unlink()
            raise
    Path(log.name).unlink()
    return None


def _start(job: Job, pipeline: Any, suite: str, log: IO[str], say: Say) -> None:
    os.environ["PYTHONPATH"] = benchmark_environment(suite)["PYTHONPATH"]
    if job.placement.target is Target.DOCKER:
        from orbax_bench_pipelines.docker import run_in_docker

        run_in_docker(pipeline, dict(job.arguments), log=log, say=say)
    else:
        from orbax_bench_pipelines.local import run_locally

        run_locally(pipeline, dict(job.arguments), log=log, say=say)
