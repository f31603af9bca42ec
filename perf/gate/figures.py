"""Figures that the gate must reach, and their targets."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Mapping, Sequence
from typing import Final

from orbax_bench_core.config import GateRule
from orbax_bench_core.gate.noise import detectable
from perf.gate.experiments import Cell, Kind, Tally
from perf.gate.noise import REGIMES, SIGMA
from perf.gate.replay import Series, stretched

Source = str | Series
Key = tuple[Kind, str, float, GateRule]
Tallies = Mapping[Key, Tally]

RULE: Final = GateRule()
ALONE: Final = GateRule(tolerance=0.0, looks=(20,))
"""One look with no tolerance spends all of alpha: the level of the test itself. At a single look a
REGRESSION goes before a PASS, so that none hides it."""

TWENTY: Final = GateRule(tolerance=0.0, looks=(10, 20), alpha=0.003, pass_alpha=0.015)
"""No tolerance, and nothing after 20 operations per arm: four looks spend as much by then."""

ONCE: Final = GateRule(looks=(20,))
DETECTABLE: Final = 1 + detectable(SIGMA, 20, ONCE)
"""The ratio that 20 operations per arm are said to find nine times in ten."""

SLOWER: Final = 1.2
SOMEWHAT_SLOWER: Final = 1.1

_TWO_SIDED: Final = 1.96


@dataclasses.dataclass(frozen=True, kw_only=True)
class Figure:
    """One figure with its target.

    Attributes:
        group: What kind of figure it is.
        name: On what data.
        value: What was found: a share, or operations per arm.
        error: Its Monte Carlo standard error.
        target: What it must be, in words; empty when it is only shown.
        met: Whether it is; None when it is only shown.
        share: Whether the value is a share.
    """

    group: str
    name: str
    value: float
    error: float
    target: str = ""
    met: bool | None = None
    share: bool = True


@dataclasses.dataclass(frozen=True, kw_only=True)
class Sources:
    """Sources of times that the gate is tried on.

    Attributes:
        regimes: Made-up noise, by name.
        real: Real series, replayed.
        wild: Real series whose slow states were stretched to a CV of 50 %.
        wilder: Real series all of whose noise was.
    """

    regimes: tuple[str, ...]
    real: tuple[Series, ...]
    wild: tuple[Series, ...]
    wilder: tuple[Series, ...]

    @classmethod
    def of(cls, real: Sequence[Series]) -> Sources:
        """Returns the six regimes, and the real series with those stretched from the first file."""
        machine = real[0].name.split()[0]
        first = [series for series in real if series.name.split()[0] == machine]
        return cls(
            regimes=tuple(REGIMES),
            real=tuple(real),
            wild=tuple(stretched(series, whole=False) for series in first),
            wilder=tuple(stretched(series, whole=True) for series in first),
        )

    @property
    def judged(self) -> tuple[Source, ...]:
        """Those on which every target must be met."""
        return (*self.regimes, *self.real, *self.wild)

    @property
    def all(self) -> tuple[Source, ...]:
        """Those on which the levels must hold."""
        return (*self.judged, *self.wilder)


def cells(sources: Sources, series: int) -> list[Cell]:
    """Returns everything to try out.

    A share near 1 % is counted over `series` comparisons per cell, anything else over half as many.
    """
    half = series // 2

    def made(kind: Kind, source: Source, ratio: float, count: int, rule: GateRule = RULE) -> Cell:
        return Cell(kind=kind, source=source, ratio=ratio, series=count, rule=rule)

    found = [
        made("verdicts", "iid", SOMEWHAT_SLOWER, series, TWENTY),
        made("verdicts", "iid", DETECTABLE, series, ONCE),
    ]
    for source in sources.all:
        found += [made("verdicts", source, ratio, series) for ratio in (1.0, 1 + RULE.tolerance)]
        found += [made("verdicts", source, ratio, half) for ratio in (1 + RULE.margin, SLOWER)]
    for source in sources.judged:
        found.append(made("verdicts", source, 1.0, series, ALONE))
        found.append(made("coverage", source, SOMEWHAT_SLOWER, half))
        found.append(made("stopped coverage", source, SOMEWHAT_SLOWER, series // 8))
        found.append(made("rivals", source, 1.0, half))
    return found


def figures(tallies: Tallies, sources: Sources) -> list[Figure]:
    """Returns every figure of the gate from what was counted."""
    found: list[Figure] = []
    group = "the test alone at 1.00, N = 20, tolerance 0"
    found += [_at_most(tallies, group, s, 1.0, rule=ALONE) for s in sources.judged]
    found += [_at_most(tallies, "false REGRESSION at 1.00", s, 1.0) for s in sources.all]
    group = "REGRESSION at the tolerance, 1.03"
    found += [_at_most(tallies, group, s, 1 + RULE.tolerance) for s in sources.all]
    group = "PASS at the margin, 1.15"
    found += [_at_most(tallies, group, s, 1 + RULE.margin, "PASS", 0.05) for s in sources.all]
    found += [_power(tallies, s, judged=s in sources.judged) for s in sources.all]
    found += [_power_at_20(tallies), _power_at_detectable(tallies)]
    found += _operations(tallies, sources)
    found += _coverages(tallies, sources, "coverage", "coverage of 95 % intervals, N = 20")
    found += _coverages(tallies, sources, "stopped coverage", "the same, at the verdict")
    return found


def rival_table(tallies: Tallies, sources: Sources) -> dict[str, dict[str, float]]:
    """Returns the share of false alarms at a ratio of 1.00, by rule and source."""
    found: dict[str, dict[str, float]] = {}
    for source in sources.judged:
        tally = tallies[("rivals", _name(source), 1.0, RULE)]
        for rule in tally.counts:
            found.setdefault(rule, {})[_name(source)] = tally.rate(rule)
        for rule, name in ((ALONE, "paired test, alpha 1 %"), (RULE, "paired gate, defaults")):
            said = tallies[("verdicts", _name(source), 1.0, rule)].rate("REGRESSION")
            found.setdefault(name, {})[_name(source)] = said
    return {
        **{name: row for name, row in found.items() if "paired" not in name},
        **{name: row for name, row in found.items() if "paired" in name},
    }


def _at_most(
    tallies: Tallies,
    group: str,
    source: Source,
    ratio: float,
    word: str = "REGRESSION",
    limit: float = 0.01,
    rule: GateRule = RULE,
) -> Figure:
    tally = tallies[("verdicts", _name(source), ratio, rule)]
    slack = _slack(limit, tally)
    return Figure(
        group=group,
        name=_name(source),
        value=tally.rate(word),
        error=tally.error(word),
        target=f"≤ {limit:.0%} + {slack:.1%}",
        met=tally.rate(word) <= limit + slack,
    )


def _power(tallies: Tallies, source: Source, *, judged: bool) -> Figure:
    tally = tallies[("verdicts", _name(source), SLOWER, RULE)]
    slack = _slack(0.95, tally)
    return Figure(
        group="power at 1.20",
        name=_name(source),
        value=tally.rate("REGRESSION"),
        error=tally.error("REGRESSION"),
        target=f"≥ 95% - {slack:.1%}" if judged else "",
        met=tally.rate("REGRESSION") >= 0.95 - slack if judged else None,
    )


def _power_at_20(tallies: Tallies) -> Figure:
    """Returns how often 1.10 is found with 20 operations per arm, CV 5 % and no tolerance.

    The margin stays at 15 %, so a comparison that ends in a PASS is right, and counted as a miss.
    """
    tally = tallies[("verdicts", "iid", SOMEWHAT_SLOWER, TWENTY)]
    return Figure(
        group="power at 1.10, N = 20, tolerance 0",
        name="iid",
        value=tally.rate("REGRESSION"),
        error=tally.error("REGRESSION"),
        target="≥ 80%",
        met=tally.rate("REGRESSION") >= 0.8,
    )


def _power_at_detectable(tallies: Tallies) -> Figure:
    """Returns how often the slow-down that is said to be detectable is found: 90 % are meant."""
    tally = tallies[("verdicts", "iid", DETECTABLE, ONCE)]
    return Figure(
        group=f"power at the detectable {DETECTABLE:.3f}, N = 20",
        name="iid",
        value=tally.rate("REGRESSION"),
        error=tally.error("REGRESSION"),
    )


def _operations(tallies: Tallies, sources: Sources) -> list[Figure]:
    """Returns operations per arm to a verdict; a comparison without one counts with all its 60."""
    found: list[Figure] = []
    for ratio in (1.0, SLOWER):
        group = f"operations per arm to a verdict at {ratio:.2f}"

        def over(names: Sequence[str], ratio: float = ratio) -> Tally:
            return sum((tallies[("verdicts", n, ratio, RULE)] for n in names), start=Tally())

        found.append(_mean(group, "iid (CV 5 %)", over(["iid"]), 12))
        wild = [series.name for series in sources.wild]
        found.append(_mean(group, "slow states to CV 50 %, all operations", over(wild), 35))
        others = [_name(source) for source in sources.all if source != "iid"]
        found += [_mean(group, name, over([name]), None) for name in others]
    return found


def _mean(group: str, name: str, tally: Tally, limit: float | None) -> Figure:
    value = tally.mean_operations
    return Figure(
        group=group,
        name=name,
        value=value,
        error=tally.operations_error,
        target="" if limit is None else f"≤ {limit:g}",
        met=None if limit is None else value <= limit,
        share=False,
    )


def _coverages(tallies: Tallies, sources: Sources, kind: Kind, group: str) -> list[Figure]:
    """Returns how often intervals hold the truth; only those of a fixed length have a target.

    At the look that gave the verdict the data have chosen the moment, and intervals cover less.
    """
    names = [_name(source) for source in sources.judged]
    found = {name: tallies[(kind, name, SOMEWHAT_SLOWER, RULE)] for name in names}
    found["all of these"] = sum(found.values(), start=Tally())
    return [_coverage(group, name, tally, kind == "coverage") for name, tally in found.items()]


def _coverage(group: str, name: str, tally: Tally, judged: bool) -> Figure:
    slack = _slack(0.95, tally)
    covered = tally.rate("covered")
    return Figure(
        group=group,
        name=name,
        value=covered,
        error=tally.error("covered"),
        target=f"95 ± 1% ± {slack:.1%}" if judged else "",
        met=abs(covered - 0.95) <= 0.01 + slack if judged else None,
    )


def _slack(rate: float, tally: Tally) -> float:
    """Returns by how much a share may differ from the true one by chance, 19 times in 20."""
    return _TWO_SIDED * math.sqrt(rate * (1 - rate) / tally.series)


def _name(source: Source) -> str:
    return source if isinstance(source, str) else source.name
