"""Functions that are called with a module as soon as it has been imported, never before."""

import sys
from collections.abc import Callable, Mapping, Sequence
from importlib.machinery import ModuleSpec
from types import ModuleType


class ImportHook:
    """A finder at the head of `sys.meta_path` that finds no module itself.

    It asks the finders behind it for some modules, and calls a function right after each of them
    was executed. Modules that are imported already are handed over at once.
    """

    def __init__(self, wanted: Mapping[str, Callable[[ModuleType], object]]) -> None:
        """Takes the functions by the names of their modules; they must not raise."""
        self._wanted = wanted

    def install(self) -> None:
        """Hands over what is imported, and waits for the rest."""
        sys.meta_path.insert(0, self)
        for name, then in self._wanted.items():
            if name in sys.modules:
                then(sys.modules[name])

    def remove(self) -> None:
        """Waits for no further module."""
        if self in sys.meta_path:
            sys.meta_path.remove(self)

    def find_spec(
        self, name: str, path: Sequence[str] | None = None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        """Returns the spec that another finder has for a module that is waited for."""
        then = self._wanted.get(name)
        if then is None:
            return None
        for finder in [finder for finder in sys.meta_path if finder is not self]:
            spec = finder.find_spec(name, path, target) if hasattr(finder, "find_spec") else None
            if spec is not None and spec.loader is not None:
                spec.loader.exec_module = _followed(  # type: ignore[method-assign,assignment]
                    spec.loader.exec_module, then
                )
                return spec
        return None


def _followed(
    execute: Callable[[ModuleType], None], then: Callable[[ModuleType], object]
) -> Callable[[ModuleType], None]:
    def exec_module(module: ModuleType) -> None:
        execute(module)
        then(module)

    return exec_module
