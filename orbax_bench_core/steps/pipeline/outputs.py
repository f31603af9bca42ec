"""Every step of a pipeline: another try, its outputs, and its end in a container."""

import contextlib
import dataclasses
import datetime
import errno
import functools
import inspect
import json
import os
import shutil
import time
import types
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, Final, Generic, ParamSpec, Self, TypeVar

import pydantic
from etils import epath

from orbax_bench_core import pages
from orbax_bench_core.answers import Answer
from orbax_bench_core.errors import UserError, may_pass, presentable, refusal_of
from orbax_bench_core.execute import CannotRecord, HostsMissing, detect_cluster
from orbax_bench_core.exit_codes import Exit
from orbax_bench_core.files import clear_own, write_atomically
from orbax_bench_core.interrupts import Terminated, interrupted_when_told
from orbax_bench_core.lineage import artifact_metadata, file_digest, output_metadata, point_at
from orbax_bench_core.owners import closed_to_others
from orbax_bench_core.records import RunDirectory
from orbax_bench_core.steps.experiments import NoRoom
from orbax_bench_core.steps.notifiers import Notifiers
from orbax_bench_core.steps.point import ENDED, SAID, PointFailed
from orbax_bench_core.steps.reporting import StepRetries, note_retries

Given = ParamSpec("Given")
Returned = TypeVar("Returned")

WAITS_S: Final = (10.0, 30.0, 90.0)
"""Seconds until each further try. Clients of Cloud Storage have tried each request for as long."""

_FULL: Final = (errno.ENOSPC, errno.EDQUOT)
"""Of a store that others fill and empty too."""


def tried_again(step: Callable[Given, Returned]) -> Callable[Given, Returned]:
    """Lets a step be tried again after passing trouble, never after a mistake or a finding.

    That is a store that is not well or full, a name that does not resolve, and want of memory. The
    same step goes on from what is recorded, and the run directory keeps what was tried again, for
    the report. Where it runs on several hosts, all of them start again, which their launcher sees
    to.
    """
    parameters = inspect.signature(step)

    @functools.wraps(step)
    def until_well(*args: Given.args, **given: Given.kwargs) -> Returned:
        reasons: list[str] = []
        succeeded = False
        try:
            with Notifiers.once():
                for wait_s in (*WAITS_S, None):
                    try:
                        found = step(*args, **given)
                    except Exception as error:
                        if reasons and isinstance(error, NoRoom):
                            error.passing = True  # there was room when the step began
                        why = _passing(error)
                        if not why or wait_s is None or detect_cluster(os.environ) is not None:
                            raise
                        reasons.append(presentable(str(error)))
                        said = f"{reasons[-1]}: {why}; the step is tried again in {wait_s:g} s"
                    else:
                        succeeded = True
                        return found
                    print(f"{SAID}{said}", flush=True)
                    time.sleep(wait_s)
            raise AssertionError("the last try returns or raises")
        finally:
            place = parameters.bind_partial(*args, **given).arguments.get("output_directory")
            if reasons and place:
                name = step.__name__.replace("_", "-")
                note_retried(name, str(place), reasons, succeeded=succeeded)

    return until_well


def _passing(error: BaseException) -> str:
    """Returns why the same may go well in a while; empty for what would fail again."""
    if may_pass(error):
        return "the store may be well again"
    if isinstance(error, NoRoom) and error.passing:
        return "there may be room again"
    beneath: BaseException | None = error
    while beneath is not None:
        if isinstance(beneath, MemoryError):
            return "there may be memory again"
        if isinstance(beneath, OSError) and beneath.errno in _FULL:
            return "there may be room again"
        beneath = beneath.__cause__ or beneath.__context__
    return ""


def note_retried(step: str, place: str, reasons: list[str], *, succeeded: bool) -> None:
    """Keeps what was tried again where there is a run."""
    now = datetime.datetime.now(datetime.UTC)
    noted = StepRetries(step=step, at=now, reasons=tuple(reasons), succeeded=succeeded)
    with contextlib.suppress(OSError, ImportError, UserError):
        run = RunDirectory(place)
        if run.exists():
            note_retries(run, noted)


@dataclasses.dataclass(frozen=True, kw_only=True)
class StepOutput:
    """One output: what is known of it, and where it lies."""

    metadata: Mapping[str, str | float]  # of metrics numbers, and the verdict as text
    place: str | None = None  # a local path or URI; None if the metadata is all there is
    copied: bool = False  # whether an engine that keeps files gets its bytes, not a pointer
    content: bytes = b""  # what an engine that keeps files gets, where it is no file

    @classmethod
    def of_run(
        cls, run: RunDirectory, name: str, kind: str, *, more: Mapping[str, str] | None = None
    ) -> Self:
        """Returns the output that is a file of a run directory."""
        metadata = output_metadata(run, name, kind) | dict(more or {})
        return cls(metadata=metadata, place=str(run.root / name), copied=True)


Value = TypeVar("Value")


