"""Calibrations for people: false alarms, noise of operations and of workers, and power."""

import bisect
import collections
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Final, Literal

from orbax_bench_core import pages
from orbax_bench_core.analysis.noise.calibration import SLOW_DOWNS, AaTest, Calibration, chances_at
from orbax_bench_core.analysis.noise.measure import expected_bound
from orbax_bench_core.analysis.noise.passport import Component, Noise, Passport, default_path
from orbax_bench_core.config import GateConfig
from orbax_bench_core.errors import command
from orbax_bench_core.gate import Chances, RejectRate

ENOUGH: Final = 0.01
"""Upper bound of process noise below which one process per arm may stay for a comparison."""
_LIVES: Final = 4
_MOST_WAVES: Final = 2000
_DETECTABLE_AT: Final = (10, 60)
"""Operations per arm for which the table says what they find."""
_NO_TESTS: Final = (
    "No A/A test was found: `orbax-bench ab SUITE --output-directory DIR --aa` makes one"
)
_NO_WORKERS: Final = (
    "Process noise is not known: no run had several workers of one kind. `orbax-bench calibrate "
    "--suite SUITE --output-directory DIR` measures it."
)


def calibration_document(
    found: Calibration, places: Sequence[str] = (), *, saved: bool = True
) -> pages.Document:
    """Returns how often identical arms were told apart, how noisy operations are, and the power.

    Args:
        found: The calibration.
        places: Where its runs are.
        saved: Whether the noise passport was saved; otherwise the next command does.
    """
    passport = found.passport
    save = command("calibrate", *places, "--save", default_path())
    return pages.Document(
        about=f"Calibration, {pages.count(len(found.tests), 'A/A test')}",
        headline=_headline(found),
        summary=(
            _passport_table(passport),
            pages.Text(_bounds(passport), "dim"),
            pages.Text(items=tuple(f"left out: {line}" for line in found.left_out), role="bad"),
        ),
        following=None
        if saved or not passport.noise
        else pages.Code(save, "Keep the noise passport, which predicts how long `ab` will take:"),
        details=(
            pages.Details("A/A tests", (pages.Text(items=tuple(_aa_lines(found.tests))),)),
            pages.Details("Power", tuple(_power(passport, found.gate))),
            pages.Details("Worker processes", (pages.Text(items=tuple(_workers(passport))),)),
        ),
    )


def _headline(found: Calibration) -> pages.Callout:
    """Returns the rate of false alarms; of several levels that which is exceeded, or the first."""
    noise = ""
    if sigmas := [each.sigma for each in found.passport.noise]:
        low, high = pages.share(min(sigmas), 2), pages.share(max(sigmas), 2)
        noise = f"; operations vary by {low if low == high else f'{low} to {high}'}"
    if not found.tests:
        return pages.Callout("", f"{_NO_TESTS}{noise}.")
    rates = _rates(found.tests)
    worst = next((rate for rate in rates if rate.calibrated is False), rates[0])
    if worst.calibrated is False:
        return pages.Callout("TOO MANY FALSE ALARMS", f"{_told(worst)}{noise}", "bad")
    return pages.Callout("", f"{_told(worst)}{noise}.")


def _told(rate: RejectRate) -> str:
    """Returns how many tests of the same arms found a difference, and whether that is too many."""
    judged = (
        "nothing speaks against that"
        if rate.calibrated
        else "that is too many: the runs have something that the gate does not allow for"
    )
    return (
        f"{rate.rejected} of {rate.tests} A/A tests ({pages.percent(rate.rate, 1)}) said "
        f"REGRESSION where {pages.percent(rate.alpha, 1)} may: {judged} (p = {rate.p_value:.2g})"
    )


def _rates(tests: Sequence[AaTest]) -> list[RejectRate]:
    """Returns how often REGRESSION was said at each bound on that, the lowest bound first."""
    from orbax_bench_core.gate import reject_rate

    same = collections.Counter(test.bound for test in tests)
    said = collections.Counter(test.bound for test in tests if test.word == "REGRESSION")
    return [reject_rate(same[bound], said[bound], bound) for bound in sorted(same)]


def _aa_lines(tests: Sequence[AaTest]) -> Iterator[str]:
    """Yields how often identical arms were told apart, and which, a line each."""
    if not tests:
        return
    for rate in _rates(tests):
        yield f"{_told(rate)}."
        if rate.low is not None and rate.high is not None:
            low, high = pages.percent(rate.low, 1), pages.percent(rate.high, 1)
            yield f"95 % interval of the rate: {low} to {high}."
    for test in tests:
        if test.word == "REGRESSION":
            yield f"REGRESSION in run {test.run_id}, {test.point}: {test.place}"
    known = [test for test in tests if test.p_value is not None]
    apart = [test for test in known if test.differs]
    if known:
        yield (
            f"At no tolerance {len(apart)} of {len(known)} tell the same arms apart, where "
            f"{pages.percent(known[0].alpha, 1)} may: the gate's tolerance hides an offset of some "
            "percent, this does not."
        )
    for test in apart:
        chance = f"p = {test.p_value:.2g}"
        yield f"Told apart in run {test.run_id}, {test.point} ({chance}): {test.place}"
    counts = collections.Counter(test.word for test in tests)
    words = ", ".join(f"{number} {word}" for word, number in counts.most_common())
    yield f"{words}; at most {max(test.operations for test in tests)} operations per arm."


