"""Places that a run can be launched on, by the name that `--on` takes."""

import re
from collections.abc import Callable, Iterable, Sequence
from typing import Any, Final, NamedTuple

import pydantic

from orbax_bench_core.config import ConfigModel, SuiteError, explain, read_value
from orbax_bench_core.errors import Problem, UserError, did_you_mean, shortened
from orbax_bench_core.launchers import expected, jobset, pathways, ray, tpu_vm, tpus, vertex, xpk
from orbax_bench_core.launchers.kubernetes_settings import Name
from orbax_bench_core.launchers.launch import Launch, Launcher
from orbax_bench_core.launchers.processes import Processes, ProcessesSettings


class Place(NamedTuple):
    """Settings of a kind of place, and what makes its launcher, which sends nothing yet."""

    settings: type[ConfigModel]
    launcher: Callable[[Launch, Any], Launcher]
    # whether one process drives all hosts, so that slices do not say how many a point has
    one_process: Callable[[Any], bool] = lambda _settings: False


PLACES: Final[dict[str, Place]] = {
    "processes": Place(ProcessesSettings, Processes),
    "ray": Place(ray.RaySettings, ray.Ray),
    "jobset": Place(jobset.JobSetSettings, jobset.JobSet),
    "pathways": Place(
        pathways.PathwaysSettings, pathways.Pathways, one_process=lambda _settings: True
    ),
    "vertex": Place(vertex.VertexSettings, vertex.Vertex),
    "xpk": Place(xpk.XpkSettings, xpk.Xpk, one_process=lambda settings: settings.enable_pathways),
    "tpu-vm": Place(tpu_vm.TpuVmSettings, tpu_vm.TpuVm),
}
"""All places, by the name that `--on` takes."""


def make_launcher(
    on: str,
    settings: Sequence[str],
    processes: Iterable[int],
    *,
    hosts: int | None = None,
    tpu: str | None = None,
    slices: int = 1,
    **launch: Any,
) -> Launcher:
    """Returns the launcher of a launch, whose points have so many processes.

    Args:
        on: Name of the place, as `--on` takes it.
        settings: Its settings, `KEY=VALUE` each.
        processes: Numbers of processes that points name.
        hosts: How many hosts; of slices it follows from their shape.
        tpu: The kind of slice, such as `v5e:4x4`.
        slices: How many slices.
        launch: What every launcher is told; see `Launch`.

    Raises:
        UserError: There is no such place, setting or slice, or the numbers do not fit each other.
    """
    place = place_named(on)
    chosen = place_settings(on, settings)
    if not tpu:
        if slices > 1:
            raise UserError(f"--slices {slices} needs --tpu TYPE:TOPOLOGY")
        return place.launcher(Launch(hosts=hosts or 1, **launch), chosen)
    shape = tpus.parse_slice(tpu)
    if not place.one_process(chosen):
        tpus.require_whole_slices(processes, shape, slices)
    found = shape.hosts * slices
    if hosts not in (None, found):
        raise UserError(
            f"--hosts {hosts}: {slices} x TPU {shape} has {found} hosts of {shape.chips_per_host} "
            "chips, and a slice is only used whole; leave --hosts out"
        )
    return place.launcher(Launch(hosts=found, tpu=shape, slices=slices, **launch), chosen)


def expected_of(on: str, settings: Sequence[str], tpu: str, slices: int) -> str:
    """Returns the devices that hosts of slices expect; empty if one process drives all hosts.

    Args:
        on: Name of the place.
        settings: Its settings, `KEY=VALUE` each.
        tpu: The kind of slice, such as `v5e:4x4`.
        slices: How many slices.
    """
    if place_named(on).one_process(place_settings(on, settings)):
        return ""
    return expected.expectation(tpus.parse_slice(tpu), slices)


def place_named(name: str) -> Place:
    """Returns a place.

    Raises:
        UserError: There is none of that name.
    """
    if name not in PLACES:
        raise UserError(f"--on {name}: there is no such place; {did_you_mean(name, PLACES)}")
    return PLACES[name]


def place_settings(on: str, pairs: Sequence[str]) -> ConfigModel:
    """Reads the settings of a place from `KEY=VALUE`, whose values are YAML.

    Raises:
        UserError: A setting is unknown or does not take its value; all are named.
    """
    model = place_named(on).settings
    fields = model.model_fields
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
        return model.model_validate(given, strict=False)
    except pydantic.ValidationError as error:
        found = []
        for detail in error.errors():
            key = ".".join(str(part) for part in detail["loc"] if part != "[key]")
            found.append(Problem(explain(detail, fields), key=f"--on {on} --set {key}"))
        raise UserError(*found) from None


def _read(field: pydantic.fields.FieldInfo | None, value: str, said: str) -> Any:
    """Returns a value; of text such as 1:30:00 and 007, YAML would make numbers."""
    is_text = field is not None and field.annotation in (str, str | None, Name | None)
    if is_text and re.match("[-+.]?[0-9]", value):
        return value
    found = read_value(value, said)
    return value if is_text and isinstance(found, bool | int | float) else found
