"""Revisions of the code under test in both arms of a comparison."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from orbax_bench_core.config import ARMS, Arm
from orbax_bench_core.provenance import UNKNOWN, Source
from orbax_bench_core.records import Record, RunInfo


def revisions(arms: Iterable[tuple[Arm | None, Record]]) -> dict[Arm, str]:
    """Returns the code under test of each arm in words, of records with the arm that they are.

    An arm that was measured at several revisions has all of them.
    """
    found: dict[Arm, dict[str, None]] = {arm: {} for arm in ARMS}
    for arm, record in arms:
        if arm is not None:
            found[arm][_words(record.code)] = None
    return {arm: " and ".join(words) for arm, words in found.items() if words}


def revisions_of_run(info: RunInfo) -> dict[Arm, str]:
    """Returns the code under test of each arm of a run when it began, in words."""
    found: dict[Arm, dict[str, None]] = {arm: {} for arm in ARMS}
    for pair in info.expansion.pairs:
        for arm in ARMS:
            found[arm][_words(info.code.under_test(pair.arm(arm)))] = None
    return {arm: " and ".join(words) for arm, words in found.items() if words}


def revision_note(found: Mapping[Arm, str]) -> str:
    """Returns the revisions of two runs that were made apart, as a sentence."""
    before, now = found.get("baseline", UNKNOWN), found.get("candidate", UNKNOWN)
    if before == now:
        return f"code under test: {now} in both arms"
    return f"code under test: {before} in the baseline, {now} in the candidate"


def revision_changes(records: Iterable[Record]) -> tuple[str, ...]:
    """Returns the revisions of one run as a sentence, if there is more than one of them."""
    found = revisions((record.arm, record) for record in records)
    several = len(set(found.values())) > 1 or any(" and " in words for words in found.values())
    return (revision_note(found),) if several else ()


def _words(source: Source) -> str:
    return source.words if source.known or source.package else UNKNOWN
