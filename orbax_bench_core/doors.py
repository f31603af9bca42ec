"""Packages whose names are imported when they are first used."""

import importlib
from collections.abc import Callable, Mapping
from typing import Any


def late(package: str, names: Mapping[str, str]) -> Callable[[str], Any]:
    """Returns the `__getattr__` of a package.

    Args:
        package: Its name.
        names: By each module, relative to `orbax_bench_core`, the names that come from it, with
            blanks between them.
    """
    modules = {name: module for module, found in names.items() for name in found.split()}

    def find(name: str) -> Any:
        if name not in modules:
            raise AttributeError(f"module {package!r} has no attribute {name!r}")
        return getattr(importlib.import_module(f"orbax_bench_core.{modules[name]}"), name)

    return find
