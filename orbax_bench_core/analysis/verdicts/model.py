"""Model of `verdicts.json`."""

import datetime
from typing import Any, Final, Literal

import pydantic

from orbax_bench_core.config import Arm, GateConfig
from orbax_bench_core.errors import Problem, UserError, command
from orbax_bench_core.exit_codes import Outcome
from orbax_bench_core.files import AnyPath, ResultModel, place, read_at_most, write_atomically
from orbax_bench_core.gate import Endpoint, FailureVerdict, SeriesHealth, Verdict, Word
from orbax_bench_core.measure import Better
from orbax_bench_core.reasons import NO_REASON, Reasons
from orbax_bench_core.records import (
    FirstAttempts,
    Run,
    RunDirectory,
    RunFile,
    Trouble,
    Verified,
    parsed_file,
)
from orbax_bench_core.sweep import PairDesign

VERDICTS_VERSION: Final = 3


class OperationVerdict(ResultModel):
    """One operation of one point in both arms."""

    operation: str
    primary: bool  # whether it takes part in the point's verdict
    # what its times say; for an operation that is not primary, what they would say
    verdict: Verdict
    health: dict[Arm, SeriesHealth]  # health of the series of each arm that has one
    # seconds of each arm, in the order in which they were measured
    times: dict[Arm, tuple[float, ...]]
    # log of the ratio of candidate to baseline in each block; empty when unpaired
    block_log_ratios: tuple[float, ...] = ()
    # share of false findings among operations that are not primary and look at least this bad
    # (Benjamini-Hochberg); None for a primary one
    false_discovery: float | None = None
    # state of the page cache that a load met in both arms: `warm`, `cold`, `mixed` or `unknown`;
    # empty for what is no load
    cache: str = ""


class MetricChange(ResultModel):
    """One metric of one operation in both arms."""

    operation: str  # name of the operation, with its `[occurrence]` from the second on
    metric: str  # `<namespace>/<name>`
    unit: str  # unit of the medians; empty when it has none
    better: Better  # which direction is an improvement; `none` when neither is
    # median over the repeats of the baseline; None when it has none. Both arms have means where the
    # baseline has no repeats: one of Orbax's own framework.
    baseline: float | None
    candidate: float | None  # median over the repeats of the candidate; None when it has none
    repeats: dict[Arm, int]  # in how many repeats each arm has it
    # difference of these over that of the baseline; None when one is missing, or the baseline's is
    # 0 and the candidate's is not
    delta: float | None
    # cliff's delta: chance that a value of the candidate is above one of the baseline, less the
    # chance that it is below. None when an arm has no value.
    apart: float | None


class StorageTrouble(ResultModel):
    """Trouble with an object store in the samples of one operation: throttling, errors, retries."""

    operation: str
    # samples of each arm that met trouble; they count in the verdict as they are
    flagged: dict[Arm, int]
    repeats: dict[Arm, int]  # samples of each arm
    counts: dict[Arm, dict[Trouble, int]]  # how much of each kind, by arm
    # the arm that met it more often than chance explains; None if none did
    more: Arm | None = None
    # probability of at least as uneven a share if the arms are the same, by redrawing the labels in
    # blocks; None if nothing is paired
    p_value: float | None = None

    @property
    def share(self) -> float:
        """Share of the samples of both arms that met trouble."""
        return sum(self.flagged.values()) / max(1, sum(self.repeats.values()))


