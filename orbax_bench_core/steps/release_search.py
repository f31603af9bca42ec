"""Release search: releases of a package with an environment each, and the bisection over them."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Final, Literal

import yaml

from orbax_bench_core.config import (
    EnvironmentConfig,
    LoadedSuite,
    UserError,
    did_you_mean,
    parse_suite,
)
from orbax_bench_core.gate import Word

if TYPE_CHECKING:
    from packaging.version import Version

Outcome = Word | Literal["FAILED"]
"""Verdict of a release against the good one; FAILED when it could not be measured."""

NOTHING: Final[Mapping[str, Any]] = MappingProxyType({})


@dataclasses.dataclass(frozen=True, kw_only=True)
class Release:
    """One release.

    Attributes:
        version: Its version.
        environment: What a worker runs with to have it.
    """

    version: str
    environment: EnvironmentConfig


def find_releases(
    package: str,
    good: str,
    bad: str,
    *,
    wheels: Path | None = None,
    also: Sequence[str] = (),
    only_wheels: bool = False,
) -> tuple[Release, ...]:
    """Returns the releases from `good` to `bad`, in order of version, both included.

    Args:
        package: Name of the package.
        good: The first version.
        bad: The last version.
        wheels: Folder with wheels of more releases, which go before those of the index.
        also: What else every environment has.
        only_wheels: Whether to leave the index out.

    Raises:
        UserError: A version does not exist, or the two are not in order.
    """
    from packaging.version import InvalidVersion, Version

    local = {} if wheels is None else _wheels(package, wheels)
    requirements = {version: str(path) for version, path in local.items()}
    try:
        first, last = Version(good), Version(bad)
    except InvalidVersion as error:
        raise UserError(f"--good and --bad are versions of {package}: {error}") from None
    if not only_wheels:
        from orbax_bench_core.environments import releases

        for version in releases(package, since=good, until=bad):
            requirements.setdefault(version, f"{package}=={version}")
    for version in (first, last):
        if version not in requirements:
            hint = did_you_mean(str(version), map(str, requirements))
            raise UserError(f"{package} has no release {version}; {hint}")
    if first >= last:
        raise UserError(f"the good release {good} must be older than the bad one {bad}")
    return tuple(
        Release(
            version=str(version),
            environment=EnvironmentConfig(
                name=f"{package}-{version}", requirements=(requirements[version], *also)
            ),
        )
        for version in sorted(requirements)
        if first <= version <= last
    )


def _wheels(package: str, folder: Path) -> dict[Version, Path]:
    """Returns the wheels of a package in a folder, by version."""
    from packaging.utils import InvalidWheelFilename, canonicalize_name, parse_wheel_filename

    if not folder.is_dir():
        raise UserError(f"--wheels names no folder: {folder}")
    found: dict[Version, Path] = {}
    for path in sorted(folder.glob("*.whl")):
        try:
            name, version, _, _ = parse_wheel_filename(path.name)
        except InvalidWheelFilename as error:
            raise UserError(f"not the name of a wheel: {error}") from None
        if name == canonicalize_name(package):
            found[version] = path.resolve()
    return found


@dataclasses.dataclass(frozen=True, kw_only=True)
class Found:
    """Result of a release search.

    Attributes:
        last_good: The newest release that passes against the good one; the good one itself when
            no other does.
        first_bad: The oldest release that has regressed; None when the bad one has not.
        undecided: Releases between the two that gave no verdict.
        outcomes: What every release said that was measured, in the order of measurement.
    """

    last_good: str
    first_bad: str | None
    undecided: tuple[str, ...]
    outcomes: dict[str, Outcome]


def search_releases(releases: Sequence[str], outcome: Callable[[str], Outcome]) -> Found:
    """Searches for the first release that has regressed against the first of the list.

    The last one is measured first: without a regression there is nothing to look for. Every step
    then halves what is left. A release that gives no verdict, or cannot be measured, is passed over
    in favour of the nearest one to the middle that has not been tried.

    Args:
        releases: At least two, from the good one to the bad one, in order of version.
        outcome: Measures a release against the good one.
    """
    good, bad = 0, len(releases) - 1
    outcomes = {releases[bad]: outcome(releases[bad])}
    if outcomes[releases[bad]] != "REGRESSION":
        return Found(
            last_good=releases[good], first_bad=None, undecided=(), outcomes=dict(outcomes)
        )
    while untried := [i for i in range(good + 1, bad) if releases[i] not in outcomes]:
        middle = min(untried, key=lambda index: abs(2 * index - good - bad))
        found = outcomes[releases[middle]] = outcome(releases[middle])
        if found == "REGRESSION":
            bad = middle
        elif found == "PASS":
            good = middle
    return Found(
        last_good=releases[good],
        first_bad=releases[bad],
        undecided=tuple(releases[good + 1 : bad]),
        outcomes=outcomes,
    )


def comparing_releases(
    loaded: LoadedSuite,
    baseline: EnvironmentConfig,
    candidate: EnvironmentConfig,
    *,
    gate: Mapping[str, Any] = NOTHING,
) -> LoadedSuite:
    """Returns a suite with two environments as its arms.

    Environments and arms of its own are replaced. Keys of `gate` go in place of those of the
    suite's `gate` block.
    """
    data = dict(loaded.source.data)
    data["environments"] = [
        environment.model_dump(mode="json", exclude_defaults=True)
        for environment in (baseline, candidate)
    ]
    data["arms"] = {
        "baseline": {"environment": baseline.name},
        "candidate": {"environment": candidate.name},
    }
    if gate:
        data["gate"] = {**data.get("gate", {}), **gate}
    return parse_suite(yaml.safe_dump(data, sort_keys=False), loaded.source.file)
