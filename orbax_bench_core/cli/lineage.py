"""`orbax-bench lineage`: from a verdict back to samples, records, checkpoint, image and suite."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Annotated, Final

import typer

from orbax_bench_core.cli.arguments import results_console
from orbax_bench_core.exit_codes import exit_code

if TYPE_CHECKING:
    from rich.text import Text
    from rich.tree import Tree

    from orbax_bench_core.lineage import Link, Status


_MARKS: Final[dict[Status, tuple[str, str]]] = {
    "unchanged": ("✓ unchanged", "green"),
    "changed": ("✗ changed since", "red"),
    "missing": ("✗ missing", "red"),
    "not recorded": ("✗ not recorded", "red"),
    "not checked": ("", ""),
    "unknown": ("? unknown", "yellow"),
}
_DIGITS: Final = len("sha256:") + 12
_SHOWN: Final = 10


def lineage(
    given: Annotated[
        str,
        typer.Argument(
            metavar="ARTIFACT_OR_DIR",
            help="A run directory or a file in one, a capture of a registry, what a step of a "
            "local pipeline run wrote, or the name of an artifact in Vertex ML Metadata.",
        ),
    ],
    as_json: Annotated[bool, typer.Option("--json", help="Print the chain as JSON.")] = False,
    deep: Annotated[
        bool,
        typer.Option(
            "--deep",
            help="Read all bytes of checkpoints, not names, sizes and metadata files alone.",
        ),
    ] = False,
    endpoint: Annotated[
        str | None,
        typer.Option(metavar="URL", help="Another address of Vertex AI than that of the location."),
    ] = None,
) -> None:
    """Trace a verdict to what it was made from, and check that none of it has changed.

    Every digest is computed again and compared with the one that was noted when the next thing was
    made. "Unchanged" is what was read in this call, byte by byte; arrays of a checkpoint are read
    with --deep. A run directory needs no network.

    orbax-bench lineage results

    orbax-bench lineage results/verdicts.json --json

    orbax-bench lineage results --deep

    orbax-bench lineage projects/P/locations/L/metadataStores/default/artifacts/ID

    Exit codes: 0 all that was read is as it was; 1 something has changed, is missing or was never
    recorded, or a file among the records is not read as one; 2 this has no lineage.
    """
    from orbax_bench_core.lineage import trace

    chain = trace(given, endpoint, deep=deep)
    if as_json:
        print(json.dumps(_document(given, chain), indent=2))
    else:
        print_chain(chain)
    raise typer.Exit(exit_code(incomplete=chain.broken or chain.lacks_records))


def _document(given: str, chain: Link) -> dict[str, object]:
    return {"given": given, "unchanged": chain.unchanged, "chain": chain.as_json()}


def print_chain(chain: Link) -> None:
    """Prints a chain, and what to do when it is broken."""
    console = results_console()
    console.print(_tree(chain), soft_wrap=False)  # whole branches, on as many lines as they need
    left_out = dict.fromkeys(line for link in chain.all_links() for line in link.left_out)
    for line in left_out:
        console.print(f"left out {line}", markup=False, highlight=False, soft_wrap=True)
    if any(link.status == "not recorded" for link in chain.all_links()):
        console.print(
            "What is not recorded was published by an earlier release, or never: `orbax-bench "
            "report DIR` notes what is there now.",
            markup=False,
            highlight=False,
        )


def _tree(link: Link, parent: Tree | None = None) -> Tree:
    from rich.tree import Tree

    tree = Tree(_line(link)) if parent is None else parent.add(_line(link))
    for each in link.made_from[:_SHOWN]:
        _tree(each, tree)
    if len(link.made_from) > _SHOWN:
        tree.add(f"and {len(link.made_from) - _SHOWN} more; --json has all")
    return tree


def _line(link: Link) -> Text:
    from rich.text import Text

    line = Text(link.what, style="bold")
    line.append(f" {link.name}", style="not bold")
    mark, style = _MARKS[link.status]
    if link.compared:
        mark = f"{mark.partition(' ')[0]} {link.compared}"
    if mark:
        line.append(f"  {mark}", style=f"not bold {style}")
    digest = link.digest or link.recorded
    if digest not in ("", "unknown"):
        line.append(f"  {digest[:_DIGITS]}", style="not bold cyan")
    if link.status == "changed":
        line.append(f" was {link.recorded[:_DIGITS]}", style="not bold cyan")
    for name, value in link.details.items():
        line.append(f"  {name} {_short(value)}", style="not bold dim")
    return line


def _short(value: str) -> str:
    return value[:12] if len(value) == 64 and value.isalnum() else value
