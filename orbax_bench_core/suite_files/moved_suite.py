"""Migration of a suite: generators of Orbax's own framework by the names of the built-ins."""

from collections.abc import Iterator
from pathlib import PurePath
from typing import Final

import yaml

from orbax_bench_core.config import KeyPath, SuiteSource
from orbax_bench_core.errors import Problem, UserError
from orbax_bench_core.suite_files import moved_module
from orbax_bench_core.sweep import benchmark_of, is_builtin


def migrate_suite(text: str, file: str) -> moved_module.Migration:
    """Migrates a suite; its sweep points and their ids stay the same."""
    source = SuiteSource(text, file)
    edits: list[moved_module.Edit] = []
    left: list[Problem] = []
    for path, node in _values(_composed(text, file), ()):
        if path == ("simdevice",):
            left.append(
                source.problem(
                    "simulated devices need a plugin that is not published: remove the block, and "
                    "a mesh runs on simulated CPU devices",
                    path,
                )
            )
        if not isinstance(node, yaml.ScalarNode) or path[-1:] != ("generator",):
            continue
        if not node.value.startswith(f"{moved_module.FRAMEWORK}."):
            continue
        found = benchmark_of(node.value)
        if is_builtin(found):
            quote = node.style or ""
            edit = moved_module.Edit(
                node.start_mark.index, node.end_mark.index, f"{quote}{found}{quote}"
            )
            edits.append(edit)
        else:
            left.append(
                source.problem(
                    f"{node.value} is no built-in benchmark here: `orbax-bench list` shows them; a "
                    "class of your own is named by its own path",
                    path,
                )
            )
    return moved_module.Migration(file, text, moved_module.edited(text, edits), tuple(left))


def _composed(text: str, file: str) -> yaml.Node | None:
    """Returns the document as nodes that know their places, by the parser in Python."""
    try:
        found: yaml.Node | None = yaml.compose(text, yaml.SafeLoader)
    except yaml.YAMLError as error:
        said = " ".join(str(error).split())
        raise UserError(Problem(f"not a YAML file: {said}", file=file)) from None
    return found


def _values(node: yaml.Node | None, path: KeyPath) -> Iterator[tuple[KeyPath, yaml.Node]]:
    """Yields every value of a document with its place; an anchor where it is defined alone."""
    seen: set[int] = set()
    waiting: list[tuple[KeyPath, yaml.Node]] = [] if node is None else [(path, node)]
    while waiting:
        where, one = waiting.pop()
        if id(one) in seen:
            continue
        seen.add(id(one))
        yield where, one
        if isinstance(one, yaml.MappingNode):
            waiting += [((*where, str(key.value)), value) for key, value in one.value]
        elif isinstance(one, yaml.SequenceNode):
            waiting += [((*where, index), item) for index, item in enumerate(one.value)]


_SUITES: Final = (".yaml", ".yml")


def migrate(text: str, file: str) -> moved_module.Migration:
    """Migrates a Python module or a suite that was written for Orbax's own framework.

    Comments and layout stay: only what has another name here is replaced.
    """
    suffix = PurePath(file).suffix
    if suffix == ".py":
        return moved_module.migrate_module(text, file)
    if suffix in _SUITES:
        return migrate_suite(text, file)
    raise UserError(Problem("is neither a module (.py) nor a suite (.yaml)", file=file))
