"""A chain of lineage as a tree on the terminal."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from orbax_bench_core.cli.output import results_console

if TYPE_CHECKING:
    from rich.text import Text
    from rich.tree import Tree

    from orbax_bench_core.results.lineage_chain import Link, Status

_MARKS: Final[dict[Status, tuple[str, str]]] = {
    "unchanged": ("✓ unchanged", "green"),
    "changed": ("✗ changed since", "red"),
    "missing": ("✗ missing", "red"),
    "not recorded": ("✗ not recorded", "red"),
    "not checked": ("", ""),
}
_DIGITS: Final = len("sha256:") + 12
_SHOWN: Final = 10


def print_chain(chain: Link) -> None:
    """Prints a chain, and what to do when it is broken."""
    console = results_console()
    console.print(_tree(chain), soft_wrap=False)  # whole branches, on as many lines as they need
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
