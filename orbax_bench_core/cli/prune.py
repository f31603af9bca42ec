"""`orbax-bench prune`: remove old runs, captures and states of suites that nobody uses."""

from __future__ import annotations

import dataclasses
import datetime
import json
import re
import sys
from typing import TYPE_CHECKING, Annotated, Any, Final

import typer

from orbax_bench_core.cli.results import results_console
from orbax_bench_core.exit_codes import exit_code

if TYPE_CHECKING:
    from orbax_bench_core.steps import Kept

_AGE: Final = re.compile(r"(?P<number>\d{1,6})(?P<unit>[hdw])")
_HOURS: Final = {"h": 1, "d": 24, "w": 168}
_MEBI: Final = 2**20


def prune(
    places: Annotated[
        list[str],
        typer.Argument(
            metavar="DIR...",
            help="Folders of run directories, up to two levels deep, folders of "
            "ORBAX_BENCH_NOTIFY_STATE, and registries of baselines; local or gs://.",
        ),
    ],
    keep: Annotated[
        str, typer.Option(metavar="AGE", help="Keep all that is younger: 90d, 12w or 36h.")
    ] = "90d",
    keep_last: Annotated[
        int, typer.Option(min=1, help="Keep as many of the newest of each suite, however old.")
    ] = 30,
    spared: Annotated[
        list[str] | None,
        typer.Option(
            "--except",
            metavar="DIR",
            help="Keep this run directory or capture, or all below this folder; repeatable.",
        ),
    ] = None,
    delete: Annotated[
        bool, typer.Option("--delete", help="Remove what is listed; without it nothing is removed.")
    ] = False,
    as_json: Annotated[bool, typer.Option("--json", help="Print what was found as JSON.")] = False,
) -> None:
    """Remove old runs and captures that nobody uses; without --delete only list them.

    A run goes when it is older than --keep and not among the newest --keep-last of its suite; so
    does a capture of a registry. The state that a suite was last notified of goes with its last
    run. Never removed are runs that a process measures into, captures that are the baseline of a
    point or were before the last promotion, and whatever a run that stays was compared with: name
    the registry and the folders of the runs that use it in one call.

    orbax-bench prune nightly baselines

    orbax-bench prune nightly baselines --keep 52w --keep-last 60 --delete

    Exit codes: 0; 1 something could not be read or removed, which is named and stays; 2 a place
    holds nothing of ours.
    """
    from orbax_bench_core.steps import find_old, remove_old

    age = _age(keep)
    found = find_old(places, keep=age, keep_last=keep_last, spared=spared or ())
    outcomes = list(remove_old(found, places)) if delete else [(each, "") for each in found.old]
    failed = [(each, why) for each, why in outcomes if why]
    if as_json:
        said = {
            "deleted": delete,
            "old": [_fields(each) for each, why in outcomes if not why],
            "failed": [{**_fields(each), "why": why} for each, why in failed],
            "in_use": [_fields(each) for each in found.in_use],
            "recent": found.recent,
            "unread": list(found.unread),
        }
        print(json.dumps(said, indent=2))
    else:
        console = results_console()
        lines = [
            *(_line("removed" if delete else "old", each) for each, why in outcomes if not why),
            *(f"{_line('in use', each)}: {each.why}" for each in found.in_use),
            _sum(outcomes, found.recent, delete=delete),
        ]
        for line in lines:
            console.print(line, markup=False, highlight=False, soft_wrap=True)
    for each, why in failed:
        print(f"error: {each.place} stays: {why}", file=sys.stderr)
    for line in found.unread:
        print(f"error: {line}; it stays", file=sys.stderr)
    raise typer.Exit(exit_code(incomplete=bool(failed or found.unread)))


def _age(text: str) -> datetime.timedelta:
    from orbax_bench_core.errors import UserError

    parts = _AGE.fullmatch(text.strip())
    if parts is None:
        raise UserError(f"--keep takes hours, days or weeks, such as 36h, 90d or 12w; got {text!r}")
    hours = int(parts["number"]) * _HOURS[parts["unit"]]
    try:
        age = datetime.timedelta(hours=hours)
        _ = datetime.datetime.now(datetime.UTC) - age
    except OverflowError:
        raise UserError(f"--keep {text}: that is before there were dates") from None
    return age


def _fields(each: Kept) -> dict[str, Any]:
    return {**dataclasses.asdict(each), "began_at": each.began_at.isoformat()}


def _line(word: str, each: Kept) -> str:
    size = "" if each.size is None else f", {each.size / _MEBI:,.1f} MiB"
    return f"{word} {each.what} {each.place} ({each.suite}, {each.began_at:%Y-%m-%d}{size})"


def _sum(outcomes: list[tuple[Kept, str]], recent: int, *, delete: bool) -> str:
    gone = [each for each, why in outcomes if not why]
    size = sum(each.size or 0 for each in gone) / _MEBI
    said = "removed" if delete else "would be removed"
    more = "" if delete or not gone else "; nothing is removed without --delete"
    return f"{len(gone)} {said}, {size:,.1f} MiB; {recent} are recent{more}"
