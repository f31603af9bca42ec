"""Sweep points, each with its id, and pairs of two that are compared in blocks."""

from __future__ import annotations

import dataclasses
import functools
import hashlib
import itertools
import json
import random
from collections.abc import Iterable
from typing import Annotated, Any, Final, Self

import pydantic
from pydantic.json_schema import JsonSchemaValue
from pydantic_core import core_schema

from orbax_bench_core import config
from orbax_bench_core.config import Arm, KeyPath, Suite
from orbax_bench_core.interface import BenchmarkOptions
from orbax_bench_core.sweep import catalog
from orbax_bench_core.sweep.catalog import short_name
from orbax_bench_core.sweep.options import (
    OptionError,
    axes,
    combinations,
    is_valid,
    plain,
    reason_of_rejection,
)

_ID_LENGTH = 12


_CHOSEN: Final = ("options", "storage", "environment")
_DRILLED: Final = "training_job"
_SUFFERED: Final = ("kill", "wiped", "peers_wait_s")
"""Options that say what happens to a job: nobody chooses among failures."""


class SweepPoint(config.ConfigModel):
    """One combination of benchmark, options, checkpoint, mesh, processes and conditions.

    Attributes:
        benchmark: Name of a built-in, or the import path of a benchmark class.
        id_name: What the id has in place of the import path; empty if the class says nothing.
        options: Every option with its value, defaults included, as plain data.
        given: The options that the suite file gives; the benchmark's own defaults fill the rest.
        checkpoint: What is saved and loaded.
        mesh: The device mesh; None without one.
        processes: Host processes that run it together.
        conditions: What is controlled while it is measured.
        storage: Where its checkpoints lie; None for the run directory.
        environment: The library versions that it runs with; None takes those of the command.
        candidate: Always None: the key of a `Pair` that tells its JSON from that of a point.
        label: What tells this point from the others of its suite, for people; not part of the id.
    """

    benchmark: str
    id_name: str = ""
    options: dict[str, Any]
    given: tuple[str, ...] = ()
    checkpoint: config.CheckpointConfig
    mesh: config.MeshConfig | None
    processes: pydantic.PositiveInt = 1
    conditions: config.Conditions = config.Conditions()
    storage: str | None = None
    environment: config.EnvironmentConfig | None = None
    candidate: None = None
    label: str = ""

    @pydantic.model_validator(mode="after")
    def _given_are_options(self) -> Self:
        for name in self.given:
            if name not in self.options:
                raise ValueError(f"`given` names {name!r}, which is no option of the point")
        return self

    @functools.cached_property
    def id(self) -> str:
        """First 12 hex digits of the SHA-256 over all that is measured."""
        return id_of(self.content)

    @property
    def content(self) -> dict[str, Any]:
        """All that is measured, as plain data.

        Mapping keys are sorted when it is hashed, except for the leaves of the spec, whose order is
        the order in which a checkpoint is written.
        """
        checkpoint = self.checkpoint.model_dump(mode="json", exclude={"name"})
        content: dict[str, Any] = {
            "benchmark": self.id_name or self.benchmark,
            "options": self.options,
            "checkpoint": {**checkpoint, "spec": json.dumps(checkpoint["spec"])},
            "mesh": None
            if self.mesh is None
            else self.mesh.model_dump(mode="json", exclude={"name"}),
            "processes": self.processes,
            "conditions": self.conditions.model_dump(mode="json"),
        }
        if self.storage is not None:
            content["storage"] = self.storage
        if self.environment is not None:
            content["environment"] = self.environment.identity
        return content

    def replace(self, **fields: Any) -> SweepPoint:
        """Returns a point that differs in `fields`; unlike a copy it has an id of its own."""
        own = {name: getattr(self, name) for name in SweepPoint.model_fields}
        return SweepPoint(**{**own, **fields})

    def with_label(self, label: str) -> SweepPoint:
        """Returns the point with another label."""
        return self.model_copy(update={"label": label})

    def with_presets_expanded(self) -> SweepPoint:
        """Returns the point with the tree of its model preset, laid out for its mesh."""
        if self.checkpoint.model is None:
            return self
        return self.replace(checkpoint=config.expanded(self.checkpoint, self.mesh))

    @property
    def name(self) -> str:
        """Name for people, such as `save_restore[use_ocdbt=true,mesh=fsdp8,ckpt=params]`."""
        return f"{short_name(self.benchmark)}[{self.label}]"

    @property
    def directory(self) -> str:
        """Name of the folder that holds the point's checkpoint data, unique in a run."""
        return f"{short_name(self.benchmark)}_{self.id}"

    @property
    def work(self) -> str:
        """What is done, as text: one can choose among points of equal work.

        They share benchmark, checkpoint, mesh, processes and conditions, and in drills what is
        killed. They may differ in other options, storage, environment and the memory of the host.
        """
        content = {name: value for name, value in self.content.items() if name not in _CHOSEN}
        conditions = {**content["conditions"], "host_memory": ""}
        drilled = short_name(self.benchmark) == _DRILLED
        suffered = {name: self.options.get(name) for name in _SUFFERED} if drilled else {}
        return json.dumps({**content, "conditions": conditions, **suffered}, sort_keys=True)

    @property
    def num_devices(self) -> int | None:
        """Devices that the point's mesh needs; None when any number will do."""
        return None if self.mesh is None else self.mesh.num_devices

    @property
    def is_traced(self) -> bool:
        """Whether a trace is asked for; Orbax's own `safetensors_load` says `enable_xprof`."""
        return any(self.options.get(name) for name in ("enable_trace", "enable_xprof"))

    @property
    def given_options(self) -> dict[str, Any]:
        """The options that the suite file gives, as `BenchmarkOptions.from_dict` takes them."""
        return {name: self.options[name] for name in self.given}