class PointVerdict(ResultModel):
    """One sweep point in both arms.

    Attributes:
        point_id: Id of the point; of a pair of arms when they were run as one.
        point: Name of the point.
        word: REGRESSION when a primary operation has regressed, PASS when every one passes,
            otherwise INCONCLUSIVE.
        reason: Why it could not be judged, or what keeps it from passing; empty when it passes.
        failed: Whether there is nothing to compare: an arm cannot be measured, the baseline always
            fails, or nothing passed in the first block. A candidate that fails is judged.
        mode: `paired` when both arms were run in one place in blocks; otherwise `unpaired`.
        blocks: Number of complete blocks; 0 when unpaired.
        operations: One entry per operation, primary ones first.
        switching: What it cost that the arms took turns on one device; empty when they did not.
        metrics: Every metric in both arms, in the order of measurement; empty in files of an
            earlier release.
        endpoint: What decided the word: times, stalls, failures, or an operation that an arm lacks,
            or trouble with storage.
        failures: What the failed first attempts say; None when unpaired.
        settled: Whether more blocks could change nothing.
        next_look: Operations per arm at the next look; None when settled.
        attempts: First attempts of each arm, also beyond the looks; empty when unpaired.
        failed_at: Places of the failed first attempts of each arm among all of its attempts in
            complete blocks, from 0, in the order in which they were made.
        design: Which worker processes the operations had; None when unpaired.
        continued: Lives that were continued in a new process after an interruption.
        verified: What the restored values of each arm were compared with, in every repeat.
        storage: Operations with which an object store had trouble.
        exploratory: Whether it was judged by other rules than those of its run, so that the word is
            no verdict.
        systems: What each arm saves with, such as Orbax and PyTorch DCP, where these differ: a
            study, which judges no release. Empty for arms of one system.
    """

    point_id: str
    point: str
    word: Word
    reason: Reasons = NO_REASON
    failed: bool = False
    mode: Literal["paired", "unpaired"]
    blocks: int = 0
    operations: tuple[OperationVerdict, ...] = ()
    switching: Reasons = NO_REASON
    metrics: tuple[MetricChange, ...] = ()
    endpoint: Endpoint = "time"
    failures: FailureVerdict | None = None
    settled: bool = False
    next_look: int | None = None
    attempts: dict[Arm, FirstAttempts] = {}
    failed_at: dict[Arm, tuple[int, ...]] = {}
    design: PairDesign | None = None
    continued: int = 0
    verified: dict[Arm, Verified] = {}
    storage: tuple[StorageTrouble, ...] = ()
    exploratory: bool = False
    systems: dict[Arm, str] = pydantic.Field(default={}, exclude_if=lambda found: not found)

    @property
    def is_study(self) -> bool:
        """Whether two systems were compared, so that its word judges nothing."""
        return bool(self.systems) and not self.failed

    @property
    def unmeasured(self) -> bool:
        """Whether an arm has no time at all: nothing was compared, or it failed every time."""
        return self.failed or any(found.all_failed for found in self.attempts.values())


class Unmatched(ResultModel):
    """A point that only one side has."""

    side: Arm  # which side has it
    point: str  # name of the point; earlier files have its id in it, too
    point_id: str = ""  # its id
    # in which fields it differs from the nearest point of the other side
    differs: tuple[str, ...] = ()


