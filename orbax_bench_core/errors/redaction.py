"""Credentials: refused in addresses that would be kept, left out of what others say."""

import functools
import re
from collections.abc import Iterable, Iterator
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
_VARIABLE: Final = re.compile(
    r"(?:[Bb]earer |[Bb]asic )?(?:\$\{\w+\}:?|\$[A-Z_][A-Z0-9_]*)+|\$|\*{3,}(?::\*{3,})?"
)
"""A variable of the environment, which installers and shells put in, the beginning of a command of
a shell, `$(...)`, or what was hidden before."""
_PUBLIC: Final = frozenset({"anon", "browser", "cache", "cloud", "google_default", "..."})
"""Values by which a client of Cloud Storage is told where its token comes from."""
_NAMES: Final = re.compile(r"[^:]*")


_WORD: Final = (
    r"(?:token(?!s|iz)|secret(?!s)|passw(?:or)?d|passphrase|signature|credential(?!s)|"
    r"(?:account|api|access|client|encryption|private|signing)[_-]?key|key[_-]data)"
)
"""Part of a name by which its value is secret. What follows it is bounded in every form, so that no
text takes longer than its length."""
_REST: Final = r"[\w.-]{0,40}"
_QUOTED: Final = r"(?:\"(?:[^\"\\\n]|\\.)*\"|'(?:[^'\\\n]|\\.)*')"
_VALUE: Final = rf"(?:{_QUOTED}|\$\{{\w+\}}|(?!(?:true|false|none|null)\b)[^\s&;,\"'<>()\[\]{{}}]+)"
_OPAQUE: Final = r"(?=\S*[\d=]|\S{20})[\w.~+/=-]{8,}"
"""A text that is no word: it has a digit, or is long."""
_GOES_ON: Final = r"(?:\n[ \t]*(?=\S*\d)[\w.~+/=-]{16,}(?=\s|\Z))*"
"""Further lines of a text that was broken into lines."""
_HINTS: Final = (
    *("token", "secret", "pass", "_pwd", "signature", "credential", "key", "auth", "sig="),
    *("bearer", "basic", "cookie", "//", "@", "-u ", "--user", "akia", "asia", "gho_", "ghp_"),
    *("ghs_", "ghu_", "ghr_", "github_pat_", "glpat-", "hf_", "sk-", "aiza", "xox", "eyj", "ya29."),
    *("npm_", "pypi-", "hvs.", "_live_", "_test_", "dckr_"),
)
"""Words of which every text has one from which something is left out."""

