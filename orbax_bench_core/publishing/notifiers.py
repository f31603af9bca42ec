"""Where a conclusion goes beside the run directory: a webhook, JUnit XML, a CI job's page."""

from __future__ import annotations

import contextlib
import contextvars
import dataclasses
import datetime
import os
from collections.abc import Callable, Iterator, Mapping, MutableMapping, Sequence
from typing import TYPE_CHECKING, Final, Self

from orbax_bench_core.errors import UserError
from orbax_bench_core.execute import NOTIFY, NOTIFY_STATE, to_stderr
from orbax_bench_core.exit_codes import Outcome, State
from orbax_bench_core.files import checked_path, place, read_at_most, write_atomically
from orbax_bench_core.interrupts import Late, in_time
from orbax_bench_core.records import RunDirectory

if TYPE_CHECKING:
    from orbax_bench_core.analysis.verdicts import VerdictReport
    from orbax_bench_core.exports.news import News
    from orbax_bench_core.exports.notifications import Webhook

# What is told is imported where it is told: a command that measures starts its workers before.

_LONGEST_ADDRESS: Final = 2**16
"""Bytes of a file that holds an address."""


@dataclasses.dataclass(frozen=True, kw_only=True)
class Notifiers:
    """Places where a command tells what it found, beside its run directory and its terminal.

    Whatever goes wrong with one of them is a warning on standard error, and never the exit code.
    The webhook is notified when the state of the suite changes. The last states, and the morning
    page, are beside the run directory unless their folders are given; `page` is the file of the
    summary page of a job of GitHub Actions.
    """

    webhook: Webhook | None = None
    states: str = ""
    remembers: bool = True  # whether this machine has the folder of the run directory
    junit: str | None = None
    page: str = ""
    site: str = ""

    @classmethod
    def of(
        cls,
        notify: str | None = None,
        junit: str | None = None,
        environment: Mapping[str, str] = os.environ,
    ) -> Self:
        """Returns the notifiers that were asked for.

        Args:
            notify: Address of a webhook, as `--notify` takes it; by default the one in the
                environment.
            junit: File to write JUnit's XML to.
            environment: Variables that name the webhook, the folder of its states, the morning
                page, and the summary page of a GitHub job.

        Raises:
            UserError: The webhook's address cannot be read or used, or a place is of a scheme that
                is not written.
        """
        given = notify or environment.get(NOTIFY, "")
        webhook = None
        if given:
            from orbax_bench_core.exports.notifications import webhook_at

            webhook = webhook_at(_text_of(given))
        return cls(
            webhook=webhook,
            states=_checked(environment.get(NOTIFY_STATE, ""), NOTIFY_STATE),
            junit=junit and _checked(junit, "--junit"),
            page=environment.get(_STEP_SUMMARY, ""),
            site=_checked(environment.get(SITE, ""), SITE),
        )

    @staticmethod
    def hidden(environment: MutableMapping[str, str]) -> None:
        """Takes the notifiers out of the environment of processes that this one starts."""
        for name in (NOTIFY, NOTIFY_STATE, _STEP_SUMMARY, SITE):
            environment.pop(name, None)

    @staticmethod
    @contextlib.contextmanager
    def once() -> Iterator[None]:
        """Has each state of a run directory be told once, however often it is found within."""
        # The last state may have no room on the disk that made a step fail, and be tried again.
        outer = _TOLD.get(None)
        reset = _TOLD.set(set() if outer is None else outer)
        try:
            yield
        finally:
            _TOLD.reset(reset)

    def verdicts(self, found: VerdictReport, directory: str, *, failed: object = False) -> None:
        """Tells what a comparison found, by every outlet; `failed` of more than its verdicts.

        Args:
            found: The verdicts.
            directory: The run directory, for the links.
            failed: Anything true if more than the verdicts is wrong, such as a step that was lost.
        """
        from orbax_bench_core.analysis.verdicts import verdicts_document
        from orbax_bench_core.exports.ci import append_step_summary, junit_xml
        from orbax_bench_core.pages import to_markdown

        if self.junit is not None:
            with _warned(f"cannot write {self.junit}"):
                write_atomically(place(self.junit), junit_xml(found))
        if self.page:
            with _warned("the summary page of this job cannot be written"):
                append_step_summary(to_markdown(verdicts_document(found, directory)), self.page)
        self.judged(found, found.outcome.lacking(failed), directory)

    def judged(
        self,
        found: VerdictReport,
        outcome: Outcome,
        directory: str,
        lacking: Sequence[str] = (),
        *,
        renews: bool = True,
    ) -> State:
        """Tells in what state a comparison leaves its suite; `renews` is of the morning page.

        Args:
            found: The verdicts; nothing is told of an exploratory comparison.
            outcome: Outcome of the comparison.
            directory: The run directory.
            lacking: What the run lacks, a line each; a run that lacks something is no PASS.
            renews: Whether the morning page is written again as well.

        Returns:
            The state, also where nobody is told of it.
        """
        from orbax_bench_core.analysis.acceptance import standing

        state = outcome.lacking(lacking).state
        known = standing(found, directory) if state in ("REGRESSION", "ACCEPTED") else None
        if not found.exploratory:
            judged = (*_lines(found), *([known.said] if known else []))
            lines = found.outcome.in_order(judged, lacking)
            at = found.judged_at
            self.ended(found.suite, state, directory, lines, at=at, renews=renews)
        return state

    def accepted(self, suite: str, directory: str) -> None:
        """Notes that a regression is known, so that the webhook hears of it when it grows."""
        from orbax_bench_core.exports.last_states import state_file
        from orbax_bench_core.exports.news import News
        from orbax_bench_core.exports.notifications import note_accepted

        folder = place(self.states) if self.states else place(directory).parent
        if state_file(folder, suite).exists():  # of others nobody is told
            info = RunDirectory(directory).read_info()
            news = News(
                suite=suite,
                state="ACCEPTED",
                run_id=info.run_id,
                directory=directory,
                begun=info.created_at,
            )
            note_accepted(news, folder)
        self.renew_site(directory)

    def failed(self, suite: str | None, directory: str, why: str, **how: bool) -> State:
        """Tells that there is no result; `renews` and `begun` as `ended` takes them."""
        return self.ended(suite, "FAILED", directory, tuple(why.splitlines()), at=None, **how)

    def ended(
        self,
        suite: str | None,
        state: State,
        directory: str,
        lines: tuple[str, ...],
        *,
        at: datetime.datetime | None = None,
        renews: bool = True,
        begun: bool = True,
    ) -> State:
        """Tells the webhook in what state a suite is, and returns the state.

        `renews` is of the morning page, which comes after that: a disk may have no room for it.
        Where nothing was `begun`, what the directory holds is another run, older than this news,
        which is of the time `at`, by default now.
        """
        told = _TOLD.get(set())
        if self.webhook is not None and (directory, state) not in told:
            told.add((directory, state))
            from orbax_bench_core.exports.news import News

            news = News(
                suite=suite or "a suite that cannot be read",
                state=state,
                run_id="",
                directory=directory,
                begun=at or datetime.datetime.now(datetime.UTC),
                lines=lines,
            )
            self._notify(self.webhook, news, named=bool(suite), begun=begun)
        if renews:
            self.renew_site(directory)
        return state

    @contextlib.contextmanager
    def on_failure(
        self,
        directory: str,
        suite: Callable[[], str | None] = lambda: None,
        *,
        refusal: type[Exception] = UserError,
    ) -> Iterator[None]:
        """Tells of the exception that ends a block, and lets it go on.

        After a UserError, or a `refusal`, nothing was measured. `suite` finds the name of the
        suite, for a message.
        """
        try:
            yield
        except Exception as failure:
            if isinstance(failure, (UserError, refusal)):
                # Nothing was measured, and looking for a page of past runs in a bucket that
                # cannot be reached, or not by this user, takes half a minute.
                self.failed(suite(), directory, str(failure), renews=False, begun=False)
            else:  # what an author's code raised may say anything
                self.failed(suite(), directory, f"{type(failure).__name__}: {failure}")
            raise

    def renew_site(self, directory: str) -> None:
        """Writes the morning page again, where one was asked for or is there."""
        from orbax_bench_core.exports.site_folder import has_site

        with _warned("the page of past runs cannot be written again"):
            near = [place(self.site)] if self.site else place(directory).parents[:2]
            folder = next(filter(has_site, near), None)
            if folder is not None:
                from orbax_bench_core.exports.site import renew_site

                renew_site(folder)
            elif self.site:
                from orbax_bench_core.exports.site import write_site

                write_site([self.site], self.site)

    def _notify(self, webhook: Webhook, news: News, *, named: bool, begun: bool) -> None:
        """Posts news, with the name and the run that the run directory knows."""
        from orbax_bench_core.exports.notifications import announce

        try:
            info = in_time(lambda: RunDirectory(news.directory).read_info(), _LOOK_S)
            if not named:
                news, named = dataclasses.replace(news, suite=info.suite_name), True
            if begun and news.suite == info.suite_name:
                news = dataclasses.replace(news, run_id=info.run_id, begun=info.created_at)
        except (UserError, OSError, ImportError, ValueError):
            pass
        except Late:  # nor would the last state be found in time
            named = False
        folder = place(self.states) if self.states else None
        if not self.states and self.remembers:
            folder = place(news.directory).parent
        announce(news, webhook, folder if named else None, say=to_stderr)


