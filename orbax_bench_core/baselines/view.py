"""What a registry of baselines holds, as tables."""

from __future__ import annotations

import collections
import statistics
import string
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, Final

from orbax_bench_core.baselines.model import Baseline, Capture, Promotion
from orbax_bench_core.document import percent, seconds
from orbax_bench_core.records import UNKNOWN, seconds_per_repeat

if TYPE_CHECKING:
    from rich.console import Console
    from rich.table import Table

_COMMIT: Final = 40
_SHORT_COMMIT: Final = 12
_SEVERAL: Final = 4
_CHANGES: Final = 10


def print_captures(
    captures: Sequence[Capture], current: Mapping[str, str], console: Console
) -> None:
    """Prints captures, the newest first, and how many of their points are the baseline.

    Args:
        captures: The captures.
        current: Reference of the capture that is each point's baseline, by point id.
        console: Where to.
    """
    table = _table("id", "revision", "suite", "points", "arm", "measured", "orbax", "baseline of")
    promoted = collections.Counter(current.values())
    for capture in reversed(captures):
        chosen = promoted[capture.reference]
        _row(
            table,
            capture.id,
            short(capture.revision),
            capture.suite,
            str(len(capture.points)),
            capture.arm or "–",
            f"{capture.measured_at:%Y-%m-%d %H:%M}",
            version(capture.provenance, "orbax-checkpoint"),
            "" if not chosen else "all" if chosen == len(capture.points) else f"{chosen} of them",
        )
    console.print(table)
    if not current:
        console.print("[dim]No capture is the baseline yet: choose one with `promote`.[/]")


def print_capture(
    capture: Capture, baselines: Sequence[Baseline], current: Mapping[str, str], console: Console
) -> None:
    """Prints one capture: what ran, on what, and how long it took.

    Args:
        capture: The capture.
        baselines: Its points.
        current: Reference of the capture that is each point's baseline, by point id.
        console: Where to.
    """
    arm = f", {capture.arm} arm" if capture.arm else ""
    facts = {
        "suite": capture.suite,
        "run": f"{capture.run_id}{arm}, {capture.measured_at:%Y-%m-%d %H:%M} UTC",
        "captured": f"{capture.captured_at:%Y-%m-%d %H:%M} UTC",
        "code": code(capture.provenance),
        "versions": versions(capture.provenance),
        "machine": machine(capture.provenance),
    }
    console.print(capture.reference, style="bold", markup=False, highlight=False)
    for name, fact in facts.items():
        console.print(f"  {name:9} {fact}", markup=False, highlight=False, soft_wrap=True)
    console.print()
    print_points(baselines, current, console, own=capture.reference)


def print_points(
    baselines: Sequence[Baseline], current: Mapping[str, str], console: Console, *, own: str = ""
) -> None:
    """Prints how long each operation of each point took.

    Args:
        baselines: The points.
        current: Reference of the capture that is each point's baseline, by point id.
        console: Where to.
        own: The capture that all of them are of; empty when they are the baselines.
    """
    for baseline in baselines:
        chosen = current.get(baseline.point_id, "none")
        said = f"from {chosen}" if not own else "the baseline" if chosen == own else ""
        name = f"{baseline.records[0].point_name} {baseline.point_id} {said}".rstrip()
        console.print(name, markup=False, highlight=False, soft_wrap=True)
        table = _table("", "operation", "n", "median", "spread")
        for operation, times in seconds_per_repeat(baseline.records).items():
            _row(
                table,
                "",
                operation,
                str(len(times)),
                seconds(statistics.median(times)),
                percent(_spread(times)),
            )
        console.print(table)


def print_promotions(promotions: Sequence[Promotion], console: Console) -> None:
    """Prints the last promotions, the newest first.

    Args:
        promotions: All promotions, in order.
        console: Where to.
    """
    table = _table("promotion", "when", "by", "what became the baseline", "note")
    for promotion in reversed(promotions[-_CHANGES:]):
        _row(
            table,
            str(promotion.number),
            f"{promotion.promoted_at:%Y-%m-%d %H:%M} UTC",
            f"{promotion.by.get('user', UNKNOWN)} on {promotion.by.get('host', UNKNOWN)}",
            _became(promotion),
            promotion.note,
        )
    console.print(table)
    if len(promotions) > _CHANGES:
        console.print(f"[dim]and {len(promotions) - _CHANGES} earlier ones; --json has all.[/]")


def short(revision: str) -> str:
    """Returns a revision, a full commit cut short."""
    is_commit = len(revision) == _COMMIT and set(revision) <= set(string.hexdigits)
    return revision[:_SHORT_COMMIT] if is_commit else revision


def version(provenance: Mapping[str, Any], package: str) -> str:
    """Returns the version of a package that ran, or `unknown`."""
    return str(_block(provenance, "versions").get(package, UNKNOWN))


def versions(provenance: Mapping[str, Any]) -> str:
    """Returns every version that is known."""
    found = _block(provenance, "versions").items()
    return ", ".join(f"{name} {value}" for name, value in found if value != UNKNOWN) or UNKNOWN


def code(provenance: Mapping[str, Any]) -> str:
    """Returns the commit of the code that ran, and whether it had been changed."""
    git = _block(provenance, "git")
    commit = short(str(git.get("commit", UNKNOWN)))
    return f"{commit}, with changes" if git.get("dirty") is True else commit


def machine(provenance: Mapping[str, Any]) -> str:
    """Returns what it ran on: CPU, device unless that is the CPU, and kind of storage."""
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


def _spread(times: Sequence[float]) -> float | None:
    if len(times) < 2:
        return None
    low, _, high = statistics.quantiles(times, n=4, method="inclusive")
    return (high - low) / statistics.median(times)


def _row(table: Table, *cells: str) -> None:
    """Adds a row whose text is no markup: names of points have brackets."""
    from rich.markup import escape

    table.add_row(*map(escape, cells))


def _table(*headings: str) -> Table:
    from rich import box
    from rich.table import Table

    table = Table(box=box.SIMPLE, show_edge=False, pad_edge=False)
    for heading in headings:
        right = heading in ("points", "n", "median", "spread")
        table.add_column(
            heading,
            justify="right" if right else "left",
            overflow="fold",
            no_wrap=heading == "id",
        )
    return table
