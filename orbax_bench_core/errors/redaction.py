"""Credentials: refused in addresses that would be kept, left out of what others say."""

import re
from typing import Any, Final

HIDDEN: Final = "***"
"""Text in the place of a credential."""

CREDENTIALS: Final = (
    "an address with credentials, which run.json and every record would keep; give them to the "
    "client of the storage, such as by its variables of the environment or ~/.netrc"
)
"""Reason for which a suite with such an address is refused, and the place of credentials."""

_USER: Final = re.compile(
    r"(?P<before>\b[a-z][a-z0-9+.-]{0,30}://)(?P<user>[^\s/?#@\"'<>]+)@", re.I
)
_QUERY: Final = re.compile(
    r"(?P<before>[?&;#](?:[\w.-]*(?:token|secret|passw(?:or)?d|signature|credential|api[_-]?key)"
    r"[\w.-]*|sig|key|auth)=)(?P<value>[^\s&;#\"'<>]+)",
    re.I,
)
_VARIABLE: Final = re.compile(r"(?:\$\{\w+\}:?)+|\*{3,}(?::\*{3,})?")
"""A variable of the environment, which installers put in, or what was hidden before."""
_NAMES: Final = re.compile(r"[^:]*")


_WORD: Final = (
    r"(?:token(?!s|iz)|secret(?!s)|passw(?:or)?d|passphrase|signature|credential(?!s)|"
    r"(?:api|access|private)[_-]?key)"
)
"""Part of a name by which its value is secret. What follows it is bounded in every form, so that no
text takes longer than its length."""
_REST: Final = r"[\w.-]{0,40}"
_QUOTED: Final = r"(?:\"(?:[^\"\\\n]|\\.)*\"|'(?:[^'\\\n]|\\.)*')"
_VALUE: Final = rf"(?:{_QUOTED}|\$\{{\w+\}}|(?!(?:true|false|none|null)\b)[^\s&;,\"'<>()\[\]{{}}]+)"
_HINTS: Final = (
    *("token", "secret", "passw", "passphrase", "signature", "credential", "key", "authorization"),
    *("bearer", "basic", "cookie", "//", "akia", "asia", "gho_", "ghp_", "ghs_", "ghu_", "ghr_"),
    *("github_pat_", "glpat-", "hf_", "sk-", "aiza", "xox", "eyj"),
)
"""Words of which every text has one from which something is left out."""

_FORMS: Final = tuple(
    re.compile(form, re.I | re.S)
    for form in (
        # Headers, as lines or in a mapping; Bearer and Basic also without the name of the header.
        (
            r"(?P<before>\b(?:(?:proxy-)?authorization|(?:set-)?cookie|x-api-key)[\"']?\s*[:=]"
            r"\s*[\"']?)(?P<value>[^\n\"']+)"
        ),
        r"(?P<before>\b(?:bearer|basic)\s+)(?P<value>(?=\S*[\d=]|\S{20})[\w.~+/=-]{8,})",
        # Assignments, parameters and variables; with spaces around the sign only of quoted text.
        rf"(?P<before>{_WORD}{_REST}=)(?P<value>{_VALUE})",
        rf"(?P<before>{_WORD}{_REST}\s*=\s*)(?P<value>{_QUOTED})",
        # Mappings of Python, JSON and YAML.
        rf"(?P<before>{_WORD}{_REST}[\"']?\s*:\s*)(?P<value>b?{_QUOTED})",
        (
            r"(?P<before>(?:passw(?:or)?d|passphrase|(?:api|access|private|secret)[_-]?key)"
            rf"[\"']?:\s*)(?P<value>{_VALUE})"
        ),
        # Flags of a command line.
        rf"(?P<before>--[\w-]{{0,40}}{_WORD}[\w-]{{0,40}}\s+)(?P<value>(?!-){_VALUE})",
        # Addresses without a scheme, and of webhooks, whose path is the secret.
        r"(?P<before>(?<![\w:/])//)(?P<value>[^\s/:@\"'<>]{1,256}:[^\s/@\"'<>]{1,1024})(?=@)",
        (
            r"(?P<before>\bhttps?://(?:[^\s/\"'<>]{0,256}hook[^\s/\"'<>]{0,256}/|"
            r"[^\s\"'<>]{0,256}?/(?:web)?hooks?/))(?P<value>[^\s\"'<>]+)"
        ),
        # What is known by how it begins.
        r"(?P<before>)(?P<value>\b(?:AKIA|ASIA)[A-Z0-9]{16}\b)",
        (
            r"(?P<before>)(?P<value>\b(?:gh[opsur]_|github_pat_|glpat-|hf_|sk-|AIza|xox[abprs]-)"
            r"[\w-]{16,})"
        ),
        r"(?P<before>)(?P<value>\beyJ[\w-]{8,2000}+\.[\w-]{8,}(?:\.[\w-]*)?)",
        r"(?P<before>-----BEGIN [A-Z ]{0,20}PRIVATE KEY-----)(?P<value>.*?)(?=-----END|\Z)",
    )
)
_KEY: Final = re.compile(rf"[\w.-]*{_WORD}{_REST}", re.I)


def redacted(text: str) -> str:
    """Returns a text of others without the credentials in it, whatever their form.

    `tests/errors/test_redaction.py` has a table of the forms.
    """
    lower = text.lower()
    if not any(hint in lower for hint in _HINTS):
        return text
    text = without_credentials(text)
    for form in _FORMS:
        text = form.sub(_hide_value, text)
    return text


def without_credentials(text: str) -> str:
    """Returns a text of a suite without the credentials of the addresses in it.

    These are user and password (`https://user:password@host`), a user alone where that is a token
    (with http), and parameters such as `token`, `X-Amz-Signature` or `sig`.
    """
    if "://" not in text:
        return text
    return _QUERY.sub(_hide_value, _USER.sub(_hide_user, text))


def has_credentials(text: str) -> bool:
    """Returns whether an address in a text has credentials, other than `${NAME}`."""
    return without_credentials(text) != text


def redacted_deeply(data: Any) -> Any:
    """Returns plain data in which no text has credentials; the keys stay as they are."""
    if isinstance(data, str):
        return redacted(data)
    if isinstance(data, dict):
        return {
            key: HIDDEN
            if isinstance(value, str) and value and _KEY.fullmatch(str(key))
            else redacted_deeply(value)
            for key, value in data.items()
        }
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
    value = found["value"].strip("\"'")
    kept = not value or value.startswith(HIDDEN) or _VARIABLE.fullmatch(value)
    return found.group() if kept else f"{found['before']}{HIDDEN}"
