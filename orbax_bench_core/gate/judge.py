"""Verdict on one point: the times of its operations, their stalls, and its failed attempts."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Final

import numpy as np

from orbax_bench_core.config import BLOCK_SIZE, CHEAP_S, MAX_PRIMARY, GateConfig, GateRule
from orbax_bench_core.gate.blocks import Better, Blocks, Bools, Floats, read_blocks, read_labels
from orbax_bench_core.gate.carry_over import LEVEL, SUSPECTED, carry_over
from orbax_bench_core.gate.decide import Decision, Doubt, decide, word_of_parts
from orbax_bench_core.gate.failures import nothing_worked, settle_failures
from orbax_bench_core.gate.location import settle
from orbax_bench_core.gate.looks import Schedule, within
from orbax_bench_core.gate.operation import cannot_judge, describe
from orbax_bench_core.gate.processes import ProcessTest
from orbax_bench_core.gate.rank_test import p_values
from orbax_bench_core.gate.verdict import FailureVerdict, Verdict, Word
from orbax_bench_core.measure import OF_CPU

_NOTHING_WORKED: Final = (
    "every attempt of both arms failed in the first block: this is the place or the suite, and "
    "says nothing of the candidate"
)


@dataclasses.dataclass(frozen=True, kw_only=True)
class Judged(Decision):
    """What statistics decide of one point."""

    operations: dict[str, Verdict]  # one verdict per operation, in the order of the times
    primary: tuple[str, ...]  # the operations that decide
    failures: FailureVerdict  # what the failed attempts say
    carries_over: bool = False  # whether an operation may pay for the one before it


def judge(
    times: Mapping[str, Any],
    labels: Any,
    config: GateConfig,
    *,
    failed: Any = None,
    per_life: int | None = None,
    blocks_per_process: int | None = None,
    seed: int = 0,
    alpha_scale: float = 1.0,
    better: Mapping[str, Better] | None = None,
) -> Judged:
    """Judges a point; cheap enough to call after each look of a live run.

    The data are gone through look by look, as if they were just coming in, and the first verdict
    stands: data beyond it change nothing, and only their stalls are reported.

    Primary operations share alpha under Holm's procedure at every look. One that could not be
    measured well enough to be judged still has its share, so that losing data makes nothing easier
    to find. A verdict stands once it is given; the others go on to their own as far as there are
    data. An operation that is not primary is judged by itself, as if it were the only one: its
    verdict, settled or not, is what its times would say, and decides nothing.

    Args:
        times: Seconds by operation, each of shape (blocks, 4), or (blocks, 4, m) where each slot is
            the life of a worker with m operations: `inf` where the first attempt failed or hung,
            `nan` where its repeat lacks the operation. Every operation that occurs in either arm.
        labels: True where the candidate ran, shape (blocks, 4).
        config: Which operations are primary, and the rule of each.
        failed: Which first attempts failed or hung, same shape as the times; None takes those in
            which a time is `inf`. What such an attempt lacks is failed and not missing.
        per_life: m, needed only where there are no times; None takes it from them.
        blocks_per_process: Blocks in a row that share one worker process of both arms; a verdict
            then allows for what differs from process to process. None where each arm or slot has
            its own, or where one process is all that the verdict is about.
        seed: Seed of random orders, where there are too many blocks to count all.
        alpha_scale: Share of alpha that this point has: 1 / number of points where the whole suite
            is one family. It scales REGRESSION only, for a suite passes when all points do.
        better: Which way an operation's values are good, where that is not `lower`.

    Raises:
        ValueError: If `alpha_scale` is not above 0 and at most 1, or the shape of `failed` is not
            that of the labels.
    """
    if not 0 < alpha_scale <= 1:
        raise ValueError(f"alpha_scale is {alpha_scale}; a share is above 0 and at most 1")
    attempts = _Attempts.of(times, labels, failed, per_life)
    read = {
        name: read_blocks(
            attempts.fill(values), labels, (better or {}).get(name, "lower"), blocks_per_process
        )
        for name, values in times.items()
    }
    series = {name: blocks for name, blocks in read.items() if isinstance(blocks, Blocks)}
    primary = primary_operations(times, config)
    cheap = series.keys() >= set(primary) and _cheap([series[name] for name in primary], config)
    plain = config.with_limits(cheap=False)
    config = config.with_limits(cheap=cheap)
    rules = {name: _rule(config if name in primary else plain, name, better) for name in series}
    share = alpha_scale / max(1, len(primary))
    outcomes = settle(
        {name: series[name] for name in primary if name in series},
        {name: rules[name] for name in primary if name in series},
        family=len(primary),
        alpha_scale=alpha_scale,
        seed=seed,
    )
    found: dict[str, Verdict] = {}
    for name, blocks in read.items():
        if isinstance(blocks, str):
            found[name] = cannot_judge(blocks)
            continue
        rule, scale = rules[name], share if name in outcomes else 1.0
        outcome = outcomes.get(name) or settle({name: blocks}, {name: rule}, seed=seed)[name]
        found[name] = describe(blocks, rule, outcome, alpha_scale=scale, seed=seed)
    found = _with_faster(found, series, primary, config, alpha_scale, seed)
    end = _end([found[name] for name in primary or found])
    failures, known = settle_failures(
        attempts.failed, attempts.labels, config, end=end, alpha_scale=alpha_scale, seed=seed
    )
    broken = nothing_worked(attempts.failed)
    word, endpoint, reason = word_of_parts(found, primary, failures)
    if broken:
        word, endpoint, reason = "INCONCLUSIVE", "failures", _NOTHING_WORKED
    settled = broken or word == "REGRESSION" or (end is not None and known)
    schedule = Schedule.of(config, attempts.per_life)
    ahead = [look for look in schedule.looks if look > attempts.operations]
    judged = {name: series[name] for name in primary if name in series}
    doubts, final = _carried(judged, found, rules, word, schedule, end)
    settled = ((settled or bool(doubts)) and final) or not ahead
    decided = decide(
        Decision(
            word=word,
            endpoint=endpoint,
            reason=reason,
            settled=settled,
            next_look=None if settled else ahead[0],
        ),
        doubts,
    )
    own = {each.name: getattr(decided, each.name) for each in dataclasses.fields(Decision)}
    return Judged(
        **own,
        operations=found,
        primary=primary,
        failures=failures,
        carries_over=bool(doubts) and decided.word == "INCONCLUSIVE",
    )


def _carried(
    series: Mapping[str, Blocks],
    verdicts: Mapping[str, Verdict],
    rules: Mapping[str, GateRule],
    word: Word,
    schedule: Schedule,
    end: int | None,
) -> tuple[dict[Doubt, str], bool]:
    """Returns the doubt of a point whose operations depend on the arm of the one before them.

    And whether more blocks could not change that. Every look is looked at until the word was
    settled, at index `end`, and on from there for as long as it may be so; what is certain at a
    look ends the comparison there. There is no doubt of a word that stands with what operations
    carry over: REGRESSION if it does for one operation.
    """
    judged = {
        name: blocks
        for name, blocks in series.items()
        if not blocks.lives and blocks.some_worked(True) and blocks.some_worked(False)
    }
    rules = {name: _in_ratios(rules[name], blocks) for name, blocks in judged.items()}
    doubts: dict[Doubt, str] = {}
    last = word
    for look in range(schedule.last + 1 if judged else 0):
        word = last if end is not None and look >= end else "INCONCLUSIVE"
        count = schedule.blocks(look)
        if any(len(blocks) < count for blocks in judged.values()):
            return doubts, not doubts
        found = {name: carry_over(blocks.first(count)) for name, blocks in judged.items()}
        chance = SUSPECTED / len(judged)
        contradicted = {
            name: each.contradicts(word, verdicts[name], rules[name], chance)
            for name, each in found.items()
            if word != "REGRESSION" or verdicts[name].word == word
        }
        against = contradicted.values()
        stands = not (all(against) if word == "REGRESSION" else any(against))
        name = min(found, key=lambda each: found[each].p_value)
        least = found[name].p_value
        if word == "PASS" and not stands and not within(least, chance):
            name = next(each for each in contradicted if contradicted[each])
        said: dict[Doubt, str] = {"carry_over": f"{name}: {found[name].said(chance, rules[name])}"}
        if within(least, LEVEL * schedule.shares[look] / len(judged)) and not stands:
            return said, True
        if end is not None and look >= min(end, schedule.last):
            if stands or not (word == "PASS" or within(least, chance)):
                return {}, True
            doubts = said
    return doubts, True


def _in_ratios(rule: GateRule, blocks: Blocks) -> GateRule:
    """Returns a rule whose tolerance and margin are at least the seconds that nobody minds."""
    least = rule.min_effect_s / blocks.median()
    return rule.model_copy(
        update={"tolerance": max(rule.tolerance, least), "margin": max(rule.margin, least)}
    )


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


def _cheap(primary: Sequence[Blocks], config: GateConfig) -> bool:
    """Returns whether about 30 operations per arm cost little, by the first look's baseline."""
    if not primary or any(blocks.lives for blocks in primary):
        return False
    first = [blocks.first(Schedule.of(config, blocks.per_life).blocks(0)) for blocks in primary]
    return all(blocks.some_worked(False) and blocks.median() < CHEAP_S for blocks in first)


