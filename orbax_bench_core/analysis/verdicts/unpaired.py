"""Unpaired verdicts: a run beside a baseline that was measured apart, a warning at most."""

import datetime
import functools
from collections.abc import Iterable, Mapping, Sequence
from typing import Final

from orbax_bench_core import baselines
from orbax_bench_core.analysis.page_cache import cache_states
from orbax_bench_core.analysis.verdicts.evidence import (
    Evidence,
    never_measured,
    storage_doubts,
    storage_troubles,
    verified_of,
)
from orbax_bench_core.analysis.verdicts.metrics import compare_means, compare_metrics
from orbax_bench_core.analysis.verdicts.model import (
    OperationVerdict,
    PointVerdict,
    Unmatched,
    VerdictReport,
)
from orbax_bench_core.analysis.verdicts.paired import (
    judge_run,
    revision_note,
    revisions,
)
from orbax_bench_core.baselines import Past, past_log_ratios, registry_around, resolve_baseline
from orbax_bench_core.config import Arm, GateConfig, changed_gate, gate_changes
from orbax_bench_core.errors import UserError, command
from orbax_bench_core.gate import Decision, Doubt, Verdict, together
from orbax_bench_core.provenance import other_surroundings
from orbax_bench_core.reasons import NO_REASON, Reasons, because
from orbax_bench_core.records import (
    ErrorInfo,
    OverlapFinder,
    Record,
    Repeat,
    RunDirectory,
    operations_in_order,
    repeats_of,
    seconds_per_repeat,
)
from orbax_bench_core.sweep import differences, nearest

NO_PAST: Final[Past] = {}


_Times = Mapping[str, tuple[float, ...]]


def compare_unpaired(
    baseline_records: Iterable[Record],
    candidate_records: Iterable[Record],
    gate: GateConfig,
    past: Past = NO_PAST,
    *,
    baseline: str = "a stored baseline",
    candidate: str = "this run",
    left_out: Sequence[str] = (),
    changes: str = "",
) -> VerdictReport:
    """Compares two runs that were made apart, point by point.

    Points are matched by id and by nothing else. A verdict needs to know by how much runs of the
    point differ when nothing has changed; without that, or when the runs were made on different
    machines or storage, it is INCONCLUSIVE.
    """
    before, now = _by_point(baseline_records), _by_point(candidate_records)
    shared = [point_id for point_id in now if point_id in before]
    measured = [
        operation
        for point_id in shared
        for records in (before[point_id], now[point_id])
        for operation in seconds_per_repeat(records, cpu=True)
    ]
    unknown = never_measured(gate, measured)
    points = tuple(
        _evidence(before[point_id], now[point_id], gate, past).verdict(
            unknown, exploratory=bool(changes)
        )
        for point_id in shared
    )
    by_arm: dict[Arm, dict[str, list[Record]]] = {"baseline": before, "candidate": now}
    code = revisions(
        (arm, record.code)
        for arm, records in by_arm.items()
        for point_id in shared
        for record in records[point_id]
    )
    first = next((records[0] for records in [*now.values(), *before.values()]), None)
    return VerdictReport(
        suite="" if first is None else first.suite,
        run_id="" if first is None else first.run_id,
        baseline=baseline,
        candidate=candidate,
        word=together([point.word for point in points]),
        gate=gate,
        points=points,
        notes=revision_note(code) if code else NO_REASON,
        revisions=code,
        unmatched=(*_unmatched("baseline", before, now), *_unmatched("candidate", now, before)),
        left_out=tuple(left_out),
        exploratory=changes,
        not_alone=_not_alone(before, shared) + _not_alone(now, shared),
        judged_at=datetime.datetime.now(datetime.UTC),
    )


def _not_alone(records: Mapping[str, Sequence[Record]], shared: Iterable[str]) -> int:
    """Returns how many repeats of the points that are compared were not alone in their run."""
    overlaps = OverlapFinder()
    for of_point in records.values():
        for repeat in repeats_of(of_point):
            overlaps.add(repeat)
    found = overlaps.found()
    return sum(found.get(point_id, 0) for point_id in shared)


