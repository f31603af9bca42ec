"""Versions installed beside this package: the default of every environment."""

from __future__ import annotations

import functools
import importlib.metadata
from collections.abc import Iterator

from orbax_bench_core.environments.supported import WORKER_REQUIREMENTS

_ACCELERATORS = {
    "libtpu": "tpu",
    "jax-cuda12-plugin": "cuda12",
    "jax-cuda13-plugin": "cuda13",
}
"""Distributions that give JAX an accelerator, and the extra of `jax` that brings them."""


def own_version(name: str) -> str | None:
    """Returns the version of a distribution that is installed here; None when there is none."""
    try:
        return importlib.metadata.version(name)
    except importlib.metadata.PackageNotFoundError:
        return None


def worker_requirements() -> list[str]:
    """Returns what the worker needs; its JAX has the accelerators that the one here has."""
    extras = [extra for name, extra in _ACCELERATORS.items() if own_version(name) is not None]
    jax = f"jax[{','.join(extras)}]" if extras else "jax"
    return [jax if name == "jax" else name for name in WORKER_REQUIREMENTS]


@functools.cache
def own_versions() -> tuple[str, ...]:
    """Returns `name==version` of all that the worker needs, directly or not, as installed here.

    Environments prefer these versions, so that two of them differ in what the suite says, and not
    in what was new on the day when each was made.
    """
    found: dict[str, str] = {}
    wanted = worker_requirements()
    while wanted:
        name, extras = _parsed(wanted.pop())
        version = own_version(name)
        if version is None or name in found:
            continue
        found[name] = version
        wanted += _dependencies(name, extras)
    return tuple(f"{name}=={version}" for name, version in sorted(found.items()))


def _parsed(requirement: str) -> tuple[str, set[str]]:
    from packaging.requirements import Requirement
    from packaging.utils import canonicalize_name

    parsed = Requirement(requirement)
    return canonicalize_name(parsed.name), parsed.extras


def _dependencies(name: str, extras: set[str]) -> Iterator[str]:
    from packaging.requirements import Requirement

    for text in importlib.metadata.requires(name) or ():
        marker = Requirement(text).marker
        if marker is None or any(marker.evaluate({"extra": extra}) for extra in ("", *extras)):
            yield text
