"""Evidence beside the times: what values were compared with, and how an object store answered."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Final

from orbax_bench_core.analysis.verdicts.model import PointVerdict, StorageTrouble
from orbax_bench_core.config import ARMS, Arm
from orbax_bench_core.records import (
    VERIFIED_WORDS,
    Repeat,
    StoreFlagCounter,
    StoreFlags,
    Trouble,
    Verified,
    weakest,
)
from orbax_bench_core.sweep import BLOCK_SIZE

if TYPE_CHECKING:
    import numpy as np

MOST_FLAGGED: Final = 0.2
"""Share of samples with trouble in storage above which times say more of storage than of an arm."""

_LEVEL: Final = 0.001
"""Of each direction at each look, so that equal arms are told apart in 1 % of comparisons."""

_Arrays = tuple["np.ndarray", "np.ndarray"]
_NO_FLAGS: Final = StoreFlags(flagged=0, repeats=0, counts={})


def with_evidence(
    verdict: PointVerdict, repeats: Iterable[Repeat], per_life: int = 1
) -> PointVerdict:
    """Returns a verdict with what else its repeats tell, which may take its word away.

    Flagged samples stay in the verdict: without them a candidate that asks storage for more would
    look good. Where more than a fifth of those of a primary operation are flagged, times tell of
    storage, and there is no verdict; unless the flags themselves differ between the arms, by the
    test of the gate for stalls, and then it says which arm is throttled more.
    """
    counted = [repeat for repeat in repeats if repeat.counts]
    arms = {arm: [repeat for repeat in counted if repeat.series.arm == arm] for arm in ARMS}
    return with_evidence_of(verdict, arms, per_life)


def with_evidence_of(
    verdict: PointVerdict, arms: Mapping[Arm, Sequence[Repeat]], per_life: int = 1
) -> PointVerdict:
    """Returns what `with_evidence` does, of repeats that are told apart already."""
    troubles = tuple(_troubles(arms, per_life))
    primary = {operation.operation for operation in verdict.operations if operation.primary}
    bad = [
        trouble
        for trouble in troubles
        if trouble.operation in primary and trouble.share > MOST_FLAGGED
    ]
    undecided = [trouble for trouble in bad if trouble.more is None]
    found: dict[str, object] = {
        "verified": {
            arm: weakest(repeat.verified for repeat in repeats)
            for arm, repeats in arms.items()
            if repeats
        },
        "storage": troubles,
    }
    if undecided:
        found |= {
            "word": "INCONCLUSIVE",
            "endpoint": "storage",
            "reason": verdict.reason or _reason(undecided[0]),
        }
    return verdict.model_copy(update=found)


def evidence_remarks(point: PointVerdict) -> list[str]:
    """Returns what a reader must know: arms that are not verified alike, and storage's trouble."""
    return [*_verification(point.verified), *map(_storage, point.storage)]


def _verification(verified: Mapping[Arm, Verified]) -> list[str]:
    if len(set(verified.values())) > 1:
        each = (f"the {arm} is {VERIFIED_WORDS[found]}" for arm, found in verified.items())
        return ["; ".join(each)]
    same: Verified = next(iter(verified.values()), "saved")
    return [] if same in ("saved", "reference") else [f"both arms: {VERIFIED_WORDS[same]}"]


def _storage(trouble: StorageTrouble) -> str:
    each = [
        f"{trouble.flagged.get(arm, 0)} of {trouble.repeats.get(arm, 0)} samples of the {arm}"
        f"{_counts(trouble.counts.get(arm, {}))}"
        for arm in ARMS
    ]
    said = (
        f"{trouble.operation}: storage made trouble in {' and '.join(each)}; they count as they are"
    )
    if trouble.more is None:
        return said
    return f"{said}; the {trouble.more} is throttled more (p = {trouble.p_value:.2g})"


def _counts(counts: Mapping[Trouble, int]) -> str:
    return f" ({', '.join(f'{kind}: {n}' for kind, n in counts.items())})" if counts else ""


def _reason(trouble: StorageTrouble) -> str:
    return (
        f"storage: {trouble.share:.0%} of the samples of {trouble.operation} met throttling, "
        "errors or retries in the store, alike in both arms: the times tell of it; measure "
        "again when it is quiet, or with fewer requests at once"
    )


def _troubles(arms: Mapping[Arm, Sequence[Repeat]], per_life: int) -> Iterable[StorageTrouble]:
    flags: dict[Arm, dict[str, StoreFlags]] = {}
    for arm, repeats in arms.items():
        counter = StoreFlagCounter()
        for repeat in repeats:
            counter.add(repeat)
        flags[arm] = counter.found()
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
    arms: Mapping[Arm, Sequence[Repeat]], operation: str, per_life: int
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


def _by_block(repeats: Sequence[Repeat], operation: str, per_life: int) -> _Arrays | None:
    """Returns which operations were flagged, and which slots are the candidate's.

    Shapes are (blocks, slots, operations of a slot) and (blocks, slots). Blocks of which a repeat
    is missing are left out; None where nothing is paired.
    """
    import numpy as np

    blocks: defaultdict[int, list[Repeat]] = defaultdict(list)
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
