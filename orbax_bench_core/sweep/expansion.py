"""Expansion of a suite into sweep points and pairs, here or in a process of its own."""

from __future__ import annotations

import dataclasses
import itertools
import json
import math
import subprocess
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import pydantic

from orbax_bench_core import config
from orbax_bench_core.errors import Problem
from orbax_bench_core.python_command import python_command
from orbax_bench_core.sweep import arms, catalog, pair
from orbax_bench_core.sweep.labels import Labels
from orbax_bench_core.sweep.names import with_distinct_names
from orbax_bench_core.sweep.options import (
    OptionError,
    axes,
    combinations,
    is_valid,
    plain,
    reason_of_rejection,
)
from orbax_bench_core.sweep.other_process import benchmark_environment
from orbax_bench_core.sweep.point import SweepPoint


class SkippedPoint(pydantic.BaseModel):
    """A combination that is not run, and why."""

    point: pair.SweepEntry
    reason: str


class Expansion(pydantic.BaseModel):
    """All that a suite sweeps over.

    Attributes:
        points: What is run: points or, in a suite with arms, pairs, in the order of the suite file:
            benchmarks, options, meshes, checkpoints, storage, environments, processes and cache,
            the last varying fastest.
        skipped: Combinations whose mesh cannot hold their checkpoint.
        notes: What else a reader of the suite should know.
        files: File that defines each benchmark class, by its import path; where this process finds
            it, so that it is kept nowhere.
    """

    points: tuple[pair.SweepEntry, ...]
    skipped: tuple[SkippedPoint, ...] = ()
    notes: tuple[str, ...] = ()
    files: dict[str, str] = pydantic.Field(default={}, exclude=True)

    @property
    def pairs(self) -> tuple[pair.Pair, ...]:
        """The pairs among the points."""
        return tuple(entry for entry in self.points if isinstance(entry, pair.Pair))

    @property
    def plain(self) -> tuple[SweepPoint, ...]:
        """The points that are no pairs."""
        return tuple(entry for entry in self.points if isinstance(entry, SweepPoint))


def expand(loaded: config.LoadedSuite, *, imports: bool = True) -> Expansion:
    """Expands a suite, without importing JAX or anyone's module into this process.

    Built-in benchmarks keep their heavy imports inside functions and are expanded here. Any other
    class may import JAX, hold a TPU or crash, so a process of its own looks at it.

    Args:
        loaded: The suite as it was read.
        imports: Whether the modules of others may be imported, in a process of their own.

    Raises:
        SuiteError: A benchmark, an option or a value cannot be used, nothing is left to run, or
            there are more combinations than `execution.max_points`.
    """
    generators: dict[config.KeyPath, str] = {
        ("benchmarks", index, "generator"): entry.generator
        for index, entry in enumerate(loaded.suite.benchmarks)
    }
    for name in config.ARMS:
        if given := loaded.suite.arm(name).generator:
            generators["arms", name, "generator"] = given
    others = {
        where: path
        for where, generator in generators.items()
        if "." in (path := catalog.benchmark_of(generator))
    }
    if not others:
        return expand_here(loaded)
    if not imports:
        raise config.SuiteError(
            *(
                loaded.source.problem(
                    f"{path!r} is not a built-in, so only its module knows its options, which "
                    "--no-import does not import: read it first",
                    where,
                )
                for where, path in others.items()
            )
        )
    with tempfile.TemporaryFile() as answer_file:  # has no name, so that a kill leaves none
        process = subprocess.run(
            python_command("-m", "orbax_bench_core.sweep", f"/dev/fd/{answer_file.fileno()}"),
            pass_fds=[answer_file.fileno()],
            input=json.dumps({"text": loaded.text, "file": loaded.source.file}),
            capture_output=True,
            text=True,
            env=benchmark_environment(loaded.source.file),
            check=False,
        )
        written = answer_file.read()
        if not written:
            last_lines = "\n".join(process.stderr.strip().splitlines()[-3:])
            raise config.SuiteError(
                Problem(
                    "the process that imports the benchmark classes ended with code "
                    f"{process.returncode}: {last_lines or 'it printed nothing'}",
                    file=loaded.source.file,
                )
            )
    answer = json.loads(written)
    if "problems" in answer:
        raise config.SuiteError(*(Problem(**problem) for problem in answer["problems"]))
    expansion = Expansion.model_validate_json(answer["expansion"])
    return expansion.model_copy(update={"files": answer["files"]})


