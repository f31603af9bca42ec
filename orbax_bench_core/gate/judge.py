"""Verdict on one point: the times of its operations, their stalls, and its failed attempts.

The data are looked at as they come in. REGRESSION is looked for at every look, and ends a
comparison. PASS is given at the look at which the comparison ends, of all that was measured: a slow
state that begins late is in it. Every number of a point is of the operations up to that look.
"""

from __future__ import annotations

import dataclasses
import functools
import math
from collections.abc import Collection, Iterable, Mapping
from typing import Any, Self, TypedDict, Unpack

import numpy as np

from orbax_bench_core.config import BLOCK_SIZE, MAX_PRIMARY, GateConfig, GateRule
from orbax_bench_core.gate.blocks import Better, Blocks, Bools, Floats, read_blocks, read_labels
from orbax_bench_core.gate.carry_over import LEVEL, SUSPECTED
from orbax_bench_core.gate.decide import Decision, Doubt, decide, word_of_parts
from orbax_bench_core.gate.failures import judge_failures, nothing_worked
from orbax_bench_core.gate.location import TimeTest, judge_times
from orbax_bench_core.gate.looks import Schedule, within
from orbax_bench_core.gate.operation import cannot_judge, describe, outline, too_early
from orbax_bench_core.gate.rank_test import p_values
from orbax_bench_core.gate.verdict import Endpoint, FailureVerdict, Verdict, Word
from orbax_bench_core.measure import OF_CPU
from orbax_bench_core.reasons import Reasons, because


@dataclasses.dataclass(frozen=True, kw_only=True)
class Judged:
    """What statistics decide of one point."""

    decision: Decision
    operations: dict[str, Verdict]  # one verdict per operation, in the order of the times
    primary: tuple[str, ...]  # the operations that decide
    failures: FailureVerdict  # what the failed attempts say
    carries_over: bool = False  # whether an operation may pay for the one before it


class Known(TypedDict, total=False):
    """What is known of the times of a point; every key may be left out.

    Attributes:
        failed: Which first attempts failed or hung, same shape as the times. Without it those in
            which a time is `inf`. What such an attempt lacks is failed and not missing.
        per_life: Operations of each slot, needed only where there are no times.
        blocks_per_process: Blocks in a row that share one worker process of both arms; a verdict
            then allows for what differs from process to process. None, the default, where each arm
            or slot has its own, or where one process is all that the verdict is about.
        repeat_s: Seconds that a repeat takes with all that is around its operations, for
            `limit_minutes`: at least those of its primary operations, by the baseline up to the
            first look, which is the default.
        seed: Seed of random orders, where there are too many blocks to count all; 0 by default.
        alpha_scale: Share of alpha that this point has: 1 / number of points where the whole suite
            is one family. It scales REGRESSION only, for a suite passes when all points do.
        better: Which way an operation's values are good, where that is not `lower`.
        until: Operations per arm to which `--more` lets it go on; 0, the default, lets it end where
            it ends by itself.
    """

    failed: Any
    per_life: int | None
    blocks_per_process: int | None
    repeat_s: float
    seed: int
    alpha_scale: float
    better: Mapping[str, Better]
    until: int


def judge(
    times: Mapping[str, Any], labels: Any, config: GateConfig, **known: Unpack[Known]
) -> Judged:
    """Judges a point; cheap enough to call after each look of a live run.

    Primary operations share alpha under Holm's procedure at every look. One that could not be
    measured well enough to be judged still has its share, so that losing data makes nothing easier
    to find. An operation that is not primary is judged by itself, as if it were the only one, at
    the look at which the point ends: its verdict is what its times would say, and decides nothing.

    Args:
        times: Seconds by operation, each of shape (blocks, 4), or (blocks, 4, m) where each slot is
            the life of a worker with m operations: `inf` where the first attempt failed or hung,
            `nan` where its repeat lacks the operation. Every operation that occurs in either arm.
        labels: True where the candidate ran, shape (blocks, 4).
        config: Which operations are primary, and the rule of each.
        known: See `Known`.

    Raises:
        ValueError: If `alpha_scale` is not above 0 and at most 1, or the shape of `failed` is not
            that of the labels.
    """
    point = Point.read(times, labels, config, **known)
    found = point.settle()
    return Judged(
        decision=found.decided,
        operations=point.describe(found),
        primary=point.primary,
        failures=found.failures,
        carries_over=bool(found.doubts) and found.decided.word == "INCONCLUSIVE",
    )