def _rule(config: GateConfig, name: str, better: Mapping[str, Better] | None) -> GateRule:
    rule = config.rule(name)
    if (better or {}).get(name) == "higher":  # its values are no seconds
        return rule.model_copy(update={"min_effect_s": 0.0})
    return rule


def _end(verdicts: Sequence[Verdict]) -> int | None:
    """Returns the look at which the word of a point was settled by its operations; None if open.

    One regression ends it at once. Otherwise all are waited for, but one that an arm lacks.
    """
    regressed = [_look(verdict) for verdict in verdicts if verdict.word == "REGRESSION"]
    if regressed:
        return min(regressed)
    if not verdicts or not all(verdict.settled for verdict in verdicts):
        return None
    return max(map(_look, verdicts))


def _look(verdict: Verdict) -> int:
    """Returns the index of the last look at an operation."""
    looks = [verdict.look, None if verdict.stalls is None else verdict.stalls.look]
    if verdict.endpoint == "stalls" and verdict.word == "REGRESSION":
        looks = looks[1:]
    return max((look for look in looks if look is not None), default=0)


def _with_faster(
    found: Mapping[str, Verdict],
    series: Mapping[str, Blocks],
    primary: Sequence[str],
    config: GateConfig,
    alpha_scale: float,
    seed: int,
) -> dict[str, Verdict]:
    """Marks candidates that are faster: the ratio 1.00 is rejected downward, under Holm.

    The p-value of a look is first divided by the share of alpha that the look may spend.
    """
    shares = {name: _evidence(found[name], blocks, config, seed) for name, blocks in series.items()}
    faster = {n for n in shares if n not in primary and within(shares[n], config.alpha)}
    order = sorted((n for n in shares if n in primary), key=shares.__getitem__)
    for rejected, name in enumerate(order):
        if not within(shares[name], config.alpha * alpha_scale / (len(primary) - rejected)):
            break
        faster.add(name)
    return {
        name: verdict.model_copy(update={"faster": True}) if name in faster else verdict
        for name, verdict in found.items()
    }


def _evidence(verdict: Verdict, blocks: Blocks, config: GateConfig, seed: int) -> float:
    """Returns the p-value of a candidate that is not faster, over the share of its look."""
    if verdict.word != "PASS" or verdict.look is None:
        return math.inf
    schedule = Schedule.of(config, blocks.per_life)
    used = blocks.first(schedule.blocks(verdict.look))
    p_value = p_values(used, 0.0, draws=config.draws, seed=seed)[1]
    if used.per_process is not None:
        p_value = max(p_value, ProcessTest.of(used).tails(0.0)[1])
    return p_value / schedule.shares[verdict.look]


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
        if isinstance(candidate, str):
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
