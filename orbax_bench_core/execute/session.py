"""Session: a measurement under way, with run directory, entries, settings and watcher."""

import contextlib
import dataclasses
import sys
from collections.abc import Callable, Iterator, Sequence
from typing import Final, Self

import pydantic

from orbax_bench_core import sweep
from orbax_bench_core.config import Arm, LoadedSuite, parse_suite
from orbax_bench_core.errors import UserError, listed, shortened, shown
from orbax_bench_core.execute.command_line import command_line
from orbax_bench_core.execute.hosts import Host, JoinFiles, LocalHost
from orbax_bench_core.execute.liveness import PATIENCE, Patience
from orbax_bench_core.execute.machine_turns import turns_on
from orbax_bench_core.execute.placement import ExpectedDevices
from orbax_bench_core.files import place
from orbax_bench_core.provenance import CodeUnderTest, code_under_test
from orbax_bench_core.records import Repeat, RunDirectory, RunInfo, check_versions, clear_abandoned

Say = Callable[[str], None]
"""Takes a line for people."""


@dataclasses.dataclass(frozen=True, kw_only=True)
class RunSettings:
    """Settings of a run, beside what the suite says."""

    # scratch directory on the local disk, for benchmarks that use one
    local_directory: str | None = None
    # whether the checkpoint data of each repeat stays, whatever the suite says
    keep_data: bool = False
    hlo_dump: bool = False  # whether XLA writes its HLO protos to `hlo_dump/` in the run directory
    # simulated CPU devices over all processes; None takes what each mesh needs
    devices: int | None = None
    take_turns: bool = False  # whether workers with different needs never live at the same time
    # what is known of processes here, by which a comparison chooses who shares a worker; None knows
    # nothing
    process_noise: sweep.ProcessNoiseOf | None = None
    host: Host = dataclasses.field(default_factory=LocalHost)  # what starts the workers
    patience: Patience = PATIENCE  # how long the signs of workers are watched before they count
    soak: bool = False  # whether workers also read the state of their process with each operation
    # whether every repeat is killed once while it trains, and goes on in new processes
    drill: bool = False
    # whether it is settled which hosts measure. Without that, what a launcher has started on
    # several hosts is refused.
    placed: bool = False
    expect: ExpectedDevices | None = None  # the devices that workers must have; None takes any
    # whether a run ends when the first points all lacked the same, such as a library or space on
    # the disk, and none has passed
    give_up: bool = False
    # whether limits of machine and storage are measured even where an earlier run has left some
    # that still hold
    new_limits: bool = False


DEFAULTS: Final = RunSettings()


class Event:
    """Something that happened in a measurement; `experiments` adds verdicts to these."""


@dataclasses.dataclass(frozen=True, kw_only=True)
class OfRepeat(Event):
    """Something that happened to a repeat or a warm-up."""

    point: sweep.SweepEntry  # the sweep point, or the pair
    index: int | None  # the repeat; None for a warm-up
    arm: Arm | None = None  # which side of the point it measures; None outside a paired comparison
    block: int | None = None  # the block of the paired comparison; None outside one
    # the slot of the block that has a worker of its own; None without lives
    life: int | None = None


@dataclasses.dataclass(frozen=True, kw_only=True)
class Progress(OfRepeat):
    """A warm-up or a repeat that begins, or a repeat that has ended."""

    repeat: Repeat | None = None  # the repeat's records once it has ended; None while it begins
    reused: bool = False  # whether they were there before this run


@dataclasses.dataclass(frozen=True, kw_only=True)
class Retry(OfRepeat):
    """An attempt at a repeat has failed, and it is tried again."""

    reason: str  # why the attempt failed, and which host failed first
    left: int  # how often it may be tried from here on


class Watcher:
    """Watcher of a measurement; this one ignores every event.

    A watcher is a context manager that is entered when measuring begins, after the machine's
    measuring lock has been taken, and left when it ends.
    """

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *raised: object) -> None:
        """Measuring has ended, perhaps with an error."""

    def __call__(self, event: Event) -> None:
        """Is told of every event."""