@dataclasses.dataclass(frozen=True, kw_only=True)
class Look:
    """What a point says at a look."""

    look: int | None  # its index; None before the first
    times: dict[str, TimeTest]  # tests of the primary operations
    verdicts: dict[str, Verdict]  # outlines of their verdicts, and what cannot be judged
    failures: FailureVerdict
    decision: Decision  # without the doubts
    doubts: dict[Doubt, Reasons]
    ends: bool  # whether it ends the comparison, whatever comes later

    @property
    def decided(self) -> Decision:
        """The decision, less what the doubts withdraw."""
        return decide(self.decision, self.doubts)


@dataclasses.dataclass(frozen=True, kw_only=True)
class Point:
    """A point as it was read, and how it is judged: look by look, until one ends it."""

    operations: Mapping[str, Blocks | Reasons]  # what was read, or why one cannot be judged
    attempts: _Attempts
    primary: tuple[str, ...]
    config: GateConfig
    schedule: Schedule
    known: Known

    @classmethod
    def read(
        cls, times: Mapping[str, Any], labels: Any, config: GateConfig, **known: Unpack[Known]
    ) -> Self:
        """Reads what `judge` is given.

        Raises:
            ValueError: `alpha_scale` is not a share, or labels and failures are not of one shape.
        """
        scale, better = known.get("alpha_scale", 1.0), known.get("better", {})
        if not 0 < scale <= 1:
            raise ValueError(f"alpha_scale is {scale}; a share is above 0 and at most 1")
        attempts = _Attempts.of(times, labels, known.get("failed"), known.get("per_life"))
        per_process = known.get("blocks_per_process")
        return cls(
            operations={
                name: read_blocks(
                    attempts.fill(values), labels, better.get(name, "lower"), per_process
                )
                for name, values in times.items()
            },
            attempts=attempts,
            primary=primary_operations(times, config),
            config=config,
            schedule=Schedule.of(config, attempts.per_life),
            known=known,
        )

    def settle(self) -> Look:
        """Goes through the looks until one ends the comparison, or no more were measured."""
        found = None
        for look in range(self.schedule.reached(len(self.attempts.labels))):
            found = self.at(look)
            if found.ends:
                break
        return found or self._before_the_looks()

    def _before_the_looks(self) -> Look:
        attempts = self.attempts
        failures = judge_failures(attempts.failed, attempts.labels, self.config, None)
        early = {
            name: too_early(blocks, self.config)
            for name, blocks in self.series(self.primary, None).items()
        }
        return self._decide(None, {}, early, failures)

    def at(self, look: int) -> Look:
        """Judges what was measured up to a look."""
        series, blocks = self.series(self.primary, look), self.schedule.blocks(look)
        rules = {name: self._rule(name, look) for name in series}
        scale, seed = self._alpha_scale, self._seed
        family = len(self.primary)
        times = judge_times(series, rules, look, family=family, alpha_scale=scale, seed=seed)
        outlines = {
            name: outline(
                series[name],
                rules[name],
                test,
                alpha_scale=self._share,
                granted=self._granted,
                seed=seed,
            )
            for name, test in times.items()
        }
        failures = judge_failures(
            self.attempts.failed[:blocks],
            self.attempts.labels[:blocks],
            self._limits(look, self._repeat_s),
            look,
            alpha_scale=scale,
            seed=seed,
        )
        return self._decide(look, times, outlines, failures)

    def _decide(
        self,
        look: int | None,
        times: dict[str, TimeTest],
        outlines: dict[str, Verdict],
        failures: FailureVerdict,
    ) -> Look:
        """Combines the parts of a look into a word, and says whether more could change it."""
        verdicts = {
            name: outlines[name] if isinstance(read, Blocks) else cannot_judge(read)
            for name, read in self.operations.items()
            if name in self.primary
        }
        word, endpoint, reason = self._word(look, verdicts, failures)
        passed = used_up = certain = False
        doubts: dict[Doubt, Reasons] = {}
        if look is not None:
            passed, used_up = self._ends(look, verdicts.values(), failures)
            if endpoint != "missing":
                regressed = {name for name in times if verdicts[name].word == "REGRESSION"}
                doubts, certain = self._doubts(look, times, word, regressed, used_up=used_up)
        # Only a REGRESSION ends a comparison at once: a PASS is given of all that was measured, so
        # that a slow state which begins late is in it.
        stands = word == "REGRESSION" and not doubts
        settled = self._broken or stands or certain or used_up or passed
        next_look = None if settled else self._ahead[0]
        return Look(
            look=look,
            times=times,
            verdicts=verdicts,
            failures=failures,
            decision=Decision(
                word=word, endpoint=endpoint, reason=reason, settled=settled, next_look=next_look
            ),
            doubts=doubts,
            ends=stands or certain,
        )

    def _word(
        self, look: int | None, verdicts: Mapping[str, Verdict], failures: FailureVerdict
    ) -> tuple[Word, Endpoint, Reasons]:
        """Returns the word of a look, which endpoint decided it, and why it is no PASS."""
        if self._broken:
            return "INCONCLUSIVE", "failures", because("nothing_passed")
        word, endpoint, reason = word_of_parts(verdicts, self.primary, failures)
        if word == "PASS" and look is not None and self._is_between(look):
            measured, following = self.attempts.operations, self._ahead[0]
            between = because("between_looks", operations=measured, next_look=following)
            return "INCONCLUSIVE", endpoint, between
        return word, endpoint, reason

    def _ends(
        self, look: int, verdicts: Iterable[Verdict], failures: FailureVerdict
    ) -> tuple[bool, bool]:
        """Returns whether a look ends a comparison as it passes, and as looks are used up."""
        # An operation that an arm lacks is not waited for.
        judged = [verdict for verdict in verdicts if verdict.endpoint != "missing"]
        passed = failures.word == "PASS" and all(verdict.word == "PASS" for verdict in judged)
        is_open = any(verdict.time_word != "PASS" for verdict in judged)
        last = self.schedule.last if is_open else self.schedule.one_more
        used_up = not self._ahead or look >= max(last, self._granted)
        return passed and not self._is_between(look), used_up

    def _doubts(
        self,
        look: int,
        times: Mapping[str, TimeTest],
        word: Word,
        regressed: Collection[str],
        *,
        used_up: bool,
    ) -> tuple[dict[Doubt, Reasons], bool]:
        """Returns the doubt of a point whose operations depend on the arm of the one before them.

        And whether it is certain, so that the arms need workers of their own at once. A REGRESSION
        waits where it may not be one of what a job pays; one that stands for an operation is
        enough. Where an after-effect keeps a PASS back, the comparison goes on for as long as there
        are looks.
        """
        fitted = {name: test for name, test in times.items() if test.carry_over is not None}
        family = max(1, len(fitted))
        if word == "REGRESSION":
            fitted = {name: test for name, test in fitted.items() if name in regressed}
        effects = {name: test.suspect(SUSPECTED / family) for name, test in fitted.items()}
        suspects = {name: effect for name, effect in effects.items() if effect is not None}
        if word == "REGRESSION" and len(suspects) < len(fitted):
            return {}, False
        level = LEVEL * self.schedule.shares[look] / family
        certain = any(within(effect.p_value, level) for effect in suspects.values())
        if suspects and (certain or used_up or word == "REGRESSION"):
            name = min(suspects, key=lambda each: suspects[each].p_value)
            ratio, p_value = suspects[name].ratio, suspects[name].p_value
            seen = because("carry_over", name, ratio=ratio, p_value=p_value)
            return {"carry_over": seen + because("in_turn", name)}, certain
        unsettled = next((name for name, test in fitted.items() if test.job_open), None)
        if unsettled is not None and used_up:
            found = because("job_open", unsettled) + because("in_turn", unsettled)
            return {"carry_over": found}, False
        return {}, False

    @functools.cached_property
    def _broken(self) -> bool:
        return nothing_worked(self.attempts.failed)

    @functools.cached_property
    def _ahead(self) -> list[int]:
        """Operations per arm at the looks that it may go on to, and has not reached."""
        looks = self.schedule.looks[: max(self.schedule.one_more, self._granted) + 1]
        return [each for each in looks if each > self.attempts.operations]

    @functools.cached_property
    def _granted(self) -> int:
        """Index of the look to which `--more` lets it go on; 0 without."""
        until = self.known.get("until", 0)
        return max(0, sum(each <= until for each in self.schedule.looks) - 1)

    def _is_between(self, look: int) -> bool:
        """Whether more was measured than up to a look, and the next one is not reached."""
        return bool(self._ahead) and self.schedule.looks[look] < self.attempts.operations

    def describe(self, found: Look) -> dict[str, Verdict]:
        """Returns the verdicts on all operations, of what was measured up to a look."""
        series, times = self.series(self.operations, found.look), dict(found.times)
        first_pass = self.config.fewest_of_pass(self._repeat_s, self.schedule.per_life)
        described: dict[str, Verdict] = {}
        for name, read in self.operations.items():
            if not isinstance(read, Blocks):
                described[name] = cannot_judge(read)
                continue
            decides, rule = name in self.primary, self._rule(name, found.look or 0)
            verdict = found.verdicts.get(name)
            if found.look is not None and not decides:
                alone = {name: series[name]}
                times |= judge_times(alone, {name: rule}, found.look, seed=self._seed)
                verdict = outline(series[name], rule, times[name], seed=self._seed)
            described[name] = describe(
                verdict or too_early(series[name], rule),
                series[name],
                rule,
                times.get(name),
                alpha_scale=self._share if decides else 1.0,
                first_pass=first_pass if decides else 0,
                seed=self._seed,
            )
        return self._with_faster(described, times, series)

    def series(self, names: Iterable[str], look: int | None) -> dict[str, Blocks]:
        """Returns those operations that can be judged, up to a look."""
        found = {name: self.operations[name] for name in names}
        return {
            name: blocks if look is None else blocks.first(self.schedule.blocks(look))
            for name, blocks in found.items()
            if isinstance(blocks, Blocks)
        }

    @property
    def _seed(self) -> int:
        return self.known.get("seed", 0)

    @property
    def _alpha_scale(self) -> float:
        return self.known.get("alpha_scale", 1.0)

    @property
    def _share(self) -> float:
        """Share of alpha of one primary operation."""
        return self._alpha_scale / max(1, len(self.primary))

    @functools.cached_property
    def _repeat_s(self) -> float:
        """Seconds of a repeat; infinite where nothing tells."""
        first = self.series(self.primary, 0).values() if self.attempts.operations else ()
        own = sum(each.median() for each in first if each.some_worked(candidate=False))
        return max(own, self.known.get("repeat_s", 0.0)) or math.inf

    def _limits(self, look: int, repeat_s: float) -> GateConfig:
        return self.config.limits_at(look, repeat_s, self.schedule.per_life)

    def _rule(self, name: str, look: int) -> GateRule:
        """Returns the rule of an operation at a look; limits are for those that decide."""
        rule = self._limits(look, self._repeat_s if name in self.primary else math.inf).rule(name)
        # Where higher is better its values are no seconds.
        rate = self.known.get("better", {}).get(name) == "higher"
        return rule.model_copy(update={"min_effect_s": 0.0}) if rate else rule

    def _with_faster(
        self,
        found: Mapping[str, Verdict],
        times: Mapping[str, TimeTest],
        series: Mapping[str, Blocks],
    ) -> dict[str, Verdict]:
        """Marks candidates that are faster: the ratio 1.00 is rejected downward, under Holm."""
        shares = {name: self._evidence(found[name], times[name], series[name]) for name in times}
        alpha = self.config.alpha
        faster = {n for n in shares if n not in self.primary and within(shares[n], alpha)}
        order = sorted((n for n in shares if n in self.primary), key=shares.__getitem__)
        for rejected, name in enumerate(order):
            if not within(shares[name], alpha * self._alpha_scale / (len(self.primary) - rejected)):
                break
            faster.add(name)
        return {
            name: verdict.model_copy(update={"faster": True}) if name in faster else verdict
            for name, verdict in found.items()
        }

    def _evidence(self, verdict: Verdict, test: TimeTest, blocks: Blocks) -> float:
        """Returns the p-value of a candidate that is not faster, over the share of its look."""
        if verdict.word != "PASS":
            return math.inf
        p_value = p_values(blocks, 0.0, draws=self.config.draws, seed=self._seed)[1]
        for each in filter(None, (test.processes, test.job)):
            p_value = max(p_value, each.tails(0.0)[1])
        return p_value / self.schedule.shares[test.look]


