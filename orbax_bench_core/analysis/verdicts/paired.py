"""Paired verdicts: from the records of a run with two arms."""

import dataclasses
import datetime
import functools
from collections.abc import Iterable, Mapping, Sequence

from orbax_bench_core.analysis.page_cache import cache_states
from orbax_bench_core.analysis.verdicts.evidence import (
    Evidence,
    never_measured,
    storage_doubts,
    storage_troubles,
    verified_of,
)
from orbax_bench_core.analysis.verdicts.metrics import compare_metrics
from orbax_bench_core.analysis.verdicts.model import (
    OperationVerdict,
    PointVerdict,
    VerdictReport,
)
from orbax_bench_core.config import ARMS, Arm, GateConfig, changed_gate, gate_changes
from orbax_bench_core.gate import Doubt, Judged, together
from orbax_bench_core.provenance import UNKNOWN, Source
from orbax_bench_core.reasons import NO_REASON, Reason, Reasons, because
from orbax_bench_core.records import (
    OverlapFinder,
    PairedTimes,
    Record,
    Repeat,
    Run,
    RunDirectory,
    RunInfo,
)
from orbax_bench_core.sweep import Pair, PairDesign, side, system_of


def evidence_of(
    pair: Pair, repeats: Iterable[Repeat], info: RunInfo, switching: Reasons = NO_REASON
) -> Evidence:
    """Returns the results of a pair so far: the first attempts in its complete blocks.

    Args:
        pair: The pair.
        repeats: All that is recorded of it.
        info: The run, whose rules and looks apply.
        switching: What it cost that the arms took turns; nothing if they did not.
    """
    from orbax_bench_core.gate import judge

    repeats = PairedTimes.used(repeats)
    series = PairedTimes.of(repeats)
    design = _design(info.designs[pair.id], repeats, series)
    # Points of one family share alpha, for any of them may be wrong by chance.
    scale = 1 / len(info.expansion.points) if info.gate.family == "suite" else 1.0
    judged = judge(
        series.judged,
        series.labels,
        info.gate,
        failed=series.failed,
        per_life=design.operations_per_life,
        blocks_per_process=design.blocks_per_process,
        repeat_s=series.repeat_s,
        alpha_scale=scale,
        until=info.more.get(pair.id, 0),
    )
    problem = series.problem or _no_baseline(series, judged)
    stopped = series.stopped or bool(_no_baseline(series, judged))
    caches = cache_states(repeats)
    operations = _operations(series, info.gate, judged, caches)
    reason = problem or _nothing_primary(operations, series, info.gate) or judged.decision.reason
    arms = {arm: [each for each in repeats if each.series.arm == arm] for arm in ARMS}
    counted = {arm: [each for each in found if each.counts] for arm, found in arms.items()}
    storage = tuple(storage_troubles(counted, series.failed.shape[2] if series.lives else 1))
    doubts: dict[Doubt, Reasons] = storage_doubts(storage, operations, arms["candidate"], reason)
    if stopped:  # what cannot be compared has not passed, however fast it was before
        doubts["arm_stopped"] = reason
    return Evidence(
        found=dataclasses.replace(judged.decision, reason=reason),
        doubts=doubts,
        operations=operations,
        failed=stopped,
        carries_over=judged.carries_over and judged.decision.settled and not stopped,
        build=functools.partial(
            PointVerdict,
            point_id=pair.id,
            point=pair.name,
            mode="paired",
            blocks=len(series.labels),
            switching=switching,
            metrics=compare_metrics(*(arms[arm] for arm in ARMS)),
            failures=judged.failures,
            attempts=series.attempts,
            failed_at=series.failed_of_arms(),
            design=design,
            continued=series.continued,
            systems=_systems(pair),
            verified=verified_of(counted),
            storage=storage,
        ),
    )


def _design(frozen: PairDesign, repeats: Sequence[Repeat], series: PairedTimes) -> PairDesign:
    """Returns the design by which a pair was measured last."""
    # Steps of a pipeline share `run.json`, so that records tell where arms got lives meanwhile.
    if frozen.lives or not series.lives:
        return frozen
    return PairDesign(
        workers="lives",
        operations_per_life=series.failed.shape[2],
        after=min(each.block for each in repeats if each.block is not None),
    )


def judge_point(pair: Pair, repeats: Iterable[Repeat], info: RunInfo) -> PointVerdict:
    """Judges what a pair has measured so far, by itself."""
    return evidence_of(pair, repeats, info).verdict()


def _systems(pair: Pair) -> dict[Arm, str]:
    """Returns the saving library of each arm; empty if that is the same, or not known."""
    found: dict[Arm, str] = {arm: system_of(side(pair, arm).benchmark) for arm in ARMS}
    return found if all(found.values()) and len(set(found.values())) > 1 else {}


def judge_run(run: RunDirectory, rules: Sequence[str] = ()) -> VerdictReport:
    """Judges every pair of a run by the records that it has.

    Args:
        run: The run directory.
        rules: Changes of the gate's rules, such as `margin=0.3`; verdicts by changed rules are
            exploratory.

    Raises:
        UserError: There is no run, a record cannot be read, or a rule is not valid.
    """
    read = Run(run)
    frozen = read.info
    info = frozen.model_copy(update={"gate": changed_gate(frozen.gate, rules)})
    points: list[Evidence] = []
    notes: list[Reason] = []
    overlaps = OverlapFinder()
    for found in read.points():
        for repeat in found.repeats:
            overlaps.add(repeat)
        if isinstance(found.entry, Pair):
            points.append(evidence_of(found.entry, found.repeats, info))
            notes += version_differences(found.records)
    beside = overlaps.found()
    if beside:
        notes += because("not_alone", repeats=sum(beside.values()), arms=len(beside))
    return report(
        info,
        points,
        notes,
        run.strays,
        changes=gate_changes(frozen.gate, info.gate),
        not_alone=sum(beside.values()),
    )