def silent(line: str) -> None:
    """Ignores the line."""


def to_stderr(line: str) -> None:
    """Prints a line on standard error, at once."""
    print(line, file=sys.stderr, flush=True)


@dataclasses.dataclass(frozen=True, kw_only=True)
class Session:
    """A measurement: the run directory, what is measured, how, and who watches."""

    directory: RunDirectory  # the run directory
    info: RunInfo  # what its `run.json` says
    suite: LoadedSuite
    entries: tuple[sweep.SweepEntry, ...]  # what is measured: all of the run, or the one of a step
    # revisions of what is under test from now on
    code: CodeUnderTest = dataclasses.field(default_factory=CodeUnderTest)
    step: bool = False  # whether other steps may measure other entries at the same time
    settings: RunSettings = DEFAULTS  # how
    watch: Watcher = dataclasses.field(default_factory=Watcher)  # told of every event
    say: Say = silent  # takes lines for people

    @classmethod
    def begin(
        cls,
        suite: LoadedSuite,
        directory: str,
        *,
        settings: RunSettings = DEFAULTS,
        watch: Watcher | None = None,
        say: Say = silent,
        engine_run: str = "",
        go_on: bool = False,
    ) -> Self:
        """Expands a suite, and begins its run directory or continues the existing run.

        Args:
            suite: The suite as it was read.
            directory: The run directory, local or gs://.
            settings: How workers run.
            watch: Told of every event.
            say: Takes lines for people.
            engine_run: Id of the run of an engine: a directory of another one is refused.
            go_on: Whether such a directory is taken over instead.

        Raises:
            UserError: The directory holds another run, or one that another command measures; or
                arms measure the same; or a store cannot be reached.
        """
        expansion = sweep.expand(suite)
        _check_stores(expansion.points)
        _check_arms(suite, expansion.pairs)
        run = RunDirectory(directory)
        if engine_run:  # a lease would change what belongs to another run
            run.refuse_other(engine_run, go_on=go_on)
        code = code_under_test(expansion.files, suite.source.file)
        with run.owned(None, command=command_line(), say=say):
            if engine_run:
                run.claim(engine_run, go_on=go_on)
            check_versions(run, expansion.points, say=say)  # before run.json says that it goes on
            info = run.start(suite, expansion, code, settings.process_noise)
        return cls(
            directory=run,
            info=info,
            suite=suite,
            entries=expansion.points,
            code=code,
            settings=settings,
            watch=watch or Watcher(),
            say=say,
        )

    @classmethod
    def rejoin(
        cls,
        directory: str,
        *points: str,
        settings: RunSettings = DEFAULTS,
        watch: Watcher | None = None,
        say: Say = silent,
    ) -> Self:
        """Joins a run that another process has begun, to measure some of its entries.

        Args:
            directory: Its run directory.
            points: Ids of points or pairs of the run, or whole points as JSON.
            settings: How workers run.
            watch: Told of every event.
            say: Takes lines for people.

        Raises:
            UserError: There is no run, or it has no such entry.
        """
        run = RunDirectory(directory)
        info = run.read_info()
        entries = _entries(points, info, directory)
        _check_stores(entries)
        check_versions(run, entries, say=say)
        return cls(
            directory=run,
            info=info,
            suite=parse_suite(info.suite_text, info.suite_file),
            entries=entries,
            code=info.code,
            step=True,
            settings=settings,
            watch=watch or Watcher(),
            say=say,
        )

    @contextlib.contextmanager
    def owned(self) -> Iterator[None]:
        """Holds the lease of what is measured here: the whole run or, in a step, its entries.

        Raises:
            UserError: Another command holds it, or has begun the directory again.
        """
        entries = self.entries if self.step else None
        with self.directory.owned(entries, command=command_line(), say=self.say):
            now = self.directory.read_info()
            if (now.run_id, now.rules) != (self.info.run_id, self.info.rules):
                raise UserError(
                    f"{self.directory.root} was begun again by another command meanwhile; run the "
                    "same command again"
                )
            try:
                if self.whole and isinstance(self.settings.host, LocalHost):
                    JoinFiles(self.directory.root).remove_left()
                yield
            except BaseException:  # a worker may have been ended while it wrote
                with contextlib.suppress(OSError, UserError):
                    clear_abandoned(self.directory, self.entries)
                raise

    @contextlib.contextmanager
    def alone(self) -> Iterator[None]:
        """Holds the measuring lock of each host, and a lease of its machine for its containers."""
        host = self.settings.host
        with host.alone(self.say), turns_on(host.machines(), self.directory.root, self.say):
            yield

    @property
    def whole(self) -> bool:
        """Whether all of the run is measured here, and no other step measures the rest of it."""
        return len(self.entries) == len(self.info.expansion.points)

    @property
    def keeps_data(self) -> bool:
        """Whether the checkpoint of each repeat stays: the suite or the command asks for it."""
        return self.settings.keep_data or self.info.execution.keep_data

    @property
    def pairs(self) -> tuple[sweep.Pair, ...]:
        """The pairs among the entries."""
        return tuple(entry for entry in self.entries if isinstance(entry, sweep.Pair))

    @property
    def plain(self) -> tuple[sweep.SweepPoint, ...]:
        """The points that are no pairs."""
        return tuple(entry for entry in self.entries if isinstance(entry, sweep.SweepPoint))

    @property
    def wanted(self) -> list[tuple[str, int]]:
        """The measured repeats that the points which are no pairs have in the end, by their ids."""
        return [(point.id, i) for point in self.plain for i in range(self.info.num_repeats)]


