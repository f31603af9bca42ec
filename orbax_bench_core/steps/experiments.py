"""Experiments: what a suite is measured for, its signs of life, and what is concluded."""

from __future__ import annotations

import contextlib
import dataclasses
import datetime
import shutil
import threading
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, Final, Self

from orbax_bench_core import execute
from orbax_bench_core.config import LoadedSuite, Suite, load_suite
from orbax_bench_core.errors import UserError
from orbax_bench_core.execute import Event, Progress, Say, Session, Watcher, silent
from orbax_bench_core.exit_codes import Outcome
from orbax_bench_core.leases import batch_name
from orbax_bench_core.pages import num_bytes
from orbax_bench_core.records import Heartbeat, RunDirectory
from orbax_bench_core.sweep import PairDesign, SweepPoint, lives_of, sides

if TYPE_CHECKING:
    from orbax_bench_core import pages
    from orbax_bench_core.analysis.verdicts import VerdictReport
    from orbax_bench_core.answers import Answer

Show = Callable[["pages.Document | str"], object]
"""Takes a document or a line of the result as soon as it is made."""


class NothingFound(UserError):
    """Of what was measured nothing can be concluded."""


@dataclasses.dataclass(frozen=True, kw_only=True)
class Conclusion:
    """What an experiment found."""

    outcome: Outcome
    verdicts: VerdictReport | None = None
    lines: tuple[str, ...] = ()  # what a webhook is told where there are no verdicts
    answer: Any = None  # as data
    document: pages.Document | None = None  # the answer, for people
    page: str = ""  # where that is as a page


def hidden(what: pages.Document | str) -> None:
    """Shows nothing."""


@dataclasses.dataclass(kw_only=True)
class Experiment:
    """One way to measure a suite, and to conclude from its records.

    What it measures depends on what is recorded: the same experiment goes on where it was stopped.
    """

    again: ClassVar[str] = "report"
    """The command that concludes from the same records once more."""
    changes: ClassVar[dict[str, Any]] = {}
    """Settings that it needs."""
    show: Show = hidden
    folder: str = dataclasses.field(default=".", init=False)
    """The run directory where none is given; known once a suite is checked."""
    verdicts: VerdictReport | None = dataclasses.field(default=None, init=False)

    def overrides(self, suite: Suite) -> list[str]:  # noqa: ARG002 - for those that look
        """Returns keys of the suite that it changes, as `--override` takes them."""
        return []

    def checked(self, suite: LoadedSuite) -> LoadedSuite:
        """Returns the suite that is measured; raises `UserError` where it cannot be."""
        return suite

    def errors(self) -> contextlib.AbstractContextManager[None]:
        """Returns a context that words mistakes for the command that asks."""
        return contextlib.nullcontext()

    def check_place(self, directory: str) -> None:
        """Refuses a directory that it cannot begin in, before anything is written there."""

    def prepared(self, session: execute.Session) -> execute.Session:
        """Returns the session that is measured; refuses what cannot be, before anything is."""
        return session

    def announced(self, session: execute.Session) -> Iterable[str]:  # noqa: ARG002 - as above
        """Returns the line to print before it begins."""
        return ()

    def measure(self, session: execute.Session, *, lock: bool) -> None:
        """Measures what the records lack."""
        raise NotImplementedError

    def conclude(self, run: RunDirectory) -> Conclusion:
        """Writes everything that is made of the records, and returns what was found."""
        raise NotImplementedError


def answered(run: RunDirectory, answer: Answer[Any], **options: Any) -> Conclusion:
    """Publishes an answer, and then the report, which shows it."""
    from orbax_bench_core.steps.reporting import publish, publish_answer

    try:
        found = publish_answer(run, answer, **options)
    except UserError as nothing:
        raise NothingFound(*nothing.problems) from None
    return Conclusion(
        outcome=found.outcome.lacking(publish(run).outcome.incomplete),
        lines=(answer.parts.headline(found).said,),
        answer=found,
        document=answer.parts.document(found, str(run.root)),
        page=f"{run.root}/{answer.page}",
    )


def load_for(
    experiment: Experiment,
    read: Callable[[Sequence[str]], LoadedSuite],
    overrides: Sequence[str] = (),
    hosts: int = 1,
) -> LoadedSuite:
    """Loads a suite as an experiment needs it; its points run on all hosts, unless it says else."""
    loaded = read(overrides)
    more = experiment.overrides(loaded.suite)
    if hosts > 1 and "processes" not in loaded.suite.execution.model_fields_set:
        more.append(f"execution.processes={hosts}")
    return experiment.checked(read([*overrides, *more]) if more else loaded)


