"""Webhook: an address that is a secret, and one request to it."""

from __future__ import annotations

import dataclasses
import json
import queue
import threading
import urllib.parse
from collections.abc import Mapping
from typing import Any, Final

from orbax_bench_core.errors import UserError

TIMEOUT_S: Final = 10.0
"""Longest wait for an answer, whatever the other side does in between."""

_SHAPES: Final = ("slack", "json")
_SLACK: Final = "hooks.slack.com"


@dataclasses.dataclass(frozen=True)
class Webhook:
    """Address that messages are posted to.

    Attributes:
        url: The address; whoever knows it can post there, so that it is shown nowhere.
        slack: Whether messages have the shape of Slack's.
    """

    url: str = dataclasses.field(repr=False)
    slack: bool

    @property
    def shown(self) -> str:
        """The address without its path, user and query."""
        parts = urllib.parse.urlsplit(self.url)
        port = "" if parts.port is None else f":{parts.port}"
        return f"{parts.scheme}://{parts.hostname}{port}/…"

    def post(self, message: Mapping[str, Any], *, timeout_s: float = TIMEOUT_S) -> str:
        """Posts a message as JSON."""
        said: queue.SimpleQueue[str] = queue.SimpleQueue()
        data = json.dumps(message).encode()
        # A server that sends a byte now and then outlasts every timeout of a socket.
        threading.Thread(
            target=lambda: said.put(_send(self.url, data, timeout_s)), daemon=True
        ).start()
        try:
            return said.get(timeout=timeout_s)
        except queue.Empty:
            return f"no answer within {timeout_s:g} s"


def webhook_at(given: str) -> Webhook:
    """Returns the webhook at an address.

    Args:
        given: An http or https URL. Slack's own hosts get the shape of Slack, and any other host
            with `slack+` before the URL; `json+` asks for the generic one.
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
        return (
            str(reason.strerror or type(reason).__name__)
            if isinstance(reason, OSError)
            else ("it cannot be reached")
        )
    except OSError as failure:
        return failure.strerror or type(failure).__name__
    except (ValueError, http.client.HTTPException) as failure:
        return type(failure).__name__
