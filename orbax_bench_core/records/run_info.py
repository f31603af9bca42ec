"""Run info: what `run.json` says of a run, its points and its rules."""

import contextlib
import dataclasses
import datetime
import enum
import json
import shlex
import uuid
from collections.abc import Sequence
from typing import Any, Final, Literal

import pydantic

from orbax_bench_core import config, sweep
from orbax_bench_core.errors import Problem, UserError, command, first_fault
from orbax_bench_core.provenance import CodeUnderTest
from orbax_bench_core.records.versions import SCHEMA_VERSION, Versioned, parsed_file

_MADE_BY: Final = "# made by: orbax-bench "
RunStatus = Literal["running", "complete", "incomplete"]


class RunInfo(Versioned):
    """Content of `run.json`: the expanded suite and how far it is.

    Attributes:
        run_id: Unique id of the run.
        suite_name: Name of the suite.
        suite_identity: SHA-256 of what is measured, in hex.
        suite_text: The suite file, word for word.
        suite_file: Where it came from.
        num_repeats: Measured repeats per point.
        execution: How repeats are run.
        gate: When a difference between arms counts.
        rules: Fingerprint of `gate`, which is frozen once a block is recorded.
        seed: Seed of the order of the arms; empty for the id of the run.
        baseline: What the baseline arm has different, for people; empty without arms.
        candidate: What the candidate arm has different.
        designs: Which workers the operations of each pair have, by the pair's id, frozen with the
            rules.
        more: Operations per arm to which `--more` lets pairs go on, by the pair's id; without those
            that end by themselves.
        expansion: The points, those skipped, and notes.
        code: Revisions of the benchmark classes and of the suite file when the run began; a record
            has those that it was measured with.
        created_at: When the run began, UTC.
        status: `running`; `complete` when every repeat is finished; `incomplete` otherwise.
    """

    run_id: str
    suite_name: str
    suite_identity: str
    suite_text: str
    suite_file: str
    num_repeats: int
    execution: config.ExecutionConfig
    gate: config.GateConfig = config.GateConfig()
    rules: str
    seed: str = ""
    baseline: str = ""
    candidate: str = ""
    designs: dict[str, sweep.PairDesign]
    more: dict[str, pydantic.PositiveInt] = pydantic.Field(
        default={}, exclude_if=lambda found: not found
    )
    expansion: sweep.Expansion
    code: CodeUnderTest = CodeUnderTest()
    created_at: datetime.datetime
    status: RunStatus = "running"

    def order(self, pair: sweep.Pair, block: int) -> tuple[config.Arm, ...]:
        """Returns the arm of each of the 4 slots of a block."""
        return sweep.arrangement(self.order_seed, pair.id, block)

    @staticmethod
    def made_by(words: Sequence[str], suite: config.LoadedSuite) -> config.LoadedSuite:
        """Returns a suite that no file has, whose text says the command that made it."""
        # At its end, so that messages name the lines of the file.
        text = f"{suite.text.rstrip()}\n{_MADE_BY}{shlex.join(words)}\n"
        return dataclasses.replace(suite, text=text)

    @property
    def again(self) -> tuple[str, ...]:
        """Command that goes on with a comparison, but for its directory.

        It is empty where that is `ab` with the file of the suite alone. With a directory of its own
        it is the command of a series, such as `bisect`, of which the comparison is a part.
        """
        last = self.suite_text.rstrip().rpartition("\n")[2]
        if last.startswith(_MADE_BY):
            return tuple(shlex.split(last.removeprefix(_MADE_BY)))
        return ("ab", self.suite_file, *self.flags) if self.flags else ()

    @property
    def flags(self) -> tuple[str, ...]:
        """Flags of the command that change the suite, `--override` and `KEY=VALUE` in turns."""
        return tuple(config.override_flags(self.suite_text))

    @property
    def order_seed(self) -> str:
        """Seed of the order of the arms: a run that was interrupted goes on with it."""
        return self.seed or self.run_id

    def require_suite(self, identity: str, root: str) -> None:
        """Refuses to go on with this run for a suite of another identity.

        Raises:
            UserError: It is a run of another suite; the message names `root`, its directory.
        """
        if self.suite_identity != identity:
            raise UserError(
                f"{root} holds a run of another suite ({self.suite_name!r}, begun "
                f"{self.created_at:%Y-%m-%d %H:%M} UTC); choose another output directory"
            )

    @pydantic.field_validator("gate", mode="before")
    @classmethod
    def _of_before(cls, gate: Any) -> Any:
        """Reads rules of before there were limits on failures: they asked for none."""
        return {"max_failures": None, **gate} if isinstance(gate, dict) else gate

    @property
    def paired(self) -> bool:
        """Whether the run compares two arms."""
        return any(isinstance(entry, sweep.Pair) for entry in self.expansion.points)


