"""Notifications: a webhook is told when the state of a suite changes.

The last state of each suite is a small file beside its run directories, replaced by compare and
swap, so that of two nights one announces a change.
"""

from __future__ import annotations

import contextlib
import dataclasses
import datetime
import json
import urllib.parse
from collections.abc import Callable, Mapping
from typing import Any, Final, Literal

import pydantic

from orbax_bench_core import files
from orbax_bench_core.contents import file_of_suite
from orbax_bench_core.errors import UserError, one_line
from orbax_bench_core.exit_codes import State
from orbax_bench_core.interrupts import Late, in_time

TIMEOUT_S: Final = 10.0
"""Longest wait for an answer, whatever the other side does in between."""

_SHAPES: Final = ("slack", "json")
_SLACK: Final = "hooks.slack.com"


@dataclasses.dataclass(frozen=True)
class Webhook:
    """Address that messages are posted to."""

    # the address; anyone who knows it can post there, so that it is shown nowhere
    url: str = dataclasses.field(repr=False)
    slack: bool  # whether messages have the shape of Slack's

    @property
    def shown(self) -> str:
        """The address without its path, user and query."""
        parts = urllib.parse.urlsplit(self.url)
        port = "" if parts.port is None else f":{parts.port}"
        return f"{parts.scheme}://{parts.hostname}{port}/…"

    def post(self, message: Mapping[str, Any], *, timeout_s: float = TIMEOUT_S) -> str:
        """Posts a message as JSON."""
        data = json.dumps(message).encode()
        try:
            return in_time(lambda: _send(self.url, data, timeout_s), timeout_s)
        except Late:
            return f"no answer within {timeout_s:g} s"


def webhook_at(given: str) -> Webhook:
    """Returns the webhook at an http or https URL.

    Slack's own hosts get the shape of Slack, and any other with `slack+` before the URL; `json+`
    asks for the generic one.
    """
    shape, plus, rest = given.strip().partition("+")
    forced = shape if plus and shape in _SHAPES else ""
    url = rest if forced else given.strip()
    try:
        parts = urllib.parse.urlsplit(url)
        sound = parts.scheme in ("http", "https") and bool(parts.hostname)
        sound = sound and (parts.port is None or parts.port > 0) and url.isascii()
    except ValueError:
        sound = False
    if not sound or any(character.isspace() for character in url):
        raise UserError(
            "the address to notify is no http or https URL (it is a secret, so it is not shown): "
            "give https://HOST/PATH, with slack+ before it for the shape of Slack's messages"
        )
    return Webhook(url, slack=forced == "slack" or (not forced and parts.hostname == _SLACK))


def _send(url: str, data: bytes, timeout_s: float) -> str:
    """Posts; the words of errors that may hold the address are left out."""
    import http.client
    import urllib.error
    import urllib.request

    class NoRedirects(urllib.request.HTTPRedirectHandler):
        """Follows none: the message would become a GET, and another place learn of the address."""

        def redirect_request(self, *_: Any, **__: Any) -> None:
            return None

    headers = {"Content-Type": "application/json", "User-Agent": "orbax-bench"}
    request = urllib.request.Request(url, data, headers)  # noqa: S310 - http and https alone
    try:
        with urllib.request.build_opener(NoRedirects).open(request, timeout=timeout_s):
            return ""
    except urllib.error.HTTPError as refusal:
        refusal.close()
        return f"it answered {refusal.code}"
    except urllib.error.URLError as failure:
        reason = failure.reason
        if isinstance(reason, OSError):
            return str(reason.strerror or type(reason).__name__)
        return "it cannot be reached"
    except OSError as failure:
        return failure.strerror or type(failure).__name__
    except (ValueError, http.client.HTTPException) as failure:
        return type(failure).__name__


