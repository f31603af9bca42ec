"""Turning a verdict into the success or failure of whatever asked for it."""

from __future__ import annotations

from pathlib import Path
from typing import Final

from orbax_bench_core.compare.verdict import VerdictReport
from orbax_bench_core.config.errors import SuiteError

_WORDS: Final = ("PASS", "INCONCLUSIVE", "REGRESSION")


class NotPassed(Exception):
    """A comparison did not pass, and it was asked to."""


def enforce(verdict: str, verdicts: str | None, *, allow_inconclusive: bool) -> None:
    """Raises unless a verdict is good enough.

    Args:
        verdict: The verdict in one word.
        verdicts: Path of `verdicts.json`, to say what has regressed; None without.
        allow_inconclusive: Whether INCONCLUSIVE is as good as PASS.

    Raises:
        NotPassed: It is not.
        SuiteError: It is no verdict.
    """
    if verdict not in _WORDS:
        raise SuiteError(f"not a verdict: {verdict!r}; it is one of {', '.join(_WORDS)}")
    if verdict == "PASS" or (verdict == "INCONCLUSIVE" and allow_inconclusive):
        return
    found = "" if verdicts is None else f": {_what(verdict, Path(verdicts))}"
    raise NotPassed(f"{verdict}{found}")


def _what(verdict: str, path: Path) -> str:
    report = VerdictReport.model_validate_json(path.read_bytes())
    return "; ".join(
        f"{point.point}: "
        + (
            ", ".join(
                f"{one.operation} {one.verdict.ratio:.2f}x"
                for one in point.operations
                if one.primary and one.verdict.word == verdict and one.verdict.ratio is not None
            )
            or point.reason
        )
        for point in report.points
        if point.word == verdict
    )
