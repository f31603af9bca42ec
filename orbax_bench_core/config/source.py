"""YAML source: plain data, and the line of every key."""

import contextlib
import re
from collections.abc import Iterator
from typing import Any, Final

import yaml

from orbax_bench_core.config.base import SuiteError
from orbax_bench_core.config.yaml_mistakes import explained
from orbax_bench_core.errors import Problem, one_line, printable, shown

KeyPath = tuple[str | int, ...]

MAX_CHARACTERS: Final = 1_000_000
"""Characters of a suite's text; reading that many takes seconds."""
MAX_VALUES: Final = 100_000
"""Keys and values of a suite, each anchor counted wherever it is used."""
MAX_DEPTH: Final = 100
"""Blocks inside each other; what reads a suite calls itself for each."""
_LONGEST_NUMBER: Final = 1_000
"""Characters of a number: Python takes seconds for long ones, and writes none of 4,301 digits."""
_SHORT: Final = 20_000
"""Characters of a text for whose mistakes the parser in Python is asked, which takes 50 us each."""
_NUMBERS: Final = ("tag:yaml.org,2002:int", "tag:yaml.org,2002:float")


class SuiteSource:
    """A parsed YAML document, `data` in plain Python, that remembers where each key stood."""

    def __init__(self, text: str, file: str = "") -> None:
        """Parses `text`, YAML of plain data; messages name `file`."""
        self.file = file
        self._text = text
        if len(text) > MAX_CHARACTERS:
            message = f"more than {MAX_CHARACTERS:,} characters, which no suite needs"
            raise SuiteError(Problem(message, file=file))
        self._lines: dict[KeyPath, int] = {}
        try:
            self._refuse_depth(text)
            node = _compose(text)
            if node is None:
                raise SuiteError(Problem("the file is empty", file=file))
            self._count(node, (), {})
            self._refuse_duplicates(node, (), set())
        except yaml.MarkedYAMLError as error:
            raise SuiteError(self._yaml_problem(error)) from None
        except (yaml.YAMLError, ValueError) as error:
            message = f"not a YAML file: {one_line(str(error))}"
            raise SuiteError(Problem(message, file=file)) from None
        self.data: Any = self._constructed(node)
        self._lines.clear()
        self._remember(node, ())  # merged keys are in their places now

    def problem(self, message: str, path: KeyPath) -> Problem:
        """Returns a problem at `path`, with the line of the nearest key that is in the file."""
        return Problem(message, key=dotted(path), file=self.file, line=self.line(path))

    def line(self, path: KeyPath) -> int | None:
        """Returns the 1-based line of `path`, or of its nearest parent in the file."""
        while path and path not in self._lines:
            path = path[:-1]
        return self._lines.get(path)

    def _constructed(self, node: yaml.Node) -> Any:
        loader = yaml.SafeLoader("")
        try:
            return loader.construct_document(node)
        except yaml.MarkedYAMLError as error:
            raise SuiteError(self._yaml_problem(error)) from None
        except Exception as error:  # noqa: BLE001 - PyYAML's constructors raise what they stumble on
            where, value = self._unreadable(node, ())
            kind = value.tag.rpartition(":")[2]
            message = (
                f"{shown(value.value)} cannot be read as a YAML {kind}: {one_line(str(error))}"
            )
            raise SuiteError(self.problem(message, where)) from None
        finally:
            loader.dispose()

    def _unreadable(self, node: yaml.Node, path: KeyPath) -> tuple[KeyPath, yaml.Node]:
        """Returns the first value that cannot be read, with its place; the node where none is."""
        for key, child in _children(node):
            found = self._unreadable(child, (*path, key))
            if found[1] is not child or not _is_readable(child):
                return found
        return path, node

    def _yaml_problem(self, error: yaml.MarkedYAMLError) -> Problem:
        message, line = explained(error, self._text)
        return Problem(message, file=self.file, line=line)

    def _count(self, node: yaml.Node, path: KeyPath, known: dict[int, int | None]) -> int:
        """Returns the keys and values of a node with its anchors written out, which are bounded."""
        if id(node) in known:
            found = known[id(node)]
            if found is None:
                raise SuiteError(self.problem("an anchor that contains itself", path))
            return found
        known[id(node)] = None
        self._refuse_scalar(node, path)
        total = 1
        for key, value in _children(node):
            self._lines.setdefault((*path, key), value.start_mark.line + 1)
            total += self._count(value, (*path, key), known)
            if total > MAX_VALUES:
                message = (
                    f"more than {MAX_VALUES:,} keys and values, anchors written out; a suite may "
                    "have no more"
                )
                raise SuiteError(self.problem(message, path))
        known[id(node)] = total
        return total

    def _refuse_depth(self, text: str) -> None:
        """Refuses blocks too deep in each other, before anything calls itself for each of them."""
        depth, top, key_is_next = 0, "", True
        with contextlib.suppress(yaml.YAMLError, ValueError):  # said where it is composed
            for event in yaml.parse(text, Loader=_fastest()):
                if isinstance(event, yaml.CollectionEndEvent):
                    depth -= 1
                    continue
                if depth == 1 and isinstance(event, yaml.NodeEvent):
                    if key_is_next and isinstance(event, yaml.ScalarEvent):
                        top = event.value
                    key_is_next = not key_is_next
                depth += isinstance(event, yaml.CollectionStartEvent)
                if depth > MAX_DEPTH:
                    message = f"brackets or blocks too deep in each other: more than {MAX_DEPTH}"
                    line = None if event.start_mark is None else event.start_mark.line + 1
                    raise SuiteError(Problem(message, key=top, file=self.file, line=line))

    def _refuse_scalar(self, node: yaml.Node, path: KeyPath) -> None:
        if not isinstance(node, yaml.ScalarNode):
            return
        if printable(node.value) != node.value:
            message = f"{shown(node.value)} has a control character, which a terminal would obey"
            raise SuiteError(self.problem(message, path))
        if len(node.value) > _LONGEST_NUMBER and node.tag in _NUMBERS:
            message = (
                f"a number of {len(node.value):,} characters; the longest has {_LONGEST_NUMBER:,}"
            )
            raise SuiteError(self.problem(message, path))
        if node.tag in _NUMBERS and (base := _other_base(node.value)):
            message = (
                f"{shown(node.value)} is a number in base {base} for YAML; write it in base 10, or "
                "in quotes if it is a text"
            )
            raise SuiteError(self.problem(message, path))

    def _refuse_duplicates(self, node: yaml.Node, path: KeyPath, seen_nodes: set[int]) -> None:
        if id(node) in seen_nodes:
            return
        seen_nodes.add(id(node))
        if isinstance(node, yaml.MappingNode):
            first_line: dict[str, int] = {}
            for key, value in node.value:
                line = key.start_mark.line + 1
                where = (*path, str(key.value))
                if isinstance(key, yaml.ScalarNode) and key.tag != "tag:yaml.org,2002:merge":
                    if key.value in first_line:
                        raise SuiteError(
                            Problem(
                                f"duplicate key, first given on line {first_line[key.value]}; "
                                "remove one of the two",
                                key=dotted(where),
                                file=self.file,
                                line=line,
                            )
                        )
                    first_line[key.value] = line
                self._refuse_duplicates(value, where, seen_nodes)
        elif isinstance(node, yaml.SequenceNode):
            for index, item in enumerate(node.value):
                self._refuse_duplicates(item, (*path, index), seen_nodes)

    def _remember(self, node: yaml.Node, path: KeyPath) -> None:
        self._lines.setdefault(path, node.start_mark.line + 1)
        if isinstance(node, yaml.MappingNode):
            for key, value in node.value:
                if isinstance(key, yaml.ScalarNode):
                    # A key that overrides a merged one (`<<`) stands after it, and is meant.
                    self._lines[(*path, key.value)] = key.start_mark.line + 1
                    self._remember(value, (*path, key.value))
        elif isinstance(node, yaml.SequenceNode):
            for index, item in enumerate(node.value):
                self._remember(item, (*path, index))