def id_of(content: dict[str, Any]) -> str:
    """Returns the id of what is measured: the first 12 hex digits of its SHA-256."""
    text = json.dumps(content, sort_keys=True, separators=(",", ":"))
    return hashlib.sha256(text.encode()).hexdigest()[:_ID_LENGTH]


_NOT_IDENTITY = {"label", "given"}


def differences(point: SweepPoint, other: SweepPoint) -> list[str]:
    """Returns each field in which two points differ, as `options.use_ocdbt: true, was false`."""
    these, those = _flat(point), _flat(other)
    return [
        f"{field}: {these.get(field, 'absent')}, was {those.get(field, 'absent')}"
        for field in dict.fromkeys([*these, *those])
        if these.get(field) != those.get(field)
    ]


def nearest(point: SweepPoint, others: Iterable[SweepPoint]) -> SweepPoint | None:
    """Returns the point of the same benchmark that differs in the fewest fields, or None."""
    candidates = [other for other in others if other.benchmark == point.benchmark]
    return min(candidates, key=lambda other: len(differences(point, other)), default=None)


def _flat(point: SweepPoint) -> dict[str, str]:
    found: dict[str, str] = {}
    _flatten(point.model_dump(mode="json", exclude=_NOT_IDENTITY), "", found)
    return found


def _flatten(value: Any, path: str, found: dict[str, str]) -> None:
    if isinstance(value, dict) and value:
        for key, inner in value.items():
            _flatten(inner, f"{path}.{key}" if path else key, found)
    else:
        found[path] = json.dumps(value)


_ARRANGEMENTS: Final[list[tuple[Arm, ...]]] = sorted(
    set(itertools.permutations(("baseline", "baseline", "candidate", "candidate")))
)


class ArmError(ValueError):
    """Something that an arm overrides cannot be used; `where` is its key in the suite."""

    def __init__(self, message: str, where: KeyPath) -> None:
        super().__init__(message)
        self.where = where


class Pair(pydantic.BaseModel):
    """Two sweep points that are compared.

    In JSON a pair has the keys of its baseline, with the candidate under `candidate`.

    Attributes:
        baseline: The point that the baseline arm measures.
        candidate: The point that the candidate arm measures.
    """

    model_config = pydantic.ConfigDict(frozen=True, extra="forbid")

    baseline: SweepPoint
    candidate: SweepPoint

    @functools.cached_property
    def id(self) -> str:
        """First 12 hex digits of the SHA-256 over all that both arms measure."""
        return id_of({**self.baseline.content, "candidate": self.candidate.id})

    @property
    def label(self) -> str:
        """What tells the pair from the others of its suite, for people."""
        return self.baseline.label

    @property
    def name(self) -> str:
        """Name for people; a pair of two benchmarks has the names of both, the baseline's first."""
        names = [catalog.short_name(point.benchmark) for point in (self.baseline, self.candidate)]
        return f"{' vs '.join(dict.fromkeys(names))}[{self.label}]"

    @property
    def directory(self) -> str:
        """Name of the folder that holds the pair's checkpoint data, unique in a run."""
        return f"{catalog.short_name(self.baseline.benchmark)}_{self.id}"

    @property
    def identical(self) -> bool:
        """Whether both arms measure the same, as in an A/A comparison."""
        return self.baseline.id == self.candidate.id

    def arm(self, arm: Arm) -> SweepPoint:
        """Returns the point that one arm measures."""
        return self.baseline if arm == "baseline" else self.candidate

    def with_label(self, label: str) -> Pair:
        """Returns the pair with another label."""
        return Pair(
            baseline=self.baseline.model_copy(update={"label": label}),
            candidate=self.candidate.model_copy(update={"label": label}),
        )

    @pydantic.model_validator(mode="before")
    @classmethod
    def _from_flat(cls, data: Any) -> Any:
        if not isinstance(data, dict) or "baseline" in data:
            return data
        flat = {"baseline": {**data, "candidate": None}, "candidate": data.get("candidate")}
        # JSON has become Python's lists by now, which strict models refuse for tuples.
        return {
            arm: point
            if isinstance(point, SweepPoint)
            else SweepPoint.model_validate(point, strict=False)
            for arm, point in flat.items()
        }

    @pydantic.model_serializer(mode="wrap")
    def _to_flat(self, dump: pydantic.SerializerFunctionWrapHandler) -> dict[str, Any]:
        arms = dump(self)
        return {**arms["baseline"], "candidate": arms["candidate"]}

    @classmethod
    def __get_pydantic_json_schema__(
        cls, schema: core_schema.CoreSchema, handler: pydantic.GetJsonSchemaHandler
    ) -> JsonSchemaValue:
        point = handler(SweepPoint.__pydantic_core_schema__)
        flat = dict(handler.resolve_ref_schema(point))
        return {
            **flat,
            "title": cls.__name__,
            "description": "Two sweep points that are compared: the baseline's keys, and the "
            "candidate as a point of its own.",
            "properties": {**flat["properties"], "candidate": point},
        }


