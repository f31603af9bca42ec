"""The word of a verdict: how the words of its parts become one, and which doubts withdraw it."""

import dataclasses
from collections.abc import Mapping, Sequence
from typing import Final, Literal, NamedTuple, TypeVar

from orbax_bench_core.exit_codes import REGRESSED
from orbax_bench_core.gate.verdict import Endpoint, FailureVerdict, Verdict, Word
from orbax_bench_core.reasons import NO_REASON, Reasons, of_operation

_Word = TypeVar("_Word", bound=str)

Doubt = Literal[
    "arm_stopped",
    "other_surroundings",
    "missing",
    "storage",
    "store_answers",
    "unknown_primary",
    "carry_over",
]
"""What is known of a point, beside its statistics, that speaks against its word."""


class Voids(NamedTuple):
    """What a doubt withdraws."""

    words: frozenset[Word]  # which words
    spared: frozenset[Endpoint] = frozenset()  # endpoints by which a word stands all the same
    endpoint: Endpoint | None = None  # what decides then; None if that stays as it was
    settles: bool = False  # whether more blocks could not settle it


_PASS: Final[frozenset[Word]] = frozenset({"PASS"})
_BOTH: Final[frozenset[Word]] = frozenset({"PASS", "REGRESSION"})

VOIDS: Final[Mapping[Doubt, Voids]] = {
    # A slow-down that was seen stays one, whatever else was not measured: where something is
    # missing, only PASS is withdrawn.
    "arm_stopped": Voids(_PASS, settles=True),
    "other_surroundings": Voids(_BOTH),
    "missing": Voids(_PASS),
    # Slow storage makes no attempt fail, so these count, unless the store refused them.
    "storage": Voids(_BOTH, spared=frozenset({"failures"}), endpoint="storage"),
    "store_answers": Voids(_BOTH, endpoint="storage"),
    "unknown_primary": Voids(_PASS, endpoint="missing", settles=True),
    "carry_over": Voids(_BOTH, spared=frozenset({"failures"})),
}
"""By doubt, in the order in which they are weighed: of several, the last one is told."""

_ORDER: Final[Mapping[Word, tuple[Endpoint, ...]]] = {
    "REGRESSION": ("failures", "time", "stalls"),
    # What is missing is told first: no number of operations adds it.
    "INCONCLUSIVE": ("missing", "failures", "stalls", "time"),
}
"""Which of several endpoints with a word is told."""


@dataclasses.dataclass(frozen=True, kw_only=True)
class Decision:
    """Word of a point."""

    # REGRESSION if times, stalls or failures regressed; PASS if all three pass for every primary
    # operation; otherwise INCONCLUSIVE
    word: Word
    endpoint: Endpoint = "time"  # which of them decided
    # why it could not be judged, or what keeps it from passing; empty otherwise
    reason: Reasons = NO_REASON
    settled: bool = False  # whether more blocks could change nothing, so that a live run can stop
    next_look: int | None = None  # operations per arm at the next look; None when settled


def decide(found: Decision, doubts: Mapping[Doubt, Reasons]) -> Decision:
    """Decides about a point, by its statistics and by the doubts about them.

    Each doubt comes with its reason. One that does not withdraw a word leaves all as it is.
    """
    for doubt, voids in VOIDS.items():
        spared = found.word not in voids.words or found.endpoint in voids.spared
        if doubt not in doubts or (spared and found.word != "INCONCLUSIVE"):
            continue
        settled = found.settled or voids.settles
        found = Decision(
            word="INCONCLUSIVE",
            endpoint=voids.endpoint or found.endpoint,
            reason=doubts[doubt],
            settled=settled,
            next_look=None if settled else found.next_look,
        )
    return found


def word_of_parts(
    operations: Mapping[str, Verdict], primary: Sequence[str], failures: FailureVerdict
) -> tuple[Word, Endpoint, Reasons]:
    """Returns the word of a point by its parts, which of them decided it, and why it is no PASS."""
    for word, order in _ORDER.items():
        for endpoint in order:
            if endpoint == "failures" and failures.word == word and failures.look is not None:
                return word, endpoint, failures.reason
            for name in primary:
                verdict = operations[name]
                if (verdict.word, verdict.endpoint) == (word, endpoint):
                    return word, endpoint, of_operation(name, verdict.reason)
    return ("PASS" if primary else "INCONCLUSIVE"), "time", NO_REASON


def together(words: Sequence[_Word]) -> _Word | Literal["PASS", "INCONCLUSIVE"]:
    """Combines several words into one: all must pass, and one that is bad is enough."""
    bad = next((word for word in words if word in REGRESSED), None)
    if bad is not None:
        return bad
    return "PASS" if words and set(words) == {"PASS"} else "INCONCLUSIVE"
