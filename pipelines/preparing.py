"""Preparation of a submission: settings, suite and baseline, checked before anything is sent."""

import json
import math
import os
import sys
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Final

from orbax_bench_components.image import IMAGE
from orbax_bench_core.analysis.async_study import check_points
from orbax_bench_core.baselines import load_baseline, resolve_baseline
from orbax_bench_core.config import LoadedSuite, SuiteSource, parse_suite, with_keys
from orbax_bench_core.engine import MOST_STEPS, batches
from orbax_bench_core.errors import Problem, UserError
from orbax_bench_core.files import checked_path
from orbax_bench_core.launchers import named_processes, require_whole_slices
from orbax_bench_core.pages import count
from orbax_bench_core.records import RunDirectory
from orbax_bench_core.sweep import (
    SweepEntry,
    SweepPoint,
    baseline_point,
    differences,
    expand,
    is_builtin,
    nearest,
)
from orbax_bench_pipelines.definitions import PIPELINES, Pipeline, find_pipeline
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
    read_text,
    require_extras,
)

STDIN = "-"
_ARGUMENT: Final = 128 * 1024
"""Bytes of one argument of a command on Linux, in which a step receives all its inputs as JSON."""
_ENGINE: Final = 16 * 1024
"""Bytes of that which are left to the engine: places of artifacts and their metadata."""
_LIST: Final = 1_000_000
"""Bytes of what plan-sweep returns. The number is ours, not above what is documented for what such
a text may pass: an object of Argo has 1 MB at most, a request to etcd 1.5 MiB, by default, and a
message to ML Metadata 4 MB, the default of gRPC."""
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
    for key in chosen.paths:
        if set_here.get(key):
            set_here[key] = _checked(set_here[key], placed, target, key)
    parameters = {**chosen.parameters, **set_here}
    planned = compared(chosen, loaded, parameters)
    expansion = expand(planned)
    if chosen.pairs_saves:
        check_points(expansion.plain, loaded)
    directory = _checked(output_directory, placed, target, "--output-directory")
    if target not in SERVICES:
        _refuse_another_suite(directory, planned, chosen.arms)
    if parameters.get("baseline") and target not in SERVICES:
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
    images = dict.fromkeys((placed.image or IMAGE, *placed.images))
    notes = [note for image in images if (note := check_image(image, target))]
    if target in SERVICES:
        in_steps = f"{count(len(expansion.points), 'point')} in {count(steps, 'step')}"
        notes.append(f"{in_steps}, {placement.parallelism or 'all'} at a time")
    if target is not Target.LOCAL:
        if parameters.get("promote") and parameters["registry"] and not parameters["revision"]:
            notes.append(
                "promote=true needs --set revision=NAME where the image holds no repository of the "
                "code under test: what has no commit is not promoted"
            )
        benchmarks = sorted({baseline_point(entry).benchmark for entry in expansion.points})
        own = (each for each in benchmarks if not is_builtin(each))
        notes += [f"the image must hold {each}: steps import it there" for each in own]
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
        takers = [each.name for each in PIPELINES if key in each.parameters]
        if pipeline is not None and takers and key not in own:
            raise UserError(
                f"--set {key}: the pipeline {pipeline.name} has no such parameter, but "
                f"{' and '.join(takers)} have"
            )
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


def _typed(default: Any, key: str, text: str) -> Any:
    """Returns a value as the parameter's default is typed: text as it is, the rest as JSON."""
    if isinstance(default, str):
        return text
    try:
        value = json.loads(text)
    except json.JSONDecodeError:
        value = text
    if type(value) is not type(default) or value < 0:
        expected = "true or false" if isinstance(default, bool) else "a whole number, 0 or more"
        raise UserError(f"--set {key}: expected {expected}, got {text!r}")
    return value


def _checked(path: str, settings: Settings, target: Target, flag: str) -> str:
    try:
        full = checked_path(path)
    except ValueError as error:
        raise UserError(str(error)) from None
    check_directory(full, settings, target, flag)
    return full


def _refuse_another_suite(directory: str, loaded: LoadedSuite, arms: str | None) -> None:
    """Refuses a folder with a run of another suite, which the first step would refuse as well."""
    run = RunDirectory(directory)
    if not run.exists():
        return
    if arms is not None:
        text = with_keys(loaded.text, {"arms": SuiteSource(arms).data}, loaded.source.file)
        loaded = parse_suite(text, loaded.source.file)
    run.read_info().require_suite(loaded.suite.identity, str(run.root))


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


def read_suite(path: str) -> LoadedSuite:
    """Reads and checks a suite that is about to travel to another machine as text."""
    text = sys.stdin.read() if path == STDIN else read_text(path, "suite")
    file = "standard input" if path == STDIN else path
    foreign = _what_else_it_is(text)
    if foreign is not None:
        raise UserError(Problem(f"this is {foreign}, not a suite; give the suite file", file=file))
    return parse_suite(text, file)