def report(
    info: RunInfo,
    points: Iterable[Evidence],
    notes: Iterable[Reason] = (),
    left_out: Sequence[str] = (),
    *,
    changes: str = "",
    not_alone: int = 0,
) -> VerdictReport:
    """Decides all pairs of a run, by what is known of each and of all of them.

    One regression makes it REGRESSION, and it passes only if all pass, and if every operation was
    measured that `gate.primary` names.
    """
    points = list(points)
    unknown = _unknown_primary(info, points)
    found = tuple(point.verdict(unknown, exploratory=bool(changes)) for point in points)
    if unknown and not any(point.reason == unknown for point in found):
        notes = (*notes, *unknown)
    return VerdictReport(
        suite=info.suite_name,
        suite_file=info.suite_file,
        again=info.again,
        run_id=info.run_id,
        baseline=info.baseline,
        candidate=info.candidate,
        word=together([point.word for point in found]),
        gate=info.gate,
        points=found,
        notes=tuple({repr(note): note for note in notes}.values()),
        revisions=revisions(
            (arm, info.code.under_test(pair.arm(arm)))
            for pair in info.expansion.pairs
            for arm in ARMS
        ),
        left_out=tuple(left_out),
        exploratory=changes,
        not_alone=not_alone,
        judged_at=datetime.datetime.now(datetime.UTC),
    )


def _operations(
    series: PairedTimes, gate: GateConfig, judged: Judged, caches: Mapping[str, str]
) -> tuple[OperationVerdict, ...]:
    from orbax_bench_core.gate import false_discovery, health

    found, verdicts, primary = [], judged.operations, judged.primary
    discovery = false_discovery(verdicts, gate)
    for operation in [*primary, *(other for other in verdicts if other not in primary)]:
        times = series.of_arms(operation)
        healths = {arm: health(values) for arm, values in times.items()}
        found.append(
            OperationVerdict(
                operation=operation,
                primary=operation in primary,
                verdict=verdicts[operation],
                health=healths,
                times=times,
                block_log_ratios=series.log_ratios(operation),
                false_discovery=discovery.get(operation),
                cache=caches.get(operation, ""),
            )
        )
    return tuple(found)


def needs_more(verdict: PointVerdict) -> bool:
    """Returns whether more blocks could change the verdict of a pair."""
    return not verdict.failed and not verdict.settled


def _no_baseline(series: PairedTimes, judged: Judged) -> Reasons:
    """Returns that the baseline failed whenever it was tried, by the first look; else nothing.

    A candidate that always fails is a finding. A baseline that does leaves nothing to compare with.
    """
    baseline = series.attempts["baseline"]
    if judged.failures.look is None or not baseline.count or baseline.failed < baseline.count:
        return NO_REASON
    return because("baseline_failed", block=baseline.block, first=baseline.example)


def _nothing_primary(
    found: Sequence[OperationVerdict], series: PairedTimes, gate: GateConfig
) -> Reasons:
    if any(operation.primary for operation in found):
        return NO_REASON
    if not len(series.labels):
        return because("no_block")
    return because("no_primary", names=gate.primary, measured=tuple(series.judged))


def _unknown_primary(info: RunInfo, points: Sequence[Evidence]) -> Reasons:
    """Returns which operations `gate.primary` names that the run does not have, if any.

    That is known once every pair was looked at, and an attempt of each has passed.
    """
    if len(points) < len(info.expansion.pairs) or any(point.failed for point in points):
        return NO_REASON
    return never_measured(
        info.gate, (operation.operation for point in points for operation in point.operations)
    )


def version_differences(records: Iterable[Record]) -> Reasons:
    """Returns the versions, and revisions of the code under test, that differ between both arms.

    A comparison of two releases may bring other packages along; then the verdict is on all of them
    together, and a reader must know.
    """
    known = list(records)
    found: dict[str, dict[str, set[str]]] = {}
    for record in known:
        for package, version in record.provenance.get("versions", {}).items():
            by_arm = found.setdefault(package, {arm: set() for arm in ARMS})
            if record.arm is not None:
                by_arm[record.arm].add(str(version))
    differ = NO_REASON
    for package, versions in found.items():
        if all(versions.values()) and versions["baseline"] != versions["candidate"]:
            was, now = (tuple(sorted(versions[arm])) for arm in ARMS)
            differ += because("versions_differ", package=package, baseline=was, candidate=now)
    code = revisions((record.arm, record.code) for record in known)
    several = len(set(code.values())) > 1 or any(" and " in words for words in code.values())
    return differ + revision_note(code) if several else differ


def revisions(sources: Iterable[tuple[Arm | None, Source]]) -> dict[Arm, str]:
    """Returns the code under test of each arm in words, of each arm with its sources.

    An arm that was measured at several revisions has all of them.
    """
    found: dict[Arm, dict[str, None]] = {arm: {} for arm in ARMS}
    for arm, source in sources:
        if arm is not None:
            found[arm][source.words if source.known or source.package else UNKNOWN] = None
    return {arm: " and ".join(words) for arm, words in found.items() if words}


def revision_note(found: Mapping[Arm, str]) -> Reasons:
    """Returns the revisions of both arms."""
    before, now = found.get("baseline", UNKNOWN), found.get("candidate", UNKNOWN)
    return because("revisions", baseline=before, candidate=now)
