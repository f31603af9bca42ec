"""Command lines of ours in manifests and scripts, and the real parser, which runs none of them."""

import re
import shlex
from collections.abc import Iterator, Sequence
from typing import Any

import typer

from orbax_bench_core.cli.main import app

_PROGRAM = re.compile(r"(.*/)?orbax-bench|orbax_bench_core\.cli")


def parse(words: Sequence[str]) -> str:
    """Reads a command line, without the program, and returns the path of its command.

    Raises:
        click.UsageError: It has an option or an argument that the command does not take.
    """
    command: Any = typer.main.get_command(app)
    context = command.make_context("orbax-bench", [*words])
    while hasattr(command, "resolve_command"):
        given = [*context._protected_args, *context.args]
        name, command, left = command.resolve_command(context, given)
        context = command.make_context(name, left, parent=context)
    return str(context.command_path)


def command_lines(found: Any) -> Iterator[list[str]]:
    """Yields the command lines of ours, without the program, in a document of YAML or in a text."""
    if isinstance(found, str):
        for line in found.replace("\\\n", " ").splitlines():
            yield from _of_line(line)
    elif isinstance(found, dict):
        words = [word for key in ("command", "args") for word in found.get(key, ())]
        yield from command_lines(shlex.join(words))
        yield from command_lines([each for key, each in found.items() if key != "args"])
    elif isinstance(found, list):
        for each in found:
            yield from command_lines(each)


def _of_line(line: str) -> Iterator[list[str]]:
    if "orbax" not in line:
        return
    lexer = shlex.shlex(line, posix=True, punctuation_chars=True)
    lexer.whitespace_split = True
    words = list(lexer)
    for at, word in enumerate(words):
        if " " in word:
            yield from command_lines(word)  # a shell's
        elif _PROGRAM.fullmatch(word):
            end = (i for i, each in enumerate(words) if i > at and set(each) <= set("();<>|&"))
            ours = words[at + 1 : next(end, None)]
            if ours and re.fullmatch(r"[a-z][a-z-]*", ours[0]):
                yield ours