def begin(
    experiment: Experiment,
    suite: LoadedSuite,
    directory: str,
    *,
    settings: execute.RunSettings = execute.DEFAULTS,
    say: execute.Say = execute.silent,
) -> execute.Session:
    """Begins the run directory of an experiment, or goes on with what is there."""
    settings = dataclasses.replace(settings, **experiment.changes)
    experiment.check_place(directory)
    session = execute.Session.begin(suite, directory, settings=settings, say=say)
    return experiment.prepared(session)


def perform(
    experiment: Experiment,
    suite: str | LoadedSuite | Callable[[Sequence[str]], LoadedSuite],
    directory: str,
    *,
    overrides: Sequence[str] = (),
    settings: execute.RunSettings = execute.DEFAULTS,
    say: execute.Say = execute.silent,
    lock: bool = True,
) -> Conclusion:
    """Makes an experiment from beginning to end, and shows nothing."""

    def read(given: Sequence[str]) -> LoadedSuite:
        if isinstance(suite, LoadedSuite):
            return suite
        return load_suite(suite, given) if isinstance(suite, str) else suite(given)

    loaded = load_for(experiment, read, overrides)
    session = begin(experiment, loaded, directory, settings=settings, say=say)
    experiment.measure(session, lock=lock)
    return experiment.conclude(session.directory)


@contextlib.contextmanager
def measuring(session: execute.Session, *, lock: bool) -> Iterator[execute.Session]:
    """Holds the lease of what the session measures; gives the session, which has a heartbeat."""
    if not session.settings.placed:
        execute.refuse_several_hosts("what was started here")
    check_room(session)
    turn = session.alone() if lock else contextlib.nullcontext()
    with session.owned(), turn, Beating(session, session.watch) as watch:
        yield dataclasses.replace(session, watch=watch)


def measure_points(
    session: execute.Session,
    *,
    limits: bool = True,
    lock: bool = True,
    meanwhile: Callable[[], object] | None = None,
) -> None:
    """Runs every repeat that has no finished record yet."""
    with measuring(session, lock=lock) as watched:
        execute.run_points(watched, meanwhile)
        if limits:
            from orbax_bench_core.limits import ensure_limits

            settings = session.settings
            ensure_limits(session.directory, session.say, settings.host, again=settings.new_limits)


_LEAST_SHARE: Final = 0.5
"""Stored bytes over array bytes that even values which compress well hardly undercut."""


@dataclasses.dataclass(frozen=True, kw_only=True)
class Room:
    """Bytes on the disk of a folder: free, of all arrays at the end, of the largest checkpoint."""

    place: str
    free: int
    needed: int
    largest: int


class NoRoom(UserError):
    """A disk has no room for one checkpoint: a mistake of its choice, or it filled up."""


def check_room(session: execute.Session) -> None:
    """Warns when checkpoints will probably fill a disk, before anything is measured."""
    # Nothing is known of models and checkpoints that the suite only names, nor of buckets.
    for room in rooms(session):
        if room.largest * _LEAST_SHARE > room.free:
            raise NoRoom(
                f"{room.place} has {num_bytes(room.free)} free, and one checkpoint of this suite "
                f"has {num_bytes(room.largest)} of arrays: make room, give another "
                "--output-directory or `storage`, or scale the suite down"
            )
        if room.needed > room.free:
            session.say(
                f"warning: {room.place} has {num_bytes(room.free)} free, and this run will keep "
                f"{num_bytes(room.needed)} of checkpoints there; without "
                "--keep-data and `execution.keep_data` each is deleted after its repeat"
            )


def rooms(session: execute.Session) -> list[Room]:
    """Returns the room on each local disk that a session writes checkpoints to."""
    found: dict[int, Room] = {}
    for point in (point for entry in session.entries for point in sides(entry).values()):
        size, place = point.checkpoint.num_bytes, point.storage or str(session.directory.root)
        folder = _existing(place)
        if not size or folder is None:
            continue
        try:
            device, free = folder.stat().st_dev, shutil.disk_usage(folder).free
        except OSError:  # what cannot be asked is left to the run
            continue
        room = found.get(device) or Room(place=place, free=free, needed=0, largest=0)
        found[device] = dataclasses.replace(
            room, needed=room.needed + size * _kept(session, point), largest=max(room.largest, size)
        )
    return list(found.values())