def compared(pipeline: Pipeline, loaded: LoadedSuite, parameters: Mapping[str, Any]) -> LoadedSuite:
    """Returns the suite as the pipeline will expand it: with the arms that it was given."""
    arms, baseline = parameters.get("arms", ""), parameters.get("baseline", "")
    if not pipeline.takes_arms:
        if loaded.suite.arms is not None:
            takers = " or ".join(each.name for each in PIPELINES if each.takes_arms)
            message = f"the pipeline {pipeline.name} does not compare arms; use --pipeline {takers}"
            raise UserError(loaded.source.problem(message, ("arms",)))
        return loaded
    if arms:
        text = with_keys(
            loaded.text, {"arms": SuiteSource(arms, "--set arms").data}, loaded.source.file
        )
        loaded = parse_suite(text, loaded.source.file)
    if baseline and loaded.suite.arms is not None:
        message = "the suite has arms, which are compared with each other; leave out one of the two"
        raise UserError(Problem(message, key="baseline"))
    if not baseline and loaded.suite.arms is None:
        ways = ["give the suite an `arms` block", "--set 'arms={candidate: {options: {...}}}'"]
        if "baseline" in pipeline.parameters:
            ways += ["--set 'arms={}', which compares it with itself", "--set baseline=DIR"]
        message = f"the pipeline {pipeline.name} has nothing to compare: {', or '.join(ways)}"
        raise UserError(loaded.source.problem(message, ()))
    return loaded


def check_baseline(baseline: str, points: Sequence[SweepPoint]) -> None:
    """Refuses a stored baseline that has none of the points."""
    stored = {record.point_id: record.measured for record in load_baseline(baseline)}
    if any(point.id in stored for point in points):
        return
    other = nearest(points[0], stored.values())
    differs = (
        "none of its points is of the same benchmark"
        if other is None
        else f"the nearest is {other.name} {other.id}, of which {points[0].name} differs in "
        + "; ".join(differences(points[0], other))
    )
    raise UserError(
        Problem(
            f"{baseline} has none of the {len(points)} points of this suite: {differs}",
            key="baseline",
        )
    )


def _what_else_it_is(text: str) -> str | None:
    """Returns the kind of a YAML file that people take for a suite."""
    import yaml

    try:
        documents = list(yaml.safe_load_all(text))
    except Exception:  # noqa: BLE001 - PyYAML's constructors raise what they stumble on
        return None  # the suite's own reader says where it is broken
    first = documents[0] if documents else None
    if not isinstance(first, dict):
        return None
    if "pipelineInfo" in first or "pipelineSpec" in first:
        return "a compiled pipeline or component"
    if {"apiVersion", "kind"} <= first.keys():
        return f"a Kubernetes {first['kind']}"
    if "executorLabel" in str(first.get("components")) or "implementation" in first:
        return "a compiled component"
    return None


def check_inputs(arguments: Mapping[str, Any], target: Target) -> None:
    """Refuses parameters that do not reach a step as they are given."""
    for name, value in arguments.items():
        before, template, _ = str(value).partition("{{")
        if template and target is Target.KFP:
            line = f", line {before.count(chr(10)) + 1}" if "\n" in before else ""
            message = "{{ begins a template of Argo, which runs the steps; leave it out"
            raise UserError(Problem(message, key=f"{name}{line}"))
    texts = {name: arguments[name] for name in ("suite", "fixture", "arms") if arguments.get(name)}
    size, most = len(json.dumps(texts).encode()), _ARGUMENT - _ENGINE
    if size > most:
        each = ", ".join(f"{name} {len(json.dumps(text).encode())}" for name, text in texts.items())
        raise UserError(
            Problem(
                f"the input of a step has {size} bytes as JSON ({each}) and is sent in one "
                f"argument of a command; at most {most} do: split the suite",
                key="SUITE",
            )
        )


def checked_steps(
    entries: Sequence[SweepEntry],
    repeats: int,
    points_per_step: int,
    target: Target,
    loops: int = 1,
) -> int:
    """Returns how many steps measure the points of a suite, of which each loop has all.

    Argo keeps the state of all loops of a pipeline in one object.
    """
    steps = loops * len(batches(entries, repeats, points_per_step))
    if target not in SERVICES:
        return steps
    points = count(len(entries), "point")
    if steps > MOST_STEPS:
        enough = math.ceil(loops * len(entries) / MOST_STEPS)
        own = f"{points_per_step} in each step" if points_per_step else "the default"
        where = "one loop" if loops == 1 else f"{loops} loops"
        raise UserError(
            Problem(
                f"{points} with {own} are {steps} steps of {where}, and a pipeline has "
                f"{MOST_STEPS} at most; give {enough} or more",
                key="points_per_step",
            )
        )
    size = len(json.dumps([" ".join(entry.id for entry in entries)]))
    if size > _LIST:
        raise UserError(
            Problem(
                f"the ids of {points} have {size} bytes, and plan-sweep returns {_LIST} at most: "
                "split the suite",
                key="SUITE",
            )
        )
    return steps
