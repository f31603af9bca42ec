"""Pairs of sweep points, entries of an expansion, and the order of the arms in a block."""

from __future__ import annotations

import functools
import itertools
import random
from typing import Annotated, Any, Final

import pydantic
from pydantic.json_schema import JsonSchemaValue
from pydantic_core import core_schema

from orbax_bench_core.config import Arm
from orbax_bench_core.sweep import catalog
from orbax_bench_core.sweep.point import SweepPoint, id_of

_ARRANGEMENTS: Final[list[tuple[Arm, ...]]] = sorted(
    set(itertools.permutations(("baseline", "baseline", "candidate", "candidate")))
)


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
    """Returns the point that one arm of an entry measures; a plain point is the same in each.

    Raises:
        ValueError: The entry is a pair, and `arm` is None.
    """
    if not isinstance(entry, Pair):
        return entry
    if arm is None:
        raise ValueError(f"{entry.name} {entry.id} is a pair: say which arm")
    return entry.arm(arm)


def arrangement(seed: str, pair_id: str, block: int) -> tuple[Arm, ...]:
    """Returns which arm each slot of a block measures, one of six orders with equal chance.

    The seed is that of the gate or else the id of the run: a run that was interrupted goes on with
    the order that it began with, and two runs of one suite have different orders, so that a
    disturbance at the same point of every run does not always meet the same arm.

    Returns:
        Four arms, each twice, in the order of the slots.
    """
    return random.Random(f"{seed}:{pair_id}:{block}").choice(_ARRANGEMENTS)
