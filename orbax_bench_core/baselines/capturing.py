"""Capture and promotion: a run becomes a capture, and a capture the baseline of its points."""

from __future__ import annotations

import dataclasses
import datetime
from collections.abc import Sequence
from typing import Final

from orbax_bench_core.baselines.model import (
    Baseline,
    Capture,
    CapturedPoint,
    Promotion,
    new_capture_id,
)
from orbax_bench_core.baselines.store import Registry, state_after
from orbax_bench_core.config import ARMS, Arm, UserError, did_you_mean
from orbax_bench_core.records import UNKNOWN, Record, Repeat, Run, RunDirectory, RunInfo
from orbax_bench_core.sweep import Pair

LATEST: Final = "latest"
PREVIOUS: Final = "previous"


@dataclasses.dataclass(frozen=True, kw_only=True)
class Captured:
    """Result of a capture.

    Attributes:
        revision: What it is filed under.
        capture: The capture; None when no point could be captured.
        left_out: Why a point was left out, by its name.
    """

    revision: str
    capture: Capture | None
    left_out: dict[str, str]


def capture_run(
    run: RunDirectory,
    registry: Registry,
    *,
    arm: Arm = "candidate",
    revision: str | None = None,
) -> Captured:
    """Captures a run, or one arm of a paired run.

    A point with a failed or missing repeat is left out: it must not take the place of a good one.

    Args:
        run: The run.
        registry: Where to.
        arm: Which side of a paired run.
        revision: What to file it under; by default the commit of the code that ran.

    Raises:
        UserError: There is no run, or the registry cannot be written.
    """
    reader = Run(run)
    info = reader.info
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
    revision = revision or _commit(found)
    if not found:
        return Captured(revision=revision, capture=None, left_out=left_out)
    capture = _describe(info, found, arm if info.paired else None, revision)
    baselines = [
        Baseline(
            point_id=point_id,
            commit=_commit({point_id: records}),
            captured_at=capture.captured_at,
            records=tuple(records),
        )
        for point_id, records in found.items()
    ]
    registry.add(capture, baselines)
    return Captured(revision=revision, capture=capture, left_out=left_out)


def resolved(record: Record) -> Record:
    """Returns a record of a paired run as one of the point that it measured; others as they are."""
    if not isinstance(record.point, Pair):
        return record
    point = record.measured
    return record.model_copy(
        update={"point": point, "point_id": point.id, "point_name": point.name}
    )


def _problem(repeats: Sequence[Repeat], expected: int) -> str:
    """Returns why a series cannot be captured; empty when it can.

    At least `expected` repeats must have passed.
    """
    for repeat in repeats:
        if not repeat.counts:
            reason = "" if repeat.error is None else f": {repeat.error.type}"
            return f"a repeat did not pass{reason}"
    if len(repeats) < expected:
        return "a repeat did not pass"
    return "" if repeats else "nothing was measured"


def _describe(
    info: RunInfo, found: dict[str, Sequence[Record]], arm: Arm | None, revision: str
) -> Capture:
    now = datetime.datetime.now(datetime.UTC)
    points = [
        CapturedPoint(
            point_id=point_id,
            point=records[0].point_name,
            repeats=len({record.repeat for record in records}),
        )
        for point_id, records in found.items()
    ]
    return Capture(
        id=new_capture_id(now),
        revision=revision,
        captured_at=now,
        run_id=info.run_id,
        measured_at=info.created_at,
        suite=info.suite_name,
        arm=arm,
        points=tuple(points),
        provenance=next(iter(found.values()))[0].provenance,
    )


def _commit(found: dict[str, Sequence[Record]]) -> str:
    """Returns the commit of the code that ran, or `unknown`."""
    for records in found.values():
        git = records[0].provenance.get("git")
        if isinstance(git, dict):
            return str(git.get("commit", UNKNOWN))
    return UNKNOWN