class VerdictReport(ResultModel):
    """All verdicts of one comparison: `verdicts.json`.

    Attributes:
        schema_version: Version of this layout. Those before 3 had sentences in the place of
            reasons.
        suite: Name of the suite.
        suite_file: Where the suite came from, for the command that goes on; empty if not known.
        again: The command that goes on, without its directory; empty for `ab` with that file, and
            with a directory where it is the command of a series of comparisons.
        run_id: The run of the candidate.
        baseline: What the baseline is, for people: an arm's overrides, a revision, a path.
        candidate: What the candidate is, for people.
        word: REGRESSION when a point has regressed, PASS when every point passes, otherwise
            INCONCLUSIVE.
        gate: The rules that were applied.
        points: One entry per point that both sides have.
        unmatched: Points that only one side has.
        notes: What else a reader must know, such as versions that differ between the arms.
        revisions: The code under test of each arm, in words; empty in files of an earlier release.
        left_out: Files among the records that are no records of the run, a line each.
        exploratory: Rules that are not those of the run, such as `margin 15 % -> 30 %`; empty when
            all are.
        not_alone: Repeats that were measured while others were on the same machine.
        accepted: Whether it is a regression that was known and accepted when it was judged.
        judged_at: When, UTC.
    """

    schema_version: Literal[3] = VERDICTS_VERSION
    suite: str
    suite_file: str = pydantic.Field(default="", exclude_if=lambda found: not found)
    again: tuple[str, ...] = pydantic.Field(default=(), exclude_if=lambda found: not found)
    run_id: str
    baseline: str
    candidate: str
    word: Word
    gate: GateConfig
    points: tuple[PointVerdict, ...]
    unmatched: tuple[Unmatched, ...] = ()
    notes: Reasons = NO_REASON
    revisions: dict[Arm, str] = {}
    left_out: tuple[str, ...] = ()
    exploratory: str = ""
    not_alone: int = 0
    accepted: bool = pydantic.Field(default=False, exclude_if=lambda found: not found)
    judged_at: datetime.datetime

    @pydantic.model_validator(mode="before")
    @classmethod
    def _of_before(cls, content: Any) -> Any:
        """Reads files of version 1, whose operations had an advice in words, and of version 2.

        The reasons of both are texts, see `Reasons`, and changes of rules stand in a sentence.
        """
        if not isinstance(content, dict) or content.get("schema_version") not in (1, 2):
            return content
        points = [
            {
                **point,
                "operations": [
                    {name: value for name, value in operation.items() if name != "advice"}
                    for operation in point.get("operations", ())
                ],
            }
            for point in content.get("points", ())
        ]
        said = content.get("exploratory", "")
        changes = said.partition(" (")[2].removesuffix(")") or said
        now = {"schema_version": VERDICTS_VERSION, "points": points, "exploratory": changes}
        return {**content, **now}

    @property
    def lacks_operations(self) -> bool:
        """Whether an arm lacks a primary operation, which nobody compared and no repeat can add."""
        return any(point.endpoint == "missing" for point in self.points)

    @property
    def is_study(self) -> bool:
        """Whether every point compared two systems, so that the word judges nothing."""
        return bool(self.points) and all(point.is_study for point in self.points)

    @property
    def only_warns(self) -> bool:
        """Whether all of it was measured apart: whatever else changed looks like a regression."""
        apart = all(point.mode == "unpaired" for point in self.points)
        return bool(self.points) and apart and not self.beyond_runs and not self.exploratory

    @property
    def beyond_runs(self) -> bool:
        """Whether a primary operation regressed by more than runs of the same thing differ by."""
        return any(
            operation.primary and operation.verdict.beyond_runs
            for point in self.points
            for operation in point.operations
        )

    @property
    def outcome(self) -> Outcome:
        """What an exit code is made of; a study is an answer, however long each system takes."""
        failed = not self.points or any(
            point.unmeasured if point.is_study else point.failed for point in self.points
        )
        answers = self.is_study and not self.lacks_operations
        return Outcome(
            word="COMPARED" if answers else self.word,
            incomplete=bool(self.left_out) or (failed and not self.only_warns),
            exploratory=bool(self.exploratory),
            only_warns=self.only_warns,
            lacks_operations=self.lacks_operations,
            accepted=self.accepted,
        )


def read_verdicts(run: Run | RunDirectory) -> VerdictReport:
    """Reads `verdicts.json` of a run: what a comparison found.

        read_verdicts(load_run("out")).word

    Raises:
        UserError: There is none, or it is not one of this version.
    """
    root = run.directory.root if isinstance(run, Run) else run.root
    try:
        return _read(root / RunFile.VERDICTS)
    except OSError:
        raise UserError(
            f"{root} has no verdicts: compare its arms with `orbax-bench ab`, or judge what is "
            f"there with `{command('compare', root)}`"
        ) from None


def read_verdicts_file(file: str) -> VerdictReport:
    """Reads a file of verdicts, local or gs://, wherever it lies.

    Raises:
        UserError: It is missing, damaged or of another version.
    """
    try:
        return _read(place(file))
    except FileNotFoundError:
        raise UserError(
            Problem("there is no such file; a comparison writes it", file=file)
        ) from None
    except (OSError, ImportError, ValueError) as error:
        raise UserError(Problem(f"cannot read the verdicts: {error}", file=file)) from None


def _read(path: AnyPath) -> VerdictReport:
    try:
        return parsed_file(VerdictReport, read_at_most(path), path)
    except pydantic.ValidationError:
        raise UserError(f"{path} is not a file of verdicts of version {VERDICTS_VERSION}") from None


def write_verdicts(run: RunDirectory, verdicts: VerdictReport) -> None:
    """Writes `verdicts.json` into a run directory."""
    write_atomically(run.root / RunFile.VERDICTS, verdicts.model_dump_json(indent=1).encode())
