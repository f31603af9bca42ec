"""Notifications: a webhook is told when the state of a suite changes."""

import contextlib
import dataclasses
import datetime
import json
import urllib.parse
from collections.abc import Callable, Mapping
from typing import Any, Final

from orbax_bench_core import files
from orbax_bench_core.errors import UserError
from orbax_bench_core.exports.last_states import IN_FLIGHT, Claim, claim
from orbax_bench_core.exports.news import News, generic_message, slack_message
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
        """Posts a message as JSON.

        Args:
            message: What is sent, as JSON can hold it.
            timeout_s: Seconds for all of it.

        Returns:
            Why it was not delivered, without the address, which is a secret; empty if it was.
        """
        data = json.dumps(message).encode()
        try:
            return in_time(lambda: _send(self.url, data, timeout_s), timeout_s)
        except Late:
            return f"no answer within {timeout_s:g} s"


def webhook_at(given: str) -> Webhook:
    """Returns the webhook at an http or https URL.

    Slack's own hosts get the shape of Slack, and any other with `slack+` before the URL; `json+`
    asks for the generic one.

    Raises:
        UserError: It is no such URL; the message does not show it, for it is a secret.
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
            held.note(**({"claimed_at": now - 2 * IN_FLIGHT} if lost else {"delivered": True}))


def note_accepted(news: News, folder: files.AnyPath) -> None:
    """Notes that a suite is in the state ACCEPTED; any other one is announced after it."""
    with contextlib.suppress(OSError, ImportError):  # at worst a state is announced once more
        if held := claim(folder, news, datetime.datetime.now(datetime.UTC)):
            held.note(delivered=True)
