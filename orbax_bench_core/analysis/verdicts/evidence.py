"""Evidence on a point before its word is set: what statistics decide, and the doubts about it."""

from __future__ import annotations

import dataclasses
import re
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Final

from orbax_bench_core import records
from orbax_bench_core.analysis.verdicts.model import OperationVerdict, PointVerdict, StorageTrouble
from orbax_bench_core.config import BLOCK_SIZE, Arm, GateConfig
from orbax_bench_core.gate import Decision, Doubt, decide
from orbax_bench_core.reasons import NO_REASON, Reasons, because

if TYPE_CHECKING:
    import numpy as np

MOST_FLAGGED: Final = 0.2
"""Share of samples with trouble in storage above which times say more of storage than of an arm."""

_LEVEL: Final = 0.001
"""Of each direction at each look, so that equal arms are told apart in 1 % of comparisons."""

_REFUSED: Final = re.compile(
    r"too ?many ?requests|service ?unavailable|slow ?down"
    r"|(?:http(?:/[\d.]+)?|code|status|error)\W{1,3}(?:429|503)\b",
    re.IGNORECASE,
)
"""An error that is the answer of a store which was asked for too much."""

_Arrays = tuple["np.ndarray", "np.ndarray"]
_NO_FLAGS: Final = records.StoreFlags(flagged=0, repeats=0, counts={})


@dataclasses.dataclass(frozen=True, kw_only=True)
class Evidence:
    """What is known of a point before its word is set."""

    found: Decision  # what the statistics decide
    doubts: Mapping[Doubt, Reasons]  # what speaks against that, each with its reason
    operations: tuple[OperationVerdict, ...]  # verdicts on its operations
    failed: bool  # whether there is nothing to compare
    # whether arms that shared workers need workers of their own, for an operation may pay for the
    # one before it
    carries_over: bool = False
    build: Callable[..., PointVerdict]  # makes the verdict, of these and of what is decided

    def verdict(self, unknown: Reasons = NO_REASON, *, exploratory: bool = False) -> PointVerdict:
        """Decides; the first argument is what `never_measured` says of all points."""
        doubts = dict(self.doubts)
        if unknown:
            doubts["unknown_primary"] = unknown
        decision = decide(self.found, doubts)
        return self.build(
            word=decision.word,
            endpoint=decision.endpoint,
            reason=decision.reason,
            settled=decision.settled,
            next_look=decision.next_look,
            operations=self.operations,
            failed=self.failed,
            exploratory=exploratory,
        )


def never_measured(gate: GateConfig, measured: Iterable[str]) -> Reasons:
    """Returns which primary operations a suite names that no point has measured, if any.

    A suite names those of all its benchmarks, each of which may lack some. What none of them has is
    a name that was mistaken, and its operation was not looked at.
    """
    known = sorted(set(measured))
    unknown = tuple(name for name in gate.primary if name not in known)
    if not (gate.names_primary and known and unknown):
        return NO_REASON
    return because("unknown_primary", names=unknown, measured=tuple(known))


def verified_of(arms: Mapping[Arm, Sequence[records.Repeat]]) -> dict[Arm, records.Verified]:
    """Returns the reference that the restored values of each arm were compared with."""
    return {
        arm: records.weakest(each.verified for each in found)
        for arm, found in arms.items()
        if found
    }


def storage_doubts(
    troubles: Iterable[StorageTrouble],
    operations: Iterable[OperationVerdict],
    repeats: Iterable[records.Repeat],
    reason: Reasons = NO_REASON,
) -> dict[Doubt, Reasons]:
    """Returns the doubts that an object store's trouble raises, with a reason unless there is one.

    Flagged samples stay in the verdict: without them a candidate that asks storage for more would
    look good. Where more than a fifth of those of a primary operation are flagged, times tell of
    storage, and there is no verdict; unless the flags themselves differ between the arms, by the
    test of the gate for stalls, and then it says which arm is throttled more. Failed attempts of
    the candidate tell of storage where the store has refused more than a fifth of them.
    """
    primary = {operation.operation for operation in operations if operation.primary}
    # That one arm is throttled more is a finding of its own (`trouble.more`).
    for trouble in troubles:
        if trouble.operation in primary and trouble.share > MOST_FLAGGED and trouble.more is None:
            break
    else:
        return {}
    failed = [
        repeat
        for repeat in repeats
        if repeat.series.arm == "candidate" and not repeat.warmup and repeat.first_failed
    ]
    refused = [repeat for repeat in failed if _REFUSED.search(repeat.first_reason)]
    share = because("storage", trouble.operation, share=trouble.share)
    told: dict[Doubt, Reasons] = {"storage": reason or share}
    if len(refused) > MOST_FLAGGED * len(failed):
        told["store_answers"] = told["storage"]
    return told


def storage_troubles(
    arms: Mapping[Arm, Sequence[records.Repeat]], per_life: int = 1
) -> Iterator[StorageTrouble]:
    """Yields the operations with which an object store had trouble, of repeats that passed.

    Args:
        arms: Repeats of each arm that passed.
        per_life: Operations of one worker where slots have workers of their own; these stay
            together when the chance of a difference is computed.
    """
    flags = {arm: records.store_flags(repeats) for arm, repeats in arms.items()}
    for operation in dict.fromkeys(name for found in flags.values() for name in found):
        found = {arm: flags[arm].get(operation, _NO_FLAGS) for arm in arms}
        if any(counts.flagged for counts in found.values()):
            more, p_value = _throttled_more(arms, operation, per_life)
            yield StorageTrouble(
                operation=operation,
                flagged={arm: counts.flagged for arm, counts in found.items()},
                repeats={arm: counts.repeats for arm, counts in found.items()},
                counts={arm: dict(counts.counts) for arm, counts in found.items() if counts.counts},
                more=more,
                p_value=p_value,
            )


def _throttled_more(
    arms: Mapping[Arm, Sequence[records.Repeat]], operation: str, per_life: int
) -> tuple[Arm | None, float | None]:
    """Returns which arm is flagged more often, if chance does not explain it, and the p-value."""
    from orbax_bench_core.gate import Excess

    arrays = _by_block(
        [repeat for repeats in arms.values() for repeat in repeats], operation, per_life
    )
    if arrays is None:
        return None, None
    seen, candidate = arrays
    chances: dict[Arm, float] = {
        "candidate": Excess.of(seen, candidate).p_value,
        "baseline": Excess.of(seen, ~candidate).p_value,
    }
    arm = min(chances, key=lambda arm: chances[arm])
    return (arm if chances[arm] <= _LEVEL else None), chances[arm]


def _by_block(repeats: Sequence[records.Repeat], operation: str, per_life: int) -> _Arrays | None:
    """Returns which operations were flagged, and which slots are the candidate's.

    Shapes are (blocks, slots, operations of a slot) and (blocks, slots). Blocks of which a repeat
    is missing are left out; None if nothing is paired.
    """
    import numpy as np

    blocks: defaultdict[int, list[records.Repeat]] = defaultdict(list)
    for repeat in sorted(repeats, key=lambda each: each.index):
        if repeat.block is not None:
            blocks[repeat.block].append(repeat)
    whole = [block for block in blocks.values() if len(block) == BLOCK_SIZE * per_life]
    if not whole:
        return None
    slots = [block[::per_life] for block in whole]
    candidate = np.array(
        [[repeat.series.arm == "candidate" for repeat in block] for block in slots]
    )
    seen = np.array([[operation in repeat.flagged for repeat in block] for block in whole])
    return seen.reshape(len(whole), BLOCK_SIZE, per_life), candidate
