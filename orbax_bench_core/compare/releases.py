"""The releases of a package between two, each with the environment that has it."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from orbax_bench_core.config.errors import SuiteError, did_you_mean
from orbax_bench_core.config.execution import EnvironmentConfig

if TYPE_CHECKING:
    from packaging.version import Version


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
        SuiteError: A version does not exist, or the two are not in order.
    """
    from packaging.version import InvalidVersion, Version

    local = {} if wheels is None else _wheels(package, wheels)
    requirements = {version: str(path) for version, path in local.items()}
    try:
        first, last = Version(good), Version(bad)
    except InvalidVersion as error:
        raise SuiteError(f"--good and --bad are versions of {package}: {error}") from None
    if not only_wheels:
        from orbax_bench_core.environments import releases

        for version in releases(package, since=good, until=bad):
            requirements.setdefault(version, f"{package}=={version}")
    for version in (first, last):
        if version not in requirements:
            hint = did_you_mean(str(version), map(str, requirements))
            raise SuiteError(f"{package} has no release {version}; {hint}")
    if first >= last:
        raise SuiteError(f"the good release {good} must be older than the bad one {bad}")
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
        raise SuiteError(f"--wheels names no folder: {folder}")
    found: dict[Version, Path] = {}
    for path in sorted(folder.glob("*.whl")):
        try:
            name, version, _, _ = parse_wheel_filename(path.name)
        except InvalidWheelFilename as error:
            raise SuiteError(f"not the name of a wheel: {error}") from None
        if name == canonicalize_name(package):
            found[version] = path.resolve()
    return found
