"""Documents of a registry of baselines: captures, one capture, and what is promoted."""

import collections
import statistics
import string
from collections.abc import Mapping, Sequence
from typing import Any, Final

from orbax_bench_core import document as doc
from orbax_bench_core.baselines.store import Baseline, Capture, Promotion
from orbax_bench_core.gate import spread
from orbax_bench_core.provenance import UNKNOWN, Source
from orbax_bench_core.records import seconds_per_repeat

_COMMIT: Final = 40
_SHORT_COMMIT: Final = 12
_SEVERAL: Final = 4
_CHANGES: Final = 10
_WIDE: Final = 110
"""Columns that all of a capture takes: in fewer, words would be broken."""
_BRIEF: Final = ("id", "revision", "measured", "baseline of")


def captures_document(captures: Sequence[Capture], current: Mapping[str, str]) -> doc.Document:
    """Returns captures, the newest first, and how many of their points are the baseline."""
    promoted = collections.Counter(current.values())
    rows = []
    for capture in reversed(captures):
        chosen = promoted[capture.reference]
        rows.append(
            _row(
                capture.id,
                short(capture.revision),
                capture.suite,
                str(len(capture.points)),
                capture.arm or "–",
                f"{capture.measured_at:%Y-%m-%d %H:%M}",
                version(capture.provenance, "orbax-checkpoint"),
                ""
                if not chosen
                else "all"
                if chosen == len(capture.points)
                else f"{chosen} of them",
            )
        )
    headings = ("id", "revision", "suite", "points", "arm", "measured", "orbax", "baseline of")
    table = _table(headings, rows)
    left_out = (
        "A wider terminal shows suite, number of points, arm and version of Orbax, too; --json has "
        "all."
    )
    elements: list[doc.Element] = [
        doc.ByWidth(
            _WIDE,
            (table,),
            (table.only(_BRIEF), doc.Paragraph(left_out, "dim", fold="wrapped")),
        )
    ]
    if not current:
        missing = "No capture is the baseline yet: choose one with `promote`."
        elements.append(doc.Paragraph(missing, "dim", fold="wrapped"))
    return doc.Document(title="Captures", elements=tuple(elements))


def capture_document(
    capture: Capture, baselines: Sequence[Baseline], current: Mapping[str, str]
) -> doc.Document:
    """Returns one capture: what ran, on what, and how long it took."""
    arm = f", {capture.arm} arm" if capture.arm else ""
    facts = {
        "suite": capture.suite,
        "run": f"{capture.run_id}{arm}, {capture.measured_at:%Y-%m-%d %H:%M} UTC",
        "captured": f"{capture.captured_at:%Y-%m-%d %H:%M} UTC",
        "code under test": code_under_test(capture.code),
        "orbax-bench": code(capture.provenance),
        "versions": versions(capture.provenance),
        "machine": machine(capture.provenance),
    }
    elements: list[doc.Element] = [
        doc.Heading(doc.Span(capture.reference), level=1),
        doc.Facts(tuple((name, doc.Span(fact)) for name, fact in facts.items())),
        doc.BLANK,
    ]
    for baseline in baselines:
        chosen = current.get(baseline.point_id, "none") == capture.reference
        elements += _point(baseline, "the baseline" if chosen else "")
    return doc.Document(title=capture.reference, elements=tuple(elements))


def promoted_document(
    baselines: Sequence[Baseline], current: Mapping[str, str], promotions: Sequence[Promotion]
) -> doc.Document:
    """Returns how long each operation of the baselines took, and the last promotions."""
    elements: list[doc.Element] = []
    for baseline in baselines:
        elements += _point(baseline, f"from {current.get(baseline.point_id, 'none')}")
    rows = [
        _row(
            str(promotion.number),
            f"{promotion.promoted_at:%Y-%m-%d %H:%M} UTC",
            f"{promotion.by.get('user', UNKNOWN)} on {promotion.by.get('host', UNKNOWN)}",
            _became(promotion),
            promotion.note,
        )
        for promotion in reversed(promotions[-_CHANGES:])
    ]
    headings = ("promotion", "when", "by", "what became the baseline", "note")
    elements += [doc.BLANK, _table(headings, rows)]
    if len(promotions) > _CHANGES:
        earlier = f"and {len(promotions) - _CHANGES} earlier ones; --json has all."
        elements.append(doc.Paragraph(earlier, "dim", fold="wrapped"))
    return doc.Document(title="Baselines", elements=tuple(elements))


