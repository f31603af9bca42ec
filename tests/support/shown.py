"""What every answer for people must have: one headline in each place, few lines, all numbers."""

import copy
import io
import re
import shlex

import typer
from rich.console import Console

from orbax_bench_core import pages
from orbax_bench_core.cli.main import app
from tests.support.pages import Outline, assert_whole

_MOST_LINES = 20
_MOST_BYTES = 60_000


def terminal(document, *, width=80, details=False):
    """Returns what a terminal of so many columns shows."""
    file = io.StringIO()
    console = Console(file=file, width=width, force_terminal=True, color_system=None)
    pages.print_document(document, console, details=details)
    return file.getvalue()


def next_command(printed):
    """Returns the words after `orbax-bench` of the command that an answer ends with."""
    (line,) = re.findall("^Next: orbax-bench (.*)$", printed, re.MULTILINE)
    return shlex.split(line)


def assert_accepted(printed):
    """Fails unless an answer ends with a command that the real parser takes, as it stands."""
    name, *words = next_command(printed)
    command = typer.main.get_command(app).get_command(None, name)
    assert command is not None, name
    command.make_context(name, list(words))  # which it empties
    assert not any(re.fullmatch("[A-Z]+", word) for word in words), words


def assert_tells(answer, document_of, *, unless=()):
    """Fails unless an answer is told as every one is, and every number of its data is shown.

    A number is shown where another one in its place makes another page. `unless` has the names of
    those that need not be.
    """
    page = assert_told(document_of(answer))
    data = answer.model_dump(mode="json")
    for place in _numbers(data, {"schema_version", *unless}):
        assert pages.to_html(document_of(_changed(answer, data, place))) != page, place


def assert_told(document):
    """Fails unless a document is told as every answer is; returns its page."""
    page, markdown, brief = (
        pages.to_html(document),
        pages.to_markdown(document),
        terminal(document),
    )
    assert_whole(page)
    assert "<script" not in page
    assert len(page.encode()) < _MOST_BYTES
    said = _one_line(document.headline.said)
    (h1,) = re.findall(r"<h1>(.*?)</h1>", page, re.DOTALL)
    assert _one_line(Outline(f"<p>{h1}</p>").text) == said
    assert _one_line(re.sub(r"\\(.)", r"\1", markdown.splitlines()[0])) == f"# {said}"
    assert said in _one_line(brief)
    assert len(brief.splitlines()) < _MOST_LINES  # one more names the page
    if document.following is not None:
        assert brief.endswith(f"\nNext: {document.following.text}\n")
        if document.following.text.startswith("orbax-bench "):
            assert_accepted(brief)
    return page


def _one_line(text):
    return " ".join(text.replace("\xa0", " ").replace("`", "").split())


def _numbers(data, unless):
    """Yields the place of each number; of a long list that of its first and its last one."""
    if isinstance(data, dict):
        for key, value in data.items():
            if key not in unless:
                yield from ((key, *rest) for rest in _numbers(value, unless))
    elif isinstance(data, list):
        for index in range(len(data)) if len(data) < 10 else (0, len(data) - 1):
            yield from ((index, *rest) for rest in _numbers(data[index], unless))
    elif isinstance(data, int | float) and not isinstance(data, bool):
        yield ()


def _changed(answer, data, place):
    other = copy.deepcopy(data)
    inner = other
    for key in place[:-1]:
        inner = inner[key]
    number = inner[place[-1]]
    whole = isinstance(number, int)
    inner[place[-1]] = (
        number + max(1, number // 14) if whole else (1.07 * number if abs(number) > 1e-6 else 0.07)
    )
    return type(answer).model_validate(other)
