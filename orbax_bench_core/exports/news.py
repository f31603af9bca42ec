"""News of a suite: the state that a run has found, and the messages that say so."""

import dataclasses
import datetime
from typing import Any, Final

from orbax_bench_core.errors import one_line
from orbax_bench_core.exit_codes import State

_MESSAGE_VERSION: Final = 1
_MOST_LINES: Final = 20
_MOST_CHARACTERS: Final = 500
"""Of one line: webhooks refuse long messages."""


@dataclasses.dataclass(frozen=True, kw_only=True)
class News:
    """State of a suite, as a run has found it."""

    suite: str
    state: State  # what the run found
    run_id: str  # id of the run; empty if none was begun
    directory: str  # the run directory
    begun: datetime.datetime  # when the run began, UTC; a run before the last one known is no news
    lines: tuple[str, ...] = ()  # what was found, for people

    @property
    def shown(self) -> tuple[str, ...]:
        """The lines, as many and as long as a message has room for."""
        lines = [one_line(line)[:_MOST_CHARACTERS] for line in self.lines[:_MOST_LINES]]
        left = len(self.lines) - len(lines)
        return (*lines, f"and {left} more") if left else tuple(lines)


def generic_message(news: News, before: State | None) -> dict[str, Any]:
    """Returns the message for programs."""
    return {
        "version": _MESSAGE_VERSION,
        "suite": news.suite,
        "state": news.state,
        "before": before,
        "run_id": news.run_id,
        "run_directory": news.directory,
        "text": _title(news, before),
        "lines": list(news.shown),
    }


def slack_message(news: News, before: State | None) -> dict[str, Any]:
    """Returns the message that incoming webhooks of Slack take; see `generic_message`."""
    lines = [f"*{_escaped(_title(news, before))}*", *map(_escaped, news.shown)]
    return {"text": "\n".join([*lines, f"`{_escaped(one_line(news.directory))}`"])}


def _title(news: News, before: State | None) -> str:
    if before is None:
        since = "its state before is unknown"
    elif before == news.state:
        since = "not delivered before"
    else:
        since = f"it was {before}"
    return f"{news.state}: {one_line(news.suite)} ({since})"


def _escaped(text: str) -> str:
    return text.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")
