"""Comparison of two releases of Orbax: their environments, and the suite that has both."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Final

from orbax_bench_core.config import EnvironmentConfig, LoadedSuite
from orbax_bench_core.document import count
from orbax_bench_core.errors import UserError
from orbax_bench_core.execute import Say
from orbax_bench_core.steps.releases.search import comparing_releases, kept_requirements
from orbax_bench_core.sweep import suite_folder

if TYPE_CHECKING:
    from packaging.version import Version

PACKAGE: Final = "orbax-checkpoint"


@dataclasses.dataclass(frozen=True, kw_only=True)
class Upgrade:
    """Two releases, and the suite that compares them.

    Attributes:
        suite: The suite, whose arms are the releases.
        old: Version of the baseline.
        new: Version of the candidate.
    """

    suite: LoadedSuite
    old: str
    new: str

    @property
    def environments(self) -> tuple[EnvironmentConfig, ...]:
        """Those of both releases."""
        return self.suite.suite.environments


def plan_upgrade(
    loaded: LoadedSuite, old: str | None, new: str | None, *, also: Sequence[str] = ()
) -> Upgrade:
    """Plans the comparison of two releases of Orbax."""
    from orbax_bench_core.environments import newest_release

    old = _installed() if old is None else str(_version(old, "--from"))
    newest = new is None
    new = str(newest_release(PACKAGE)) if new is None else str(_version(new, "--to"))
    if newest and old == new:
        raise UserError(
            f"{PACKAGE} {old} is the newest release: there is nothing to upgrade to; --from and "
            "--to compare any two"
        )
    if _version(old, "--from") >= _version(new, "--to"):
        raise UserError(
            f"--from {old} is not older than --to {new}: the release in use comes first, and the "
            "one that may replace it second"
        )
    rest = kept_requirements(loaded, PACKAGE, also)
    both = [
        EnvironmentConfig(
            name=f"{PACKAGE}-{version}", requirements=(f"{PACKAGE}=={version}", *rest)
        )
        for version in (old, new)
    ]
    upgrade = Upgrade(suite=comparing_releases(loaded, both[0], both[1]), old=old, new=new)
    _check_releases(upgrade)
    return upgrade


def make_both(upgrade: Upgrade, say: Say) -> None:
    """Makes the environments of both releases, and says first how many are to be made."""
    from orbax_bench_core.environments import EnvironmentFailed, is_made, make_environments

    folder = _folder(upgrade.suite)
    if unmade := sum(
        not is_made(environment, folder=folder) for environment in upgrade.environments
    ):
        say(f"First {count(unmade, 'environment')} to install, once: a minute or two")
    made = make_environments(upgrade.environments, folder=folder, say=say)
    problems = [
        f"environment {name} cannot be made: {failure}"
        for name, failure in made.items()
        if isinstance(failure, EnvironmentFailed)
    ]
    if problems:
        raise UserError(*problems)


def _check_releases(upgrade: Upgrade) -> None:
    """Refuses releases that are too old or do not exist; those that are made already do."""
    from orbax_bench_core.environments import OLDEST_ORBAX, check_release, is_made

    if _version(upgrade.old, "--from") < _version(OLDEST_ORBAX, ""):
        raise UserError(
            f"--from {upgrade.old}: {PACKAGE} {OLDEST_ORBAX} is the oldest release with the v1 "
            "interface, which is what is measured"
        )
    folder = _folder(upgrade.suite)
    for environment, version in zip(upgrade.environments, (upgrade.old, upgrade.new), strict=True):
        if not is_made(environment, folder=folder):
            check_release(PACKAGE, version)


def _folder(suite: LoadedSuite) -> Path:
    return suite_folder(suite.source.file) or Path.cwd()


def _installed() -> str:
    from orbax_bench_core.provenance import UNKNOWN, package_version

    found = package_version(PACKAGE)
    if found == UNKNOWN:
        raise UserError(f"{PACKAGE} is not installed here; name the release in use as --from")
    return found


def _version(given: str, flag: str) -> Version:
    from packaging.version import InvalidVersion, Version

    try:
        return Version(given)
    except InvalidVersion:
        raise UserError(f"{flag}: {given!r} is no version; write one such as 0.12.8") from None
