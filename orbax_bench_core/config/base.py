"""Base of a suite file's blocks: their model, their errors, and the messages of these."""

from __future__ import annotations

import contextlib
import math
from collections.abc import Iterable, Mapping
from types import NoneType
from typing import TYPE_CHECKING, Any, Final

import pydantic
import yaml
from pydantic.json_schema import GenerateJsonSchema, JsonSchemaValue
from pydantic_core import core_schema

from orbax_bench_core.errors import Problem, UserError, did_you_mean, shown

if TYPE_CHECKING:
    from orbax_bench_core.config.source import SuiteSource


class ConfigModel(pydantic.BaseModel):
    """A block of the suite file.

    Unknown keys and wrong types are errors: a misspelt key that is silently ignored measures
    something else than what its author believes.
    """

    model_config = pydantic.ConfigDict(extra="forbid", frozen=True, strict=True)


class DescribedSchema(GenerateJsonSchema):
    """Adds to the schema of a class what its docstring says of it and of each field."""

    def model_schema(self, schema: core_schema.ModelSchema) -> JsonSchemaValue:
        """Returns the schema of a model."""
        return _described(super().model_schema(schema), schema["cls"])

    def dataclass_schema(self, schema: core_schema.DataclassSchema) -> JsonSchemaValue:
        """Returns the schema of a dataclass."""
        return _described(super().dataclass_schema(schema), schema["cls"])


def meanings(class_: type) -> dict[str, str]:
    """Returns the first line of each attribute's docs in a class and its bases."""
    import docstring_parser

    found: dict[str, str] = {}
    for base in reversed(class_.__mro__):
        for parameter in docstring_parser.parse(base.__doc__ or "").params:
            found[parameter.arg_name] = " ".join((parameter.description or "").split())
    return found


def _described(schema: JsonSchemaValue, class_: type) -> JsonSchemaValue:
    import docstring_parser

    schema["description"] = docstring_parser.parse(class_.__doc__ or "").short_description
    known = meanings(class_)
    for name, field in schema.get("properties", {}).items():
        if name in known:
            field["description"] = known[name]
    return schema


TYPES: Final[Mapping[type, str]] = {
    bool: "true or false",
    int: "a whole number",
    float: "a number",
    str: "text",
    list: "a list",
    tuple: "a list",
    dict: "a mapping",
    NoneType: "null",
}
"""Types in the words of those who write a suite, not a program."""

_KINDS: Final = {
    "bool_type": TYPES[bool],
    "bool_parsing": TYPES[bool],
    "int_type": TYPES[int],
    "int_parsing": TYPES[int],
    "int_from_float": TYPES[int],
    "float_type": TYPES[float],
    "float_parsing": TYPES[float],
    "string_type": TYPES[str],
    "list_type": TYPES[list],
    "tuple_type": TYPES[tuple],
    "dict_type": TYPES[dict],
    "model_type": TYPES[dict],
    "string_pattern_mismatch": "letters, digits and . _ + - after a letter or digit",
}
"""What is expected, by kind of pydantic's error; the one pattern is that of names."""
_LENGTHS: Final = {
    "too_short": ("a list of at least", "min_length", "item"),
    "too_long": ("a list of at most", "max_length", "item"),
    "string_too_short": ("text of at least", "min_length", "character"),
    "string_too_long": ("text of at most", "max_length", "character"),
}


class SuiteError(UserError):
    """A suite file is wrong; of one that could be read, `source` is what stands in it."""

    def __init__(self, *problems: Problem | str, source: SuiteSource | None = None) -> None:
        super().__init__(*problems)
        self.source = source


def explain(detail: Any, fields: Iterable[str]) -> str:
    """Returns the message of one of `pydantic.ValidationError.errors()`."""
    kind, message = detail["type"], str(detail["msg"])
    if kind == "extra_forbidden":
        return f"unknown key; {did_you_mean(str(detail['loc'][-1]), fields)}"
    if kind == "missing":
        return "this key is required"
    if kind in ("value_error", "assertion_error"):
        return message.removeprefix("Value error, ")
    if kind == "invalid_key":
        hint = " (YAML reads a bare on, off, yes or no as true or false)"
        given = detail["input"]
        return f"a key is text, got {given!r}{hint if isinstance(given, bool) else ''}; quote it"
    if kind in _LENGTHS:
        words, bound, unit = _LENGTHS[kind]
        most = detail["ctx"][bound]
        return f"expected {words} {most} {unit}{'' if most == 1 else 's'}, got {_length(detail)}"
    if kind.endswith("_parsing"):  # of text that may be a number or truth value, and is none
        return f"expected {_KINDS[kind]}, got {shown(detail['input'])}"
    return mistyped(_KINDS.get(kind) or message.removeprefix("Input should be "), detail["input"])


def mistyped(expected: str, given: object) -> str:
    """Returns the message of a value of another type: what is allowed, given, and to be written."""
    written = next((word for word in (None, True, False) if word is given), ...)
    said = shown(given) if written is ... else yaml.safe_dump(written).split()[0]
    return f"expected {expected}, got {said}{_remedy(expected, given)}"


def _remedy(expected: str, given: object) -> str:
    if isinstance(given, str) and "number" in expected and (number := _number(given)) is not None:
        return f", which is text; write {number}"
    if isinstance(given, bool | int | float) and expected == TYPES[str]:
        return "; quote it"
    if isinstance(given, str | bool | int | float) and expected == TYPES[list]:
        return f"; write [{given}]"
    return ""


def _number(text: str) -> int | float | None:
    """Returns the number that a text means, such as 1e3, which YAML takes for text."""
    for kind in (int, float):
        with contextlib.suppress(ValueError):
            number = kind(text)
            return number if math.isfinite(number) else None
    return None


def is_consequence(detail: Any) -> bool:
    """Returns whether an error only follows from that of an item, which is told by itself."""
    return detail["type"] == "too_short" and _length(detail) >= int(detail["ctx"]["min_length"])


def _length(detail: Any) -> int:
    return len(detail["input"])
