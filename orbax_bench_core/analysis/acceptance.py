"""Known regressions: what a person has accepted, with a reason, and whether it still is only that.

An acceptance is a file next to the run directories of a suite. It covers the operations that
regressed in the run that was accepted, each up to a ratio, for the same suite and baseline.
"""

import contextlib
import datetime
import getpass
import itertools
import math
from collections.abc import Iterator
from typing import Final, Literal, NamedTuple

import pydantic

from orbax_bench_core.analysis.names import shortened, spoken
from orbax_bench_core.analysis.verdicts import (
    OperationVerdict,
    PointVerdict,
    VerdictReport,
    read_verdicts,
    why,
)
from orbax_bench_core.baselines import runs_below
from orbax_bench_core.errors import Problem, UserError, first_fault, listed, one_line, shown
from orbax_bench_core.files import (
    AnyPath,
    ResultModel,
    absolute,
    file_of_suite,
    matching,
    read_if_there,
    write_atomically,
)
from orbax_bench_core.pages import change
from orbax_bench_core.provenance import UNKNOWN
from orbax_bench_core.records import Run, RunDirectory, RunInfo, parsed_file

_LONGEST: Final = 500
"""Characters of a reason: it stands in a line of a page."""


class AcceptedTime(ResultModel):
    """An operation that had regressed when it was accepted."""

    point_id: str
    point: str
    operation: str
    ratio: float = pydantic.Field(gt=0)  # candidate over baseline in the run that was accepted
    # the ratio up to which it stays accepted: the upper end of its interval, at most the margin
    # beyond the ratio. A later run has grown if its whole interval lies above.
    most: float = pydantic.Field(gt=0)

    @property
    def said(self) -> str:
        """The operation, and up to how much it is accepted."""
        return f"{spoken(self.operation)} {change(self.ratio)} (up to {change(self.most)})"


class Acceptance(ResultModel):
    """A regression that a person knows: `accepted-SUITE.json` next to the runs of a suite."""

    schema_version: Literal[1] = 1
    suite: str
    suite_identity: str  # SHA-256 of what the suite measures; another one ends the acceptance
    baseline: dict[str, str]  # what the baseline ran, by name; another value ends it, too
    run_id: str  # the run that was accepted
    accepted_by: str  # name of the user
    accepted_at: datetime.datetime  # when, UTC
    reason: str
    times: tuple[AcceptedTime, ...] = pydantic.Field(min_length=1)

    @property
    def said(self) -> str:
        """Who accepted what, when and why."""
        names = shortened({time.point_id: time.point for time in self.times})
        said = [
            f"{names[time.point_id]}: {time.said}" if len(names) > 1 else time.said
            for time in self.times
        ]
        return (
            f"{listed(said)}, by {self.accepted_by} on {self.accepted_at:%Y-%m-%d}: {self.reason}"
        )


class Standing(NamedTuple):
    """What a verdict and an acceptance are to each other."""

    holds: bool  # whether the verdict is a regression, and no more than what was accepted
    said: str  # what was accepted, or why that does not hold, in a sentence


def accept(folder: str, suite: str, reason: str) -> tuple[Acceptance, AnyPath, RunDirectory]:
    """Accepts the regression that the newest run of a suite with verdicts has found.

    Returns:
        What was accepted, its file, and the run directory.

    Raises:
        UserError: There is no such run, it has no regression, or one that is no typical time.
        OSError: The file cannot be written.
    """
    reason = one_line(reason).strip()
    if not 0 < len(reason) <= _LONGEST:
        said = f"give why it is accepted, in at most {_LONGEST} characters"
        raise UserError(Problem(said, key="--reason"))
    run, info, report = _newest(folder, suite)
    root = absolute(str(run.root))
    if report.word != "REGRESSION" or not report.outcome.word:
        raise UserError(
            f"{root} is the newest run of {suite} with verdicts, and its word is {report.word}: "
            "there is no regression to accept"
        )
    if report.exploratory or report.only_warns:
        raise UserError(
            f"{root} was judged by other rules, or both sides were measured apart: only a verdict "
            "of `orbax-bench ab` is accepted"
        )
    times, others = [], []
    for point in report.points:
        if point.word == "REGRESSION":
            found = list(_times(point, report))
            times += found
            if not found or point.endpoint != "time":
                others.append(f"{point.point}: {why(point.reason)}")
    if others:
        raise UserError(
            f"only typical times are accepted, and {root} has regressed otherwise: {listed(others)}"
        )
    accepted = Acceptance(
        suite=suite,
        suite_identity=info.suite_identity,
        baseline=_baseline(run, report),
        run_id=info.run_id,
        accepted_by=getpass.getuser(),
        accepted_at=datetime.datetime.now(datetime.UTC),
        reason=reason,
        times=tuple(times),
    )
    given = absolute(folder)
    path = (root.parent if given == root else given) / file_of_suite("accepted", suite)
    write_atomically(path, accepted.model_dump_json(indent=1).encode())
    return accepted, path, run


