"""Errors of a suite file, and the messages of its invalid keys."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, Final

from orbax_bench_core.errors import UserError, did_you_mean, shown

_KINDS: Final = {"tuple_type": "a list", "dict_type": "a mapping", "model_type": "a mapping"}


class SuiteError(UserError):
    """A suite file is wrong."""


def explain(detail: Any, fields: Iterable[str]) -> str:
    """Returns the message of one of `pydantic.ValidationError.errors()`.

    `fields` are the keys that are allowed where the error is.
    """
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
    expected = _KINDS.get(kind) or message.removeprefix("Input should be ")
    return f"expected {expected}, got {shown(detail['input'])}"
