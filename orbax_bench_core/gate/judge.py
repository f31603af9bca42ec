"""Verdicts on all operations of one point, with their multiplicity controlled."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from orbax_bench_core.config import GateConfig, GateRule
from orbax_bench_core.gate.blocks import Better, Blocks, read_blocks
from orbax_bench_core.gate.decide import cannot_judge, describe
from orbax_bench_core.gate.looks import Outcome, settle, shares
from orbax_bench_core.gate.verdict import Verdict, Word


def judge(
    times: Mapping[str, Any],
    labels: Any,
    config: GateConfig,
    *,
    seed: int = 0,
    alpha_scale: float = 1.0,
    better: Mapping[str, Better] | None = None,
) -> dict[str, Verdict]:
    """Judges every operation of a point; cheap enough to call after each look of a live run.

    Primary operations share alpha under Holm's procedure at every look. One that could not be
    measured well enough to be judged still has its share, so that losing data makes nothing easier
    to find. A verdict stands once it is given; the others go on to their own as far as there are
    data. An operation that is not primary is judged by itself, as if it were the only one: its
    verdict, settled or not, is what its times would say, and decides nothing.

    Args:
        times: Seconds by operation, each of shape (blocks, 4).
        labels: True where the candidate ran, same shape.
        config: Which operations are primary, and the rule of each.
        seed: Seed of random orders, where there are too many blocks to count all.
        alpha_scale: Share of alpha that this point has: 1 / number of points where the whole suite
            is one family. It scales REGRESSION only, for a suite passes when all points do.
        better: Which way an operation's values are good, where that is not `lower`.

    Returns:
        One verdict per operation, in the order of `times`.

    Raises:
        ValueError: If `alpha_scale` is not above 0 and at most 1.
    """
    if not 0 < alpha_scale <= 1:
        raise ValueError(f"alpha_scale is {alpha_scale}; a share is above 0 and at most 1")
    ways = better or {}
    read = {
        name: read_blocks(values, labels, ways.get(name, "lower")) for name, values in times.items()
    }
    series = {name: blocks for name, blocks in read.items() if isinstance(blocks, Blocks)}
    rules = {name: config.rule(name) for name in series}
    primary = primary_operations(times, config)
    outcomes = settle(
        {name: series[name] for name in primary if name in series},
        {name: rules[name] for name in primary if name in series},
        family=len(primary),
        alpha_scale=alpha_scale,
        seed=seed,
    )
    verdicts = {}
    for name, blocks in read.items():
        if isinstance(blocks, str):
            verdicts[name] = cannot_judge(blocks)
        else:
            outcome = outcomes.get(name) or _alone(blocks, rules[name], seed)
            verdicts[name] = describe(blocks, outcome, rules[name], seed=seed)
    return verdicts


def primary_operations(operations: Iterable[str], config: GateConfig) -> tuple[str, ...]:
    """Returns those of a point's operations that decide its word, in the order of the config."""
    present = set(operations)
    return tuple(name for name in dict.fromkeys(config.primary) if name in present)


def point_word(verdicts: Mapping[str, Verdict], config: GateConfig) -> Word:
    """Returns the word of a point: any primary regression is one, and only all passes are one."""
    words = [verdicts[name].word for name in primary_operations(verdicts, config)]
    if "REGRESSION" in words:
        return "REGRESSION"
    return "PASS" if words and all(word == "PASS" for word in words) else "INCONCLUSIVE"


def point_settled(verdicts: Mapping[str, Verdict], config: GateConfig) -> bool:
    """Returns whether more blocks could not change a point's word, so that a live run can stop.

    That is when a primary operation has regressed, or when each has its verdict or has used up its
    looks. Where a point has no primary operation, all the others are waited for instead.
    """
    deciding = primary_operations(verdicts, config) or tuple(verdicts)
    if point_word(verdicts, config) == "REGRESSION":
        return True
    last = len(config.looks) - 1
    found = [verdicts[name] for name in deciding]
    return bool(found) and all(verdict.settled or verdict.look == last for verdict in found)


def false_discovery(verdicts: Mapping[str, Verdict], config: GateConfig) -> dict[str, float]:
    """Returns the false discovery rate at which each operation that is not primary would be a find.

    Benjamini and Hochberg's adjusted p-values ("Controlling the false discovery rate", J. R.
    Statist. Soc. B 57 (1995) 289) among those that were looked at. The p-value of a look is first
    divided by the share of alpha that the look may spend, which keeps it a p-value although the
    data chose when to stop. `verdicts` are those of `judge` with the same `config`.

    Returns:
        One value per operation that is neither primary nor without a look.
    """
    primary = primary_operations(verdicts, config)
    weights = shares(config)
    found = {
        name: min(1.0, verdict.p_regression / weights[verdict.look])
        for name, verdict in verdicts.items()
        if name not in primary and verdict.p_regression is not None and verdict.look is not None
    }
    smallest, adjusted = 1.0, {}
    for rank, name in sorted(enumerate(sorted(found, key=found.__getitem__), 1), reverse=True):
        smallest = min(smallest, found[name] * len(found) / rank)
        adjusted[name] = smallest
    return adjusted


def _alone(blocks: Blocks, rule: GateRule, seed: int) -> Outcome:
    return settle({"alone": blocks}, {"alone": rule}, seed=seed)["alone"]