def announce(
    news: News,
    webhook: Webhook,
    folder: files.AnyPath | None,
    *,
    say: Callable[[str], None],
    timeout_s: float = TIMEOUT_S,
) -> None:
    """Posts news if the state of their suite has changed.

    What goes wrong is said and raises nothing. A message that did not arrive is sent again by the
    next run of the suite, also where its state is the same.
    """
    if news.state == "INCONCLUSIVE":
        return
    if news.state == "ACCEPTED":
        if folder is not None:
            note_accepted(news, folder)
        return
    now = datetime.datetime.now(datetime.UTC)
    held: Claim | None = None
    try:
        held = None if folder is None else claim(folder, news, now)
    except (OSError, ImportError) as failure:
        say(f"warning: the last state of the suite is unknown, so this is announced: {failure}")
    else:
        if folder is not None and held is None:
            return
    before = None if held is None else held.before
    message = (slack_message if webhook.slack else generic_message)(news, before)
    lost = webhook.post(message, timeout_s=timeout_s)
    if lost:
        say(f"warning: {webhook.shown} was not notified: {lost}")
    else:
        say(f"notified {webhook.shown}: {news.state}")
    if held is not None:
        with contextlib.suppress(OSError):  # at worst it is announced once more
            # Where it was lost, the next run announces it at once.
            held.note(**({"claimed_at": now - 2 * _IN_FLIGHT} if lost else {"delivered": True}))


def note_accepted(news: News, folder: files.AnyPath) -> None:
    """Notes that a suite is in the state ACCEPTED; any other one is announced after it."""
    with contextlib.suppress(OSError, ImportError):  # at worst a state is announced once more
        if held := claim(folder, news, datetime.datetime.now(datetime.UTC)):
            held.note(delivered=True)


_TRIES: Final = 20
_IN_FLIGHT: Final = datetime.timedelta(seconds=60)
"""After this a claim that was not delivered is of a process that is gone."""


class LastState(files.ResultModel):
    """State of a suite after its last run."""

    version: Literal[1] = 1  # version of this layout
    suite: str
    state: State
    run_id: str  # the run that found it
    begun: datetime.datetime  # when that run began, UTC
    claimed_at: datetime.datetime  # when somebody undertook to announce the state, UTC
    delivered: bool  # whether the announcement arrived

    def due(self, now: datetime.datetime) -> bool:
        """Returns whether the announcement was lost with the process that undertook it."""
        return not self.delivered and now - self.claimed_at > _IN_FLIGHT


@dataclasses.dataclass(frozen=True)
class Claim:
    """Right to announce a state: nobody else has it."""

    path: files.AnyPath  # the file of the suite
    state: LastState  # what was written there
    before: State | None  # state until now; None if it is unknown

    def note(self, **changes: Any) -> None:
        """Notes how the announcement went, unless there is a newer state already."""
        # Another run that found the same state may have written its own id since.
        for _ in range(_TRIES):
            held = files.read_if_there(self.path)
            now = None if held is None else _read(held)
            mine = (self.state.state, self.state.claimed_at)
            if held is None or now is None or (now.state, now.claimed_at) != mine:
                return
            if files.swap(self.path, held, _bytes(now.model_copy(update=changes))):
                return


def state_file(folder: files.AnyPath, suite: str) -> files.AnyPath:
    """Returns the file of a suite in a folder of run directories."""
    return folder / file_of_suite("notified", suite)


def claim(folder: files.AnyPath, news: News, now: datetime.datetime) -> Claim | None:
    """Undertakes to announce news, unless others have; all is news if no state is known."""
    path = state_file(folder, news.suite)
    for _ in range(_TRIES):
        held = files.read_if_there(path)
        before = None if held is None else _read(held)
        if before is not None and before.begun > news.begun:
            return None
        due = before is None or before.state != news.state or before.due(now)
        after = LastState(
            suite=news.suite,
            state=news.state,
            run_id=news.run_id,
            begun=news.begun,
            claimed_at=now if due or before is None else before.claimed_at,
            delivered=not due and before is not None and before.delivered,
        )
        data = _bytes(after)
        if files.create_exclusively(path, data) if held is None else files.swap(path, held, data):
            known = None if before is None else before.state
            return Claim(path, after, known) if due else None
    raise OSError(f"{path}: others write it again and again")


def _read(data: bytes) -> LastState | None:
    with contextlib.suppress(pydantic.ValidationError):
        return LastState.model_validate_json(data)
    return None


def _bytes(state: LastState) -> bytes:
    return state.model_dump_json(indent=1).encode()


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


def last_states(folder: files.AnyPath) -> list[tuple[files.AnyPath, str, datetime.datetime]]:
    """Returns the files of last states in a folder, each with its suite and when its run began."""
    found = []
    for path in sorted(files.matching(folder, "notified-*.json")):
        state = _read(files.read_if_there(path) or b"")
        if state is not None:
            found.append((path, state.suite, state.begun))
    return found
