"""Run of a job on its target, from its start to its exit code; refusals of services."""

import contextlib
import dataclasses
import json
import os
import sys
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path

import typer
from rich.console import Console
from rich.markup import escape

from orbax_bench_core.analysis.verdicts import read_verdicts
from orbax_bench_core.engine import RunEnding
from orbax_bench_core.errors import Problem, UserError, command
from orbax_bench_core.exit_codes import CODES, Exit, State, worst
from orbax_bench_core.files import check_credentials, new_scratch_file
from orbax_bench_core.publishing import Notifiers
from orbax_bench_core.records import RunDirectory
from orbax_bench_core.sweep import benchmark_environment
from orbax_bench_pipelines.definitions import Finished
from orbax_bench_pipelines.target import SERVICES
from orbax_bench_pipelines.targets import Job, RunGone, SubmissionFailed, Target, service_for

_ALL = 1 << 20
"""More steps than any loop has."""


def require_service(target: Target) -> None:
    """Refuses a target that is no service."""
    if target not in SERVICES:
        raise UserError(
            f"--target {target} runs on this machine and nothing is submitted; use `orbax-bench "
            "pipeline run`, or --target kfp or vertex"
        )


@contextlib.contextmanager
def refused_as_exit_code() -> Iterator[None]:
    """Shows a refusal as one line and ends with exit code 1."""
    try:
        yield
    except SubmissionFailed as failure:
        print(f"error: {failure}", file=sys.stderr)
        raise typer.Exit(Exit.FAILED) from None


def planned(job: Job) -> str:
    """Returns the requests that a run of the job would send, or start here, as JSON."""
    if job.placement.target in SERVICES:
        return service_for(job, dry=True).planned()
    here = {
        "target": job.placement.target,
        "pipeline": job.pipeline.name,
        "parameters": dict(job.arguments),
        "settings": {name: str(getattr(job.settings, name)) for name in job.settings.given},
    }
    return json.dumps(here, indent=2)


@dataclasses.dataclass(frozen=True)
class Ended:
    """End of a job's run."""

    failure: str | None  # why it failed, as its place says; None when every step succeeded
    told: RunEnding | None = None  # what its exit task told, where the run was on a service
    run_id: str = ""  # what the service calls the run


def run_job(job: Job, suite: str, console: Console, *, create: bool = False) -> Ended:
    """Runs a job to its end, and returns how it ended."""
    say = partial(console.print, markup=False, highlight=False)
    if job.placement.target not in SERVICES:
        return Ended(_here(job, suite, say))
    service = service_for(job)
    say(f"Run: {service.submit(create=create)}")
    try:
        failure = service.wait(say)
    except RunGone as gone:
        return Ended(str(gone), run_id=service.run_id)
    return Ended(failure, service.ending(), service.run_id)


@dataclasses.dataclass(frozen=True)
class Told:
    """Places where a run is told of, beside the console."""

    notifiers: Notifiers
    suite: str  # its name

    def of(self, job: Job, place: str, folder: str, code: int, failure: str | None = None) -> None:
        """Tells of one run directory: its verdicts, where they decide anything, or how it ended."""
        suite = f"{self.suite} on {folder}" if folder else self.suite
        judges = job.pipeline.name == "regression" or job.arguments.get("baseline")
        try:
            found = read_verdicts(RunDirectory(place)) if judges else None
        except (UserError, OSError, ImportError):
            found = None
        if found is None:
            why = failure or "no result: see the log"
            said = "every step succeeded" if code == Exit.OK else why
            self.notifiers.ended(suite, _state(code), place, (said,))
            return
        junit = self.notifiers.junit
        if junit is not None and folder:
            junit = f"{junit.removesuffix('.xml')}-{folder}.xml"
        own = dataclasses.replace(self.notifiers, junit=junit)
        failed = _state(code) == "FAILED"
        own.verdicts(found.model_copy(update={"suite": suite}), place, failed=failed)


def conclude(job: Job, ended: Ended, console: Console, told: Told) -> int:
    """Shows what a run found, tells of it, and returns the exit code."""
    directory, failure = job.arguments["output_directory"], ended.failure
    folders = [str(shape.name) for shape in job.settings.tpu] if len(job.settings.tpu) > 1 else [""]
    places = {folder: f"{directory}/{folder}".rstrip("/") for folder in folders}
    if not any(map(_reachable, places.values())):
        code = _conclude_told(job, ended, console, told)
    else:
        code = worst(_conclude_in(job, ended, console, told, *each) for each in places.items())
    if failure is not None and ended.told is None:
        # Names of points have brackets, which the console would take for styles.
        console.print("[red]The pipeline failed:[/]", escape(failure), soft_wrap=True)
    return code


