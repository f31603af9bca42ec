"""A registry of baselines for people: captures, one capture, and what is promoted."""

import collections
import statistics
import string
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final

from orbax_bench_core import pages
from orbax_bench_core.baselines.captures import Baseline, Capture, Promotion
from orbax_bench_core.errors import command
from orbax_bench_core.gate import spread
from orbax_bench_core.provenance import UNKNOWN, Source
from orbax_bench_core.records import seconds_per_repeat

_COMMIT: Final = 40
_SHORT_COMMIT: Final = 12
_SEVERAL: Final = 4


def captures_document(
    captures: Sequence[Capture], current: Mapping[str, str], registry: str
) -> pages.Document:
    """Returns captures, the newest first, and how many of their points are the baseline."""
    promoted = collections.Counter(current.values())
    rows = []
    for capture in reversed(captures):
        chosen, points = promoted[capture.reference], len(capture.points)
        share = "all" if chosen == points else f"{chosen} of {points}"
        cells = (
            capture.id,
            short(capture.revision),
            f"{capture.measured_at:%Y-%m-%d %H:%M}",
            share if chosen else "",
        )
        rows.append(pages.Row(cells))
    brief = pages.columns("id`", "revision`", "measured", "baseline of")
    said = pages.count(len(captures), "capture")
    return pages.Document(
        about=f"Registry {registry}",
        headline=pages.Callout("", f"{said}; {_promoted(current)}."),
        summary=(pages.Table(brief, tuple(rows)),),
        following=None if current else _choose(registry),
        details=(pages.Details("What they measured", (_measured(captures),)),),
    )


def _measured(captures: Sequence[Capture]) -> pages.Table:
    rows = (
        pages.Row(
            (
                capture.id,
                capture.suite,
                str(len(capture.points)),
                capture.arm or "–",
                version(capture.provenance, "orbax-checkpoint"),
            )
        )
        for capture in reversed(captures)
    )
    return pages.Table(pages.columns("id`", "suite`", "points#", "arm", "orbax"), tuple(rows))


def _promoted(current: Mapping[str, str | None]) -> str:
    if not current:
        return "none is the baseline yet"
    return f"the baseline is {_references(current)}"


def _references(chosen: Mapping[str, str | None]) -> str:
    """Returns the captures of points, that of most first, each with how many it has."""
    found = collections.Counter(chosen.values())
    said = [
        f"{reference or 'none'} ({pages.count(number, 'point')})"
        for reference, number in found.most_common(_SEVERAL)
    ]
    return ", ".join([*said, *(["..."] if len(found) > _SEVERAL else [])])


def _choose(registry: str) -> pages.Code:
    again = command("baseline", "promote", registry, "--to", "latest")
    return pages.Code(again, "To make the latest the baseline:")


def capture_document(
    capture: Capture, baselines: Sequence[Baseline], current: Mapping[str, str]
) -> pages.Document:
    """Returns one capture: what ran, on what, and how long it took."""
    arm = f", {capture.arm} arm" if capture.arm else ""
    chosen = sum(current.get(each.point_id) == capture.reference for each in baselines)
    facts = (
        f"Run: {capture.run_id}{arm}, {capture.measured_at:%Y-%m-%d %H:%M} UTC.",
        f"Captured: {capture.captured_at:%Y-%m-%d %H:%M} UTC.",
        f"Code under test: {code_under_test(capture.code)}.",
        f"orbax-bench: {code(capture.provenance)}.",
        f"Versions: {versions(capture.provenance)}.",
        f"Machine: {machine(capture.provenance)}.",
    )
    points = pages.count(len(baselines), "point")
    return pages.Document(
        about=f"Capture {capture.reference}",
        headline=pages.Callout(
            "",
            f"{capture.reference}: {points} of {capture.suite}, {chosen} of them the baseline.",
        ),
        summary=(_times(baselines), pages.Text(items=facts)),
    )


def promoted_document(
    baselines: Sequence[Baseline],
    current: Mapping[str, str],
    promotions: Sequence[Promotion],
    registry: str,
) -> pages.Document:
    """Returns how long each operation of the baselines took, and the promotions, newest first."""
    rows = tuple(
        pages.Row(
            (
                str(promotion.number),
                f"{promotion.promoted_at:%Y-%m-%d %H:%M} UTC",
                f"{promotion.by.get('user', UNKNOWN)} on {promotion.by.get('host', UNKNOWN)}",
                _references(promotion.points),
                promotion.note,
            )
        )
        for promotion in reversed(promotions)
    )
    headings = pages.columns("promotion#", "when", "by", "what became the baseline~", "note~")
    said = _promoted({point: reference for point, reference in current.items() if reference})
    since = ""
    if promotions:
        last = promotions[-1]
        note = f": {last.note}" if last.note else ""
        since = f", since {last.promoted_at:%Y-%m-%d %H:%M} UTC{note}"
    return pages.Document(
        about=f"Baseline of {registry}",
        headline=pages.Callout("", f"{said[0].upper()}{said[1:]}{since}."),
        summary=(_times(baselines),),
        following=None if promotions else _choose(registry),
        details=(pages.Details("Promotions", (pages.Table(headings, rows),)),),
    )


def _times(baselines: Sequence[Baseline]) -> pages.Table:
    """Returns how long each operation of points took, in groups by point."""

    def rows(baseline: Baseline) -> Iterator[pages.Row]:
        name = f"{baseline.records[0].point_name} {baseline.point_id}"
        for operation, times in seconds_per_repeat(baseline.records).items():
            median, apart = pages.seconds(statistics.median(times)), pages.percent(spread(times))
            yield pages.Row((operation, str(len(times)), median, apart), pages.code(name))

    columns = pages.columns("operation`", "n#", "median#", "spread#")
    return pages.Table(columns, tuple(row for each in baselines for row in rows(each)))


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


def _block(provenance: Mapping[str, Any], name: str) -> Mapping[str, Any]:
    found = provenance.get(name)
    return found if isinstance(found, Mapping) else {}
