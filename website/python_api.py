"""The Python reference, from the docstrings of the doors that users import from."""

from __future__ import annotations

import dataclasses
import functools
import importlib
import inspect
import re
import types
from collections.abc import Iterator
from typing import Any, Final

import docstring_parser

DOORS: Final = (
    "orbax_bench_core",
    "orbax_bench_core.authoring",
    "orbax_bench_core.measure",
    "orbax_bench_core.testing",
    "orbax_bench_core.plan",
    "orbax_bench_core.inspection",
)
"""Packages whose names stay where they are; the first is where a notebook begins."""

_HEAD = """\
# Python reference

The names that scripts, notebooks and benchmarks import, with what their docstrings say. [From
Python](../python.md) shows them at work. This page is generated: change a docstring, then run
`python -m website`. Names that are not here may move between releases. Constants of metrics are in
[the metric reference](../metrics.md).
"""
_OWN: Final = ("self", "cls")
_LONGEST_DEFAULT: Final = 24
"""Characters; what is longer is an object, which tells no reader anything."""
_ROLES: Final = re.compile(r":\w+:`~?\.?([^`]+)`")


def api_page() -> str:
    """Returns the page as Markdown."""
    lines = [_HEAD]
    for door in DOORS:
        module = importlib.import_module(door)
        lines += [f"## {door}", "", *_prose(inspect.getdoc(module) or "")]
        for name in sorted(module.__all__, key=str.lower):
            if not name.startswith("__") and not name.isupper():
                lines += _entry(name, getattr(module, name))
    return "\n".join(lines).rstrip() + "\n"


def _entry(name: str, value: Any) -> Iterator[str]:
    """Yields the lines on one name of a door."""
    yield f"### {name}"
    yield ""
    if inspect.isclass(value):
        yield from _class(name, value)
    elif callable(value) and not isinstance(value, types.GenericAlias):
        yield from _callable(name, value)
    else:
        yield from ("```python", f"{name} = {_short(repr(value))}", "```", "")


def _class(name: str, value: type) -> Iterator[str]:
    text = docstring_parser.parse(inspect.getdoc(value) or "", style=docstring_parser.Style.GOOGLE)
    yield from _described(text)
    if not issubclass(value, BaseException) and (fields := _fields_without_words(value, text)):
        yield from (f"Also has {', '.join(f'`{field}`' for field in fields)}.", "")
    for method, given in vars(value).items():
        function = given.__func__ if isinstance(given, staticmethod | classmethod) else given
        if method.startswith("_") or not inspect.getdoc(function):
            continue
        if isinstance(function, property | functools.cached_property):
            yield from (f"`{name}.{method}`: {_first_line(function)}", "")
        elif inspect.isfunction(function):
            yield from _callable(f"{name}.{method}", function)


def _fields_without_words(value: type, text: docstring_parser.Docstring) -> list[str]:
    """Returns the public fields of a dataclass of which its docstring says nothing."""
    if not dataclasses.is_dataclass(value):
        return []
    known = {parameter.arg_name for parameter in text.params}
    return [
        field.name
        for field in dataclasses.fields(value)
        if field.name not in known and not field.name.startswith("_")
    ]


def _callable(name: str, function: Any) -> Iterator[str]:
    yield from ("```python", f"{name}{_signature(function)}", "```", "")
    yield from _described(
        docstring_parser.parse(inspect.getdoc(function) or "", style=docstring_parser.Style.GOOGLE)
    )


def _described(text: docstring_parser.Docstring) -> Iterator[str]:
    """Yields what a docstring says, with what it takes, gives and raises."""
    yield from _prose(text.short_description or "")
    yield from _prose(text.long_description or "")
    rows = [
        (f"`{parameter.arg_name}`", parameter.description or "")
        for parameter in text.params
        if not parameter.arg_name.startswith("_")
    ]
    rows += [(f"raises `{error.type_name}`", error.description or "") for error in text.raises]
    if text.returns and text.returns.description:
        rows.append(("returns", text.returns.description))
    if rows:
        yield from ("| name | meaning |", "|---|---|")
        for head, meaning in rows:
            cell = " ".join(meaning.split()).replace("|", "\\|")
            yield f"| {head} | {_safe(cell)} |"
        yield ""


def _prose(text: str) -> Iterator[str]:
    for paragraph in filter(str.strip, text.split("\n\n")):
        if paragraph.startswith((">>>", "    ")):
            yield from ("```text", inspect.cleandoc(f"\n{paragraph}"), "```", "")
        else:
            yield from (_safe(_ROLES.sub(r"`\1`", paragraph)), "")


def _safe(text: str) -> str:
    """Returns text in which what is outside of code is no markup of links or tags."""
    parts = text.replace("``", "`").split("`")
    for index in range(0, len(parts), 2):
        parts[index] = parts[index].replace("[", "\\[").replace("<", "\\<")
    return "`".join(parts)


def _first_line(described: Any) -> str:
    return _safe((inspect.getdoc(described) or "").split("\n\n", maxsplit=1)[0].replace("\n", " "))


def _signature(function: Any) -> str:
    """Returns the signature in one line, without the modules of its types and long defaults."""
    try:
        signature = inspect.signature(function)
    except (TypeError, ValueError):
        return "(...)"
    shown = [
        _parameter(parameter)
        for name, parameter in signature.parameters.items()
        if name not in _OWN
    ]
    kinds = [parameter.kind for name, parameter in signature.parameters.items() if name not in _OWN]
    if inspect.Parameter.KEYWORD_ONLY in kinds and inspect.Parameter.VAR_POSITIONAL not in kinds:
        shown.insert(kinds.index(inspect.Parameter.KEYWORD_ONLY), "*")
    result = signature.return_annotation
    gives = "" if result is inspect.Signature.empty else f" -> {_type(result)}"
    return f"({', '.join(shown)}){gives}"


def _parameter(parameter: inspect.Parameter) -> str:
    text = parameter.name
    if parameter.kind is inspect.Parameter.VAR_POSITIONAL:
        text = f"*{text}"
    elif parameter.kind is inspect.Parameter.VAR_KEYWORD:
        text = f"**{text}"
    if parameter.annotation is not inspect.Parameter.empty:
        text += f": {_type(parameter.annotation)}"
    if parameter.default is not inspect.Parameter.empty:
        default = repr(parameter.default)
        text += f" = {default if len(default) <= _LONGEST_DEFAULT else '...'}"
    return text


def _type(annotation: Any) -> str:
    """Returns a type without the modules of its names."""
    text = annotation if isinstance(annotation, str) else str(inspect.formatannotation(annotation))
    return re.sub(r"\b(?:[A-Za-z_]\w*\.)+(?=[A-Za-z_])", "", text)


def _short(text: str) -> str:
    return text if len(text) <= _LONGEST_DEFAULT * 4 else "..."
