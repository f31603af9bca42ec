"""`orbax-bench prune`: remove old runs, captures and states of suites that nobody uses."""

import json
import sys
from typing import Annotated, Final

import typer

from orbax_bench_core.cli.results import results_console
from orbax_bench_core.cli.watch import parse_time
from orbax_bench_core.exit_codes import exit_code

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
        int, typer.Option(min=1, help="Keep this many of the newest of each suite, however old.")
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

    A run, or a capture of a registry, is removed if it is older than --keep and not among the
    newest --keep-last of its suite. With a suite's last run goes its last notified state. Never
    removed are runs that a process is measuring, captures that are the baseline of a point or were
    before the last promotion, and whatever a remaining run was compared with: name the registry and
    the folders of the runs that use it in one call.

    orbax-bench prune nightly baselines

    orbax-bench prune nightly baselines --keep 52w --keep-last 60 --delete

    Exit codes: 0; 1 something could not be read or removed, which is named and stays; 2 a DIR has
    no runs or captures.
    """
    from orbax_bench_core.steps import Pruning

    found = Pruning.of(
        places, keep=parse_time(keep, "--keep"), keep_last=keep_last, spared=spared or ()
    )
    outcomes = list(found.remove()) if delete else [(each, "") for each in found.old]
    gone = [each for each, why in outcomes if not why]
    failed = [(each, why) for each, why in outcomes if why]
    if as_json:
        said = {
            "deleted": delete,
            "old": [each.fields for each in gone],
            "failed": [{**each.fields, "why": why} for each, why in failed],
            "in_use": [each.fields for each in found.in_use],
            "recent": found.recent,
            "unread": list(found.unread),
        }
        print(json.dumps(said, indent=2))
    else:
        console = results_console()
        lines = [
            *(f"{'removed' if delete else 'old'} {each}" for each in gone),
            *(f"in use {each}: {each.why}" for each in found.in_use),
            _sum(len(gone), sum(each.size or 0 for each in gone), found.recent, delete=delete),
        ]
        for line in lines:
            console.print(line, markup=False, highlight=False, soft_wrap=True)
    for each, why in failed:
        print(f"error: {each.place} stays: {why}", file=sys.stderr)
    for line in found.unread:
        print(f"error: {line}; it stays", file=sys.stderr)
    raise typer.Exit(exit_code(incomplete=bool(failed or found.unread)))


def _sum(count: int, size: int, recent: int, *, delete: bool) -> str:
    said = "removed" if delete else "would be removed"
    more = "" if delete or not count else "; nothing is removed without --delete"
    return f"{count} {said}, {size / _MEBI:,.1f} MiB; {recent} are recent{more}"