def begin_info(
    loaded: config.LoadedSuite,
    expansion: sweep.Expansion,
    code: CodeUnderTest,
    process_noise: sweep.ProcessNoiseOf | None,
) -> RunInfo:
    """Returns the content of `run.json` for a run that begins now.

    Args:
        loaded: The suite with its text, which is kept so that the directory is complete by itself.
        expansion: Its points and pairs.
        code: Revision of the code under test.
        process_noise: What a noise passport knows of the difference between processes, which
            decides the design of each pair; None without a passport.
    """
    suite = loaded.suite
    return RunInfo(
        run_id=uuid.uuid4().hex[:12],
        suite_name=suite.suite_name,
        suite_identity=suite.identity,
        suite_text=loaded.text,
        suite_file=loaded.source.file,
        num_repeats=suite.num_repeats,
        execution=suite.execution,
        gate=suite.gate,
        rules=suite.gate.fingerprint,
        seed="" if suite.gate.seed is None else str(suite.gate.seed),
        baseline="" if suite.arms is None else str(suite.arms.baseline),
        candidate="" if suite.arms is None else str(suite.arms.candidate),
        designs={
            pair.id: sweep.design_of(
                pair,
                suite.gate,
                passport=None if process_noise is None else process_noise(pair, suite.gate),
            )
            for pair in expansion.pairs
        },
        expansion=expansion.model_copy(update={"files": {}}),
        code=code,
        created_at=datetime.datetime.now(datetime.UTC),
    )


def continue_info(earlier: RunInfo, info: RunInfo, root: str, *, judged: bool) -> RunInfo:
    """Returns the content of `run.json` for a run that goes on.

    It keeps id, time and code of the earlier one; once something is recorded also rules, seed,
    designs and how far each point may go, because what is chosen after the data proves nothing.

    Args:
        earlier: What `run.json` has.
        info: What it would have if the run began now.
        root: The run directory, for messages.
        judged: Whether the run ends in verdicts and something is recorded.

    Raises:
        UserError: It is a run of another suite, or of other rules.
    """
    earlier.require_suite(info.suite_identity, root)
    kept = {"run_id": earlier.run_id, "created_at": earlier.created_at, "code": earlier.code}
    if not judged:
        return info.model_copy(update=kept)
    if earlier.gate.fingerprint != info.gate.fingerprint:
        edits = config.gate_edits(earlier.gate, info.gate)
        flags = [word for edit in edits for word in ("--rule", edit)]
        raise UserError(
            f"{root} was measured for other rules ({config.gate_changes(earlier.gate, info.gate)}"
            "): rules that are chosen after the data decide nothing. Measure again in another "
            "output directory, or judge what is here by other rules, as an exploration: "
            f"`{command('compare', root, *flags)}`"
        )
    frozen = {name: getattr(earlier, name) for name in ("rules", "seed", "designs", "more")}
    return info.model_copy(update={**kept, **frozen})


def parse_info(data: bytes, file: str) -> RunInfo:
    """Parses `run.json`; messages name `file`.

    Raises:
        UserError: It is damaged, or of a schema version that is not read.
    """
    try:
        return parsed_file(RunInfo, data, file)
    except pydantic.ValidationError as error:
        said = f"not readable as schema version {SCHEMA_VERSION}: {first_fault(error)}"
        raise UserError(Problem(said, file=file)) from None


ENGINE_RUN: Final = "engine_run.json"
"""File that says of which run of an engine, such as Airflow, a run directory is."""


def parse_engine_run(data: bytes, file: str) -> str:
    """Returns the id of the run of an engine in `engine_run.json`; messages name `file`.

    Raises:
        UserError: The file is damaged.
    """
    content = None
    with contextlib.suppress(ValueError, RecursionError):
        content = json.loads(data)
    found = content.get("engine_run") if isinstance(content, dict) else None
    if not isinstance(found, str):
        raise UserError(Problem("damaged: it names no run of an engine; remove it", file=file))
    return found


class RunFile(enum.StrEnum):
    """File of a run directory beside its records, by what it says."""

    BEST = "best.json"
    HOST_LIMITS = "limits_of_hosts.json"
    LIMITS = "limits.json"
    METRICS = "metrics.json"
    REPORT = "report.html"
    VERDICTS = "verdicts.json"
