"""Announcement of news: once per change of state, and never at the cost of a run."""

from __future__ import annotations

import contextlib
import datetime
from collections.abc import Callable
from typing import TYPE_CHECKING

from orbax_bench_core.exports.notifications.last_state import Claim, claim
from orbax_bench_core.exports.notifications.news import News, State, generic_message, slack_message
from orbax_bench_core.exports.notifications.webhook import TIMEOUT_S, Webhook

if TYPE_CHECKING:
    from etils import epath


def announce(
    news: News,
    webhook: Webhook,
    folder: epath.Path | None,
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
    lost = webhook.post(_message(webhook, news, before), timeout_s=timeout_s)
    if lost:
        say(f"warning: {webhook.shown} was not notified: {lost}")
    else:
        say(f"notified {webhook.shown}: {news.state}")
    if held is not None:
        with contextlib.suppress(OSError):  # at worst it is announced once more
            held.returned(now) if lost else held.delivered()


def _message(webhook: Webhook, news: News, before: State | None) -> dict[str, object]:
    return (slack_message if webhook.slack else generic_message)(news, before)