def expand_here(loaded: config.LoadedSuite) -> Expansion:
    """Expands a suite in this process, importing every benchmark class that it names.

    Raises:
        SuiteError: As `expand`.
    """
    loaded = dataclasses.replace(loaded, suite=with_distinct_names(loaded.suite))
    points: dict[str, pair.SweepEntry] = {}
    skipped: dict[str, SkippedPoint] = {}
    notes, conflicts = list(loaded.notes), _Conflicts()
    problems: list[Problem] = []
    for index, entry in enumerate(loaded.suite.benchmarks):
        try:
            for combination in _entry_points(loaded, entry, notes):
                reason = conflicts.of(combination)
                if reason:
                    skipped[combination.id] = SkippedPoint(point=combination, reason=reason)
                elif combination.id in points:
                    notes.append(f"benchmarks[{index}] repeats a point that is already swept")
                else:
                    points[combination.id] = combination
        except (catalog.BenchmarkClassError, OptionError) as error:
            problems += _problems_of(loaded.source, index, error)
        except arms.ArmError as error:
            problems.append(loaded.source.problem(str(error), error.where))
    if problems:
        raise config.SuiteError(*problems)
    if not points:
        reasons = [*notes, *dict.fromkeys(skip.reason for skip in skipped.values())]
        said = "; ".join(reasons or ["no combination is left"])
        raise config.SuiteError(Problem(f"the sweep is empty: {said}", file=loaded.source.file))
    names = {point.benchmark for entry in points.values() for point in pair.sides(entry).values()}
    labels = Labels([*points.values(), *(skip.point for skip in skipped.values())])
    for id_, point in points.items():  # one by one, so that there are never two of each in memory
        points[id_] = point.with_label(labels.of(point))
    return Expansion(
        points=tuple(points.values()),
        skipped=tuple(
            SkippedPoint(point=skip.point.with_label(labels.of(skip.point)), reason=skip.reason)
            for skip in skipped.values()
        ),
        notes=tuple(dict.fromkeys(notes)),
        files={name: catalog.source_file(catalog.load_class(name)) for name in sorted(names)},
    )


def with_mistaken_builtins(error: config.SuiteError) -> config.SuiteError:
    """Adds what is wrong with names and options of built-ins to what is wrong with a suite.

    Such a suite is not expanded, which would find them. No other class is imported for it.

    Args:
        error: What is wrong with the suite; one that could not be read at all is returned as it is.

    Returns:
        An error with all problems, in the order of their lines.
    """
    source = error.source
    if source is None:
        return error
    problems: list[Problem] = []
    entries = source.data.get("benchmarks")
    for index, entry in enumerate(entries if isinstance(entries, list) else ()):
        generator = entry.get("generator") if isinstance(entry, dict) else None
        name = catalog.benchmark_of(generator) if isinstance(generator, str) else "."
        if "." in name:
            continue
        options = entry.get("options")
        try:
            known = catalog.options_class(catalog.load_class(name))
            axes(known, options if isinstance(options, dict) else {})
        except (catalog.BenchmarkClassError, OptionError) as wrong:
            problems += _problems_of(source, index, wrong)
    return config.SuiteError(
        *sorted((*error.problems, *problems), key=lambda each: each.line or math.inf)
    )


def _problems_of(
    source: config.SuiteSource, index: int, error: catalog.BenchmarkClassError | OptionError
) -> list[Problem]:
    where = ("benchmarks", index)
    if isinstance(error, OptionError):
        return [
            source.problem(message, (*where, "options", *((key,) if key else ())))
            for key, message in error.mistakes
        ]
    return [source.problem(str(error), (*where, "generator"))]


