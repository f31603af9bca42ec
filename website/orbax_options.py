"""`docs/orbax-options.md`: what options of Orbax cost in one run of `examples/orbax_today.yaml`."""

from __future__ import annotations

import dataclasses
import itertools
import json
import math
import statistics
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, Final

from orbax_bench_core.analysis.best import Observer
from orbax_bench_core.records import OptionEffect, Run, RunDirectory
from orbax_bench_core.sweep import BUILTINS, describe_options, load_class
from orbax_bench_core.worker.proofs import NOT_PROVED, PROOFS

PAGE: Final = Path(__file__).resolve().parents[1] / "docs" / "orbax-options.md"
_WHOLE: Final = {"load_blocking": "load", "delete_blocking": "delete"}
"""What blocks for all of its time where it does not go on in the background."""
_CONFIDENCE: Final = 0.95
_MEASURES: Final = {
    "blocking": "time that a save blocks",
    "save": "whole save",
    "load": "load",
    "load_blocking": "time that a load blocks",
    "load_part": "load of a part",
    "delete": "deletion of one checkpoint",
    "delete_blocking": "time that a deletion blocks",
    "create_checkpoint_manager": "opening of a manager",
    "close": "end of the manager",
    "memory": "peak of host memory",
    "bytes": "bytes on storage",
}


@dataclasses.dataclass(frozen=True)
class Advice:
    """Text on an option that is not measured."""

    measures: tuple[str, ...]  # what it is about, of `_MEASURES`
    when: str  # when to use it
    counts_files: bool = False  # whether it is about how many files there are


ADVICE: Final[Mapping[str, Advice]] = {
    "async_enabled": Advice(
        ("blocking", "save"),
        "true, wherever a training can go on while its state is written",
    ),
    "device_host_concurrent_gb": Advice(
        ("blocking", "save", "memory"),
        "with background_keys, where a copy of the state does not fit in the memory of the host, "
        "and the training leaves those arrays alone until the save has ended",
    ),
    "deepcopy_host_arrays": Advice(
        ("blocking", "save", "memory"),
        "false, where NumPy arrays do not change while a save goes on",
    ),
    "use_replica_parallel": Advice(
        ("blocking", "save"),
        "true, where replicas are different hosts, and storage takes what they write together",
    ),
    "use_ocdbt": Advice(
        ("save", "load", "bytes"),
        "false, only where other programs read a folder per array",
        counts_files=True,
    ),
    "ocdbt_target_data_file_size": Advice(
        ("save", "load"),
        "where storage reads several files faster than parts of one, or limits their size",
        counts_files=True,
    ),
    "enable_post_merge_validation": Advice(
        ("save",), "false, where a damaged save would be noticed in another way"
    ),
    "enable_write_sharding_file": Advice(
        ("save",), "false, where every load says how its arrays are sharded", counts_files=True
    ),
    "atomicity": Advice(
        ("save",), "commit_file, where a folder cannot be renamed, or only by a copy"
    ),
    "create_directories_asynchronously": Advice(
        ("blocking", "save"),
        "false, to see an error of storage at once; storage that is slow with folders shows the "
        "cost",
    ),
    "enable_background_delete": Advice(
        ("save", "delete", "close"),
        "true, where deletions take long; the manager must be closed before the program ends",
    ),
    "deletion": Advice(
        ("delete_blocking", "delete"),
        "background, where a program has other things to do until the files are gone",
    ),
    "lightweight_initialize": Advice(
        ("create_checkpoint_manager",),
        "true, where very many checkpoints are kept, and nothing asks for their metrics",
    ),
    "pieces": Advice(
        ("save", "blocking"),
        "where the whole state is never in memory at once; each piece waits for the one before",
    ),
    "loaded_share": Advice(
        ("load_part",),
        "less than 1, where a program needs some of the arrays, such as parameters without the "
        "state of an optimizer",
    ),
    "load_async": Advice(
        ("load_blocking", "load"),
        "true, where a program has other things to set up; safetensors alone",
    ),
}
"""Options that the suite sweeps."""


_Effects = dict[tuple[str, str], OptionEffect]
"""What is proved of an option, by the id of its point."""


def page(run: str) -> str:
    """Returns the page that a run gives.

    Args:
        run: Run directory of the suite.

    Raises:
        ValueError: The run has no two points that differ in one of these options alone.
    """
    read = Run(RunDirectory(run))
    observer = Observer(read.info.expansion.plain)
    effects: _Effects = {}
    for repeat in read.repeats():
        observer.add(repeat)
        for effect in repeat.records[min(repeat.records)].effects:
            effects[repeat.series.entry.id, effect.option] = effect
    cases = observer.cases().values()
    rows = [row for points in cases for row in _rows(points, effects)]
    if not rows:
        raise ValueError(f"{run} has no two points that differ in one of {', '.join(ADVICE)}")
    observed = [each for points in cases for each in points]
    return _FORM.format(
        versions=", ".join(sorted({each.version for each in observed if each.version})),
        platforms=", ".join(sorted({each.platform for each in observed if each.platform})),
        rounds=max(len(each.rounds) for each in observed),
        confidence=f"{100 * _CONFIDENCE:.0f} %",
        rows="\n".join(rows),
    )


