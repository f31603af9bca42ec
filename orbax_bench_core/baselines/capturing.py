"""Capture and promotion: a run becomes a capture, and a capture the baseline of its points."""

import dataclasses
import datetime
from collections.abc import Iterable, Sequence

from orbax_bench_core.baselines import captures, store
from orbax_bench_core.baselines.naming import PREVIOUS, find_capture
from orbax_bench_core.config import ARMS, Arm
from orbax_bench_core.errors import UserError, command, did_you_mean
from orbax_bench_core.provenance import UNKNOWN, Source
from orbax_bench_core.records import Record, Repeat, Run, RunDirectory, RunInfo
from orbax_bench_core.sweep import Pair


@dataclasses.dataclass(frozen=True, kw_only=True)
class Captured:
    """Result of a capture."""

    revision: str  # what it is filed under
    capture: captures.Capture | None  # the capture; None when no point could be captured
    left_out: dict[str, str]  # why a point was left out, by its name
    # files among the records that are no records of the run, a line each
    strays: tuple[str, ...] = ()


def capture_run(
    run: RunDirectory,
    registry: store.Registry,
    *,
    arm: Arm = "candidate",
    revision: str | None = None,
    to_promote: bool = False,
) -> Captured:
    """Captures a run, or one arm of a paired run.

    What is `to_promote` and has neither a commit nor a `revision` is refused before it is filed.
    A point with a failed or missing repeat is left out: it must not take the place of a good one.
    The same records are one capture under a revision: a command that was killed and runs again, or
    runs twice at once, finds its capture or finishes it.

    Args:
        run: What is captured; it is only read.
        registry: Where to.
        arm: Side of a paired run; ignored by a run without arms.
        revision: Label to file it under; by default the commit of the code under test.
        to_promote: Whether it is to become a baseline afterwards.

    Raises:
        UserError: The revision cannot be a folder, it has no name to be promoted under, or the
            registry cannot be written to.
    """
    reader = Run(run)
    info, strays = reader.info, reader.strays()
    found: dict[str, Sequence[Record]] = {}
    left_out: dict[str, str] = {}
    for series in reader.series():
        if series.arm not in (None, arm):
            continue
        repeats = list(reader.repeats(series))
        # How many repeats an arm needs, its verdict decides.
        problem = _problem(repeats, info.num_repeats if series.arm is None else 0)
        measured = series.entry.arm(arm) if isinstance(series.entry, Pair) else series.entry
        if measured.id in found:
            problem = "another point of this run measured the same"
        if problem:
            left_out[series.entry.name] = problem
        else:
            every = (record for repeat in repeats for record in repeat.records.values())
            found[measured.id] = [resolved(record) for record in every]
    code = _code(record for records in found.values() for record in records)
    revision = revision or code.revision
    if not found:
        return Captured(revision=revision, capture=None, left_out=left_out, strays=strays)
    if to_promote and revision == UNKNOWN:
        raise UserError(_without_a_name(str(run.root), code))
    capture = _describe(info, found, arm if info.paired else None, revision, code)
    baselines = [
        captures.Baseline(
            point_id=point_id,
            commit=_code(records).revision,
            captured_at=capture.captured_at,
            records=tuple(records),
        )
        for point_id, records in found.items()
    ]
    kept = registry.add(capture, baselines)
    return Captured(revision=revision, capture=kept, left_out=left_out, strays=strays)


def resolved(record: Record) -> Record:
    """Returns a record of a paired run as one of the point that it measured; others as they are."""
    if not isinstance(record.point, Pair):
        return record
    point = record.measured
    return record.model_copy(
        update={"point": point, "point_id": point.id, "point_name": point.name}
    )


def _problem(repeats: Sequence[Repeat], expected: int) -> str:
    """Returns why a series cannot be captured, of which `expected` repeats must have passed."""
    for repeat in repeats:
        if not repeat.counts:
            reason = repeat.reason if repeat.error is None else repeat.error.type
            return ": ".join(filter(None, ["a repeat did not pass", reason]))
    if len(repeats) < expected:
        return f"{len(repeats)} of {expected} repeats have a record that can be used"
    return "" if repeats else "nothing was measured"


def _describe(
    info: RunInfo,
    found: dict[str, Sequence[Record]],
    arm: Arm | None,
    revision: str,
    code: Source,
) -> captures.Capture:
    now = datetime.datetime.now(datetime.UTC)
    points = [
        captures.CapturedPoint(
            point_id=point_id,
            point=records[0].point_name,
            repeats=len({record.repeat for record in records}),
        )
        for point_id, records in found.items()
    ]
    return captures.Capture(
        id=captures.capture_id(
            info.created_at, (record for records in found.values() for record in records)
        ),
        revision=revision,
        captured_at=now,
        run_id=info.run_id,
        measured_at=info.created_at,
        suite=info.suite_name,
        arm=arm,
        points=tuple(points),
        code=code,
        provenance=next(iter(found.values()))[0].provenance,
    )