def _from_json(text: str) -> sweep.SweepEntry:
    try:
        return sweep.entry_from_json(text)
    except pydantic.ValidationError as error:
        first = error.errors(include_url=False)[0]
        raise UserError(f"{shown(text)} is no point: {first['msg']}") from None


def _entries(points: Sequence[str], info: RunInfo, directory: str) -> tuple[sweep.SweepEntry, ...]:
    """Returns points and pairs that are given by id or as JSON, in their order, each once."""
    known = {entry.id: entry for entry in info.expansion.points}
    found: dict[str, sweep.SweepEntry] = {}
    for point in points:
        entry = _from_json(point) if point.lstrip().startswith("{") else known.get(point)
        if entry is None:
            there = listed(known, most=10)
            raise UserError(f"{directory} has no point {shortened(point)}; it has {there}")
        found[entry.id] = entry
    return tuple(found.values())


def _check_arms(suite: LoadedSuite, pairs: Sequence[sweep.Pair]) -> None:
    """Refuses arms that measure the same, unless the suite asks for that, and the reverse."""
    arms = suite.suite.arms
    if arms is None:
        return
    same = all(pair.identical for pair in pairs)
    if same and not arms.may_be_same:
        raise UserError(
            suite.source.problem(
                f"both arms measure the same (baseline: {arms.baseline}; candidate: "
                f"{arms.candidate}): the same options, class, environment and code, so that no "
                "change would be judged. Say what is different in one of them; --aa of "
                "`orbax-bench ab`, or `aa: true` in this block, compares the same on purpose",
                ("arms",),
            )
        )
    if arms.aa and not same:
        raise UserError(
            suite.source.problem(
                f"--aa and `aa: true` are for arms that measure the same, and these differ "
                f"(baseline: {arms.baseline}; candidate: {arms.candidate}): leave it out, or the "
                "difference",
                ("arms",),
            )
        )


def _check_stores(entries: Sequence[sweep.SweepEntry]) -> None:
    # A worker would look for them for minutes, in each repeat.
    points = [point for entry in entries for point in sweep.sides(entry).values()]
    for named in {path for point in points for path in (point.storage, point.checkpoint.path)}:
        if named is not None:
            place(named)
