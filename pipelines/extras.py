"""Packages that only some targets need."""

from __future__ import annotations

import importlib.util

from orbax_bench_core.config import UserError
from orbax_bench_pipelines.target import Target

_NEEDS = {
    Target.LOCAL: {"kfp": "kfp"},
    Target.DOCKER: {"kfp": "kfp", "docker": "kfp"},
    Target.KFP: {"kfp": "kfp", "kfp.kubernetes": "kfp", "cronsim": "kfp"},
    Target.VERTEX: {"kfp": "kfp", "cronsim": "kfp", "google.cloud.aiplatform": "vertex"},
}


def require_extras(target: Target) -> None:
    """Checks that what a target needs is installed.

    Args:
        target: Where a pipeline is to run, or what it is compiled for.

    Raises:
        UserError: A package is missing; the message names the extra to install.
    """
    missing = {module: extra for module, extra in _NEEDS[target].items() if not _is_there(module)}
    if missing:
        extras = ",".join(dict.fromkeys(missing.values()))
        raise UserError(
            f"the target {target} needs {', '.join(missing)}: pip install 'orbax-bench[{extras}]'"
        )


def _is_there(module: str) -> bool:
    try:
        return importlib.util.find_spec(module) is not None
    except ModuleNotFoundError:
        return False  # its parent is not there
