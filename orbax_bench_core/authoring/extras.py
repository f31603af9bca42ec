"""Optional packages, and the error that names the extra which installs them."""

from __future__ import annotations

import importlib
from types import ModuleType

from orbax_bench_core.authoring.generator import UnmetNeed


def optional_module(name: str, extra: str, needed_by: str) -> ModuleType:
    """Imports a module that an extra installs.

    Args:
        name: The module.
        extra: The extra of orbax-bench that brings it.
        needed_by: What needs it, for the message.

    Raises:
        UnmetNeed: It is not installed.
    """
    try:
        return importlib.import_module(name)
    except ImportError as error:
        raise UnmetNeed(
            f"{needed_by} needs {name}: pip install 'orbax-bench[{extra}]' ({error})"
        ) from None