_TOLD: Final[contextvars.ContextVar[set[tuple[str, str]]]] = contextvars.ContextVar("told")

_STEP_SUMMARY: Final = "GITHUB_STEP_SUMMARY"
"""Path of the summary page of a job of GitHub Actions."""

SITE: Final = "ORBAX_BENCH_SITE"
"""Folder whose morning page every run writes again; by default that of the run directory."""

_LOOK_S: Final = 6.0
"""Seconds in which a bucket says which run it holds; its clients wait for minutes."""


def _lines(found: VerdictReport) -> tuple[str, ...]:
    """Returns the message to a webhook about a comparison."""
    from orbax_bench_core.analysis.verdicts import headline, remarks, told

    several = len(found.points) > 1
    points = [point for point in found.points if several and point.word != "PASS"]
    each = (f"{point.point}: {told(point, found.gate).said}" for point in points)
    return (headline(found).said, *each, *remarks(found))


def _text_of(given: str) -> str:
    """Returns an address, or what the file holds that it names."""
    if not given.startswith("@"):
        return given
    try:
        return read_at_most(place(given[1:]), _LONGEST_ADDRESS).decode().strip()
    except (OSError, ImportError, ValueError) as failure:
        raise UserError(f"--notify {given}: cannot read it: {failure}") from None


def _checked(given: str, name: str) -> str:
    """Returns a place as it was given; one of a scheme that is not written is refused."""
    try:
        checked_path(given or ".")
    except ValueError as wrong:
        raise UserError(f"{name}: {wrong}") from None
    return given


@contextlib.contextmanager
def _warned(what: str) -> Iterator[None]:
    try:
        yield
    except (OSError, ImportError, UserError, ValueError) as failure:
        to_stderr(f"warning: {what}: {failure}")