@dataclasses.dataclass(frozen=True, kw_only=True)
class Promoted:
    """Result of a promotion.

    Attributes:
        promotion: The promotion.
        replaced: Reference of the capture that was each point's baseline before it, by point id;
            None for a point that had none.
        overtaken: Another promotion of the same moment that has the last word on some of the
            points; None when this one has it.
    """

    promotion: Promotion
    replaced: dict[str, str | None]
    overtaken: Promotion | None


def find_capture(captures: Sequence[Capture], name: str) -> Capture:
    """Returns the capture that a name means.

    Args:
        captures: All captures, the oldest first.
        name: `latest`, an id or the beginning of a single one, a reference as `Capture.reference`,
            or a revision, which means its newest capture.

    Raises:
        UserError: No capture is called so, or several are.
    """
    if not captures:
        raise UserError("nothing was captured here; capture a run with `baseline capture`")
    if name == LATEST:
        return captures[-1]
    exact = [
        capture for capture in captures if name in (capture.id, capture.reference, capture.revision)
    ]
    begin = {capture.id: capture for capture in captures if capture.id.startswith(name)}
    revisions = {
        capture.revision: capture for capture in captures if capture.revision.startswith(name)
    }
    if exact:
        return exact[-1]
    if len(begin) == 1:
        return begin.popitem()[1]
    if not begin and len(revisions) == 1:
        return revisions.popitem()[1]
    several = sorted(begin) or sorted(revisions)
    if several:
        raise UserError(f"{name!r} could be any of: {', '.join(several)}; write more of it")
    newest = ", ".join(capture.reference for capture in reversed(captures[-5:]))
    raise UserError(
        f"no capture is called {name!r}; give an id, a revision, {LATEST!r} or {PREVIOUS!r}. "
        f"The newest: {newest}"
    )


def promote_capture(
    registry: Registry, name: str, *, points: Sequence[str] = (), note: str = ""
) -> Promoted:
    """Makes a capture the baseline of its points; what they had before stays in the registry.

    Args:
        registry: The registry.
        name: What `find_capture` understands, or `previous`: what the last promotion replaced.
        points: Ids of the points to promote, each of which may be cut short; none takes all.
        note: Why.

    Raises:
        UserError: No capture or point is called so, or the registry cannot be written.
    """
    if name == PREVIOUS:
        chosen = _previous(registry)
    else:
        capture = find_capture(registry.captures(), name)
        chosen = {point.point_id: capture.reference for point in capture.points}
    if points:
        chosen = {point_id: chosen[point_id] for point_id in _named(points, list(chosen))}
    promotion = registry.promote(chosen, note=note)
    log = registry.promotions()
    place = next(index for index, logged in enumerate(log) if logged.id == promotion.id)
    before = state_after(log[:place])
    later = [logged for logged in log[place + 1 :] if logged.points.keys() & chosen.keys()]
    return Promoted(
        promotion=promotion,
        replaced={point_id: before.get(point_id) for point_id in chosen},
        overtaken=later[-1] if later else None,
    )


def _previous(registry: Registry) -> dict[str, str | None]:
    """Returns what the points of the last promotion had before it."""
    log = registry.promotions()
    if not log:
        raise UserError("nothing was promoted yet, so there is no previous baseline")
    before = state_after(log[:-1])
    return {point_id: before.get(point_id) for point_id in log[-1].points}


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
        UserError: There is nothing to capture, or the registry cannot be written.
    """
    side = next((known for known in ARMS if known == arm), None)
    if side is None:
        raise UserError(f"unknown arm {arm!r}; {did_you_mean(arm, ARMS)}")
    store = Registry(registry)
    captured = capture_run(run, store, arm=side, revision=revision)
    if captured.capture is None:
        reasons = "; ".join(f"{name}: {why}" for name, why in captured.left_out.items())
        raise UserError(f"no point of {run.root} can be a baseline: {reasons}")
    if promote:
        promote_capture(store, captured.capture.id)
    return captured.capture, str(store.root / captured.capture.reference)