def standing(report: VerdictReport, directory: str) -> Standing | None:
    """Compares the verdicts of a run directory with what was accepted, or gives None without that.

    It lies in one of the two folders above the run directory. One that cannot be read covers
    nothing.
    """
    run = RunDirectory(directory)
    if report.exploratory or report.word == "INCONCLUSIVE" or not run.exists():
        return None
    try:
        info = run.read_info()
        found = _found(run, info.suite_name)
        if found is None:
            return None
        accepted, path = found
        ended = "; ".join(_ended(accepted, report, run, info))
    except (UserError, OSError) as unreadable:
        return Standing(holds=False, said=f"its acceptance covers nothing: {unreadable}")
    if report.word == "PASS":
        said = f"accepted was {accepted.said}; remove {path} to hear of it when it returns"
        return Standing(holds=False, said=said)
    if ended:
        said = f"no longer accepted: {ended}; accepted was {accepted.said}"
        return Standing(holds=False, said=said)
    return Standing(holds=True, said=f"accepted: {accepted.said}")


def with_acceptance(report: VerdictReport, directory: str) -> VerdictReport:
    """Returns the verdicts of a run directory, which say whether their regression is accepted.

    From then on whatever reads them knows it, also where an engine has put only `verdicts.json`.
    """
    held = standing(report, directory) if report.word == "REGRESSION" else None
    return report.model_copy(update={"accepted": held is not None and held.holds})


def acceptances_in(folder: AnyPath) -> list[tuple[AnyPath, str, datetime.datetime]]:
    """Returns the files of what was accepted in a folder, each with its suite and when that was."""
    found = []
    for path in sorted(matching(folder, "accepted-*.json")):
        with contextlib.suppress(pydantic.ValidationError, UserError):
            accepted = parsed_file(Acceptance, read_if_there(path) or b"", path)
            found.append((path, accepted.suite, accepted.accepted_at))
    return found


def _newest(folder: str, suite: str) -> tuple[RunDirectory, RunInfo, VerdictReport]:
    names = set()
    found = []
    for run, info in runs_below(folder, {}):
        names.add(info.suite_name)
        if info.suite_name == suite:
            found.append((run, info))
    for run, info in sorted(found, key=lambda each: each[1].created_at, reverse=True):
        try:
            return run, info, read_verdicts(run)
        except UserError:
            continue  # it was measured, and never judged
    if not names:
        raise UserError(f"{folder} has no run: give a run directory, or the folder of the nights")
    known = "none of its runs is judged" if found else f"it has {listed(sorted(names))}"
    raise UserError(f"{folder} has no verdict of {shown(suite)}: {known}")


def _times(point: PointVerdict, report: VerdictReport) -> Iterator[AcceptedTime]:
    for operation in _regressed(point):
        verdict = operation.verdict
        if verdict.endpoint == "time" and verdict.ratio is not None:
            margin = report.gate.rule(operation.operation).margin
            yield AcceptedTime(
                point_id=point.point_id,
                point=point.point,
                operation=operation.operation,
                ratio=verdict.ratio,
                most=max(
                    verdict.ratio, min(verdict.high or math.inf, verdict.ratio * (1 + margin))
                ),
            )


def _regressed(point: PointVerdict) -> list[OperationVerdict]:
    return [each for each in point.operations if each.primary and each.verdict.word == "REGRESSION"]


def _ended(
    accepted: Acceptance, report: VerdictReport, run: RunDirectory, info: RunInfo
) -> Iterator[str]:
    """Yields why a regression is not, or not only, the one that was accepted."""
    if info.suite_identity != accepted.suite_identity:
        yield "the suite has changed"
        return
    now = _baseline(run, report)
    differs = [
        f"{name}: {accepted.baseline.get(name, UNKNOWN)} → {now.get(name, UNKNOWN)}"
        for name in dict.fromkeys((*accepted.baseline, *now))
        if accepted.baseline.get(name) != now.get(name)
    ]
    if differs:
        yield f"the baseline has changed ({listed(differs)})"
        return
    known = {(time.point_id, time.operation): time for time in accepted.times}
    for point in report.points:
        if point.word != "REGRESSION":
            continue
        if point.endpoint != "time":
            yield f"{point.point}: {why(point.reason)}"
        for operation in _regressed(point):
            verdict, time = operation.verdict, known.get((point.point_id, operation.operation))
            where = f"{spoken(operation.operation)} of {point.point}"
            if time is None:
                yield f"{where} regressed as well"
            elif verdict.ratio is None or (verdict.low or verdict.ratio) > time.most:
                said = (
                    ""
                    if verdict.ratio is None
                    else change(verdict.ratio, verdict.low, verdict.high)
                )
                yield f"{where} have grown to {said or 'an unknown ratio'}"


def _baseline(run: RunDirectory, report: VerdictReport) -> dict[str, str]:
    """Returns the versions and the environment of the baseline, and its revision where that counts.

    It counts where the arms differ in it: the one checkout of both may be another every night.
    """
    found = {"baseline": report.baseline}
    if len(set(report.revisions.values())) > 1:
        found["revision"] = report.revisions.get("baseline", UNKNOWN)
    for record in Run(run).records():
        if record.arm == "baseline":
            environment = record.measured.environment
            found["environment"] = "" if environment is None else environment.name
            versions = record.provenance.get("versions", {})
            return found | {name: str(version) for name, version in versions.items()}
    return found


def _found(run: RunDirectory, suite: str) -> tuple[Acceptance, AnyPath] | None:
    for folder in itertools.islice(absolute(str(run.root)).parents, 2):
        path = folder / file_of_suite("accepted", suite)
        data = None if str(folder).endswith("//") else read_if_there(path)
        if data is not None:
            try:
                return parsed_file(Acceptance, data, path), path
            except pydantic.ValidationError as error:
                said = f"damaged: {first_fault(error)}; remove it, or accept again"
                raise UserError(Problem(said, file=str(path))) from None
    return None
