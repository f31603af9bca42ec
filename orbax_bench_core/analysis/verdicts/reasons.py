"""Reasons of verdicts in words."""

import itertools
from typing import Final

from orbax_bench_core import pages
from orbax_bench_core.errors import did_you_mean
from orbax_bench_core.reasons import Reasons, Words, in_words


def why(reasons: Reasons) -> str:
    """Returns reasons in words, those of one operation after its name; empty for none."""
    found = []
    for operation, those in itertools.groupby(reasons, key=lambda each: each.operation):
        said = in_words(SENTENCES, *those)
        found.append(f"{operation}: {said}" if operation else said)
    return "; ".join(found)


def in_block(block: int | None, said: str) -> str:
    """Returns a first failure after its block, which earlier files have in the text."""
    return said if block is None else f"block {block}: {said}"


def _stalls(
    candidate: int, baseline: int, operations: int, failed: int = 0, mean_ratio: float = 0.0
) -> str:
    of_them = f" ({failed} of them failed)" if failed else ""
    mean = f"; with them the mean time is {mean_ratio:.2f}x" if mean_ratio else ""
    stalled = f"{candidate} of {operations} operations of the candidate stalled{of_them}"
    return f"{stalled}, and {baseline} of the baseline{mean}"


def _not_excluded(events: str, share: float, limit: float) -> str:
    of = {"stalls": "operations", "failures": "attempts"}[events]
    return (
        f"{events} beyond those of the baseline in up to {pages.share(share, 2)} of {of} cannot be "
        f"excluded, and max_{events} is {pages.share(limit)}"
    )


def _lacks(arm: str, lacking: int, repeats: int, first_block: int | None = None) -> str:
    first = "" if first_block is None else f", first in block {first_block}"
    return f"the {arm} lacks it in {lacking} of {repeats} repeats{first}"


def _unknown_primary(names: tuple[str, ...], measured: tuple[str, ...]) -> str:
    hints = [did_you_mean(name, measured) for name in names]
    near = [hint for hint in dict.fromkeys(hints) if not hint.startswith("known: ")]
    hint = "; ".join([*near, f"measured: {', '.join(measured)}"])
    return (
        f"`gate.primary` names {', '.join(names)}, which no arm of any point has measured "
        f"({hint}), so that nothing is said of it: correct the name, and run again in another "
        "output directory"
    )


def _nothing_passed(said: str = "") -> str:
    if said:
        return (
            "no attempt of either arm passed in the first block, so there is nothing to compare: "
            f"{said}"
        )
    return (
        "every attempt of both arms failed in the first block: this is the place or the suite, and "
        "says nothing of the candidate"
    )


def _two_runs(
    ratio: float, slower: int, candidate: int, baseline: int, level: float, above: float = 0.0
) -> str:
    shown = f"below {pages.change(above)} ruled out" if above else "no slow-down shown"
    return (
        f"{pages.change(ratio)}, {slower} of {candidate} slower than all {baseline} of the "
        f"baseline, {shown} at the {pages.share(level, 2)} level"
    )


def _past_unknown(ratios: int, counted: float) -> str:
    runs = f"only {ratios} past ratio(s) say" if ratios else "no past runs say"
    return f"{runs} how far two runs differ, so that only beyond {counted:.3g}x counts"


def _operations_needed(level: float, candidate: int = 0, each: int = 0) -> str:
    ways = [f"{candidate} more of the candidate"] if candidate else []
    ways += [f"{each} on each side"] if each else []
    return f"the {pages.share(level, 2)} level needs {' or '.join(ways) or 'many more'}"


def _summary_only(differs: tuple[str, ...] = ()) -> str:
    said = (
        "the baseline is a summary by Orbax's own framework: one mean for each metric, and neither "
        "its samples nor their number, so that no test can be made; for a verdict measure both "
        "sides with `orbax-bench ab`"
    )
    return "; ".join([said, *differs])


def _revisions(baseline: str, candidate: str) -> str:
    if baseline == candidate:
        return f"code under test: {candidate} in both arms"
    return f"code under test: {baseline} in the baseline, {candidate} in the candidate"


def _slow_start(values: int, ratio: float) -> str:
    which = "the first value is" if values == 1 else f"the first {values} values are"
    return (
        f"{which} {ratio:.1f}x as slow as the rest: probably cold among warm, so drop them or "
        "measure more warm-ups"
    )


def _unusable(
    value: str, block: int = 0, slot: int = 0, arm: str = "", index: int | None = None
) -> str:
    where = f"{arm}[{index}]" if arm else f"the value in block {block}, slot {slot}"
    return f"{where} is {value}: a ratio needs positive, finite numbers"