def _other_base(number: str) -> int:
    """Returns the base of a number that YAML 1.1 reads otherwise than it looks; 0 for others.

    `1:30` is 90, and `010` is 8.
    """
    return 60 if ":" in number else 8 if re.fullmatch("[-+]?0[0-7_]+", number) else 0


def _compose(text: str) -> yaml.Node | None:
    # The parser in C is fifty times as fast, and its messages say less: of a short text that is
    # wrong the one in Python says what.
    try:
        return _node(_fastest(), text)
    except (yaml.YAMLError, ValueError):
        if len(text) > _SHORT:
            raise
        return _node(yaml.SafeLoader, text)


def _fastest() -> Any:
    return getattr(yaml, "CSafeLoader", yaml.SafeLoader)


def _node(kind: Any, text: str) -> yaml.Node | None:
    loader = kind(text)
    try:
        found: yaml.Node | None = loader.get_single_node()
        return found
    finally:
        loader.dispose()


def read_value(text: str, said: str) -> Any:
    """Reads the value of a flag, which is YAML of plain data; nothing is None.

    Args:
        text: What was given.
        said: How a message names the flag.

    Raises:
        SuiteError: It is no YAML, or more than plain data.
    """
    if not text.strip():
        return None
    try:
        return SuiteSource(text).data
    except SuiteError as error:
        first = error.problems[0]
        reason = ": ".join(part for part in (first.key, first.message) if part)
        raise SuiteError(f"{said}: the value cannot be read: {reason}") from None


def name_of(text: str) -> str | None:
    """Returns the name of a suite that may be wrong otherwise; None if even that is missing."""
    try:
        content = SuiteSource(text).data
    except SuiteError:
        return None
    name = content.get("suite_name") if isinstance(content, dict) else None
    return name if isinstance(name, str) else None


def _is_readable(node: yaml.Node) -> bool:
    loader = yaml.SafeLoader("")
    try:
        loader.construct_document(node)
    except Exception:  # noqa: BLE001 - as where all of the document is read
        return False
    else:
        return True
    finally:
        loader.dispose()


def _children(node: yaml.Node) -> Iterator[tuple[str | int, yaml.Node]]:
    """Yields what lies in a node, each with its key or index; keys themselves too."""
    if isinstance(node, yaml.MappingNode):
        for key, value in node.value:
            yield str(key.value), key
            yield str(key.value), value
    elif isinstance(node, yaml.SequenceNode):
        yield from enumerate(node.value)


def dotted(path: KeyPath) -> str:
    """Returns a key path as people write it: `benchmarks[0].options.use_ocdbt`."""
    text = ""
    for part in path:
        text += f"[{part}]" if isinstance(part, int) else f".{part}" if text else part
    return text
