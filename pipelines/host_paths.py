"""Which folders of this machine the containers of a pipeline must see."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any

from orbax_bench_core.config import UserError, checked_path, parse_suite

_OF_THE_IMAGE = frozenset(
    Path("/", name)
    for name in (
        *("", "bin", "dev", "etc", "lib", "lib64", "opt", "opt/orbax-bench"),
        *("proc", "run", "sbin", "sys", "usr", "var"),
    )
)
"""Folders that cannot be handed to a container whole: they would hide the image's own files."""


def host_paths(arguments: Mapping[str, Any], environment: Mapping[str, str]) -> dict[Path, bool]:
    """Returns the paths that steps use on this machine, and whether they write there.

    They are the run directory, baselines and their registry, a passport, earlier runs, every local
    path in a suite, the folders of benchmark classes, and the credentials of Google Cloud. The run
    directory is made here, so that it belongs to the caller. Paths that do not exist yet are stood
    for by the nearest folder that does.

    Args:
        arguments: Parameters of a pipeline: `output_directory`, `registry`, `passport`, `baseline`,
            `earlier`, `suite` and `fixture` are looked at if they are there.
        environment: Variables of this process.

    Raises:
        UserError: The run directory is a folder that the image has itself.
    """
    found: dict[Path, bool] = {}
    if output := _local(arguments.get("output_directory", "")):
        if output in _OF_THE_IMAGE:
            raise UserError(
                f"a container cannot write its results to {output}: that would hide the files of "
                "its image; name a folder below it"
            )
        output.mkdir(parents=True, exist_ok=True)
        found[output] = True
    for suite in ("suite", "fixture"):
        found |= dict.fromkeys(_paths_in(arguments.get(suite, "")), True)
    for written in ("registry", "passport"):
        found |= dict.fromkeys(_existing([arguments.get(written, "")]), True)
    for path in (
        *_existing([arguments.get("baseline", ""), arguments.get("earlier", "")]),
        *_existing(environment.get("PYTHONPATH", "").split(os.pathsep)),
        *_existing([environment.get("GOOGLE_APPLICATION_CREDENTIALS", "")]),
    ):
        found.setdefault(path, False)
    return found


def _paths_in(suite_text: str) -> Iterator[Path]:
    if suite_text:
        suite = parse_suite(suite_text).suite.model_dump(mode="json")
        yield from _existing(text for text in _texts(suite) if text.startswith("/"))


def _texts(value: Any) -> Iterator[str]:
    if isinstance(value, str):
        yield value
    elif isinstance(value, Mapping):
        for item in value.values():
            yield from _texts(item)
    elif isinstance(value, list):
        for item in value:
            yield from _texts(item)


def _existing(paths: Iterable[str]) -> Iterator[Path]:
    for given in paths:
        path = _local(given)
        while path is not None and not path.exists():
            path = path.parent
        if path is not None and path not in _OF_THE_IMAGE:
            yield path


def _local(path: str) -> Path | None:
    return None if not path or "://" in path else Path(checked_path(path))