SENTENCES: Final[Words] = {
    "too_early": (
        "too early: {operations} operations per arm, and the first look is at {first_look}"
    ),
    "between_looks": (
        "{operations} operations per arm were measured; the next look is at {next_look}"
    ),
    "too_few_blocks": lambda blocks, fewest: (
        f"{pages.count(blocks, 'block') if blocks else 'no blocks'}: noise shows only from "
        f"{fewest} blocks on"
    ),
    "no_block": "no block is complete",
    "stalls": _stalls,
    "failures": (
        "{candidate} of {attempts} first attempts of the candidate failed, and {baseline} of the "
        "baseline"
    ),
    "not_excluded": _not_excluded,
    "carry_over": (
        "an operation takes {ratio:.3g}x as long after one of the candidate as after one of the "
        "baseline (p = {p_value:.2g})"
    ),
    "job_open": "its own time passes, and that with what it costs the next operation does not yet",
    "in_turn": (
        "so operations in turn do not show what a job pays that runs the candidate alone: that "
        "takes processes of their own for the arms (`gate.lives: always`)"
    ),
    "own_processes_follow": "the comparison goes on with these",
    "lacks": _lacks,
    "one_side_only": "only one side has measured {names}",
    "no_primary": (
        "none of the primary operations ({names}) was measured in both arms; measured: {measured}; "
        "name others under `gate.primary`"
    ),
    "unknown_primary": _unknown_primary,
    "record_lost": "the {arm} has no record of host {hosts} in block {block}",
    "nothing_passed": _nothing_passed,
    "always_failed": "every attempt of the {arm} failed: there is nothing to compare with",
    "baseline_failed": lambda first, block=None: (
        f"every first attempt of the baseline failed, in {in_block(block, first)}"
    ),
    "repeat_failed": "a repeat failed: {said}",
    "arm_impossible": lambda arm, status, block, said: (
        f"the {arm} {'was skipped' if status == 'skipped' else 'cannot be measured'} in block "
        f"{block}: {said}"
    ),
    "hosts_differ": "the {arm} was measured with different numbers of hosts: {hosts}",
    "other_surroundings": lambda differs: f"measured in other surroundings: {'; '.join(differs)}",
    "same_run": (
        "the baseline is this run itself, which says nothing of a change: give another run or "
        "capture, or compare before you capture"
    ),
    "storage": lambda share: (
        f"{pages.percent(share)} of the samples met throttling, errors or retries in the store, "
        "alike in both arms: the times tell of it; measure again when it is quiet, or with fewer "
        "requests at once"
    ),
    "two_runs": _two_runs,
    "past_unknown": _past_unknown,
    "operations_needed": _operations_needed,
    "captures_needed": lambda runs: f"{pages.count(runs, 'more captured run')} would tell",
    "summary_only": _summary_only,
    "versions_differ": lambda package, baseline, candidate: (
        f"{package}: {' and '.join(baseline)} in the baseline, {' and '.join(candidate)} in the "
        "candidate"
    ),
    "revisions": _revisions,
    "not_alone": (
        "{repeats} repeats of {arms} arms were not alone: another pair of the run was measured on "
        "the same machine meanwhile"
    ),
    "took_turns": (
        "The arms could not be held at the same time and took turns: workers were started {starts} "
        "more times, which took {seconds:.0f} s outside the operations."
    ),
    "surroundings_unknown": (
        "the baseline does not say on which mesh and checkpoint it was measured: they were not "
        "compared"
    ),
    "left_out": "{values} of {of} values are no positive, finite number: left out",
    "no_values": "no values",
    "drifts": lambda change, p_value: (
        f"drifts by {pages.change(1 + change)} from start to end (p = {p_value:.1g})"
    ),
    "two_groups": (
        "two separate groups: {slow} of {of} values are about {ratio:.2f}x as slow as the others "
        "(changes between them: {switches}); no single number describes both"
    ),
    "outliers": lambda share: f"{pages.percent(share)} of the values are far from the others",
    "slow_start": _slow_start,
    "malformed": lambda what, shape=None: (
        f"{what}: no values that can be compared{'' if shape is None else f'; shape {shape}'}"
    ),
    "arms_unbalanced": (
        "block {block} has {candidate} slots of the candidate and {baseline} of the baseline, not "
        "2 of each"
    ),
    "unusable_value": _unusable,
}
"""Sentence of each code of a verdict."""