def _conclude_told(job: Job, ended: Ended, console: Console, told: Told) -> int:
    """Shows what the exit task told of a run whose directory this machine cannot read."""
    say = partial(console.print, markup=False, highlight=False, soft_wrap=True)
    place, code = str(job.arguments["output_directory"]), int(ended.failure is not None)
    if ended.told is not None:
        place, code = ended.told.directory, ended.told.code if code else code
        say(ended.told.words)
        where = [
            word
            for name in ("endpoint", "namespace", "project", "location")
            if (given := getattr(job.settings, name)) is not None
            for word in ("--set", f"{name}={given}")
        ]
        asked = ("report", ended.run_id, "--target", job.placement.target, *where)
        report = command("pipeline", *asked, "-o", "report.html")
        say(f"Report: {report}")
    say(f"Run directory: {place}, which this machine cannot read")
    if code:
        lines = ended.told.reasons if ended.told else (str(ended.failure),)
        elsewhere = dataclasses.replace(told.notifiers, remembers=False)
        elsewhere.ended(told.suite, _state(code), place, lines)
    return code


def _conclude_in(
    job: Job, ended: Ended, console: Console, told: Told, folder: str, place: str
) -> int:
    """Shows what one run directory holds, tells of it, and returns the exit code."""
    if not _reachable(place):
        console.print(f"This machine cannot read {escape(place)}; the results are there.")
        if ended.failure is None:
            return Exit.OK
        told.of(job, place, folder, Exit.FAILED, ended.failure)
        return Exit.FAILED
    code = job.pipeline.conclude(Finished(place, job.arguments, ended.failure), console)
    if ended.told is not None and ended.told.state == "FAILED":
        console.print(ended.told.words, markup=False, highlight=False, soft_wrap=True)
    if ended.failure is not None:  # a step that was lost may have left nothing
        complete = RunDirectory(place).read_info().status == "complete"
        code = worst([code, Exit.OK if complete else Exit.FAILED]) or Exit.FAILED
    told.of(job, place, folder, code, ended.failure)
    console.print(f"Run directory: {place}", markup=False, soft_wrap=True)
    return code


def _state(code: int) -> State:
    return next((state for state in reversed(CODES) if CODES[state] == code), "FAILED")


def save_report(told: RunEnding | None, run_id: str, output: str) -> int:
    """Writes the page that an exit task told, says how the run ended, and returns the exit code."""
    if told is None:
        raise SubmissionFailed(
            f"the service has no ending of the run {run_id}: its exit task `finish` has not ended, "
            "or its log is no longer kept"
        )
    print(told.words)
    if told.html is None:
        print(f"the page is not with the service; it is in {told.directory}", file=sys.stderr)
    else:
        try:
            Path(output).write_bytes(told.html)
        except OSError as error:
            raise UserError(
                Problem(f"cannot write {output}: {error.strerror}", key="--output")
            ) from None
        print(f"Report: {output}")
    return Exit.OK if told.state == "PASS" else told.code


def _reachable(directory: str) -> bool:
    try:
        RunDirectory(directory).read_info()
    except (UserError, OSError, ImportError):
        return False
    return True


def _here(job: Job, suite: str, say: Callable[[str], None]) -> str | None:
    from orbax_bench_pipelines.targets.docker import run_in_docker
    from orbax_bench_pipelines.targets.local import PipelineFailed, run_locally

    directory = str(job.arguments["output_directory"])
    if "://" in directory and job.placement.target is Target.LOCAL:
        check_credentials(directory)  # each step would look for them by itself
    pipeline = job.pipeline.build(job.placement)
    file, failed = new_scratch_file("orbax-bench-steps"), False
    os.environ["PYTHONPATH"] = benchmark_environment(suite)["PYTHONPATH"]
    start = run_in_docker if job.placement.target is Target.DOCKER else run_locally
    at_a_time = _ALL if job.settings.parallelism == 0 else job.settings.parallelism
    try:
        with file.open("w") as log:
            start(pipeline, dict(job.arguments), log=log, say=say, at_a_time=at_a_time)
    except PipelineFailed as failure:
        failed = True
        return f"{failure}\nWhat its steps printed: {file}"
    finally:
        if not failed:
            file.unlink(missing_ok=True)
    return None
