"""Mistakes in the form of a YAML file, in the words of its author rather than of its parser."""

import re
from collections.abc import Callable
from typing import Final, NamedTuple

import yaml

from orbax_bench_core.errors import one_line, shown


class _Mistake(NamedTuple):
    """Where the parser has stopped, and the block, bracket or quotes that it was in."""

    problem: str  # in the words of the parser
    column: int  # from 0
    character: str  # at that place; empty at the end of the file
    tab: bool  # whether a tab stands in the line up to there
    since: int  # line in which what is unfinished begins, from 1
    inside: int  # column at which it begins

    @property
    def stray(self) -> str:
        """What to say of a line that no block takes."""
        if self.column == self.inside:
            return (
                f"`{self.character}` begins a line among others of another kind, from line "
                f"{self.since} on: the lines of a block are all keys (`key: value`) or all items "
                "(`- value`)"
            )
        return (
            f"indented by {self.column}, and the lines of its block, from line {self.since} on, by "
            f"{self.inside}: indent all of them alike"
        )


_Said = str | Callable[[_Mistake], str]

_AFTER_A_VALUE: Final = (
    "text after the end of a value: put the whole value in quotes, or begin a new line"
)
_SECOND_KEY: Final = (
    "a second `key:` where one value stands: keys of one block begin in one column; the line "
    "above may lack its colon, or the space after it; a text with `: ` in it stands in quotes"
)
_LIST_AS_KEY: Final = (
    "a key that is itself a list or mapping, as `{{ name }}` of a template is: keys are plain text"
)
_UNKNOWN_ESCAPE: Final = (
    "a backslash in double quotes that begins no escape: write `\\\\`, or take single quotes"
)
_MESSAGES: Final[tuple[tuple[str, _Said], ...]] = (
    (r"mapping values are not allowed", _SECOND_KEY),
    (r"expected <block end>, but found '<(scalar|anchor|tag|alias)>'", _AFTER_A_VALUE),
    (r"expected <block end>|did not find expected (key|'-' indicator)", lambda at: at.stray),
    (
        r"could not find expected ':'",
        lambda at: f"line {at.since} has no colon: write `key: value`",
    ),
    (
        r"quoted scalar, found unexpected end of stream",
        lambda at: f"the quotes that line {at.since} opens are never closed",
    ),
    (r"unknown escape character", _UNKNOWN_ESCAPE),
    (
        r"flow (mapping|sequence), .*expected ','",
        lambda at: (
            f"the bracket that line {at.since} opens is not closed, or a comma is missing in it"
        ),
    ),
    (
        r"expected the node content|did not find expected node content",
        lambda at: (
            f"a value is missing before {shown(at.character)}"
            if at.character.strip()
            else "the text ends within brackets: close them"
        ),
    ),
    (
        r"cannot start any token|tab character that violates",
        lambda at: (
            "a tab where YAML takes only spaces: indent by two spaces for each level"
            if at.tab
            else f"a value cannot begin with {shown(at.character)}: put it in quotes"
        ),
    ),
    (
        r"undefined alias|scanning an (alias|anchor)",
        lambda at: (
            f"{at.problem}: `*name` repeats the value that `&name` marks above it; put a text that "
            "begins with `*` or `&` in quotes"
        ),
    ),
    (r"another document", "a second document: a suite is one, without a `---` in between"),
    (r"unhashable key", _LIST_AS_KEY),
    (
        r"could not determine a constructor",
        lambda at: f"{at.problem}: only plain YAML data is read, remove the tag",
    ),
)


def explained(error: yaml.MarkedYAMLError, text: str) -> tuple[str, int | None]:
    """Returns the mistake, the allowed form, and the line if that is known, from 1."""
    said = one_line(", ".join(filter(None, [error.context, error.problem])))
    mark = error.problem_mark or error.context_mark
    if mark is None:
        return said, None
    lines = [*text.splitlines(), ""]
    line = lines[min(mark.line, len(lines) - 1)]
    begun = error.context_mark or mark
    at = _Mistake(
        problem=str(error.problem),
        column=mark.column,
        character=line[mark.column : mark.column + 1],
        tab="\t" in line[: mark.column + 1],
        since=begun.line + 1,
        inside=begun.column,
    )
    for pattern, wanted in _MESSAGES:
        if re.search(pattern, said):
            return (wanted if isinstance(wanted, str) else wanted(at)), mark.line + 1
    return said, mark.line + 1