def _kept(session: execute.Session, point: SweepPoint) -> int:
    """Returns how many checkpoints of a point a run leaves that are not there yet."""
    if session.pairs or not session.keeps_data:
        return 0
    records = Path(str(session.directory.root)) / "records" / point.id
    return sum(
        not (records / f"repeat_{index}").exists() for index in range(session.info.num_repeats)
    )


def _existing(place: str) -> Path | None:
    """Returns the nearest existing folder above a local place; None for a bucket."""
    if "://" in place:
        return None
    return next((folder for folder in (Path(place), *Path(place).parents) if folder.is_dir()), None)


_WHOLE: Final = "all"
"""Name of the part that is the whole run; a file `run.json` would be one of a run directory."""


class Beating(Watcher):
    """Watcher of a session that says each minute how far it is, and tells another watcher all.

    Without it, a step that hangs and one that takes long look the same for hours.
    """

    def __init__(self, session: Session, inner: Watcher) -> None:
        """Counts what `session` measures, and tells `inner` of every event as well."""
        ids = [entry.id for entry in session.entries]
        self._run = session.directory
        self._part = batch_name(ids) if session.step else _WHOLE
        self._say: Say = session.say if session.step else silent
        self._inner = inner
        self._gate, designs, more = session.info.gate, session.info.designs, session.info.more
        self._shared = {pair.id for pair in session.pairs if not designs[pair.id].lives}
        self._most = bool(session.pairs)
        self._points = len(ids)
        arms = sum(
            2 * max(designs[pair.id].last_look(self._gate), more.get(pair.id, 0))
            for pair in session.pairs
        )
        self._repeats = 0 if session.settings.soak else len(session.wanted) + arms
        self._each = session.info.num_repeats
        self._done: dict[str, int] = dict.fromkeys(ids, 0)
        self._measured = 0
        self._began = self._last = datetime.datetime.now(datetime.UTC)
        self._started = time.monotonic()
        self._ended = threading.Event()
        self._thread = threading.Thread(target=self._beat_on, daemon=True)

    def __enter__(self) -> Self:
        self._inner.__enter__()
        self._started = time.monotonic()
        self._write()
        self._thread.start()
        return self

    def __exit__(self, *raised: object) -> None:
        self._ended.set()
        self._thread.join()
        self._write()
        self._inner.__exit__(*raised)

    def __call__(self, event: Event) -> None:
        """Counts repeats that have ended."""
        if isinstance(event, Progress) and event.repeat is not None and event.index is not None:
            if event.life is not None and event.point.id in self._shared:
                self._goes_on_with_lives(event.point.id)
            self._done[event.point.id] = self._done.get(event.point.id, 0) + 1
            self._measured += not event.reused
            self._last = datetime.datetime.now(datetime.UTC)
        self._inner(event)

    def _goes_on_with_lives(self, pair: str) -> None:
        """Counts the operations of lives that a pair has got after those of shared workers."""
        self._shared.remove(pair)
        before = 2 * PairDesign().last_look(self._gate)
        self._repeats += self._done[pair] + 2 * lives_of(self._gate).last_look(self._gate) - before

    @property
    def beat(self) -> Heartbeat:
        """How far it is now."""
        done = dict(self._done)
        made = sum(done.values())
        left = None
        if self._measured and self._repeats:
            pace = (time.monotonic() - self._started) / self._measured
            left = max(0, self._repeats - made) * pace
        return Heartbeat(
            part=self._part,
            began_at=self._began,
            at=datetime.datetime.now(datetime.UTC),
            last_at=self._last,
            ended=self._ended.is_set(),
            points=self._points,
            points_done=0 if self._most else sum(n >= self._each for n in done.values()),
            repeats=self._repeats,
            repeats_done=made,
            most=self._most,
            left_s=left,
        )

    def _beat_on(self) -> None:
        while not self._ended.wait(Heartbeat.PERIOD_S):
            self._say(self._write().words)

    def _write(self) -> Heartbeat:
        beat = self.beat
        with contextlib.suppress(OSError, ImportError, UserError):  # the next one may arrive
            beat.write(self._run)
        return beat
