"""Experiments: what a suite is measured for, and what is concluded."""

from __future__ import annotations

import contextlib
import dataclasses
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import TYPE_CHECKING, Any, ClassVar

from orbax_bench_core import execute
from orbax_bench_core.config import LoadedSuite, Suite, load_suite
from orbax_bench_core.errors import UserError
from orbax_bench_core.exit_codes import Outcome
from orbax_bench_core.experiments.beating import Beating
from orbax_bench_core.experiments.room import check_room
from orbax_bench_core.records import RunDirectory

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
    """Publishes an answer, and then the report, which shows it.

    Args:
        run: Where the records are, and where its files go.
        answer: The row of `answers.ANSWERS`.
        options: What the answer is asked with, such as the limit of a soak.

    Raises:
        NothingFound: The records say nothing of it, with the reason.
    """
    from orbax_bench_core.publishing import publish, publish_answer

    try:
        found = publish_answer(run, answer, **options)
    except UserError as nothing:
        raise NothingFound(*nothing.problems) from None
    return Conclusion(
        outcome=found.outcome.lacking(publish(run).summary.outcome.incomplete),
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
    """Loads a suite as an experiment needs it; its points run on all hosts, unless it says else.

    Args:
        experiment: What will be measured; it may change keys and refuse the suite.
        read: Reads the suite with overrides, which come before those of the experiment.
        overrides: Those of the user, as `--override` takes them.
        hosts: Hosts that measure together: `execution.processes` where the suite names none.

    Raises:
        UserError: The suite is invalid, or not one that the experiment can measure.
    """
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
    """Begins the run directory of an experiment, or goes on with what is there.

    Args:
        experiment: What will be measured.
        suite: As `load_for` returned it.
        directory: The run directory, local or gs://.
        settings: How workers run; the experiment may need some its own way.
        say: Takes lines for people.

    Raises:
        UserError: The directory holds a run of another suite or of other rules, or another command
            measures into it.
    """
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
    """Makes an experiment from beginning to end, and shows nothing.

    Args:
        experiment: What is measured and concluded.
        suite: A file, a suite that was loaded (without `overrides`), or what reads one.
        directory: The run directory, local or gs://.
        overrides: Keys of the suite to change, as `--override` takes them.
        settings: How workers run.
        say: Takes lines for people.
        lock: Whether to wait while another command measures on this machine.

    Raises:
        UserError: The suite is invalid, or cannot be measured or concluded from here.
    """

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
    """Holds the lease of what the session measures; gives the session, which has a heartbeat.

    Args:
        session: The measurement.
        lock: Whether the measuring lock of every host is held meanwhile.

    Raises:
        UserError: There is no room for the checkpoints, another command measures the same points,
            or this was started on one of several hosts.
    """
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
    """Runs every repeat that has no finished record yet.

    Args:
        session: The run that was begun.
        limits: Whether to measure the limits of machine and storage afterwards, once per run.
        lock: Whether to wait while another command measures on this machine.
        meanwhile: Called once, while the first workers start.

    Raises:
        NoRoom: A disk has no room for one checkpoint.
        UserError: Another command measures into the directory.
    """
    with measuring(session, lock=lock) as watched:
        execute.run_points(watched, meanwhile)
        if limits:
            from orbax_bench_core.limits import ensure_limits

            settings = session.settings
            ensure_limits(session.directory, session.say, settings.host, again=settings.new_limits)
