"""Run info: what `run.json` says of a run, its points and its rules."""

from __future__ import annotations

import datetime
from typing import Literal

from orbax_bench_core.config import Arm, ExecutionConfig, GateConfig
from orbax_bench_core.records.code import CodeUnderTest
from orbax_bench_core.records.record import SCHEMA_VERSION, ResultModel, SchemaVersion
from orbax_bench_core.sweep import (
    Expansion,
    Pair,
    PairDesign,
    arrangement,
    earlier_design,
    sides,
)

RunStatus = Literal["running", "complete", "incomplete"]


class RunInfo(ResultModel):
    """What `run.json` says: the expanded suite and how far it is.

    Attributes:
        schema_version: Version of this layout.
        run_id: Unique id of the run.
        suite_name: Name of the suite.
        suite_identity: SHA-256 of what is measured, in hex.
        suite_text: The suite file, word for word.
        suite_file: Where it came from.
        num_repeats: Measured repeats per point.
        execution: How repeats are run.
        gate: When a difference between arms counts.
        rules: Fingerprint of `gate`, which is frozen once a block is recorded; None in runs of
            version 1, whose rules were not.
        seed: Seed of the order of the arms; empty for the id of the run.
        baseline: What the baseline arm has different, for people; empty without arms.
        candidate: What the candidate arm has different.
        designs: Which workers the operations of each pair have, by the pair's id, frozen with the
            rules; a run of version 1 has none here, see `design`.
        expansion: The points, those skipped, and notes.
        code: Revisions of the benchmark classes and of the suite file when the run began; a record
            has those that it was measured with.
        created_at: When the run began, UTC.
        status: `running`; `complete` when every repeat is finished; `incomplete` otherwise.
    """

    schema_version: SchemaVersion = SCHEMA_VERSION
    run_id: str
    suite_name: str
    suite_identity: str
    suite_text: str
    suite_file: str
    num_repeats: int
    execution: ExecutionConfig
    gate: GateConfig = GateConfig()
    rules: str | None = None
    seed: str = ""
    baseline: str = ""
    candidate: str = ""
    designs: dict[str, PairDesign] = {}
    expansion: Expansion
    code: CodeUnderTest = CodeUnderTest()
    created_at: datetime.datetime
    status: RunStatus = "running"

    @property
    def num_series(self) -> int:
        """How many points are measured, each arm of a pair counted."""
        return sum(len(sides(entry)) for entry in self.expansion.points)

    def design(self, pair: Pair) -> PairDesign:
        """Returns the design of a pair; that of version 1 where none was decided."""
        return self.designs.get(pair.id) or earlier_design(pair)

    def order(self, pair: Pair, block: int) -> tuple[Arm, ...]:
        """Returns the arm of each of the 4 slots of a block."""
        return arrangement(self.order_seed, pair.id, block)

    @property
    def order_seed(self) -> str:
        """Seed of the order of the arms: a run that was interrupted goes on with it."""
        return self.seed or self.run_id

    @property
    def paired(self) -> bool:
        """Whether the run compares two arms."""
        return any(isinstance(entry, Pair) for entry in self.expansion.points)
