"""Places that a run can be launched on, by the name that `--on` takes."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final

import pydantic

from orbax_bench_core.config import ConfigModel, SuiteError, explain, read_value
from orbax_bench_core.errors import Problem, UserError, did_you_mean, shortened
from orbax_bench_core.launchers.jobset import JobSet, JobSetSettings
from orbax_bench_core.launchers.launch import Launch, Launcher
from orbax_bench_core.launchers.pathways import Pathways, PathwaysSettings
from orbax_bench_core.launchers.processes import Processes, ProcessesSettings
from orbax_bench_core.launchers.ray import Ray, RaySettings
from orbax_bench_core.launchers.tpu_vm import TpuVm, TpuVmSettings
from orbax_bench_core.launchers.vertex import Vertex, VertexSettings
from orbax_bench_core.launchers.xpk import Xpk, XpkSettings


@dataclasses.dataclass(frozen=True, kw_only=True)
class Place:
    """One kind of place.

    Attributes:
        name: What `--on` takes.
        summary: One line for people.
        settings: Model of what can be set with `--set`.
        launcher: Makes the launcher of a launch and its settings. It checks what it is given and
            sends nothing.
        one_process: Says of settings whether a single process drives all hosts, so that slices do
            not say how many processes a point has.
    """

    name: str
    summary: str
    settings: type[ConfigModel]
    launcher: Callable[[Launch, Any], Launcher]
    one_process: Callable[[Any], bool] = lambda _settings: False


PLACES: Final[Mapping[str, Place]] = {
    place.name: place
    for place in (
        Place(
            name="processes",
            summary="several processes of this machine, each a host of its own",
            settings=ProcessesSettings,
            launcher=Processes,
        ),
        Place(
            name="ray",
            summary="nodes of a Ray cluster, by an actor on each",
            settings=RaySettings,
            launcher=Ray,
        ),
        Place(
            name="jobset",
            summary="a pod for each host, as a JobSet on Kubernetes",
            settings=JobSetSettings,
            launcher=JobSet,
        ),
        Place(
            name="pathways",
            summary="one process that drives all hosts, as a PathwaysJob on Kubernetes",
            settings=PathwaysSettings,
            launcher=Pathways,
            one_process=lambda _settings: True,
        ),
        Place(
            name="vertex",
            summary="a custom job of Vertex AI: replicas with GPUs, or a slice of TPUs",
            settings=VertexSettings,
            launcher=Vertex,
        ),
        Place(
            name="xpk",
            summary="a pod for each host, by Google's XPK",
            settings=XpkSettings,
            launcher=Xpk,
            one_process=lambda settings: settings.enable_pathways,
        ),
        Place(
            name="tpu-vm",
            summary="the hosts of a Cloud TPU VM, by gcloud",
            settings=TpuVmSettings,
            launcher=TpuVm,
        ),
    )
}
"""All places, in the order in which people are shown them."""


def place_named(name: str) -> Place:
    """Returns a place."""
    if name not in PLACES:
        raise UserError(f"--on {name}: there is no such place; {did_you_mean(name, PLACES)}")
    return PLACES[name]


def place_settings(place: Place, pairs: Sequence[str]) -> ConfigModel:
    """Reads the settings of a place from `KEY=VALUE`, whose values are YAML."""
    fields = place.settings.model_fields
    problems, given = [], {}
    for pair in pairs:
        key, equals, value = pair.partition("=")
        try:
            given[key] = _read(fields.get(key), value, f"--set {shortened(pair)}")
        except SuiteError as error:
            problems.append(str(error))
            continue
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


def _read(field: pydantic.fields.FieldInfo | None, value: str, said: str) -> Any:
    """Returns a value; of text such as 1:30:00 and 007, YAML would make numbers."""
    found = read_value(value, said)
    is_text = field is not None and field.annotation in (str, str | None)
    return value if is_text and isinstance(found, bool | int | float) else found
