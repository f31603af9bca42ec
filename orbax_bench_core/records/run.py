"""A paired run, seen as one series per arm, as tables and logs show it."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from orbax_bench_core.config import ARMS, Arm
from orbax_bench_core.records.record import Record
from orbax_bench_core.records.run_directory import RunDirectory, RunInfo
from orbax_bench_core.sweep import Expansion, Pair, SweepEntry, SweepPoint


class ArmPoint(SweepPoint):
    """One side of a pair, told from the other even when both measure the same.

    Attributes:
        pair: Id of the pair.
        arm: Which side.
    """

    pair: str
    arm: Arm

    def model_post_init(self, context: Any, /) -> None:
        """Takes an id of its own: in an A/A comparison both sides have the same content."""
        super().model_post_init(context)
        self.__dict__["id"] = f"{self.pair}-{self.arm}"

    @classmethod
    def of(cls, pair: Pair, arm: Arm) -> ArmPoint:
        """Returns one side of a pair."""
        label = ",".join(filter(None, [pair.label, f"arm={arm}"]))
        side = pair.arm(arm)
        own = {name: getattr(side, name) for name in SweepPoint.model_fields}
        return cls(**{**own, "label": label}, pair=pair.id, arm=arm)


class ByArm(RunDirectory):
    """A run directory in which each arm of a pair is a point; other points are as they are."""

    def read_info(self) -> RunInfo:
        """Reads `run.json`, with two points for each pair."""
        info = super().read_info()
        expansion = info.expansion
        points = tuple(side for point in expansion.points for side in _sides(point))
        changed = Expansion(points=points, skipped=expansion.skipped, notes=expansion.notes)
        return info.model_copy(update={"expansion": changed})

    def records(self) -> Iterator[Record]:
        """Yields every record: points as in `read_info`, then warm-ups and repeats."""
        for point in self.read_info().expansion.points:
            yield from self.point_records(point)

    def point_records(self, point: SweepEntry) -> list[Record]:
        """Returns every readable record of one point, as if it had never been part of a pair."""
        if not isinstance(point, ArmPoint):
            return super().point_records(point)
        of_arm = {"point_id": point.id, "point_name": point.name, "point": point, "arm": None}
        return [
            record.model_copy(update=of_arm)
            for record in self.records_in(point.pair)
            if record.arm == point.arm
        ]


def _sides(entry: SweepEntry) -> list[SweepPoint]:
    if not isinstance(entry, Pair):
        return [entry]
    return [ArmPoint.of(entry, arm) for arm in ARMS]
