"""Paired verdicts: from the records of a run with two arms."""

from __future__ import annotations

import datetime
from collections.abc import Iterable, Sequence

from orbax_bench_core.analysis.verdicts.advice import advice
from orbax_bench_core.analysis.verdicts.metrics import compare_metrics
from orbax_bench_core.analysis.verdicts.model import OperationVerdict, PointVerdict, VerdictReport
from orbax_bench_core.analysis.verdicts.revisions import revision_changes, revisions_of_run
from orbax_bench_core.config import ARMS, GateConfig
from orbax_bench_core.gate import Judged, Word
from orbax_bench_core.records import PairedTimes, Record, Repeat, RunDirectory, RunInfo, repeats_of
from orbax_bench_core.sweep import Pair


def judge_point(
    pair: Pair, repeats: Iterable[Repeat], info: RunInfo, switching: str = ""
) -> PointVerdict:
    """Judges what a pair has measured so far.

    `switching` says what it cost that its arms took turns; empty when they did not.
    """
    from orbax_bench_core.gate import judge

    known = list(repeats)
    series = PairedTimes.of(known)
    scale = 1 / len(info.expansion.points) if info.gate.family == "suite" else 1.0
    judged = judge(series.times, series.labels, info.gate, alpha_scale=scale)
    found, word = _operations(series, info.gate, judged), judged.word
    failed = bool(series.failed)
    return PointVerdict(
        point_id=pair.id,
        point=pair.name,
        # What fails has not passed, however fast it was before.
        word="INCONCLUSIVE" if failed and word == "PASS" else word,
        reason=series.problem or _nothing_primary(found, series, info.gate) or judged.reason,
        failed=failed,
        mode="paired",
        blocks=len(series.labels),
        operations=found,
        switching=switching,
        metrics=compare_metrics(
            *([each for each in known if each.series.arm == arm] for arm in ARMS)
        ),
        endpoint=judged.endpoint,
        failures=judged.failures,
        settled=judged.settled,
        next_look=judged.next_look,
    )


def judge_run(run: RunDirectory) -> VerdictReport:
    """Judges every pair of a run by the records that it has.

    Raises:
        UserError: There is no run here.
    """
    info = run.read_info()
    points: list[PointVerdict] = []
    notes: list[str] = []
    for pair in info.expansion.pairs:
        records = run.point_records(pair)
        points.append(judge_point(pair, repeats_of(records), info))
        notes += version_differences(records)
    return report(info, points, notes)


def report(
    info: RunInfo, points: Sequence[PointVerdict], notes: Iterable[str] = ()
) -> VerdictReport:
    """Combines the verdicts of all pairs into the report of the run.

    One regression makes it REGRESSION, and it passes only if all pass.
    """
    return VerdictReport(
        suite=info.suite_name,
        run_id=info.run_id,
        baseline=info.baseline,
        candidate=info.candidate,
        word=together([point.word for point in points]),
        gate=info.gate,
        points=tuple(points),
        notes=tuple(dict.fromkeys(notes)),
        revisions=revisions_of_run(info),
        judged_at=datetime.datetime.now(datetime.UTC),
    )


def _operations(
    series: PairedTimes, gate: GateConfig, judged: Judged
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
                advice=advice(
                    verdicts[operation],
                    operation,
                    gate,
                    primary=operation in primary,
                    health=healths,
                    failed=bool(series.failed),
                    ended=judged.settled,
                ),
                health=healths,
                times=times,
                block_log_ratios=series.log_ratios(operation),
                false_discovery=discovery.get(operation),
            )
        )
    return tuple(found)


def needs_more(verdict: PointVerdict) -> bool:
    """Returns whether more blocks could change the verdict of a pair."""
    return not verdict.failed and not verdict.settled


def together(words: Sequence[Word]) -> Word:
    """Returns what several verdicts say as one: all must pass, and one regression is enough."""
    if "REGRESSION" in words:
        return "REGRESSION"
    return "PASS" if words and set(words) == {"PASS"} else "INCONCLUSIVE"


def _nothing_primary(
    found: Sequence[OperationVerdict], series: PairedTimes, gate: GateConfig
) -> str:
    if any(operation.primary for operation in found):
        return ""
    if not len(series.labels):
        return "no block is complete"
    measured = ", ".join(series.times) or "none"
    return (
        f"none of the primary operations ({', '.join(gate.primary)}) was measured in both arms; "
        f"measured: {measured}; name others under `gate.primary`"
    )


def version_differences(records: Iterable[Record]) -> tuple[str, ...]:
    """Returns the versions, and revisions of the code under test, that differ between both arms.

    Each is `jax: 0.9.0 in the baseline, 0.10.2 in the candidate`. A comparison of two releases may
    bring other packages along; then the verdict is on all of them together, and a reader must know.
    """
    known = list(records)
    found: dict[str, dict[str, set[str]]] = {}
    for record in known:
        for package, version in record.provenance.get("versions", {}).items():
            by_arm = found.setdefault(package, {arm: set() for arm in ARMS})
            if record.arm is not None:
                by_arm[record.arm].add(str(version))
    versions = (
        f"{package}: {_words(by_arm['baseline'])} in the baseline, "
        f"{_words(by_arm['candidate'])} in the candidate"
        for package, by_arm in found.items()
        if all(by_arm.values()) and by_arm["baseline"] != by_arm["candidate"]
    )
    return (*versions, *revision_changes(known))


def _words(versions: set[str]) -> str:
    return " and ".join(sorted(versions))