def _point(baseline: Baseline, said: str) -> list[doc.Element]:
    """Returns how long each operation of a point took."""
    name = f"{baseline.records[0].point_name} {baseline.point_id} {said}".rstrip()
    rows = [
        _row(
            operation,
            str(len(times)),
            doc.seconds(statistics.median(times)),
            doc.percent(spread(times)),
        )
        for operation, times in seconds_per_repeat(baseline.records).items()
    ]
    table = _table(("operation", "n", "median", "spread"), rows, indented=True)
    return [doc.Paragraph(doc.Span(name)), table]


def short(revision: str) -> str:
    """Returns a revision, a full commit cut short; that it had changes stays."""
    commit, rest = revision[:_COMMIT], revision[_COMMIT:]
    is_commit = len(commit) == _COMMIT and set(commit) <= set(string.hexdigits)
    ends = not rest or rest.startswith("-dirty")
    return f"{commit[:_SHORT_COMMIT]}{rest}" if is_commit and ends else revision


def code_under_test(source: Source) -> str:
    """Returns a revision with where it can be had."""
    where = (source.branch and f"branch {source.branch}", source.remote, source.path)
    return ", ".join([source.words, *filter(None, where)])


def version(provenance: Mapping[str, Any], package: str) -> str:
    """Returns the version of a package that ran, or `unknown`."""
    return str(_block(provenance, "versions").get(package, UNKNOWN))


def versions(provenance: Mapping[str, Any]) -> str:
    """Returns every version that is known."""
    found = _block(provenance, "versions").items()
    return ", ".join(f"{name} {value}" for name, value in found if value != UNKNOWN) or UNKNOWN


def code(provenance: Mapping[str, Any]) -> str:
    """Returns the commit of this project that ran, and whether it had been changed."""
    git = _block(provenance, "git")
    commit = short(str(git.get("commit", UNKNOWN)))
    return f"{commit}, with changes" if git.get("dirty") is True else commit


def machine(provenance: Mapping[str, Any]) -> str:
    """Returns the CPU, the device unless that is the CPU, and the kind of storage."""
    host, devices = _block(provenance, "host"), _block(provenance, "devices")
    said = [f"{host.get('cpu_count', '?')} x {host.get('cpu', UNKNOWN)}"]
    if devices.get("kind", "cpu") != "cpu":
        said.append(f"{devices.get('count', '?')} x {devices['kind']}")
    storage = _block(provenance, "storage").get("type", UNKNOWN)
    return ", ".join([*said, *([] if storage == UNKNOWN else [str(storage)])])


def _became(promotion: Promotion) -> str:
    chosen = collections.Counter(promotion.points.values())
    said = [
        f"{reference or 'none'} ({count} point{'' if count == 1 else 's'})"
        for reference, count in chosen.most_common(_SEVERAL)
    ]
    return ", ".join([*said, *(["..."] if len(chosen) > _SEVERAL else [])])


def _block(provenance: Mapping[str, Any], name: str) -> Mapping[str, Any]:
    found = provenance.get(name)
    return found if isinstance(found, Mapping) else {}


def _row(*cells: str) -> doc.Row:
    return doc.Row(tuple(map(doc.Span, cells)))


def _table(
    headings: Sequence[str], rows: Sequence[doc.Row], *, indented: bool = False
) -> doc.Table:
    numbers = ("points", "n", "median", "spread")
    columns = (
        doc.Column(name, "number" if name in numbers else "text", apart=name == "revision")
        for name in headings
    )
    return doc.Table(tuple(columns), tuple(rows), indented=indented)