def _workers(passport: Passport) -> Iterator[str]:
    """Yields by how much workers differ, and what that means for arms with a process each."""
    kinds: tuple[Literal["tau", "interaction"], ...] = ("tau", "interaction")
    lines = [
        _component(noise, found, kind)
        for noise in passport.noise
        for kind in kinds
        if (found := getattr(noise, kind)) is not None
    ]
    yield from lines or [_NO_WORKERS]


def _component(noise: Noise, found: Component, what: Literal["tau", "interaction"]) -> str:
    """Returns one component with its interval, in percent."""
    about = {
        "tau": "one worker process to the next",
        "interaction": "the ratio of two options, one worker to the next",
    }
    chance = "" if found.low else "; chance explains it"
    return (
        f"{noise.operation}, {about[what]}: {pages.share(found.estimate, 2)} "
        f"({pages.share(found.low, 2)} to {pages.share(found.high, 2)}), {found.workers} workers "
        f"with {found.rounds} operations each{chance}"
    )


def _bounds(passport: Passport) -> str:
    """Returns which bounds of process noise the measurement gave, and what a lower one takes."""
    known = [(noise.tau, noise) for noise in passport.noise if noise.tau is not None]
    if not known:
        return ""
    tau, worst = max(known, key=lambda pair: pair[0].high)
    said = f"Process noise is at most {pages.share(tau.high, 2)} ({worst.operation})"
    if tau.high <= ENOUGH:
        return f"{said}: one process per arm may stay for a comparison."
    needed = _workers_needed(worst.sigma, tau.rounds)
    more = (
        "that takes more workers than anyone would start"
        if needed is None
        else f"that takes about {needed} workers, if they do not differ"
    )
    return (
        f"{said}: arms in two processes need lives of several workers each, which they have by "
        f"default. One process per arm may stay from {pages.share(ENOUGH, 2)} down; {more}."
    )


def _workers_needed(sigma: float, rounds: int) -> int | None:
    """Returns the workers whose bound is low enough when they do not differ; None if too many."""
    waves = range(1, _MOST_WAVES + 1)
    place = bisect.bisect_left(
        waves, True, key=lambda each: expected_bound(sigma, each, _LIVES, rounds) <= ENOUGH
    )
    return _LIVES * waves[place] if place < len(waves) else None


def _passport_table(passport: Passport) -> pages.Table:
    """Returns how noisy operations are, and what that lets a comparison find."""
    from orbax_bench_core.config import GateRule
    from orbax_bench_core.gate import detectable

    finds = tuple(f"{operations} per arm find" for operations in _DETECTABLE_AT)
    return _by_place(
        passport,
        ("noise", "n", "a repeat takes", *finds),
        lambda noise: (
            pages.share(noise.sigma),
            str(noise.n),
            pages.seconds(noise.repeat_s),
            *(pages.share(detectable(noise.sigma, n, GateRule())) for n in _DETECTABLE_AT),
        ),
    )


def _by_place(
    passport: Passport, headings: Iterable[str], cells: Callable[[Noise], tuple[str, ...]]
) -> pages.Table:
    """Returns a table with a row for each operation, in groups by place and size."""
    rows = [
        pages.Row(
            (noise.operation, *cells(noise)), f"{noise.storage}, {_machine(noise)}, {_size(noise)}"
        )
        for noise in passport.noise
    ]
    rows.sort(key=lambda row: row.group)
    columns = pages.columns("operation`", *(f"{name}#" for name in headings))
    return pages.Table(columns, tuple(rows))


def _power(passport: Passport, gate: GateConfig) -> Iterator[pages.Element]:
    """Yields how likely each word is at the noise that was measured, by the true slow-down."""
    if not passport.noise:
        return
    yield pages.Text(
        f"REGRESSION / PASS / INCONCLUSIVE in percent of comparisons of up to {gate.looks[-1]} "
        "operations per arm, if the candidate takes so much longer:"
    )
    yield _by_place(
        passport,
        [f"+{pages.percent(slow_down)}" for slow_down in SLOW_DOWNS],
        lambda noise: tuple(map(_chances, chances_at(noise, gate).values())),
    )
    yield pages.Text(
        f"By the time of one primary operation, tolerance {pages.share(gate.tolerance)} and margin "
        f"{pages.share(gate.margin)}, from the noise above; arms that share their processes, "
        "without stalls and failures. One of three primary operations that alone is slower is "
        "found less often.",
        "dim",
    )


def _chances(found: Chances) -> str:
    """Returns chances in percent that add up to 100."""
    regression, passes = round(100 * found.regression), round(100 * found.passes)
    return f"{regression} / {passes} / {max(0, 100 - regression - passes)}"


def _size(noise: Noise) -> str:
    """Returns the sizes of an entry, such as `64 MiB to 256 MiB`."""
    if noise.size == 0:
        return "no bytes"
    return f"{pages.num_bytes(noise.size)} to {pages.num_bytes(4 * noise.size)}"


def _machine(noise: Noise) -> str:
    return noise.cpu if noise.device in ("cpu", "unknown") else f"{noise.cpu}, {noise.device}"
