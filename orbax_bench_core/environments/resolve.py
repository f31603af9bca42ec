"""Resolution: the exact version of everything in an environment, from its requirements."""

from __future__ import annotations

import re
import sys
from collections.abc import Sequence
from pathlib import Path

from orbax_bench_core.environments.installed import own_versions, worker_requirements
from orbax_bench_core.environments.supported import OLDEST_ORBAX, RULES, EnvironmentFailed
from orbax_bench_core.environments.uv import run_uv

LOCK = "requirements.lock"


def resolve(home: Path, requirements: Sequence[str], folder: Path) -> None:
    """Writes `requirements.lock`, the exact content of the environment in `home`.

    What the requirements leave open is as in the environment of this process where that fits, and
    otherwise the newest that fits. Known needs that a release of Orbax does not declare are added.
    Relative paths are relative to `folder`.
    """
    wanted = [*requirements, *worker_requirements()]
    _compile(home, wanted, folder)
    orbax = _version(home, "orbax-checkpoint")
    if orbax is None:
        return  # a folder or a file: what it needs is not known beforehand
    refuse_release(orbax)
    needs = requirements_of(orbax)
    if needs:
        try:
            _compile(home, [*wanted, *needs, f"orbax-checkpoint=={orbax}"], folder)
        except EnvironmentFailed as failure:
            raise EnvironmentFailed(f"{failure}; {works_with(orbax)}", failure.output) from None


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


def _version(home: Path, name: str) -> str | None:
    """Returns the version of a package in the lock file; None when it has none there."""
    text = (home / LOCK).read_text()
    found = re.search(rf"^{re.escape(name)}==(\S+)", text, re.MULTILINE)
    return None if found is None else found[1]


def refuse_release(orbax: str) -> None:
    """Refuses a release of Orbax without the v1 API: nothing in it can be measured."""
    from packaging.version import Version

    if Version(orbax) < Version(OLDEST_ORBAX):
        raise EnvironmentFailed(
            f"orbax-checkpoint {orbax} has no v1 API, which is what is measured; "
            f"{OLDEST_ORBAX} is the oldest release that has it"
        )


def requirements_of(orbax: str) -> tuple[str, ...]:
    """Returns the requirements that a release of Orbax has and does not declare."""
    from packaging.version import Version

    version = Version(orbax)
    return tuple(
        rule.needs for rule in RULES if Version(rule.first) <= version <= Version(rule.last)
    )


def works_with(orbax: str) -> str:
    """Returns a hint for people whose Orbax cannot be imported; empty where none is known."""
    needs = requirements_of(orbax)
    return f"orbax-checkpoint {orbax} needs {' and '.join(needs)}" if needs else ""
