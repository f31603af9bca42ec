"""Calibration of a place, and its document: false-positive rate of the gate, and noise."""

from __future__ import annotations

import bisect
import collections
import dataclasses
import io
from collections.abc import Callable, Iterable, Sequence
from typing import TYPE_CHECKING, Any, Final, Literal

from orbax_bench_core import document as doc
from orbax_bench_core.analysis.noise.measure import expected_bound, from_records
from orbax_bench_core.analysis.noise.passport import Component, Noise, Passport
from orbax_bench_core.analysis.verdicts import PointVerdict, judge_point
from orbax_bench_core.baselines import FoundRun, find_runs
from orbax_bench_core.config import ARMS, GateConfig
from orbax_bench_core.files import ResultModel
from orbax_bench_core.gate import Chances, Word, together
from orbax_bench_core.pages import count
from orbax_bench_core.records import PairedTimes, Record, repeats_of
from orbax_bench_core.sweep import Pair

if TYPE_CHECKING:
    from rich.console import Console


class AaTest(ResultModel):
    """One verdict on arms that are the same."""

    run_id: str
    place: str  # where it is
    point: str  # name of the point; of all of them where the suite is one family
    word: Word  # what the gate said
    alpha: float  # level of the test at no tolerance
    bound: float  # probability of a REGRESSION that it may have, by times, stalls or failures
    operations: int  # operations per arm that it looked at, of the primary one with most
    ratio: float | None  # largest ratio of a primary operation
    # probability of arms as far apart as these, either way, when they are the same: the gate's test
    # at no tolerance over all blocks, times the primary operations. The gate's own tolerance hides
    # an offset of some percent; this does not. None where unknown.
    p_value: float | None = None

    @property
    def differs(self) -> bool:
        """Whether arms that are the same are told apart at no tolerance."""
        return self.p_value is not None and self.p_value < self.alpha


def aa_tests(run: FoundRun, pairs: Iterable[Sequence[Record]]) -> list[AaTest]:
    """Judges the pairs of a run whose arms are the same.

    Pairs of one run are tests of their own, as the order of the arms is drawn for each. Where all
    pairs of a suite share alpha, they are one test.
    """
    if run.info is None:
        return []
    judged = [
        (verdict, at_no_tolerance(PairedTimes.of(repeats), run.gate))
        for records in pairs
        if records and isinstance(pair := records[0].point, Pair) and pair.identical
        for repeats in [list(repeats_of(records))]
        for verdict in [judge_point(pair, repeats, run.info)]
        if any(each.primary and each.verdict.look is not None for each in verdict.operations)
    ]
    if run.gate.family == "suite" and judged:
        known = [p_value for _, p_value in judged if p_value is not None]
        shared = min(1.0, len(known) * min(known)) if known else None
        name = count(len(judged), "point")
        return [_test(run, name, [verdict for verdict, _ in judged], shared)]
    return [_test(run, verdict.point, [verdict], p_value) for verdict, p_value in judged]


def at_no_tolerance(paired: PairedTimes, gate: GateConfig) -> float | None:
    """Returns the probability of arms as far apart as these if they are the same; None if unknown.

    One look at all blocks, both ways, with the level shared among the primary operations.
    """
    from orbax_bench_core.gate import judge

    operations = max((table.size for table in paired.times.values()), default=0) // len(ARMS)
    if not operations:
        return None
    exact = {"tolerance": 0.0, "min_effect_s": 0.0, "metrics": {}, "looks": (operations,)}
    rule = gate.model_copy(update=exact)
    found = [
        verdict.p_regression
        for labels in (paired.labels, ~paired.labels)
        for judged in [judge(paired.times, labels, rule)]
        for name, verdict in judged.operations.items()
        if name in judged.primary and verdict.p_regression is not None
    ]
    return min(1.0, len(found) * min(found)) if found else None


def _test(
    run: FoundRun, name: str, verdicts: Sequence[PointVerdict], p_value: float | None
) -> AaTest:
    primary = [
        operation.verdict
        for verdict in verdicts
        for operation in verdict.operations
        if operation.primary
    ]
    ratios = [verdict.ratio for verdict in primary if verdict.ratio is not None]
    return AaTest(
        run_id=run.run_id,
        place=run.place,
        point=name,
        word=together([verdict.word for verdict in verdicts]),
        alpha=run.gate.alpha,
        bound=run.gate.false_alarms,
        operations=max(verdict.operations for verdict in primary),
        ratio=max(ratios, default=None),
        p_value=p_value,
    )


