"""Adding keys to the text of a suite, for what a command line adds to a file."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

import yaml

from orbax_bench_core.config.errors import SuiteError
from orbax_bench_core.config.source import Source


def with_keys(text: str, keys: Mapping[str, Any], file: str = "") -> str:
    """Returns the text of a suite with more keys at its top level.

    The keys go to the end, so that messages still name the lines of the file.

    Args:
        text: The suite.
        keys: What to add, plain data.
        file: Where the text came from, for messages.

    Raises:
        SuiteError: The text is not a mapping, or has one of the keys.
    """
    source = Source(text, file)
    if not isinstance(source.data, dict):
        raise SuiteError(source.problem("a suite is a mapping of keys to values", ()))
    if present := [key for key in keys if key in source.data]:
        raise SuiteError(
            source.problem("given in the file as well as on the command line", (present[0],))
        )
    lines = [f"{key}: {json.dumps(value)}" for key, value in keys.items()]
    appended = "\n".join([text.rstrip("\n"), *lines]) + "\n"
    try:
        if yaml.safe_load(appended) == {**source.data, **keys}:
            return appended
    except yaml.YAMLError:
        pass  # a suite in braces, or with an end marker, cannot be added to at its end
    return yaml.safe_dump({**source.data, **keys}, sort_keys=False)
