"""The command reference, from the help that the commands print."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

_HEAD = """\
# Commands

Every command, argument and option, in the words of `--help`. This page is generated: change the
help where the command is, then run `python -m website`. What the exit codes mean is on [one
page](../ci.md#exit-codes).
"""


def commands_page() -> str:
    """Returns the page as Markdown."""
    import typer

    from orbax_bench_core.cli.main import app

    root: Any = typer.main.get_command(app)
    context = root.make_context("orbax-bench", ["--help"], resilient_parsing=True)
    lines = [_HEAD]
    for name in root.list_commands(context):
        lines += _section(root.get_command(context, name), f"orbax-bench {name}", context, 2)
    return "\n".join(lines).rstrip() + "\n"


def _section(command: Any, name: str, parent: Any, level: int) -> Iterator[str]:
    """Yields the lines on a command and on those below it."""
    context = command.make_context(name, ["--help"], resilient_parsing=True, parent=parent)
    yield f"{'#' * level} {name}"
    yield ""
    for paragraph in (command.help or "").split("\n\n"):
        yield from _paragraph(paragraph)
    usage = " ".join(command.collect_usage_pieces(context))
    yield from ("```text", f"{name} {usage}", "```", "")
    rows = [
        record
        for parameter in command.get_params(context)
        if (record := parameter.get_help_record(context))
    ]
    yield from ("| argument or option | meaning |", "|---|---|")
    for flag, text in rows:
        yield f"| `{_cell(flag)}` | {_escaped(_cell(text))} |"
    yield ""
    if hasattr(command, "list_commands"):
        if name == "orbax-bench step":
            yield from _by_option(command.commands)
        for below in command.list_commands(context):
            yield from _section(
                command.get_command(context, below), f"{name} {below}", context, level + 1
            )


def _by_option(commands: Mapping[str, Any]) -> Iterator[str]:
    """Yields a table of the commands that take each option."""
    taken: dict[str, list[str]] = {}
    for name, command in commands.items():
        for parameter in command.params:
            if parameter.opts[0].startswith("-"):
                taken.setdefault(parameter.opts[0], []).append(name)
    yield from ("| option | steps that take it |", "|---|---|")
    for option, names in sorted(taken.items(), key=lambda item: (-len(item[1]), item[0])):
        yield f"| `{option}` | {'all' if len(names) == len(commands) else ', '.join(names)} |"
    yield ""


def _paragraph(text: str) -> Iterator[str]:
    """Yields a paragraph of a help; a command that stands alone is a block of code."""
    joined = " ".join(text.replace("\b", "").split())
    if joined.startswith("orbax-bench ") and "." not in joined[-1:]:
        yield from ("```text", joined, "```", "")
    elif joined:
        yield from (_escaped(joined), "")


def _cell(text: str) -> str:
    return " ".join(text.split()).replace("|", "\\|")


def _escaped(text: str) -> str:
    """Returns plain text for Markdown: what is in backticks stays as it is."""
    parts = text.split("`")
    for index in range(0, len(parts), 2):
        for sign in "*_<[":
            parts[index] = parts[index].replace(sign, f"\\{sign}")
    return "`".join(parts)
