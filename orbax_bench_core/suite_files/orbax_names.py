"""Coverage of Orbax: which of its options and functions a suite can measure, and by what.

The installed Orbax says which there are, in a process of its own. What an option of a benchmark
sets is read from the tables of `orbax_bench_core.analysis.best`, and which functions a benchmark
calls from the source code of the built-ins.
"""

from __future__ import annotations

import dataclasses
import json
import os
from typing import Final

from orbax_bench_core.analysis.best import orbax_attributes
from orbax_bench_core.suite_files.mentioned_names import callers
from orbax_bench_core.suite_files.unmeasured import REASONS
from orbax_bench_core.sweep import BUILTINS, describe_options, load_class, printed_apart

FUNCTIONS: Final = "functions and classes of v1"
"""Group of the names that are no options."""

_PACKAGE: Final = "orbax_bench_core"


@dataclasses.dataclass(frozen=True, kw_only=True)
class OrbaxName:
    """One option, function or class of Orbax, and what measures it."""

    group: str  # what takes the option, or `FUNCTIONS`
    name: str
    default: str | None  # of an option, as Python writes it
    measured_by: tuple[str, ...]  # options as `benchmark.option`, or benchmarks that call it
    reason: str  # why nothing does, where that is known

    @property
    def is_open(self) -> bool:
        """Whether nothing measures it, and nobody has said why."""
        return not self.measured_by and not self.reason


@dataclasses.dataclass(frozen=True, kw_only=True)
class OrbaxCoverage:
    """All that the installed Orbax offers, and what measures it."""

    release: str
    names: tuple[OrbaxName, ...]


def orbax_coverage() -> OrbaxCoverage:
    """Asks the installed Orbax for its options and functions, and finds what measures them.

    Raises:
        UserError: The installed Orbax cannot be imported.
    """
    module = f"{_PACKAGE}.state.orbax_surface"
    said = json.loads(printed_apart(module, environment=os.environ, within_s=300))
    setters, calling = _setters(), callers()
    names = [
        _name(group, path, default, setters.get(path, ()))
        for group, options in said["options"].items()
        for path, default in options.items()
    ]
    names += [_name(FUNCTIONS, name, None, calling.get(name, ())) for name in said["names"]]
    return OrbaxCoverage(release=said["release"], names=tuple(names))


def _name(group: str, name: str, default: str | None, by: tuple[str, ...]) -> OrbaxName:
    reason = "" if by else REASONS.get(name, "")
    return OrbaxName(group=group, name=name, default=default, measured_by=by, reason=reason)


def _setters() -> dict[str, tuple[str, ...]]:
    """Returns the options of benchmarks that set each attribute of Orbax, by its path."""
    found: dict[str, tuple[str, ...]] = {}
    for benchmark, path in BUILTINS.items():
        attributes = orbax_attributes(benchmark)
        for option in describe_options(load_class(path)):
            for attribute in attributes.get(option.name, ()):
                found[attribute] = (*found.get(attribute, ()), f"{benchmark}.{option.name}")
    return found
