"""Expansion of a suite into sweep points and pairs, here or in a process of its own."""

from __future__ import annotations

import collections
import dataclasses
import itertools
import json
import math
import os
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, Final, TypeVar

import pydantic

from orbax_bench_core import config
from orbax_bench_core.config import ArraySpec, CheckpointConfig, MeshConfig, Suite, leaves
from orbax_bench_core.errors import Problem, UserError
from orbax_bench_core.python_command import python_command
from orbax_bench_core.sweep import catalog, pair
from orbax_bench_core.sweep.options import (
    OptionError,
    axes,
    combinations,
    is_valid,
    plain,
    reason_of_rejection,
)


def expand(loaded: config.LoadedSuite, *, imports: bool = True) -> Expansion:
    """Expands a suite, without importing JAX or anyone's module into this process.

    Built-in benchmarks keep their heavy imports inside functions and are expanded here. Any other
    class may import JAX, hold a TPU or crash, so a process of its own looks at it.
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


def benchmark_environment(suite_file: str) -> dict[str, str]:
    """Returns the environment in which a suite's benchmark classes can be imported.

    A class may lie next to `suite_file`, whose folder comes first; the current directory does not
    count. Of a suite that a program made the folder is that of the program.
    """
    places = [os.environ.get("PYTHONPATH", "")]
    folder = suite_folder(suite_file) if suite_file else _program_folder()
    if folder is not None:
        places.insert(0, str(folder))
    return {**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, places))}


def _program_folder() -> Path | None:
    """Returns where this program has its own modules: next to its script, if it has one."""
    if "" in sys.path:  # an interactive session, or a notebook
        return Path.cwd()
    main = sys.modules["__main__"]
    script = getattr(main, "__file__", None)
    return Path(script).resolve().parent if script and main.__spec__ is None else None


def printed_apart(
    module: str, *arguments: str, environment: Mapping[str, str], within_s: float | None = None
) -> str:
    """Returns the output of a module that uses JAX, which stays out of this process.

    Raises:
        UserError: It failed, or took longer than it may.
    """
    try:
        process = subprocess.run(
            python_command("-m", module, *arguments),
            capture_output=True,
            text=True,
            env={**environment, "JAX_PLATFORMS": "cpu"},  # and off the accelerators
            timeout=within_s,
            check=False,
        )
    except subprocess.TimeoutExpired:
        raise UserError(f"{arguments[-1]!r} was not built within {within_s:.0f} s") from None
    if process.returncode:
        raise UserError((process.stderr.strip() or "it ended without a word").splitlines()[-1])
    return process.stdout


def suite_folder(suite_file: str) -> Path | None:
    """Returns the folder in which a suite lies; None for one that has no folder on this machine."""
    if not suite_file or "://" in suite_file:
        return None
    return Path(suite_file).resolve().parent


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
    def plain(self) -> tuple[pair.SweepPoint, ...]:
        """The points that are no pairs."""
        return tuple(entry for entry in self.points if isinstance(entry, pair.SweepPoint))


def expand_here(loaded: config.LoadedSuite) -> Expansion:
    """Expands a suite in this process, importing every benchmark class that it names."""
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
        except pair.ArmError as error:
            problems.append(loaded.source.problem(str(error), error.where))
    if problems:
        raise config.SuiteError(*problems)
    if not points:
        reasons = [*notes, *dict.fromkeys(skip.reason for skip in skipped.values())]
        said = "; ".join(reasons or ["no combination is left"])
        raise config.SuiteError(Problem(f"the sweep is empty: {said}", file=loaded.source.file))
    names = {point.benchmark for entry in points.values() for point in pair.sides(entry).values()}
    labels = _Labels([*points.values(), *(skip.point for skip in skipped.values())])
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
        pair.SweepPoint(
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
            yield made if suite.arms is None else pair.paired(made, suite)
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


_SURROUNDINGS: Final = ("mesh", "checkpoint", "storage", "environment", "processes", "conditions")


class _Labels:
    """Labels of the entries of a suite: the options that vary between the points of a benchmark."""

    def __init__(self, entries: Sequence[pair.SweepEntry]) -> None:
        """Looks at all entries. They share parts, which have to live as long as this does."""
        self._values: dict[tuple[str, str], set[str]] = collections.defaultdict(set)
        self._taken: dict[str, str] = {}
        self._known: dict[tuple[int, ...], tuple[str, ...]] = {}
        seen: set[tuple[str, int]] = set()
        for entry in entries:
            for point in pair.sides(entry).values():
                self._values["", "host_memory"].add(point.conditions.host_memory)
                if (point.benchmark, id(point.options)) not in seen:
                    seen.add((point.benchmark, id(point.options)))
                    for name, value in point.options.items():
                        self._values[point.benchmark, name].add(json.dumps(value))

    def of(self, entry: pair.SweepEntry) -> str:
        """Returns the values that tell an entry from others, or else part of its id as well."""
        label = self._values_of(entry)
        name = f"{catalog.short_name(pair.baseline_point(entry).benchmark)}[{label}"
        if self._taken.setdefault(name, entry.id) == entry.id:
            return label
        return ",".join(filter(None, (label, f"id={entry.id[:6]}")))

    def _values_of(self, entry: pair.SweepEntry) -> str:
        """Returns the values that tell an entry from others, except those that an arm overrides."""
        point, *others = pair.sides(entry).values()
        other = others[0] if others else point
        found: list[str] = []
        for names, parts in (
            (("options", "given"), self._option_parts),
            (_SURROUNDINGS, self._other_parts),
        ):
            key = tuple(id(getattr(one, name)) for one in (point, other) for name in names)
            if key not in self._known:
                self._known[key] = tuple(parts(point, other))
            found += self._known[key]
        return ",".join(found)

    def _option_parts(self, point: pair.SweepPoint, other: pair.SweepPoint) -> Iterator[str]:
        values = self._values
        for name, value in point.options.items():
            # What an entry leaves at its default does not tell it from others: they say what they
            # give.
            varies = name in point.given and len(values[point.benchmark, name]) > 1
            # Of an option that only one of two benchmarks has, there is nothing to override.
            if varies and other.options.get(name, value) == value:
                yield f"{name}={_short(value)}"
        for name, value in other.options.items():
            varies = name in other.given and len(values[other.benchmark, name]) > 1
            if name not in point.options and varies:
                yield f"{name}={_short(value)}"

    def _other_parts(self, point: pair.SweepPoint, other: pair.SweepPoint) -> Iterator[str]:
        if point.mesh is not None and other.mesh == point.mesh:
            yield f"mesh={point.mesh.label}"
        if not point.checkpoint.is_empty:
            yield f"ckpt={point.checkpoint.label}"
        if point.checkpoint.random_seed:
            yield f"seed={point.checkpoint.random_seed}"
        if point.storage is not None and other.storage == point.storage:
            yield f"storage={point.storage}"
        if point.environment is not None and other.environment == point.environment:
            yield f"environment={point.environment.name}"
        if point.processes > 1 and other.processes == point.processes:
            yield f"processes={point.processes}"
        if point.conditions.cache == "cold":
            yield "cache=cold"
        if len(self._values["", "host_memory"]) > 1:
            yield f"host_memory={point.conditions.host_memory}"


def _short(value: Any) -> str:
    return value if isinstance(value, str) else json.dumps(value)


_Config = TypeVar("_Config", CheckpointConfig, MeshConfig)
_Facts = dict[str, str]


def with_distinct_names(suite: Suite) -> Suite:
    """Returns a suite whose checkpoints have distinct labels, and whose meshes have.

    Those whose label another has too get a `name` of the label and of what tells them apart; a name
    is no part of the id of a point.
    """
    arms = [] if suite.arms is None else [suite.arms.baseline, suite.arms.candidate]
    own = [arm.mesh_config for arm in arms if arm.mesh_config is not None]
    meshes = _named([*(suite.mesh_configs or ()), *own], _of_mesh)
    swept = len(suite.mesh_configs or ())
    changed: dict[str, object] = {
        "checkpoint_configs": tuple(_named(suite.checkpoint_configs, _of_checkpoint)),
        "mesh_configs": suite.mesh_configs and tuple(meshes[:swept]),
    }
    if suite.arms is not None:
        left = iter(meshes[swept:])
        named = [
            arm if arm.mesh_config is None else arm.model_copy(update={"mesh_config": next(left)})
            for arm in arms
        ]
        changed["arms"] = suite.arms.model_copy(
            update={"baseline": named[0], "candidate": named[1]}
        )
    return suite.model_copy(update=changed)


def _named(configs: Sequence[_Config], facts: Callable[[_Config], _Facts]) -> list[_Config]:
    """Returns the configurations, with a name where a label alone does not tell them apart."""
    alike: dict[str, list[_Config]] = collections.defaultdict(list)
    for each in configs:
        alike[each.label].append(each)
    names: dict[str, dict[int, str]] = {
        label: _told_apart(label, [facts(each) for each in group])
        for label, group in alike.items()
        if len(group) > 1
    }
    found, seen = [], collections.Counter[str]()
    for each in configs:
        label = each.label
        name = names.get(label, {}).get(seen[label], label)
        seen[label] += 1
        found.append(each if name == label else each.model_copy(update={"name": name}))
    return found


def _told_apart(label: str, every: Sequence[_Facts]) -> dict[int, str]:
    """Returns the name of each, by the fewest of the first facts that tell them apart."""
    distinct = len({tuple(sorted(facts.items())) for facts in every})
    chosen: list[str] = []
    groups = 1
    for fact in dict.fromkeys(fact for facts in every for fact in facts):
        if groups == distinct:
            break
        split = len({tuple(facts.get(name, "") for name in (*chosen, fact)) for facts in every})
        if split > groups:
            chosen.append(fact)
            groups = split
    columns = [_shortened([facts.get(fact, f"no {fact}") for facts in every]) for fact in chosen]
    said = ["·".join(column[at] for column in columns) for at in range(len(every))]
    return {at: f"{label}({text})" if text else label for at, text in enumerate(said)}


def _shortened(texts: list[str]) -> list[str]:
    """Returns paths without the folders that all have, at both ends; anything else as it is."""
    parts = [text.split("/") for text in texts]
    shortest = min(map(len, parts))
    first = next((at for at in range(shortest) if len({part[at] for part in parts}) > 1), 0)
    after = next((at for at in range(shortest) if len({part[-1 - at] for part in parts}) > 1), 0)
    short = ["/".join(part[first : len(part) - after]) for part in parts]
    return short if all(short) and len(set(short)) == len(set(texts)) else texts


def _of_checkpoint(config: CheckpointConfig) -> _Facts:
    """Returns the description of a checkpoint; the seed is a part of its points' labels."""
    content = config.model_dump(mode="json", exclude={"name", "spec", "random_seed"})
    found = {key: f"{key}:{value}" for key, value in content.items() if value not in (None, False)}
    return found | dict(_of_spec(config))


