"""YAML source: plain data, and the line of every key."""

from __future__ import annotations

from typing import Any

import yaml

from orbax_bench_core.config.errors import Problem, SuiteError

KeyPath = tuple[str | int, ...]


class Source:
    """A parsed YAML document that remembers where each key stood.

    Attributes:
        file: Name of the file, for messages.
        data: The document as plain Python data.
    """

    def __init__(self, text: str, file: str = "") -> None:
        """Parses `text`, YAML of plain data; messages name `file`.

        Raises:
            SuiteError: The text is not YAML, has a duplicate key, or carries a tag.
        """
        self.file = file
        self._lines: dict[KeyPath, int] = {}
        try:
            loader = yaml.SafeLoader(text)
        except yaml.reader.ReaderError as error:
            raise SuiteError(Problem(f"not a YAML file: {error}", file=file)) from None
        try:
            node = loader.get_single_node()
            if node is None:
                raise SuiteError(Problem("the file is empty", file=file))
            self._refuse_duplicates(node, (), set())
            self.data: Any = loader.construct_document(node)
        except yaml.MarkedYAMLError as error:
            raise SuiteError(self._yaml_problem(error)) from None
        except (yaml.YAMLError, RecursionError, ValueError) as error:
            raise SuiteError(Problem(f"not a YAML file: {error}", file=file)) from None
        finally:
            loader.dispose()
        self._remember(node, (), frozenset())

    def problem(self, message: str, path: KeyPath) -> Problem:
        """Returns a problem at `path`, with the line of the nearest key that is in the file."""
        return Problem(message, key=dotted(path), file=self.file, line=self.line(path))

    def line(self, path: KeyPath) -> int | None:
        """Returns the 1-based line of `path`, or of its nearest parent in the file."""
        while path and path not in self._lines:
            path = path[:-1]
        return self._lines.get(path)

    def _yaml_problem(self, error: yaml.MarkedYAMLError) -> Problem:
        mark = error.problem_mark or error.context_mark
        message = f"{error.context}, {error.problem}" if error.context else str(error.problem)
        if "could not determine a constructor for the tag" in message:
            message = f"{error.problem}: only plain YAML data is read, remove the tag"
        return Problem(message, file=self.file, line=mark.line + 1 if mark else None)

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

    def _remember(self, node: yaml.Node, path: KeyPath, parents: frozenset[int]) -> None:
        if id(node) in parents:
            raise SuiteError(self.problem("an anchor that contains itself", path))
        parents |= {id(node)}
        self._lines.setdefault(path, node.start_mark.line + 1)
        if isinstance(node, yaml.MappingNode):
            for key, value in node.value:
                if isinstance(key, yaml.ScalarNode):
                    # A key that overrides a merged one (`<<`) stands after it, and is meant.
                    self._lines[(*path, key.value)] = key.start_mark.line + 1
                    self._remember(value, (*path, key.value), parents)
        elif isinstance(node, yaml.SequenceNode):
            for index, item in enumerate(node.value):
                self._remember(item, (*path, index), parents)


def dotted(path: KeyPath) -> str:
    """Returns a key path as people write it: `benchmarks[0].options.use_ocdbt`."""
    text = ""
    for part in path:
        text += f"[{part}]" if isinstance(part, int) else f".{part}" if text else part
    return text