@dataclasses.dataclass(frozen=True, kw_only=True)
class Outputs(Generic[Value]):
    """All outputs of a step: what it returns, as JSON has it, and its outputs by name."""

    value: Value
    named: Mapping[str, StepOutput] = dataclasses.field(default_factory=dict)

    def into(self, **artifacts: Any) -> Value:
        """Hands the outputs over as artifacts of Kubeflow: content, pointer and metadata."""
        for name, output in self.named.items():
            artifact = artifacts[name]
            artifact.metadata.update(output.metadata)
            if output.content:
                Path(artifact.path).write_bytes(output.content)
            if output.place is None:
                continue
            if not output.copied:
                point_at(artifact, output.place)
            elif output.place != artifact.path:
                with (
                    epath.Path(output.place).open("rb") as source,
                    Path(artifact.path).open("wb") as target,
                ):
                    shutil.copyfileobj(source, target)
        return self.value


def write_answer(
    kind: str,
    document: pages.Document,
    numbers: pydantic.BaseModel | Any,
    *,
    answer: str,
    summary: str,
    report: str,
    run: RunDirectory | None = None,
) -> dict[str, StepOutput]:
    """Writes an answer to files, and returns each as an output."""
    as_markdown, as_page = pages.to_markdown(document), pages.to_html(document)
    as_json = (
        numbers.model_dump_json(indent=1)
        if isinstance(numbers, pydantic.BaseModel)
        else json.dumps(numbers, indent=1)
    )
    contents = (
        ("answer", answer, kind, as_json),
        ("summary", summary, f"{kind}-summary", as_markdown),
        ("report", report, f"{kind}-report", as_page),
    )
    named = {}
    for name, place, what, content in contents:
        if not place:
            continue
        try:
            write_atomically(epath.Path(place), content.encode())
        except OSError as error:
            raise UserError(f"{name}: cannot write {place}: {error}") from None
        metadata = artifact_metadata(what, run, digest=file_digest(place), path=place)
        named[name] = StepOutput(metadata=metadata, place=place, copied=True)
    return named


def conclusion(
    run: RunDirectory, answer: Answer[Any], kind: str = "", *, data: str = "answer", **more: str
) -> dict[str, StepOutput]:
    """Returns the files of an answer that was written into a run directory.

    `data` is the output that has its data, and `kind` what they are called; by default its name.
    """
    kind = kind or answer.name
    kinds = (
        (data, answer.file, kind),
        ("summary", f"{answer.name}.md", f"{kind}-summary"),
        ("report", answer.page, f"{kind}-report"),
    )
    return {output: StepOutput.of_run(run, path, what, more=more) for output, path, what in kinds}


class NotPassed(Exception):
    """What a pipeline found is not good enough; `code` is the exit code that says so."""

    def __init__(self, said: str, code: int) -> None:
        super().__init__(said)
        self.code = code


_IN_CONTAINER: Final = "_KFP_RUNTIME"
"""Set by Kubeflow Pipelines for the process that calls a component, on every engine."""
FAILURES: Final = (PointFailed, CannotRecord, HostsMissing)
"""What fails a step, and is no mistake of what was given."""


class ErrorsAsMessages:
    """Context of the body of a component, which ends with a message rather than a traceback.

    In a container mistakes of the user, and findings of the step, are printed, and the process
    ends with the exit code that the command `orbax-bench step` has. Whoever calls the body in
    another process gets the exception, a `UserError` for what the system refuses.

    A step that is told to end, as one is whose machine is taken away, ends in an orderly way: its
    workers first, and none of its temporary files stays.
    """

    def __init__(self) -> None:
        self._interrupts = interrupted_when_told(clear_own)
        self._modes = closed_to_others()

    def __enter__(self) -> None:
        """Has SIGTERM and SIGHUP interrupt the body, whose files others cannot write."""
        self._modes.__enter__()
        self._interrupts.__enter__()

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: types.TracebackType | None,
    ) -> None:
        self._modes.__exit__(None, None, None)
        try:
            self._interrupts.__exit__(kind, error, traceback)
        except Terminated as told:
            if _IN_CONTAINER not in os.environ:
                raise
            error = told
        if error is None:
            return
        refused = refusal_of(error)
        if _IN_CONTAINER not in os.environ:
            if refused is not None and refused.error is not error:
                raise refused.error from error
            return
        if refused is not None:
            _end(refused.error, Exit.FAILED if refused.passing else Exit.INVALID)
        if isinstance(error, Terminated):
            _end(UserError(f"told to end by {error}; what is done is kept"), Exit.INTERRUPTED)
        if isinstance(error, NotPassed):
            _end(error, error.code)
        if isinstance(error, FAILURES):
            _end(error, Exit.FAILED)


def _end(error: Exception, code: int) -> None:
    for line in error.said if isinstance(error, UserError) else [presentable(str(error))]:
        print(f"{ENDED}{line}", flush=True)
    raise SystemExit(int(code)) from None


def as_component(name: str, given: Mapping[str, Any], **more: Any) -> Any:
    """Runs a step as the body of its component, and returns what the component returns.

    Args:
        name: The step.
        given: The inputs of the component and its artifacts, by name: the step takes those that it
            has a parameter for, of an artifact its path.
        **more: What the step takes in place of these.
    """
    from orbax_bench_core.steps import pipeline

    with ErrorsAsMessages():
        step = getattr(pipeline, name)
        known = inspect.signature(step).parameters
        taken = {key: getattr(each, "path", each) for key, each in given.items() if key in known}
        return step(**{**taken, **more}).into(**given)