def _of_spec(config: CheckpointConfig) -> Iterator[tuple[str, str]]:
    every = list(leaves(config.spec or {}))
    for path, leaf in every:
        name = ".".join(path)
        before = "" if len(every) == 1 else f"{name}:"
        if not isinstance(leaf, ArraySpec):
            yield name, f"{before}{leaf}"
            continue
        yield name, f"{before}{'x'.join(map(str, leaf.shape)) or 'scalar'}"
        yield f"dtype of {name}", f"{before}{leaf.dtype}"
        cuts = ["+".join(c) if isinstance(c, tuple) else c or "-" for c in leaf.sharding or ()]
        layout = "host" if leaf.host else "|".join(cuts) or "replicated"
        yield f"sharding of {name}", f"{before}{layout}"
    yield "order", ">".join(".".join(path) for path, _ in every)


def _of_mesh(config: MeshConfig) -> _Facts:
    sizes = zip(config.mesh_axes, config.ici_shape, config.dcn_shape, strict=True)
    return {
        "axes": "·".join(
            f"{axis}{ici}" + (f"x{dcn}" if dcn > 1 else "") for axis, ici, dcn in sizes
        ),
        "granule": "processes" if config.process_is_granule else "slices",
        "split": "split axes" if config.allow_split_physical_axes else "whole axes",
    }
