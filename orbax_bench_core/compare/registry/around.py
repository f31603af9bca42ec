"""Which registry a baseline lies in."""

from __future__ import annotations

from orbax_bench_core.compare.registry.store import Registry


def registry_around(baseline: str) -> Registry | None:
    """Returns the registry that a baseline is or lies in; None for a run directory and others.

    Args:
        baseline: Path of a registry, of a revision or capture in one, or of anything else.
    """
    path = Registry(baseline).root
    if (path / "run.json").exists():
        return None
    near = (Registry(str(folder)) for folder in (path, path.parent, path.parent.parent))
    return next((registry for registry in near if registry.exists()), None)
