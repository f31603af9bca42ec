"""Credentials in addresses: refused where they would be kept, left out where others' text is."""

from __future__ import annotations

import re
from typing import Any, Final

HIDDEN: Final = "***"
"""Text in the place of a credential."""

CREDENTIALS: Final = (
    "an address with credentials, which run.json and every record would keep; give them to the "
    "client of the storage, such as by its variables of the environment or ~/.netrc"
)
"""Reason for which a suite with such an address is refused, and the place of credentials."""

_USER: Final = re.compile(r"(?P<before>\b[a-z][a-z0-9+.-]*://)(?P<user>[^\s/?#@\"'<>]+)@", re.I)
_QUERY: Final = re.compile(
    r"(?P<before>[?&;](?:[\w.-]*(?:token|secret|passw(?:or)?d|signature|credential|api[_-]?key)"
    r"[\w.-]*|sig|key|auth)=)(?P<value>[^\s&;#\"'<>]+)",
    re.I,
)
_VARIABLE: Final = re.compile(r"(?:\$\{\w+\}:?)+|\*{3,}(?::\*{3,})?")
"""A variable of the environment, which installers put in, or what was hidden before."""
_NAMES: Final = re.compile(r"[^:]*")


def redacted(text: str) -> str:
    """Returns a text without the credentials of the addresses in it.

    These are user and password (`https://user:password@host`), a user alone where that is a token
    (with http), and parameters such as `token`, `X-Amz-Signature` or `sig`.
    """
    if "://" not in text:
        return text
    return _QUERY.sub(_hide_value, _USER.sub(_hide_user, text))


def has_credentials(text: str) -> bool:
    """Returns whether an address in a text has credentials, other than `${NAME}`."""
    return redacted(text) != text


def redacted_deeply(data: Any) -> Any:
    """Returns plain data in which no text has credentials; the keys stay as they are."""
    if isinstance(data, str):
        return redacted(data)
    if isinstance(data, dict):
        return {key: redacted_deeply(value) for key, value in data.items()}
    if isinstance(data, list):
        return [redacted_deeply(value) for value in data]
    return data


def _hide_user(found: re.Match[str]) -> str:
    user, before = found["user"], found["before"]
    is_name = "http" not in before.lower() and _NAMES.fullmatch(user)
    if is_name or _VARIABLE.fullmatch(user):
        return found.group()  # such as git@ of ssh
    return f"{before}{HIDDEN}@"


def _hide_value(found: re.Match[str]) -> str:
    return found.group() if _VARIABLE.fullmatch(found["value"]) else f"{found['before']}{HIDDEN}"
