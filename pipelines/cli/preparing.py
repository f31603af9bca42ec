"""Preparation of a submission: from the command line to a job that is ready to be sent."""

import json
import os
import sys
from collections.abc import Iterable, Sequence
from typing import Any, Final

from orbax_bench_core.analysis.async_study import check_points
from orbax_bench_core.baselines import resolve_baseline
from orbax_bench_core.config import LoadedSuite
from orbax_bench_core.document import count
from orbax_bench_core.errors import UserError
from orbax_bench_core.files import checked_path
from orbax_bench_core.launchers import named_processes, require_whole_slices
from orbax_bench_core.sweep import baseline_point, expand, is_builtin
from orbax_bench_pipelines.definitions import Pipeline, find_pipeline
from orbax_bench_pipelines.suites import (
    check_baseline,
    check_inputs,
    checked_steps,
    compared,
    read_suite,
)
from orbax_bench_pipelines.target import SERVICES
from orbax_bench_pipelines.targets import (
    Job,
    Placement,
    Settings,
    Target,
    check_connection,
    check_directory,
    check_image,
    check_launchers,
    check_settings,
    job_name,
    read_changes,
    read_settings,
    require_extras,
)

_VARIABLES = {"project": "GOOGLE_CLOUD_PROJECT", "location": "GOOGLE_CLOUD_LOCATION"}


def prepare(
    suite: str,
    output_directory: str,
    pipeline: str,
    target: Target,
    name: str | None,
    settings: str | None,
    changes: Sequence[str] | None,
    *,
    folder_per_run: bool = False,
) -> tuple[Job, LoadedSuite]:
    """Checks everything that can be checked before anything is sent or started.

    What people should know before it runs is told on stderr.
    """
    chosen = find_pipeline(pipeline)
    require_extras(target)
    placed, set_here = checked_settings(settings, changes, target, chosen)
    loaded = read_suite(suite)
    if target not in SERVICES:
        # Whoever types the same command again on this machine goes on with what it left.
        set_here.setdefault("go_on", True)
    parameters = _parameters(chosen, set_here, placed, target)
    expansion = expand(compared(chosen, loaded, parameters))
    if chosen.pairs_saves:
        check_points(expansion.plain, loaded)
    directory = _checked(output_directory, placed, target, "--output-directory")
    if parameters.get("baseline") and target in (Target.LOCAL, Target.DOCKER):
        # A step has no checkout of the benchmark to ask which capture a branch or `nearest` means.
        points = {point.id for point in expansion.plain}
        parameters["baseline"] = resolve_baseline(parameters["baseline"], points=points)
        check_baseline(parameters["baseline"], expansion.plain)
    arguments = {"suite": loaded.text, "output_directory": directory, **parameters}
    _check_devices(placed, [baseline_point(entry).num_devices for entry in expansion.points])
    for shape in placed.tpu:
        require_whole_slices(named_processes(loaded.suite), shape)
    _check_gpu_hosts(placed, named_processes(loaded.suite))
    check_launchers(placed, target, directory)
    placement = Placement(target, placed, folder_per_run)
    job = Job(chosen, placement, arguments, name or job_name(chosen.name, loaded.suite.suite_name))
    check_inputs(arguments, target)
    repeats = loaded.suite.num_repeats + loaded.suite.execution.warmups
    each, loops = parameters["points_per_step"], len(placed.machines)
    steps = checked_steps(expansion.points, repeats, each, target, loops)
    notes = [*_image_notes(placed, target)]
    if target in (Target.KFP, Target.VERTEX):
        in_steps = f"{count(len(expansion.points), 'point')} in {count(steps, 'step')}"
        notes.append(f"{in_steps}, {placement.parallelism or 'all'} at a time")
    if target is not Target.LOCAL:
        if parameters.get("promote") and parameters["registry"] and not parameters["revision"]:
            notes.append(
                "promote=true needs --set revision=NAME where the image holds no repository of the "
                "code under test: what has no commit is not promoted"
            )
        notes += _class_notes({baseline_point(entry).benchmark for entry in expansion.points})
    check_connection(placed, target)
    for note in notes:
        print(f"note: {note}", file=sys.stderr)
    return job, loaded


