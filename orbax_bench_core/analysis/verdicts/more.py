"""Whether more operations would give a verdict, and how many."""

import dataclasses
from collections.abc import Mapping
from typing import Literal

from orbax_bench_core.analysis.verdicts.model import PointVerdict
from orbax_bench_core.config import PER_ARM, Arm, GateConfig
from orbax_bench_core.gate import Verdict

Why = Literal["more", "unlikely", "used_up", "unfinished", "decided", "unpaired", "no_use"]
"""Why more operations would help a point, or would not.

`more`: a look that is left probably gives a verdict. `unlikely`: none does, at this noise.
`used_up`: there is no look left. `unfinished`: the comparison goes on by itself, with the same
command. `decided`: it has a verdict. `unpaired`: two runs that were measured apart have no looks.
`no_use`: what keeps it from a verdict is not their number, see its `reason`.
"""


@dataclasses.dataclass(frozen=True, kw_only=True)
class GoingOn:
    """Whether more operations would help a point that has no verdict."""

    why: Why
    until: int = 0  # operations per arm at the look to go on to; 0 unless `why` is `more`
    # `--more`, with a number where the next look would hardly do; empty unless `why` is `more`
    flag: str = ""
    # relative change of each arm over the comparison, such as 0.29, where it is clear and large
    drifts: Mapping[Arm, float] = dataclasses.field(default_factory=dict)


def going_on(point: PointVerdict, gate: GateConfig) -> GoingOn:
    """Says whether `--more` would help a point, and how far it would have to go.

    It helps where every primary operation that is open has a look ahead of it which, if its ratio
    and noise stay as they are, gives a verdict eight times in ten. Stalls, failures and limits on
    them need no such forecast: each look shows more of them.
    """
    if point.mode == "unpaired":
        return GoingOn(why="unpaired")
    if point.word != "INCONCLUSIVE":
        return GoingOn(why="decided")
    primary = [each for each in point.operations if each.primary]
    if point.failed or point.exploratory or point.endpoint in ("missing", "storage") or not primary:
        return GoingOn(why="no_use")
    if not point.settled:
        return GoingOn(why="unfinished")
    if any(each.verdict.look is None for each in primary):  # at its end it was still not judged
        return GoingOn(why="no_use")
    open_ = [each for each in primary if each.verdict.time_word == "INCONCLUSIVE"] or primary
    found = [_forecast(each.verdict, gate) for each in open_]
    drifts = {
        arm: health.drift
        for each in open_
        for arm, health in each.health.items()
        if health.drifts and health.drift is not None
    }
    worst = next((each for each in found if each.why != "more"), None)
    worst = worst or max(found, key=lambda each: each.until)
    return dataclasses.replace(worst, drifts=drifts)


def _forecast(verdict: Verdict, gate: GateConfig) -> GoingOn:
    """Says the same of one operation, by itself."""
    # 1 where workers outlive a block: then a verdict counts no lives.
    per_life = verdict.operations // verdict.lives if verdict.lives else 1
    left = [each for each in gate.looks_with_more(per_life) if each > verdict.operations]
    if not left:
        return GoingOn(why="used_up")
    blocks = verdict.more_blocks if verdict.time_word == "INCONCLUSIVE" else 0
    if blocks is None:
        return GoingOn(why="unlikely")
    until = max(left[0], verdict.operations + PER_ARM * per_life * blocks)
    number = "" if until == left[0] else f" {until - verdict.operations}"
    return GoingOn(why="more", until=until, flag=f"--more{number}")
