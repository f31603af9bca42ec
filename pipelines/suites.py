"""The suite of a submission, and what it is compared with: read and checked before it is sent."""

import json
import math
import sys
from collections.abc import Mapping, Sequence
from typing import Any, Final

from orbax_bench_core import baselines
from orbax_bench_core.config import LoadedSuite, SuiteSource, parse_suite, with_keys
from orbax_bench_core.document import count
from orbax_bench_core.errors import Problem, UserError
from orbax_bench_core.steps import MOST_STEPS, batches
from orbax_bench_core.sweep import SweepEntry, SweepPoint, differences, nearest
from orbax_bench_pipelines.definitions import PIPELINES, Pipeline
from orbax_bench_pipelines.target import SERVICES
from orbax_bench_pipelines.targets import Target, read_text

STDIN = "-"


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
    stored = {record.point_id: record.measured for record in baselines.load_baseline(baseline)}
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
    """Returns what a YAML file is that people take for a suite."""
    import yaml

    try:
        documents = list(yaml.safe_load_all(text))
    except yaml.YAMLError:
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


_ARGUMENT: Final = 128 * 1024
"""Bytes of one argument of a command on Linux, in which a step receives all its inputs as JSON."""
_ENGINE: Final = 16 * 1024
"""Bytes of that which are left to the engine: places of artifacts and their metadata."""
_LIST: Final = 1_000_000
"""Bytes of what plan-sweep returns. The number is ours, not above what is documented for what such
a text may pass: an object of Argo has 1 MB at most, a request to etcd 1.5 MiB, by default, and a
message to ML Metadata 4 MB, the default of gRPC."""


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
