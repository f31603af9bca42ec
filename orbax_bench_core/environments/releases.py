"""Which releases of a package there are."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING

from orbax_bench_core.config.errors import SuiteError
from orbax_bench_core.environments.failure import EnvironmentFailed
from orbax_bench_core.environments.uv import run_uv

if TYPE_CHECKING:
    from packaging.version import Version


def releases(
    package: str,
    *,
    extra_wheels: Path | None = None,
    since: str | None = None,
    until: str | None = None,
) -> list[Version]:
    """Returns the releases of a package that can be installed here, oldest first.

    They are those that uv sees, with the index that it is configured for. Pre-releases and yanked
    releases are left out.

    Args:
        package: Name of the package.
        extra_wheels: A folder with wheels of more releases.
        since: The first version of interest.
        until: The last one.

    Raises:
        SuiteError: The package has no such release, or uv cannot ask.
    """
    from packaging.version import Version

    # uv only ever tells the newest: so it is asked for the newest, the newest below that, ...
    first = f">={since}" if since else ""
    wheels = ["--find-links", str(extra_wheels.absolute())] if extra_wheels else []
    try:
        found = [_newest(package, _both(first, f"<={until}" if until else ""), wheels)]
    except EnvironmentFailed as failure:
        raise SuiteError(f"cannot list the releases of {package}: {failure}") from None
    while True:
        try:
            found.append(_newest(package, _both(first, f"<{found[-1]}"), [*wheels, "--offline"]))
        except EnvironmentFailed:
            return sorted(Version(version) for version in found)


def _both(*bounds: str) -> str:
    return ",".join(filter(None, bounds))


def _newest(package: str, bounds: str, options: list[str]) -> str:
    listed = run_uv(
        *("pip", "compile", "-", "--no-deps", "--no-header", "--no-annotate", *options),
        *("--no-emit-find-links", "--no-emit-index-url", "--python", sys.executable),
        folder=Path.cwd(),
        text=f"{package}{bounds}\n",
    )
    return listed.split("==")[1].strip()