def _kind(entry: Any) -> str:
    candidate = entry.get("candidate") if isinstance(entry, dict) else None
    return "pair" if isinstance(entry, Pair) or candidate is not None else "point"


SweepEntry = Annotated[
    Annotated[SweepPoint, pydantic.Tag("point")] | Annotated[Pair, pydantic.Tag("pair")],
    pydantic.Discriminator(_kind),
]
"""Entry of an expansion: a point or, in a suite with arms, a pair."""

_ENTRY: Final[pydantic.TypeAdapter[SweepPoint | Pair]] = pydantic.TypeAdapter(SweepEntry)


def entry_from_json(text: str) -> SweepEntry:
    """Reads a point or a pair from the line of JSON as which it travels through a pipeline."""
    return _ENTRY.validate_json(text)


def sides(entry: SweepEntry) -> dict[Arm | None, SweepPoint]:
    """Returns the points to measure: both arms of a pair, or the point under None."""
    if isinstance(entry, Pair):
        return {"baseline": entry.baseline, "candidate": entry.candidate}
    return {None: entry}


def baseline_point(entry: SweepEntry) -> SweepPoint:
    """Returns the point, or the baseline of a pair, which stands for it where one must."""
    return entry.baseline if isinstance(entry, Pair) else entry


def side(entry: SweepEntry, arm: Arm | None) -> SweepPoint:
    """Returns the point that one arm of an entry measures; a plain point is the same in each."""
    if not isinstance(entry, Pair):
        return entry
    if arm is None:
        raise ValueError(f"{entry.name} {entry.id} is a pair: say which arm")
    return entry.arm(arm)


def paired(point: SweepPoint, suite: Suite) -> Pair:
    """Returns the pair of points that the arms of a suite make of one of its combinations."""
    return Pair(baseline=_arm(point, suite, "baseline"), candidate=_arm(point, suite, "candidate"))


def _arm(point: SweepPoint, suite: Suite, arm_name: Arm) -> SweepPoint:
    arm, where = suite.arm(arm_name), ("arms", arm_name)
    for option, value in arm.options.items():
        if isinstance(value, list):
            raise ArmError(
                f"an arm has one value per option, got {value!r}; sweep it under `benchmarks`",
                (*where, "options", option),
            )
    try:
        name = point.benchmark if arm.generator is None else catalog.benchmark_of(arm.generator)
        benchmark = catalog.load_class(name)
        generator = catalog.options_class(benchmark)
        given = {**_known(point, name, generator), **arm.options}
        (options,) = combinations(axes(generator, given))
        if not is_valid(generator, given):
            said = f"its `is_valid` rejects {given}{reason_of_rejection(generator)}"
            raise ArmError(said, (*where, "options"))
    except catalog.BenchmarkClassError as error:
        raise ArmError(str(error), (*where, "generator")) from None
    except OptionError as error:
        key, message = error.mistakes[0]
        raise ArmError(message, (*where, "options", *((key,) if key else ()))) from None
    return point.replace(
        benchmark=name,
        id_name=catalog.id_name_of(benchmark),
        options=plain(options),
        given=tuple(given),
        mesh=arm.mesh_config or point.mesh,
        processes=arm.processes or point.processes,
        storage=arm.storage or point.storage,
        environment=suite.environment(arm.environment),
    ).with_presets_expanded()


def _known(point: SweepPoint, benchmark: str, generator: type[BenchmarkOptions]) -> dict[str, Any]:
    """Returns the suite's values, as far as the benchmark of an arm has such options.

    Two benchmarks share some options at most; the suite's own benchmark has them all.
    """
    if benchmark == point.benchmark:
        return point.given_options
    names = {field.name for field in dataclasses.fields(generator)}
    return {name: value for name, value in point.given_options.items() if name in names}


def arrangement(seed: str, pair_id: str, block: int) -> tuple[Arm, ...]:
    """Returns which arm each slot of a block measures, one of six orders with equal chance.

    The seed is that of the gate or else the id of the run: a run that was interrupted goes on with
    the order that it began with, and two runs of one suite have different orders, so that a
    disturbance at the same point of every run does not always meet the same arm.
    """
    return random.Random(f"{seed}:{pair_id}:{block}").choice(_ARRANGEMENTS)