def primary_operations(operations: Iterable[str], config: GateConfig) -> tuple[str, ...]:
    """Returns those of a point's operations that decide its word, in the order of the config.

    Where none of the default ones occurs, the first three that do decide, in their own order. A CPU
    time, such as `save:cpu`, decides only if it is named.
    """
    present = tuple(dict.fromkeys(operations))
    named = tuple(name for name in dict.fromkeys(config.primary) if name in present)
    if named or config.names_primary:
        return named
    return tuple(name for name in present if not name.endswith(OF_CPU))[:MAX_PRIMARY]


def false_discovery(verdicts: Mapping[str, Verdict], config: GateConfig) -> dict[str, float]:
    """Returns the false discovery rate at which each operation that is not primary would be a find.

    Benjamini and Hochberg's adjusted p-values ("Controlling the false discovery rate", J. R.
    Statist. Soc. B 57 (1995) 289) among those that were looked at. The p-value of a look is first
    divided by the share of alpha that the look may spend, which keeps it a p-value although the
    data chose when to stop. `verdicts` are those of `judge` with the same `config`.
    """
    primary = primary_operations(verdicts, config)
    found = {
        name: min(1.0, verdict.p_regression / Schedule.of(config).shares[verdict.look])
        for name, verdict in verdicts.items()
        if name not in primary and verdict.p_regression is not None and verdict.look is not None
    }
    smallest, adjusted = 1.0, {}
    for rank, name in sorted(enumerate(sorted(found, key=found.__getitem__), 1), reverse=True):
        smallest = min(smallest, found[name] * len(found) / rank)
        adjusted[name] = smallest
    return adjusted


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class _Attempts:
    """First attempts of a point: which slots were the candidate's, and which attempts failed."""

    labels: Bools  # shape (blocks, 4); no blocks where the labels cannot be read
    failed: Bools  # shape (blocks, 4, operations of a slot)

    @classmethod
    def of(
        cls, times: Mapping[str, Any], labels: Any, failed: Any, per_life: int | None
    ) -> _Attempts:
        candidate = read_labels(labels)
        if isinstance(candidate, tuple):
            candidate = np.zeros((0, BLOCK_SIZE), dtype=bool)
        shape = candidate.shape
        if failed is not None:
            given = np.asarray(failed, dtype=bool)
            if given.shape[:2] != shape:
                raise ValueError(f"failed has the shape {given.shape}, and labels have {shape}")
            return cls(labels=candidate, failed=given if given.ndim > 2 else given[:, :, None])
        tables = [table for table in map(_table, times.values()) if table.shape[:2] == shape]
        length = per_life or max((table[0, 0].size for table in tables if table.size), default=1)
        found = np.zeros((*shape, length), dtype=bool)
        for table in tables:
            if table.size == found.size:
                found |= np.isposinf(table).reshape(found.shape)
        return cls(labels=candidate, failed=found)

    @property
    def per_life(self) -> int:
        """Operations of one slot."""
        return int(self.failed.shape[2])

    @property
    def operations(self) -> int:
        """Attempts per arm."""
        return int(self.labels.sum()) * self.per_life

    def fill(self, values: Any) -> Any:
        """Returns values in which what a failed attempt lacks is failed, and not missing."""
        table = _table(values)
        if not table.size or table.size != self.failed.size:
            return values
        return np.where(np.isnan(table) & self.failed.reshape(table.shape), np.inf, table)


def _table(values: Any) -> Floats:
    """Returns values as an array; an empty one where they are none."""
    try:
        return np.asarray(values, dtype=np.float64)
    except (TypeError, ValueError):
        return np.empty(0)
