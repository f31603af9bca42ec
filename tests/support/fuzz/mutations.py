"""Mutations of valid data and text, as strategies of hypothesis."""

import copy
import json
from collections.abc import Iterator
from typing import Any, Final

import yaml
from hypothesis import strategies as st

Path = tuple[str | int, ...]

NASTY: Final[tuple[Any, ...]] = (
    None,
    True,
    False,
    0,
    -1,
    1,
    2**31,
    2**63,
    2**64,
    10**30,
    10**400,
    0.5,
    -0.0,
    1e308,
    float("inf"),
    float("nan"),
    "",
    " ",
    "x" * 5_000,
    "\x00",
    "\x1b[2J",
    "\u202edessap",
    "<script>alert(1)</script>",
    "[bold]x[/]",
    "{0.__class__}",
    "%s%n",
    "../../../planted",
    "/dev/null",
    "~nobody",
    "gs:/x",
    "s3://bucket/x",
    "file://host/x",
    "://",
    "a:b",
    "1:30:00",
    "2020-01-01",
    "nan",
    "NaN",
    "1e400",
    "9" * 5_000,
    "\ud800",
    "\U0001f600é",
    "save",
    "latest",
    [],
    {},
    [[]],
    [None],
    [{}],
    {"": {}},
    {"a": None},
    ["a"] * 1_000,
    list(range(300)),
)
"""Values at an end of their range, or of another kind than was meant."""

_SNIPPETS: Final = (
    "&a ",
    "*a",
    "<<: *a",
    "!!bool ",
    "!!timestamp ",
    "!!binary ",
    "!!set ",
    "!!python/name:os.system ",
    "!x ",
    "? ",
    "- ",
    ": ",
    "#",
    "\t",
    "\n---\n",
    "\n...\n",
    "%YAML 9.9\n",
    "{",
    "}",
    "[",
    "]",
    ",",
    '"',
    "'",
    "|\n",
    ">\n",
    "\\ud800",
    '"\\x1b"',
    "~",
    "null",
    "0x",
    "1e",
    "-",
    "[" * 300,
    "{a: " * 200,
    "- " * 300,
    "\x00",
    "\x1b",
    "\u2028",
    "\ufeff",
    "é",
)
_MOST_CUT: Final = 60
_WAYS: Final = (
    *("near",) * 4,
    *("replace",) * 3,
    "swap",
    "delete",
    "double",
    "rename",
    "wrap",
    "deep",
)


def places(data: Any, path: Path = ()) -> Iterator[Path]:
    """Yields the path of every value in plain data, that of the whole first."""
    yield path
    if isinstance(data, dict):
        for key, value in data.items():
            yield from places(value, (*path, key))
    elif isinstance(data, list):
        for index, value in enumerate(data):
            yield from places(value, (*path, index))


def at(data: Any, path: Path) -> Any:
    """Returns the value at a path."""
    for key in path:
        data = data[key]
    return data


@st.composite
def mutated(draw: st.DrawFn, data: Any) -> Any:
    """Draws plain data in which one to three values are others, gone, doubled or nested."""
    data = copy.deepcopy(data)
    for _ in range(draw(st.sampled_from((1, 1, 1, 2, 3)))):
        found = list(places(data))
        path = draw(st.sampled_from(found))
        if not path:
            path = draw(st.sampled_from(found))
        data = _changed(draw, data, path, found)
    return data


def _changed(draw: st.DrawFn, data: Any, path: Path, found: list[Path]) -> Any:
    how = draw(st.sampled_from(_WAYS))
    if how in {"near", "replace", "deep", "wrap"} or not path:
        return _put(data, path, _another(draw, how, at(data, path)))
    if how == "swap":
        return _put(data, path, copy.deepcopy(at(data, draw(st.sampled_from(found)))))
    parent, key = at(data, path[:-1]), path[-1]
    if how == "delete":
        del parent[key]
    elif isinstance(parent, list):
        parent.append(copy.deepcopy(parent[int(key)]))
    else:
        names = [str(one[-1]) for one in found if one]
        name = draw(st.sampled_from([*names, "", "unknown", "<<", "\x1b[2J", "..", "a.b", "é"]))
        parent[name] = copy.deepcopy(parent[key]) if how == "double" else parent.pop(key)
    return data


def _another(draw: st.DrawFn, how: str, value: Any) -> Any:
    if how == "near":
        return draw(_near(value))
    if how == "wrap":
        return draw(st.sampled_from(([value], {"a": value}, [value, value], {"shape": value})))
    if how == "deep":
        depth = draw(st.sampled_from((3, 60, 150)))
        for _ in range(depth):
            value = [value] if depth == 150 else {"a": value}
        return value
    others = st.one_of(st.integers(-10, 10_000), st.text(max_size=8), st.floats())
    return copy.deepcopy(draw(st.one_of(st.sampled_from(NASTY), others)))


def _near(value: Any) -> st.SearchStrategy[Any]:
    """Returns values of the same kind, of which many are as good."""
    if isinstance(value, bool) or value is None:
        return st.sampled_from((True, False, None))
    if isinstance(value, int | float):
        return st.sampled_from((value + 1, value * 2, -value, value // 2, value * 1000, [value]))
    if isinstance(value, str):
        return st.sampled_from((f"{value}x", value.upper(), value[:-1], value * 3, f" {value}"))
    others = (list(value),) if isinstance(value, list | dict) else ()
    return st.sampled_from((value, [value], *others))


def _put(data: Any, path: Path, value: Any) -> Any:
    if not path:
        return value
    at(data, path[:-1])[path[-1]] = value
    return data


@st.composite
def torn(draw: st.DrawFn, text: str) -> str:
    """Draws a text with one to three cuts, insertions or repetitions."""
    for _ in range(draw(st.integers(1, 3))):
        where = draw(st.integers(0, len(text)))
        size = draw(st.integers(1, _MOST_CUT))
        how = draw(st.sampled_from(("insert", "insert", "cut", "end", "double", "value")))
        piece = text[where : where + size]
        if how == "insert":
            text = text[:where] + draw(st.sampled_from(_SNIPPETS)) + text[where:]
        elif how == "cut":
            text = text[:where] + text[where + size :]
        elif how == "double":
            text = text[:where] + piece + text[where:]
        elif how == "value":
            text = text[:where] + draw(st.text(max_size=5)) + text[where + size :]
        else:
            text = text[:where]
    return text


def as_json(data: Any) -> bytes:
    """Returns data as JSON, with NaN and infinities as Python writes them."""
    try:
        return json.dumps(data, default=str).encode()
    except (ValueError, RecursionError):  # numbers of more digits than Python writes
        return b"{}"


def as_yaml(data: Any) -> bytes:
    """Returns data as YAML in blocks, or as JSON where YAML cannot have it."""
    try:
        return yaml.dump(data, Dumper=yaml.SafeDumper, sort_keys=False).encode()
    except (yaml.YAMLError, ValueError, RecursionError, UnicodeEncodeError):
        return as_json(data)


@st.composite
def written(draw: st.DrawFn, text: str, data: Any) -> bytes:
    """Draws the bytes of a file whose text is torn, or whose data is mutated."""
    how = draw(st.sampled_from(("text", "json", "yaml", "json", "bytes")))
    if how in {"text", "bytes"}:
        changed = draw(torn(text)).encode(errors="surrogatepass")
        if how == "bytes":
            where = draw(st.integers(0, len(changed)))
            changed = changed[:where] + draw(st.binary(max_size=6)) + changed[where:]
        return changed
    found = draw(mutated(data))
    return as_json(found) if how == "json" else as_yaml(found)