_FORM: Final = """\
# What do Orbax's options cost?

Each row compares two values of one option, all else being equal, in one run of
[`examples/orbax_today.yaml`](../examples/orbax_today.yaml):

```sh
orbax-bench run examples/orbax_today.yaml --output-directory /tmp/orbax_today
python -m website options /tmp/orbax_today
```

The second command, in a checkout, wrote this page, from {rounds} rounds with orbax-checkpoint
{versions} on {platforms} devices. A figure is the median over the rounds of a ratio, the first
value of the option over the second, and an interval of at least {confidence} confidence for it:
above 1 is slower, or more. An interval that has 1 in it tells no difference. Other machines and
other storage have other ratios: run it on yours.

| option | what it does | compared | what it cost here | proved by | when to use it |
|---|---|---|---|---|---|
{rows}

"Proved by" is where this run shows that both values were in effect, as
[What is measured, and how](measuring.md) explains; the [reference](reference/suite.md) has all
options, and `orbax-bench list --orbax` those of Orbax with what measures them.
"""


def _rows(points: Sequence[Any], effects: _Effects) -> Iterator[str]:
    for first, second in itertools.combinations(points, 2):
        before, after = first.point.options, second.point.options
        differs = [
            name
            for name in before.keys() | after.keys()
            if before.get(name, ...) != after.get(name, ...)
        ]
        if len(differs) == 1 and differs[0] in ADVICE and differs[0] in before.keys() & after:
            found = [effects.get((each.point.id, differs[0])) for each in (first, second)]
            yield _row(differs[0], first, second, _proved(differs[0], found))


def _proved(option: str, effects: Sequence[OptionEffect | None]) -> str:
    """Returns by what two values of an option are proved in effect, or why one of them is not."""
    if None in effects:
        return "unknown: the run has no record of it"
    if option in NOT_PROVED:
        return f"nothing: {NOT_PROVED[option]}"
    unproved = [
        f"`{json.dumps(effect.asked)}` is not proved: {effect.proof}"
        for effect in effects
        if effect is not None and effect.state != "in effect"
    ]
    return "<br>".join([PROOFS[option].by, *unproved])


def _row(option: str, first: Any, second: Any, proved: str) -> str:
    benchmark, advice = first.point.benchmark, ADVICE[option]
    before, after = (json.dumps(each.point.options[option]) for each in (first, second))
    figures = [
        f"{_MEASURES[measure]}: {said}"
        for measure in advice.measures
        if (said := _ratio(*(_values(measure, each) for each in (first, second))))
    ]
    if advice.counts_files and first.files and second.files:
        figures.append(f"files: {second.files} against {first.files}")
    described = {each.name: each for each in describe_options(load_class(BUILTINS[benchmark]))}
    cells = (
        f"`{option}` of `{benchmark}`",
        described[option].meaning,
        f"`{after}` over `{before}`",
        "<br>".join(figures) or "unknown: no round has measured both",
        proved,
        advice.when,
    )
    return f"| {' | '.join(' '.join(cell.split()) for cell in cells)} |"


def _values(measure: str, observed: Any) -> Mapping[int, float]:
    """Returns a measure by round; what is not in the background blocks for all of it."""
    found: Mapping[str, Mapping[int, float]] = observed.values
    return found.get(measure, found.get(_WHOLE.get(measure, ""), {}))


def _ratio(before: Mapping[int, float], after: Mapping[int, float]) -> str:
    """Returns the median ratio over common rounds, and its interval; empty without a round."""
    ratios = sorted(after[at] / before[at] for at in before.keys() & after.keys())
    if not ratios:
        return ""
    middle, place = _number(statistics.median(ratios)), order_statistic(len(ratios))
    if place is None:
        return f"{middle} ({len(ratios)} rounds are too few for an interval)"
    return f"{middle} ({_number(ratios[place])} to {_number(ratios[-1 - place])})"


def _number(ratio: float) -> str:
    return f"{ratio:.2f}" if ratio >= 0.1 else f"{ratio:.2g}"


def order_statistic(rounds: int) -> int | None:
    """Returns which of the sorted values begins an interval of their median, counted from 0.

    The interval from there to its mirror image has a confidence of at least 95 % whatever the
    distribution: it has the medians that the sign test does not reject (Conover, Practical
    Nonparametric Statistics, 3rd edition, section 3.2). None for fewer than six values, whose
    whole range has less.
    """
    outside, place = 0.0, None
    for at in range(rounds):
        outside += math.comb(rounds, at) / 2**rounds
        if 2 * outside > 1 - _CONFIDENCE:
            break
        place = at
    return place