ENOUGH: Final = 0.01
"""Upper bound of process noise below which one process per arm may stay for a comparison."""

_LIVES: Final = 4
_MOST_WAVES: Final = 2000

NO_WORKERS: Final = (
    "Process noise is not known: no run had several workers of one kind. `orbax-bench calibrate "
    "--suite SUITE --output-directory DIR` measures it"
)


def component(noise: Noise, found: Component, what: Literal["tau", "interaction"]) -> str:
    """Returns one component with its interval, in percent."""
    about = {
        "tau": "one worker process to the next",
        "interaction": "the ratio of two options, one worker to the next",
    }
    chance = "" if found.low else "; chance explains it"
    return (
        f"{noise.operation}, {about[what]}: {_percent(found.estimate)} "
        f"[{_percent(found.low)}, {_percent(found.high)}], {found.workers} workers with "
        f"{found.rounds} operations each{chance}"
    )


def bounds(passport: Passport) -> str:
    """Returns which bounds of process noise the measurement bought, and what a lower one takes."""
    known = [noise for noise in passport.noise if noise.tau is not None]
    if not known:
        return ""
    worst = max(known, key=lambda noise: 0.0 if noise.tau is None else noise.tau.high)
    assert worst.tau is not None
    said = f"Process noise is at most {_percent(worst.tau.high)} ({worst.operation})"
    if worst.tau.high <= ENOUGH:
        return f"{said}: one process per arm may stay for a comparison."
    needed = workers_needed(worst.sigma, worst.tau.rounds)
    more = (
        "that takes more workers than anyone would start"
        if needed is None
        else f"that takes about {needed} workers, if they do not differ"
    )
    return (
        f"{said}: arms in two processes need lives of several workers each, which they have by "
        f"default. One process per arm may stay from {_percent(ENOUGH)} down; {more}."
    )


def workers_needed(sigma: float, rounds: int) -> int | None:
    """Returns the workers whose bound is low enough when they do not differ; None if too many."""
    waves = range(1, _MOST_WAVES + 1)
    place = bisect.bisect_left(
        waves, True, key=lambda each: expected_bound(sigma, each, _LIVES, rounds) <= ENOUGH
    )
    return _LIVES * waves[place] if place < len(waves) else None


def _percent(share: float) -> str:
    return f"{100 * share:.2g} %"


_DETECTABLE_AT: Final = (10, 60)
"""Operations per arm for which the table says what they find."""

_LOG_WIDTH: Final = 160

SLOW_DOWNS: Final = (0.0, 0.05, 0.1, 0.2, 0.5)
"""True slow-downs of the table of power."""


def calibration_document(
    tests: Sequence[AaTest],
    passport: Passport,
    left_out: Sequence[str] = (),
    gate: GateConfig | None = None,
) -> doc.Document:
    """Returns how often identical arms were told apart, how noisy operations are, and the power.

    `left_out` are files among the records that are no records of their run, a line each; `gate` has
    the rules of the runs.
    """
    strays = (doc.Paragraph(doc.Span(line), mark=doc.Span("left out:", "bad")) for line in left_out)
    return doc.Document(
        title="Calibration",
        elements=(
            *aa_elements(tests),
            doc.BLANK,
            passport_table(passport),
            *power_elements(passport, gate or GateConfig()),
            doc.BLANK,
            *component_elements(passport),
            *strays,
        ),
    )


