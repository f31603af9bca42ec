"""Resolution: the exact version of everything in an environment, from its requirements.

The versions that are installed beside this package are the default of every environment.
"""

import functools
import importlib.metadata
import re
import sys
from collections.abc import Sequence
from pathlib import Path

from orbax_bench_core.environments import supported
from orbax_bench_core.environments.uv import run_uv

LOCK = "requirements.lock"
_ACCELERATORS = {"libtpu": "tpu", "jax-cuda12-plugin": "cuda12", "jax-cuda13-plugin": "cuda13"}
"""Distributions that give JAX an accelerator, and the extra of `jax` that brings them."""


def own_version(name: str) -> str | None:
    """Returns the version of a distribution that is installed here; None when there is none."""
    try:
        return importlib.metadata.version(name)
    except importlib.metadata.PackageNotFoundError:
        return None


def worker_requirements() -> list[str]:
    """Returns the worker's requirements; its JAX supports the accelerators of the one here."""
    extras = [extra for name, extra in _ACCELERATORS.items() if own_version(name) is not None]
    jax = f"jax[{','.join(extras)}]" if extras else "jax"
    return [jax if name == "jax" else name for name in supported.WORKER_REQUIREMENTS]


@functools.cache
def own_versions() -> tuple[str, ...]:
    """Returns `name==version` of all that the worker needs, directly or not, as installed here.

    Environments prefer these versions, so that two of them differ in what the suite says, and not
    in what was new on the day when each was made.
    """
    from packaging.requirements import Requirement
    from packaging.utils import canonicalize_name

    found: dict[str, str] = {}
    wanted = [Requirement(text) for text in worker_requirements()]
    while wanted:
        one = wanted.pop()
        name, extras = canonicalize_name(one.name), ("", *one.extras)
        version = own_version(name)
        if version is None or name in found:
            continue
        found[name] = version
        for needed in map(Requirement, importlib.metadata.requires(name) or ()):
            marker = needed.marker
            if marker is None or any(marker.evaluate({"extra": extra}) for extra in extras):
                wanted.append(needed)
    return tuple(f"{name}=={version}" for name, version in sorted(found.items()))


def resolve(home: Path, requirements: Sequence[str], folder: Path) -> None:
    """Writes `requirements.lock`, the exact content of the environment in `home`.

    What the requirements leave open is as in the environment of this process where that fits, and
    otherwise the newest that fits. Known needs that a release of Orbax does not declare are added.
    Relative paths are relative to `folder`.
    """
    wanted = [*requirements, *worker_requirements()]
    _compile(home, wanted, folder)
    found = re.search(r"^orbax-checkpoint==(\S+)", (home / LOCK).read_text(), re.MULTILINE)
    if found is None:
        return  # a folder or a file: what it needs is not known beforehand
    orbax = found[1]
    refuse_release(orbax)
    needs = requirements_of(orbax)
    if needs:
        try:
            _compile(home, [*wanted, *needs, f"orbax-checkpoint=={orbax}"], folder)
        except supported.EnvironmentFailed as failure:
            raise supported.EnvironmentFailed(
                f"{failure}; {works_with(orbax)}", failure.output
            ) from None


def _compile(home: Path, wanted: Sequence[str], folder: Path) -> None:
    source, lock = home / "requirements.in", home / LOCK
    source.write_text("".join(f"{text}\n" for text in wanted))
    # uv keeps the versions that it finds in its output, where they fit.
    lock.write_text("".join(f"{version}\n" for version in own_versions()))
    run_uv(
        *("pip", "compile", str(source), "--output-file", str(lock)),
        *("--python", sys.executable, "--no-header", "--no-annotate"),
        folder=folder,
    )


def refuse_release(orbax: str) -> None:
    """Refuses a release of Orbax without the v1 API: nothing in it can be measured.

    Raises:
        EnvironmentFailed: It is older than the first release with that API.
    """
    from packaging.version import Version

    if Version(orbax) < Version(supported.OLDEST_ORBAX):
        raise supported.EnvironmentFailed(
            f"orbax-checkpoint {orbax} has no v1 API, which is what is measured; "
            f"{supported.OLDEST_ORBAX} is the oldest release that has it"
        )


def requirements_of(orbax: str) -> tuple[str, ...]:
    """Returns the requirements that a release of Orbax has and does not declare."""
    from packaging.version import Version

    version = Version(orbax)
    return tuple(
        rule.needs
        for rule in supported.RULES
        if Version(rule.first) <= version <= Version(rule.last)
    )


def works_with(orbax: str) -> str:
    """Returns a hint for people whose Orbax cannot be imported; empty if none is known."""
    needs = requirements_of(orbax)
    return f"orbax-checkpoint {orbax} needs {' and '.join(needs)}" if needs else ""