def _code(records: Iterable[Record]) -> Source:
    """Returns the code under test of records; unknown, with the reason, when it is not one."""
    found: dict[str, dict[str, Source]] = {}
    for record in records:
        source = record.code
        found.setdefault(record.measured.benchmark, {}).setdefault(source.revision, source)
    revisions = {name: source for known in found.values() for name, source in known.items()}
    if len(revisions) == 1:
        return next(iter(revisions.values()))
    changed = any(len(known) > 1 for known in found.values())
    dirty = changed or any(source.dirty is True for source in revisions.values())
    several = "the code changed during the run" if changed else "classes of several revisions"
    words = ", ".join(source.words for source in revisions.values())
    return Source(dirty=True if dirty else "unknown", reason=f"{several}: {words}")


@dataclasses.dataclass(frozen=True, kw_only=True)
class Promoted:
    """Result of a promotion."""

    promotion: captures.Promotion
    # reference of the capture that was each point's baseline before it, by point id; None for a
    # point that had none
    replaced: dict[str, str | None]
    # another promotion of the same moment that has the last word on some of the points; None when
    # this one has it
    overtaken: captures.Promotion | None


def promote_capture(
    registry: store.Registry,
    name: str,
    *,
    points: Sequence[str] = (),
    note: str = "",
    force: bool = False,
) -> Promoted:
    """Makes a capture the baseline of its points, unless the last promotion says so already.

    Args:
        registry: Where it is.
        name: Which one, as `find_capture` takes it; `previous` undoes the last promotion.
        points: Names or ids of the points to promote; all of the capture by default.
        note: Why, kept with the promotion.
        force: Whether one with uncommitted changes is promoted, too.

    Raises:
        UserError: There is no such capture or point, or its code could not be found again.
    """
    log = registry.promotions()
    if name == PREVIOUS:
        if not log:
            raise UserError("nothing was promoted yet, so there is no previous baseline")
        before = store.state_after(log[:-1])
        chosen = {point_id: before.get(point_id) for point_id in log[-1].points}
    else:
        capture = find_capture(registry.captures(), name)
        if capture.revision == UNKNOWN:
            raise UserError(_without_a_name(capture.reference, capture.code))
        if capture.code.dirty is True and not force:
            raise UserError(
                f"{capture.reference} was not promoted: its code under test is "
                f"{capture.code.words}, which nobody can check out again; commit, measure and "
                "capture again, or promote it with --force"
            )
        chosen = {point.point_id: capture.reference for point in capture.points}
    if points:
        chosen = {point_id: chosen[point_id] for point_id in _named(points, list(chosen))}
    # What the last one says already is not promoted again, so that `previous` still undoes it.
    standing = log[-1] if log and log[-1].points == chosen else None
    promotion = standing or registry.promote(chosen, log, note=note)
    log = registry.promotions()
    place = next(index for index, logged in enumerate(log) if logged.id == promotion.id)
    before = store.state_after(log[:place])
    later = [logged for logged in log[place + 1 :] if logged.points.keys() & chosen.keys()]
    return Promoted(
        promotion=promotion,
        replaced={point_id: before.get(point_id) for point_id in chosen},
        overtaken=later[-1] if later else None,
    )


def _without_a_name(what: str, code: Source) -> str:
    named = command("baseline", "capture", "REGISTRY", "RUN", "--label", "NAME", "--promote")
    return (
        f"{what} was not promoted: its code under test has no commit ({code.words}), so that "
        f"nobody could tell what later runs are compared with; give it a name: `{named}`, or "
        "`revision` of the step publish-baseline and of the pipeline regression"
    )


def _named(points: Sequence[str], known: Sequence[str]) -> list[str]:
    found = []
    for given in points:
        matching = [point_id for point_id in known if point_id.startswith(given)]
        if len(matching) != 1:
            problem = "is not one" if not matching else "could be several"
            raise UserError(f"--point: {given!r} {problem} of its points: {', '.join(known)}")
        found += matching
    return found


def publish_run(
    run: RunDirectory,
    registry: str,
    *,
    arm: str,
    promote: bool,
    revision: str | None,
    force: bool = False,
) -> tuple[captures.Capture, str]:
    """Captures a run and, if asked, makes it the baseline of its points.

    Args:
        run: What is captured; it is only read.
        registry: Path of the registry, local or gs://, made where there is none.
        arm: Side of a paired run.
        promote: Whether it becomes the baseline.
        revision: Label to file it under; by default the commit of the code under test.
        force: Whether one with uncommitted changes is promoted, too.

    Returns:
        The capture, and its path.

    Raises:
        UserError: No point can be a baseline, with the reason of each; or as the two steps raise.
    """
    side = next((known for known in ARMS if known == arm), None)
    if side is None:
        raise UserError(f"unknown arm {arm!r}; {did_you_mean(arm, ARMS)}")
    kept = store.Registry(registry)
    captured = capture_run(run, kept, arm=side, revision=revision, to_promote=promote)
    if captured.capture is None:
        reasons = "; ".join(f"{name}: {why}" for name, why in captured.left_out.items())
        problem = f"no point of {run.root} can be a baseline: {reasons}"
        raise UserError("; left out: ".join([problem, *captured.strays]))
    if promote:
        promote_capture(kept, captured.capture.id, force=force)
    return captured.capture, str(kept.root / captured.capture.reference)