def _by_point(records: Iterable[Record]) -> dict[str, list[Record]]:
    found: dict[str, list[Record]] = {}
    for record in records:
        found.setdefault(record.point_id, []).append(record)
    return found


def _evidence(
    before: Sequence[Record], now: Sequence[Record], gate: GateConfig, past: Past
) -> Evidence:
    from orbax_bench_core.gate import primary_operations

    was, are = seconds_per_repeat(before, cpu=True), seconds_per_repeat(now, cpu=True)
    moved = other_surroundings(now[0].provenance, before[0].provenance)
    shared = [operation for operation in are if operation in was]
    deciding = primary_operations(operations_in_order([was, are]), gate)
    primary = tuple(operation for operation in deciding if operation in shared)
    others = [operation for operation in shared if operation not in primary]
    elsewhere = because("other_surroundings", differs=tuple(moved)) if moved else NO_REASON
    if {each.run_id for each in before} & {each.run_id for each in now}:
        elsewhere = because("same_run")
    caches = cache_states(repeats_of([*before, *now]))
    found = tuple(
        _operation(
            operation,
            was,
            are,
            gate,
            past.get((now[0].point_id, operation), ()),
            primary=operation in primary,
            elsewhere=elsewhere,
        ).model_copy(update={"cache": caches.get(operation, "")})
        for operation in [*primary, *others]
    )
    missing = tuple(operation for operation in deciding if operation not in shared)
    sides: dict[Arm, Sequence[Record]] = {"baseline": before, "candidate": now}
    counted = {
        arm: [repeat for repeat in repeats_of(records) if repeat.counts]
        for arm, records in sides.items()
    }
    gaps = _gaps(primary, counted, {"baseline": was, "candidate": are})
    failure = next((record.error for record in now if record.error is not None), None)
    reason = elsewhere or _reason(failure, missing) or gaps
    if not (reason or primary):
        reason = because("no_primary", names=gate.primary, measured=tuple(shared))
    storage = tuple(storage_troubles(counted))
    doubts: dict[Doubt, Reasons] = storage_doubts(storage, found, (), reason)
    if elsewhere:
        doubts["other_surroundings"] = reason
    if missing or gaps or failure is not None:  # this has not passed
        doubts["missing"] = reason
    return Evidence(
        found=Decision(
            word=together([each.verdict.word for each in found if each.primary]), reason=reason
        ),
        doubts=doubts,
        operations=found,
        failed=failure is not None,
        build=functools.partial(
            PointVerdict,
            point_id=now[0].point_id,
            point=now[0].point_name,
            mode="unpaired",
            metrics=compare_metrics(repeats_of(before), repeats_of(now)),
            verified=verified_of(counted),
            storage=storage,
        ),
    )


def _gaps(
    primary: Iterable[str], repeats: Mapping[Arm, Sequence[Repeat]], seconds: Mapping[Arm, _Times]
) -> Reasons:
    """Returns which primary operation some repeats of a side lack, if any."""
    for operation in primary:
        for arm, found in repeats.items():
            lacks = len(found) - len(seconds[arm][operation])
            if lacks:
                return because("lacks", operation, arm=arm, lacking=lacks, repeats=len(found))
    return NO_REASON


def _operation(
    operation: str,
    was: _Times,
    are: _Times,
    gate: GateConfig,
    past: Sequence[float],
    *,
    primary: bool,
    elsewhere: Reasons,
) -> OperationVerdict:
    from orbax_bench_core.gate import decide_unpaired, health

    verdict = decide_unpaired(was[operation], are[operation], past, gate.rule(operation))
    if elsewhere:
        verdict = Verdict(
            word="INCONCLUSIVE",
            reason=elsewhere,
            ratio=verdict.ratio,
            operations=verdict.operations,
        )
    times: dict[Arm, tuple[float, ...]] = {"baseline": was[operation], "candidate": are[operation]}
    return OperationVerdict(
        operation=operation,
        primary=primary,
        verdict=verdict,
        health={arm: health(seconds) for arm, seconds in times.items()},
        times=times,
    )


def _reason(failure: ErrorInfo | None, missing: tuple[str, ...]) -> Reasons:
    if failure is not None:
        return because("repeat_failed", said=failure.said)
    return because("one_side_only", names=missing) if missing else NO_REASON