def aa_elements(tests: Sequence[AaTest]) -> tuple[doc.Element, ...]:
    """Returns how often identical arms were told apart, and which."""
    from orbax_bench_core.gate import reject_rate

    if not tests:
        missing = "no A/A tests: make some with `orbax-bench ab SUITE --output-directory DIR --aa`"
        return (doc.Paragraph(missing),)
    elements: list[doc.Element] = []
    by_bound: dict[float, list[AaTest]] = collections.defaultdict(list)
    for test in tests:
        by_bound[test.bound].append(test)
    for bound, same in sorted(by_bound.items()):
        rejected = [test for test in same if test.word == "REGRESSION"]
        rate = reject_rate(len(same), len(rejected), bound)
        elements.append(doc.Paragraph(doc.Span(rate.statement, _role(rate.calibrated))))
        if rate.low is not None and rate.high is not None:
            interval = f"95 % interval of the rate: {rate.low:.1%} to {rate.high:.1%}"
            elements.append(doc.Paragraph(interval, indent=2))
        for test in rejected:
            told = f"REGRESSION in run {test.run_id}, {test.point}: {test.place}"
            elements.append(doc.Paragraph(doc.Span(told), indent=2))
    elements += _at_no_tolerance(tests)
    found = collections.Counter(test.word for test in tests)
    counts = ", ".join(f"{count} {word}" for word, count in found.most_common())
    most = max(test.operations for test in tests)
    return (*elements, doc.Paragraph(f"{counts}; at most {most} operations per arm", indent=2))


def _at_no_tolerance(tests: Sequence[AaTest]) -> list[doc.Element]:
    from orbax_bench_core.gate import reject_rate

    known = [test for test in tests if test.p_value is not None]
    if not known:
        return []
    apart = [test for test in known if test.differs]
    said = (
        f"at no tolerance {len(apart)} of {len(known)} tell the same arms apart, where "
        f"{known[0].alpha:.1%} may: the gate's tolerance hides an offset of some percent, this "
        "does not"
    )
    told = (
        f"told apart in run {test.run_id}, {test.point} (p = {test.p_value:.2g}): {test.place}"
        for test in apart
    )
    rate = reject_rate(len(known), len(apart), known[0].alpha).calibrated
    return [
        doc.Paragraph(doc.Span(said, _role(rate)), indent=2),
        *(doc.Paragraph(doc.Span(line), indent=4) for line in told),
    ]


def component_elements(passport: Passport) -> tuple[doc.Element, ...]:
    """Returns by how much workers differ, and what that means for arms with a process each."""
    kinds: tuple[Literal["tau", "interaction"], ...] = ("tau", "interaction")
    lines = [
        doc.Paragraph(doc.Span(component(noise, found, kind)))
        for noise in passport.noise
        for kind in kinds
        if (found := getattr(noise, kind)) is not None
    ]
    if not lines:
        return (doc.Paragraph(doc.Span(NO_WORKERS, "dim")),)
    return (*lines, doc.Paragraph(doc.Span(bounds(passport)), "dim"))


def passport_table(passport: Passport) -> doc.Table:
    """Returns how noisy operations are, and what that lets a comparison find."""
    from orbax_bench_core.analysis.verdicts import share
    from orbax_bench_core.config import GateRule
    from orbax_bench_core.gate import detectable

    finds = tuple(f"{operations} per arm find" for operations in _DETECTABLE_AT)
    return _by_place(
        passport,
        ("noise", "n", "a repeat takes", *finds),
        lambda noise: (
            share(noise.sigma),
            str(noise.n),
            doc.seconds(noise.repeat_s),
            *(share(detectable(noise.sigma, n, GateRule())) for n in _DETECTABLE_AT),
        ),
    )


def _by_place(
    passport: Passport, headings: Iterable[str], cells: Callable[[Noise], tuple[doc.Text, ...]]
) -> doc.Table:
    """Returns a table with a row for each operation, and a group for each place and size."""
    groups: dict[tuple[str, str, str], list[doc.Row]] = {}
    for noise in passport.noise:
        row = doc.Row((doc.Span(noise.operation), *cells(noise)))
        groups.setdefault((noise.storage, place(noise), size(noise)), []).append(row)
    return doc.Table(
        (doc.Column("operation"), *(doc.Column(name, "number") for name in headings)),
        groups=tuple(
            doc.Group(
                doc.Span(", ".join(keys), strong=True), tuple(rows), keys=tuple(map(doc.Span, keys))
            )
            for keys, rows in groups.items()
        ),
        keys=("storage", "machine", "checkpoint"),
    )


def chances_at(noise: Noise, gate: GateConfig) -> dict[float, Chances]:
    """Returns the chances of each word for the true slow-downs of the table of power."""
    from orbax_bench_core.gate import chances_of, spread_over_processes

    found = chances_of(
        noise.sigma,
        gate.rule(noise.operation),
        SLOW_DOWNS,
        tau=spread_over_processes(gate.blocks_per_process),
        first_pass=gate.fewest_of_pass(noise.repeat_s),
    )
    return dict(zip(SLOW_DOWNS, found, strict=True))


