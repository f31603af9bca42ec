"""Lineage for people: whether all is as it was noted, what is not, and what it was made from."""

from collections import Counter
from collections.abc import Iterator, Sequence
from typing import Final

from orbax_bench_core import pages
from orbax_bench_core.errors import command
from orbax_bench_core.lineage.check import BROKEN, Finding, Status, is_unchanged

_DIGITS: Final = len("sha256:") + 12
_SHA256: Final = 64
_SHOWN: Final = 10
_ROLES: Final[dict[Status, pages.Role]] = {
    "unchanged": "good",
    "not checked": "dim",
    "unknown": "unsure",
    **dict.fromkeys(BROKEN, "bad"),
}


def lineage_document(
    findings: Sequence[Finding], given: str, *, run: str = "", deep: bool = False
) -> pages.Document:
    """Returns findings for people.

    Args:
        findings: What was found.
        given: What was asked for.
        run: The run directory, if that was given.
        deep: Whether all bytes were read.
    """
    broken = [finding for finding in findings if finding.status in BROKEN]
    open_ = [finding for finding in findings if finding.status == "unknown"]
    left_out = dict.fromkeys(line for finding in findings for line in finding.left_out)
    return pages.Document(
        about=f"Lineage of {given}, {pages.count(len(findings), 'thing')}",
        headline=_headline(findings, broken),
        summary=(
            pages.Table(
                pages.columns("what", "name`", "now"),
                tuple(
                    pages.Row((each.what, each.name, _status(each)))
                    for each in _first(broken or open_ or findings)
                ),
            ),
            pages.Text(items=tuple(f"left out {line}" for line in left_out), role="bad"),
        ),
        following=_following(broken, open_, given, run, deep=deep),
        details=(pages.Details("All that it was made from", (_table(findings),)),),
    )


def _headline(findings: Sequence[Finding], broken: Sequence[Finding]) -> pages.Callout:
    compared = [finding for finding in findings if finding.status != "not checked"]
    if broken:
        first = broken[0]
        more = f", and {len(broken) - 1} more" if len(broken) > 1 else ""
        is_ = "has" if first.status == "changed" else "is"
        text = f"{first.what} {first.name} {is_} {first.status}{more}; {_counts(compared)}"
        return pages.Callout("BROKEN", text, "bad")
    if is_unchanged(findings) is True:
        return pages.Callout("UNCHANGED", f"{_counts(compared)}, read byte by byte", "good")
    said = _counts(compared) if compared else "nothing here has a digest to compare"
    return pages.Callout("UNKNOWN", f"nothing differs, but not all was read: {said}", "unsure")


def _counts(compared: Sequence[Finding]) -> str:
    found = Counter(finding.status for finding in compared)
    said = ", ".join(f"{number} {word}" for word, number in found.most_common())
    return f"of {len(compared)} digests {said}"


def _following(
    broken: Sequence[Finding], open_: Sequence[Finding], given: str, run: str, *, deep: bool
) -> pages.Code | None:
    if run and any(finding.status == "not recorded" for finding in broken):
        return pages.Code(
            command("report", run),
            "What is not recorded was published by an earlier release, or never. To note what is "
            "there now:",
        )
    if not broken and open_ and not deep:
        return pages.Code(command("lineage", given, "--deep"), "To read all bytes:")
    return None


def _first(findings: Sequence[Finding]) -> Iterator[Finding]:
    """Yields the first findings of each kind: a run may have thousands of one."""
    seen: Counter[str] = Counter()
    for finding in findings:
        seen[finding.what] += 1
        if seen[finding.what] <= _SHOWN:
            yield finding


def _table(findings: Sequence[Finding]) -> pages.Table:
    rows = (
        pages.Row(
            (
                f"{'· ' * finding.depth}{finding.what}",
                finding.name,
                _status(finding),
                _digests(finding),
                ", ".join(f"{name} {_short(value)}" for name, value in finding.details.items()),
            )
        )
        for finding in findings
    )
    return pages.Table(pages.columns("what", "name`", "now", "digest`", "known~"), tuple(rows))


def _status(finding: Finding) -> pages.Cell:
    return pages.Cell(finding.compared or finding.status, _ROLES[finding.status])


def _digests(finding: Finding) -> str:
    digest = finding.digest or finding.recorded
    if digest in ("", "unknown"):
        return ""
    was = f" was {finding.recorded[:_DIGITS]}" if finding.status == "changed" else ""
    return f"{digest[:_DIGITS]}{was}"


def _short(value: str) -> str:
    return value[:12] if len(value) == _SHA256 and value.isalnum() else value