def _unmatched(
    side: Arm, these: Mapping[str, Sequence[Record]], those: Mapping[str, Sequence[Record]]
) -> list[Unmatched]:
    found = []
    others = [records[0].measured for records in those.values()]
    for point_id, records in these.items():
        if point_id not in those:
            point = records[0].measured
            other = nearest(point, others)
            differs = () if other is None else tuple(differences(point, other))
            found.append(Unmatched(side=side, point=point.name, point_id=point_id, differs=differs))
    return found


def _beside_summary(
    summary: baselines.Summary,
    now: Sequence[Record],
    gate: GateConfig,
    *,
    baseline: str,
    candidate: str,
    left_out: Sequence[str],
) -> VerdictReport:
    """Returns the metrics of points beside those of a baseline without samples, unjudged."""
    points: list[PointVerdict] = []
    unmatched: list[Unmatched] = []
    for point_id, records in _by_point(now).items():
        point, name = records[0].measured, records[0].point_name
        if differs := summary.differs(point):
            unmatched.append(
                Unmatched(side="candidate", point=name, point_id=point_id, differs=differs)
            )
            continue
        moved = summary.moved(records[0].provenance)
        counted = [repeat for repeat in repeats_of(records) if repeat.counts]
        points.append(
            PointVerdict(
                point_id=point_id,
                point=name,
                word="INCONCLUSIVE",
                reason=because("summary_only", differs=tuple(moved) or None),
                mode="unpaired",
                metrics=compare_means(summary.means, counted),
            )
        )
    return VerdictReport(
        suite=now[0].suite,
        run_id=now[0].run_id,
        baseline=baseline,
        candidate=candidate,
        word="INCONCLUSIVE",
        gate=gate,
        points=tuple(points),
        unmatched=tuple(unmatched),
        notes=because("surroundings_unknown"),
        left_out=tuple(left_out),
        not_alone=_not_alone(_by_point(now), [point.point_id for point in points]),
        judged_at=datetime.datetime.now(datetime.UTC),
    )


def compare_stored(
    baseline: str, candidate: str | None, rules: Sequence[str] = ()
) -> VerdictReport:
    """Compares a candidate with a baseline, paired when they are the arms of one run.

    Each is a run directory or a stored baseline; without a candidate, the arms of the first are
    compared. The rules are those of the candidate's suite, or the defaults where only samples are
    left of it.
    """
    run = RunDirectory(candidate or baseline)
    same = candidate is None or str(RunDirectory(baseline).root) == str(run.root)
    if same:
        if not run.exists():
            if not run.root.exists():
                raise UserError(f"{run.root} does not exist; give the directory of a run")
            raise UserError(
                f"{run.root} holds no run, so there are no arms to compare; give two paths, or "
                "measure both arms in one place with `orbax-bench ab`"
            )
        if not run.read_info().paired:
            raise UserError(
                f"{run.root} holds a run without arms, which is one side of a comparison. "
                f"`{command('best', run.root)}` compares its points with each other. For a verdict "
                "give a second run or baseline, or measure both sides in one place with "
                "`orbax-bench ab`"
            )
        return judge_run(run, rules)
    assert candidate is not None
    left_out: list[str] = []
    frozen = run.read_info().gate if run.exists() else GateConfig()
    gate = changed_gate(frozen, rules)
    with baselines.told_before(baseline):
        now = baselines.load_baseline(candidate, left_out=left_out)
    summary = baselines.read_summary(baseline)
    if summary is not None:
        return _beside_summary(
            summary, now, gate, baseline=baseline, candidate=candidate, left_out=left_out
        )
    baseline = resolve_baseline(
        baseline,
        points={record.point_id for record in now},
        apart_from={record.run_id for record in now},
    )
    before = baselines.load_baseline(baseline, left_out=left_out)
    registry = registry_around(baseline)
    return compare_unpaired(
        before,
        now,
        gate,
        NO_PAST if registry is None else past_log_ratios(registry, now),
        baseline=baseline,
        candidate=candidate,
        left_out=left_out,
        changes=gate_changes(frozen, gate),
    )
