"""Places that a run can be launched on, by the name that `--on` takes."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final

import pydantic
import yaml

from orbax_bench_core.config import ConfigModel, Problem, UserError, did_you_mean, explain
from orbax_bench_core.launchers.launch import Launch, Launcher
from orbax_bench_core.launchers.processes import Processes, ProcessesSettings


@dataclasses.dataclass(frozen=True, kw_only=True)
class Place:
    """One kind of place.

    Attributes:
        name: What `--on` takes.
        summary: One line for people.
        settings: Model of what can be set with `--set`.
        launcher: Makes the launcher of a launch and its settings. It checks what it is given and
            sends nothing.
    """

    name: str
    summary: str
    settings: type[ConfigModel]
    launcher: Callable[[Launch, Any], Launcher]


PLACES: Final[Mapping[str, Place]] = {
    place.name: place
    for place in (
        Place(
            name="processes",
            summary="several processes of this machine, each a host of its own",
            settings=ProcessesSettings,
            launcher=Processes,
        ),
    )
}
"""All places, in the order in which people are shown them."""


def place_named(name: str) -> Place:
    """Returns a place.

    Raises:
        UserError: There is none of that name.
    """
    if name not in PLACES:
        known = ", ".join(PLACES)
        hint = did_you_mean(name, PLACES)
        raise UserError(f"--on {name}: there is no such place; {hint} (all: {known})")
    return PLACES[name]


def place_settings(place: Place, pairs: Sequence[str]) -> ConfigModel:
    """Reads the settings of a place from `KEY=VALUE`, whose values are YAML.

    Raises:
        UserError: A key or a value is wrong; all are named at once.
    """
    fields = place.settings.model_fields
    problems, given = [], {}
    for pair in pairs:
        key, equals, value = pair.partition("=")
        try:
            given[key] = yaml.safe_load(value) if equals else None
        except yaml.YAMLError:
            equals = ""
        if not equals:
            problems.append(f"--set {pair}: give KEY=VALUE; {did_you_mean(key, fields)}")
    if problems:
        raise UserError(*problems)
    try:
        return place.settings.model_validate(given, strict=False)
    except pydantic.ValidationError as error:
        found = []
        for detail in error.errors():
            key = ".".join(map(str, detail["loc"]))
            found.append(Problem(explain(detail, fields), key=f"--on {place.name} --set {key}"))
        raise UserError(*found) from None
