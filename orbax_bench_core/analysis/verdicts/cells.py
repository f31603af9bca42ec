"""Cells of verdicts: an operation and its word, the same on a page and in a terminal."""

from __future__ import annotations

from typing import Final

from orbax_bench_core.analysis.verdicts import words
from orbax_bench_core.analysis.verdicts.findings import finding
from orbax_bench_core.analysis.verdicts.headlines import compared
from orbax_bench_core.analysis.verdicts.model import OperationVerdict, PointVerdict, VerdictReport
from orbax_bench_core.document import Role, Span
from orbax_bench_core.gate import Word

ROLES: Final[dict[Word, Role]] = {"REGRESSION": "bad", "INCONCLUSIVE": "unsure", "PASS": "good"}

EXPLORATORY: Final = ", exploratory"
"""Follows each word of what was judged by other rules than those of its run."""
_PROVES_NOTHING: Final = (
    "Rules that are chosen after the data prove nothing: to decide by them, measure again with "
    "them in another output directory."
)


def particulars(point: PointVerdict) -> str:
    """Returns the id of a point, how it was measured, and what decided its verdict."""
    return ", ".join(filter(None, [point.point_id, words.design(point), words.decided(point)]))


def numbers_of(operation: OperationVerdict) -> tuple[str, str, str]:
    """Returns name, interval and ratio: what is known stands before the best guess."""
    verdict = operation.verdict
    return operation.operation, words.interval(verdict), words.ratio(verdict.ratio)


def operation_word(
    operation: OperationVerdict, point: PointVerdict, *, strong: bool = False
) -> Span:
    """Returns the verdict of an operation; one that decides nothing is in parentheses."""
    word = operation.verdict.word
    how = " unpaired" if point.mode == "unpaired" else ""
    how += EXPLORATORY if point.exploratory else ""
    if word != "PASS" and operation.verdict.endpoint == "stalls":
        how += ": stalls"
    if point.is_study:
        return Span(
            words.compared_word(operation.verdict) + how, strong=strong and operation.primary
        )
    said = f"{words.MARKS[word]} {words.word_of(operation)}{how}"
    stands_out = operation.primary and (strong or word == "REGRESSION")
    return Span(said, ROLES[word], strong=stands_out)


def verdict_word(judged: PointVerdict | VerdictReport, *, strong: bool = False) -> Span:
    """Returns the verdict of a point or of a report."""
    if judged.is_study:
        return Span(stamped(judged), strong=True)
    word = judged.word
    stands_out = strong or word == "REGRESSION"
    return Span(f"{words.MARKS[word]} {stamped(judged)}", ROLES[word], strong=stands_out)


def stamped(judged: PointVerdict | VerdictReport) -> str:
    """Returns a word that nobody who sees it alone takes for a verdict when it is none."""
    word = words.STUDY if judged.is_study else judged.word
    return f"{word}{EXPLORATORY if judged.exploratory else ''}"


def meaning_of(report: VerdictReport) -> str:
    """Returns what the word of a report says."""
    return words.STUDY_MEANING if report.is_study else words.MEANINGS[report.word]


def advice_on(operation: OperationVerdict, point: PointVerdict) -> str:
    """Returns finding and advice; what an exploration found keeps no promise of false alarms."""
    if point.exploratory:
        return f"Exploratory: {finding(operation)} {_PROVES_NOTHING}"
    if point.is_study:
        return f"{compared(operation, point)}."
    return words.what_to_do(operation)
