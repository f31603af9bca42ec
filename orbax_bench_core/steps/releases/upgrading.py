"""Comparison of two releases of Orbax: their environments, and the suite that has both."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Final

from orbax_bench_core.config import EnvironmentConfig, LoadedSuite, parse_suite
from orbax_bench_core.document import count
from orbax_bench_core.errors import UserError
from orbax_bench_core.execute import Say, Session
from orbax_bench_core.steps.comparison import Comparison
from orbax_bench_core.steps.releases.search import comparing_releases, kept_requirements
from orbax_bench_core.suite_files import UPGRADE_SUITE
from orbax_bench_core.sweep import suite_folder

if TYPE_CHECKING:
    from packaging.version import Version

PACKAGE: Final = "orbax-checkpoint"


@dataclasses.dataclass(kw_only=True)
class Upgrading(Comparison):
    """Comparison of two releases of Orbax, each in an environment of its own."""

    old: str | None = None  # by default the installed one
    new: str | None = None  # by default the newest one
    also: Sequence[str] = ()  # what else both have
    own: bool = True  # whether the suite is the user's

    def checked(self, suite: LoadedSuite) -> LoadedSuite:
        """Gives a suite the releases as its arms, once it is known that there are such."""
        from orbax_bench_core.environments import newest_release

        if not self.own:  # its folder is ours, and has nothing for a worker to import
            suite = parse_suite(suite.text, UPGRADE_SUITE.name)
        old = _installed() if self.old is None else str(_version(self.old, "--from"))
        new = str(newest_release(PACKAGE) if self.new is None else _version(self.new, "--to"))
        if self.new is None and old == new:
            raise UserError(
                f"{PACKAGE} {old} is the newest release: there is nothing to upgrade to; --from "
                "and --to compare any two"
            )
        if _version(old, "--from") >= _version(new, "--to"):
            raise UserError(
                f"--from {old} is not older than --to {new}: the release in use comes first, and "
                "the one that may replace it second"
            )
        rest = kept_requirements(suite, PACKAGE, self.also)
        both = [
            EnvironmentConfig(
                name=f"{PACKAGE}-{version}", requirements=(f"{PACKAGE}=={version}", *rest)
            )
            for version in (old, new)
        ]
        self.folder = f"upgrade-{old}-{new}"
        planned = comparing_releases(suite, both[0], both[1])
        _check_releases(planned, old, new)
        return planned

    def measure(self, session: Session, *, lock: bool) -> None:
        """Makes both environments, and then compares the releases."""
        _make_both(session.suite, session.say)
        super().measure(session, lock=lock)


def _make_both(suite: LoadedSuite, say: Say) -> None:
    """Makes the environments of both releases, and says first how many are to be made."""
    from orbax_bench_core.environments import EnvironmentFailed, is_made, make_environments

    folder, both = _folder(suite), suite.suite.environments
    if unmade := sum(not is_made(environment, folder=folder) for environment in both):
        say(f"First {count(unmade, 'environment')} to install, once: a minute or two")
    made = make_environments(both, folder=folder, say=say)
    problems = [
        f"environment {name} cannot be made: {failure}"
        for name, failure in made.items()
        if isinstance(failure, EnvironmentFailed)
    ]
    if problems:
        raise UserError(*problems)


def _check_releases(suite: LoadedSuite, old: str, new: str) -> None:
    """Refuses releases that are too old or do not exist; those that are made already do."""
    from orbax_bench_core.environments import OLDEST_ORBAX, check_release, is_made

    if _version(old, "--from") < _version(OLDEST_ORBAX, ""):
        raise UserError(
            f"--from {old}: {PACKAGE} {OLDEST_ORBAX} is the oldest release with the v1 "
            "interface, which is what is measured"
        )
    folder, both = _folder(suite), suite.suite.environments
    for environment, version in zip(both, (old, new), strict=True):
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