def _entry_points(
    loaded: config.LoadedSuite, entry: config.BenchmarkEntry, notes: list[str]
) -> Iterator[pair.SweepEntry]:
    name = catalog.benchmark_of(entry.generator)
    suite, benchmark = loaded.suite, catalog.load_class(name)
    generator = catalog.options_class(benchmark)
    options_axes = axes(generator, entry.options)
    notes += [
        f"{catalog.short_name(name)}: `{option}` was {was!r} by default in {entry.generator}, and "
        f"is {options_axes[option][0]!r} here; give it in the suite for what was measured then"
        for option, was in catalog.earlier_defaults(entry.generator).items()
        if option not in entry.options
    ]
    dropped = 0
    # Arms choose among the environments; without arms they are an axis like any other.
    environments = suite.environments if suite.arms is None else ()
    _check_number(loaded, options_axes, environments)
    surroundings = [
        SweepPoint(
            benchmark=name,
            id_name=catalog.id_name_of(benchmark),
            options={},
            checkpoint=checkpoint,
            mesh=mesh,
            processes=processes,
            conditions=conditions,
            storage=storage,
            environment=environment,
        )
        for mesh, checkpoint, storage, environment, processes, conditions in itertools.product(
            suite.mesh_configs or (None,),
            suite.checkpoint_configs,
            suite.storage or (None,),
            environments or (None,),
            dict.fromkeys(suite.execution.processes),
            suite.execution.conditions,
        )
    ]
    if suite.arms is None:  # an arm has a mesh of its own, and so its own layout of a preset
        surroundings = [point.with_presets_expanded() for point in surroundings]
    for options in combinations(options_axes):
        given = {name: options[name] for name in options if name in entry.options}
        if not is_valid(generator, given):
            dropped += 1
            continue
        own = {"options": plain(options), "given": tuple(given)}
        for point in surroundings:
            # A copy: points share what they have in common, which labels look at once.
            made = point.model_copy(update=own)
            yield made if suite.arms is None else arms.pair_of_arms(made, suite)
    if dropped:
        notes.append(
            f"{catalog.short_name(name)}: {dropped} combination(s) of options dropped, because "
            f"its `is_valid` rejects them{reason_of_rejection(generator)}"
        )


def _check_number(
    loaded: config.LoadedSuite, options: Mapping[str, Sequence[Any]], environments: Sequence[Any]
) -> None:
    """Refuses more combinations than a suite may have, before they are made."""
    suite = loaded.suite
    lengths = {name: len(values) for name, values in options.items()} | {
        "meshes": len(suite.mesh_configs or (None,)),
        "checkpoints": len(suite.checkpoint_configs),
        "storage": len(suite.storage or (None,)),
        "environments": len(environments or (None,)),
        "processes": len(set(suite.execution.processes)),
        "conditions": len(suite.execution.conditions),
    }
    number, most = math.prod(lengths.values()), suite.execution.max_points
    if number > most:
        factors = " x ".join(f"{length:,} {name}" for name, length in lengths.items() if length > 1)
        message = (
            f"{number:,} combinations ({factors}), and a suite may have {most:,}; give fewer "
            "values, or raise execution.max_points"
        )
        raise OptionError(("", message))


class _Conflicts:
    """Reasons why checkpoints do not fit meshes, each found once."""

    def __init__(self) -> None:
        self._found: dict[tuple[int, int], str] = {}
        self._kept: list[object] = []  # ids tell objects apart as long as these live

    def of(self, entry: pair.SweepEntry) -> str:
        """Returns why an entry cannot be measured; empty when it can."""
        for point in pair.sides(entry).values():
            key = (id(point.checkpoint), id(point.mesh))
            if key not in self._found:
                self._kept += [point.checkpoint, point.mesh]
                conflict = config.sharding_conflict(point.checkpoint, point.mesh)
                self._found[key] = (
                    f"leaf {'.'.join(conflict.where)}: {conflict.message}" if conflict else ""
                )
            if self._found[key]:
                return self._found[key]
        return ""