def power_elements(passport: Passport, gate: GateConfig) -> tuple[doc.Element, ...]:
    """Returns how likely each word is at the noise that was measured, by the true slow-down."""
    if not passport.noise:
        return ()
    return (
        doc.BLANK,
        doc.Paragraph(
            f"Power: REGRESSION / PASS / INCONCLUSIVE in percent of comparisons of up to "
            f"{gate.looks[-1]} operations per arm, if the candidate takes so much longer"
        ),
        _by_place(
            passport,
            [f"+{100 * slow_down:.0f} %" for slow_down in SLOW_DOWNS],
            lambda noise: tuple(map(_chances, chances_at(noise, gate).values())),
        ),
        doc.Paragraph(
            f"By the time of one primary operation, tolerance {100 * gate.tolerance:.3g} % and "
            f"margin {100 * gate.margin:.3g} %, from the noise above; arms that share their "
            "processes, without stalls and failures. One of three primary operations that alone is "
            "slower is found less often.",
            "dim",
        ),
    )


def _chances(found: Chances) -> str:
    """Returns chances in percent that add up to 100."""
    regression, passes = round(100 * found.regression), round(100 * found.passes)
    return f"{regression} / {passes} / {max(0, 100 - regression - passes)}"


def size(noise: Noise) -> str:
    """Returns the sizes of an entry, such as `64 MiB to 256 MiB`."""
    if noise.size == 0:
        return "no bytes"
    return f"{doc.num_bytes(noise.size)} to {doc.num_bytes(4 * noise.size)}"


def place(noise: Noise) -> str:
    """Returns the machine of an entry."""
    return noise.cpu if noise.device in ("cpu", "unknown") else f"{noise.cpu}, {noise.device}"


@dataclasses.dataclass(frozen=True, kw_only=True)
class Calibration:
    """A/A calibration of a place."""

    tests: tuple[AaTest, ...]  # one verdict per pair whose arms are the same
    passport: Passport  # how noisy operations are there
    # files among the records that are no records of their run, a line each
    left_out: tuple[str, ...] = ()
    gate: GateConfig = dataclasses.field(default_factory=GateConfig)  # rules of the runs

    @property
    def power(self) -> list[dict[str, Any]]:
        """Chances of each word by operation and true slow-down, at the noise of the passport."""
        return [
            {
                "operation": noise.operation,
                "storage": noise.storage,
                "cpu": noise.cpu,
                "size": noise.size,
                "sigma": noise.sigma,
                "slow_down": slow_down,
                "REGRESSION": found.regression,
                "PASS": found.passes,
                "INCONCLUSIVE": found.open,
            }
            for noise in self.passport.noise
            for slow_down, found in chances_at(noise, self.gate).items()
        ]

    @property
    def rejected(self) -> int:
        """Number of the tests that said REGRESSION."""
        return sum(test.word == "REGRESSION" for test in self.tests)

    def text(self) -> str:
        """Returns everything as text, as wide as a log."""
        from rich.console import Console

        file = io.StringIO()
        self.show(Console(file=file, width=_LOG_WIDTH, soft_wrap=True))
        return file.getvalue()

    def show(self, console: Console) -> None:
        """Prints everything."""
        document = calibration_document(self.tests, self.passport, self.left_out, self.gate)
        doc.print_document(document, console)


def calibration_of(places: Sequence[str]) -> Calibration:
    """Reads A/A runs, and others for their noise."""
    tests, records = [], []
    left_out: list[str] = []
    gates: dict[str, GateConfig] = {}
    for run in find_runs([place for place in places if place]):
        pairs = list(run.read())
        tests += aa_tests(run, pairs)
        records += [record for pair in pairs for record in pair]
        left_out += run.left_out
        gates[run.gate.fingerprint] = run.gate
    return Calibration(
        tests=tuple(tests),
        passport=from_records(records),
        left_out=tuple(left_out),
        # Runs of several suites have no rules in common but the default ones.
        gate=next(iter(gates.values())) if len(gates) == 1 else GateConfig(),
    )


def _role(calibrated: bool | None) -> doc.Role:
    return "bad" if calibrated is False else "good"