_FORMS: Final = tuple(
    re.compile(form, re.I | re.S)
    for form in (
        # Headers, as lines or in a mapping; Bearer and Basic also without the name of the header.
        (
            r"(?P<before>\b(?:(?:proxy-)?authorization|(?:set-)?cookie|private-token|"
            r"x-[\w-]{0,40}(?:auth|key|secret|signature|token))[\"']?\s*[:=]\s*[\"']?"
            rf"(?:(?:bearer|basic)\s+)?)(?P<value>[^\n\"']+{_GOES_ON})"
        ),
        rf"(?P<before>\b(?:bearer|basic)\s+)(?P<value>{_OPAQUE}{_GOES_ON})",
        # Assignments, parameters and variables; with spaces around the sign only of quoted text.
        rf"(?P<before>{_WORD}{_REST}(?:=|%3D))(?P<value>{_VALUE})",
        rf"(?P<before>{_WORD}{_REST}\s*=\s*)(?P<value>{_QUOTED})",
        rf"(?P<before>(?:[a-z0-9]_(?:pass|pwd)|\b_auth)=)(?P<value>{_VALUE})",
        r"(?P<before>(?<![\w.-])sig=)(?P<value>[^\s&;#\"'<>]{8,})",
        # Mappings of Python, JSON, also within a text, and YAML; pairs, and pairs of a pod.
        rf"(?P<before>{_WORD}{_REST}[\"']?\s*:\s*)(?P<value>b?{_QUOTED})",
        (
            r"(?P<before>(?:passw(?:or)?d|passphrase|(?:account|api|access|private|secret)[_-]?key|"
            rf"key[_-]data)[\"']?:\s*)(?P<value>{_VALUE})"
        ),
        rf"(?P<before>{_WORD}{_REST}:\s+)(?P<value>{_OPAQUE})",
        rf"(?P<before>{_WORD}{_REST}\\{{1,3}}[\"']\s*:\s*\\{{1,3}}[\"'])(?P<value>[^\"'\\\n]+)",
        rf"(?P<before>[\"']_?auth[\"']\s*:\s*)(?P<value>{_QUOTED})",
        (
            rf"(?P<before>\([\"'](?:authorization|cookie|[\w.-]{{0,40}}{_WORD}{_REST})[\"'],\s*)"
            rf"(?P<value>b?{_QUOTED})(?=\))"
        ),
        (
            rf"(?P<before>\bname[\"']?\s*:\s*[\"']?[\w.-]{{0,40}}{_WORD}{_REST}[\"']?,?\s+"
            rf"[\"']?value[\"']?\s*:\s*)(?P<value>{_VALUE})"
        ),
        rf"(?P<before><[\w:.-]{{0,40}}{_WORD}{_REST}>)(?P<value>[^<]+)",
        # Flags of a command line, and a line of ~/.netrc.
        (
            rf"(?P<before>--[\w-]{{0,40}}{_WORD}[\w-]{{0,40}}(?:\s|\\\n)+)"
            rf"(?P<value>(?!-){_VALUE})"
        ),
        r"(?P<before>(?<!\S)(?:-u|--user)\s+[a-z][\w.@-]{0,64}:)(?P<value>[^\s\"']+)",
        r"(?P<before>\blogin\s+\S{1,256}\s+password\s+)(?P<value>\S+)",
        # Addresses without a scheme, and of webhooks, whose path is the secret.
        r"(?P<before>(?<![\w:/])//)(?P<value>[^\s/:@\"'<>]{1,256}:[^\s/@\"'<>]{1,1024})(?=@)",
        (
            r"(?P<before>(?<![\w.@:/-])(?!mailto:)[a-z][\w.-]{0,64}:)"
            r"(?P<value>[^\s/:@\"'<>]{6,256})(?=@(?!sha\d)[a-z\d])"
        ),
        (
            r"(?P<before>\bhttps?://(?:[^\s/\"'<>]{0,256}hook[^\s/\"'<>]{0,256}/|"
            r"[^\s\"'<>]{0,256}?/(?:web)?hooks?/))(?P<value>[^\s\"'<>]+)"
        ),
        # What is known by how it begins.
        r"(?P<before>)(?P<value>\b(?:AKIA|ASIA)[A-Z0-9]{16}\b)",
        (
            r"(?P<before>)(?P<value>\b(?:gh[opsur]_|github_pat_|glpat-|hf_|sk-|AIza|xox[abprs]-|"
            r"ya29\.|1//0|npm_|pypi-|hvs\.|[rs]k_(?:live|test)_|dckr_pat_)[\w-]{16,})"
        ),
        rf"(?P<before>)(?P<value>\beyJ[\w-]{{16,2000}}+(?:\.[\w-]+){{0,4}}{_GOES_ON})",
        (
            r"(?P<before>-----BEGIN [A-Z ]{0,20}PRIVATE KEY(?: BLOCK)?-----)"
            r"(?P<value>.*?)(?=-----END|\Z)"
        ),
    )
)
_NAMED: Final = re.compile(_WORD, re.I)
"""Most texts name no secret: looking once spares half of the forms."""
_KEY: Final = re.compile(rf"[\w.-]*{_WORD}{_REST}", re.I)
_SHORT: Final = 200
"""Characters of a text of which it is kept what is left of it."""
_AT_ONCE: Final = 2**20
"""Bytes of a log from which credentials are taken together."""


def log_pieces(lines: Iterable[bytes]) -> Iterator[str]:
    """Yields a log as texts, each of which `redacted` can take on its own.

    What is secret may have several lines. So a log is not cut within a private key, nor after a
    line that may announce a secret, unless there are as many of them as four pieces have. Bytes
    that are no text are surrogates (`surrogateescape`).
    """
    held: list[bytes] = []
    size, is_key = 0, False
    for line in lines:
        held.append(line)
        size += len(line)
        is_key = b"-----BEGIN" in line or (is_key and b"-----END" not in line)
        if size > _AT_ONCE:
            goes_on = is_key or not line.endswith(b"\n") or _has_hint(_text([line]))
            if not goes_on or size > 4 * _AT_ONCE:
                yield _text(held)
                held, size = [], 0
    yield _text(held)


def _text(lines: Iterable[bytes]) -> str:
    return b"".join(lines).decode(errors="surrogateescape")


def _has_hint(text: str) -> bool:
    lower = text.lower()
    return any(hint in lower for hint in _HINTS)


def redacted(text: str) -> str:
    """Returns a text of others without the credentials in it, whatever their form.

    `tests/errors/test_redaction.py` has a table of the forms.
    """
    if not _has_hint(text):
        return text
    text = without_credentials(text)
    named = _NAMED.search(text)
    for form in _FORMS:
        if named or _WORD not in form.pattern:
            text = form.sub(_hide_value, text)
    return text


_redacted_once: Final = functools.lru_cache(maxsize=4096)(redacted)


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
        # Records of a run have the same names, units and versions, thousands of times.
        return _redacted_once(data) if len(data) <= _SHORT else redacted(data)
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
    kept = not value or value.startswith(HIDDEN) or _VARIABLE.fullmatch(value) or value in _PUBLIC
    return found.group() if kept else f"{found['before']}{HIDDEN}"