def checked_settings(
    file: str | None,
    changes: Sequence[str] | None,
    target: Target,
    pipeline: Pipeline | None = None,
) -> tuple[Settings, dict[str, Any]]:
    """Returns the settings of a file and of `--set`, checked for a target, and the parameters."""
    own = {} if pipeline is None else pipeline.parameters
    parameters, others = {}, []
    for change in changes or ():
        key, _, value = change.partition("=")
        if key in own:
            parameters[key] = _typed(own[key], key, value)
        else:
            others.append(change)
    settings = read_settings(file, read_changes(others, own))
    if target is Target.VERTEX:
        settings = settings.model_copy(
            update={
                name: getattr(settings, name) or os.environ.get(variable)
                for name, variable in _VARIABLES.items()
            }
        )
    check_settings(settings, target)
    if "fixture" in parameters:
        parameters["fixture"] = read_suite(parameters["fixture"]).text
    return settings, parameters


def _parameters(
    pipeline: Pipeline, given: dict[str, Any], settings: Settings, target: Target
) -> dict[str, Any]:
    for key in pipeline.paths:
        if given.get(key):
            given[key] = _checked(given[key], settings, target, key)
    return {**pipeline.parameters, **given}


_KINDS: Final[dict[type, str]] = {bool: "true or false", int: "a whole number"}


def _typed(default: Any, key: str, text: str) -> Any:
    """Returns a value as the parameter's default is typed: text as it is, the rest as JSON."""
    if isinstance(default, str):
        return text
    try:
        value = json.loads(text)
    except json.JSONDecodeError:
        value = text
    if type(value) is not type(default):
        expected = _KINDS[type(default)]
        raise UserError(f"--set {key}: expected {expected}, got {text!r}")
    return value


def _checked(path: str, settings: Settings, target: Target, flag: str) -> str:
    try:
        full = checked_path(path)
    except ValueError as error:
        raise UserError(str(error)) from None
    check_directory(full, settings, target, flag)
    return full


def _check_devices(settings: Settings, needed: list[int | None]) -> None:
    """Refuses meshes that have other devices than the machines."""
    given = {f"tpu={shape}": shape.devices for shape in settings.tpu}
    if settings.gpu is not None:
        hosts = settings.hosts_of(None)
        also = f" gpu_hosts={hosts}" if hosts > 1 else ""
        given[f"gpu={settings.gpu}{also}"] = settings.gpu.on(hosts).count
    for what, devices in given.items():
        misfits = sorted({count for count in needed if count not in (None, devices)})
        if misfits:
            others = ", ".join(map(str, misfits))
            raise UserError(
                f"{what} has {devices} devices, but the suite has meshes of {others}; give a "
                "suite whose meshes have as many devices as each machine or slice, or none"
            )


def _check_gpu_hosts(settings: Settings, processes: Iterable[int]) -> None:
    """Refuses points that do not have one process on each machine with GPUs."""
    hosts = settings.hosts_of(None)
    others = sorted({number for number in processes if number != hosts})
    if settings.gpu is None or not others:
        return
    said = ", ".join(map(str, others))
    if hosts == 1:
        raise UserError(
            f"gpu={settings.gpu}: a step is one machine, whose GPUs belong to one process, but "
            f"the suite has points with execution.processes {said}; give "
            f"gpu_hosts={others[-1]}, so that a launcher starts as many machines"
        )
    raise UserError(
        f"gpu_hosts={hosts}: these machines measure each point together, a process on each, but "
        f"the suite has points with execution.processes {said}; leave it out, and it is {hosts}"
    )


def _image_notes(settings: Settings, target: Target) -> list[str]:
    from orbax_bench_components.image import IMAGE

    images = dict.fromkeys((settings.image or IMAGE, *settings.images))
    notes = (check_image(image, target) for image in images)
    return [note for note in notes if note]


def _class_notes(benchmarks: set[str]) -> list[str]:
    own = sorted(each for each in benchmarks if not is_builtin(each))
    return [f"the image must hold {each}: steps import it there" for each in own]
