"""uv: its executable, its runs, and the releases of a package that it sees."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Final

from orbax_bench_core.environments.supported import EnvironmentFailed
from orbax_bench_core.errors import UserError, shown

if TYPE_CHECKING:
    from packaging.version import Version


_LONGEST = 1000
_NAME: Final = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]*")


def run_uv(*arguments: str, folder: Path, text: str = "") -> str:
    """Runs uv and returns what it printed.

    Args:
        *arguments: Words after `uv`.
        folder: Where it runs.
        text: Its standard input.

    Raises:
        EnvironmentFailed: It failed, or uv is not installed; the message is its last error in one
            line.
    """
    process = subprocess.run(
        [find_uv(), "--quiet", "--no-progress", "--color", "never", *arguments],
        input=text,
        capture_output=True,
        text=True,
        cwd=folder,
        # The environment that is active here is not the one that uv is to change.
        env={name: value for name, value in os.environ.items() if name != "VIRTUAL_ENV"},
        check=False,
    )
    if process.returncode != 0:
        raise EnvironmentFailed(_in_one_line(process.stderr), process.stderr)
    return process.stdout


def find_uv() -> str:
    """Returns the path of uv: the one installed next to this package, or the one on PATH.

    Raises:
        EnvironmentFailed: There is none.
    """
    try:
        import uv

        return str(uv.find_uv_bin())
    except (ImportError, FileNotFoundError):
        found = shutil.which("uv")
    if found is None:
        raise EnvironmentFailed(
            "uv makes the environments of a suite and is not installed here: pip install uv"
        )
    return found


def _in_one_line(output: str) -> str:
    """Returns uv's output without its labels and line breaks; long output keeps its ends."""
    lines = [re.sub(r"^(error|cause): ", "", line.strip()) for line in output.splitlines()]
    said = ": ".join(line.rstrip(":.") for line in lines if line)
    if len(said) > _LONGEST:
        said = f"{said[: _LONGEST // 2]} ... {said[-_LONGEST // 2 :]}"
    return f"uv: {said or 'failed without a word'}"


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
        extra_wheels: Folder of wheels that are not in the index.
        since: Lowest version; None for no bound.
        until: Highest version; None for no bound.

    Raises:
        UserError: There is none within the bounds, or the index cannot be asked.
    """
    from packaging.version import Version

    # uv only ever tells the newest: so it is asked for the newest, the newest below that, ...
    first = f">={since}" if since else ""
    wheels = ["--find-links", str(extra_wheels.absolute())] if extra_wheels else []
    try:
        found = [_newest(package, _both(first, f"<={until}" if until else ""), wheels)]
    except EnvironmentFailed:
        newest = newest_release(package)  # or there is no index that could be asked
        bounds = " ".join(filter(None, [since and f"from {since}", until and f"to {until}"]))
        raise UserError(
            f"{package} has no release {bounds} that can be installed here; the newest is {newest}"
        ) from None
    while True:
        try:
            found.append(_newest(package, _both(first, f"<{found[-1]}"), [*wheels, "--offline"]))
        except EnvironmentFailed:
            return sorted(Version(version) for version in found)


def newest_release(package: str) -> Version:
    """Returns the newest release of a package that can be installed here.

    Raises:
        UserError: The index cannot be asked, or has no release that can be installed here.
    """
    from packaging.version import Version

    try:
        return Version(_newest(package, "", []))
    except EnvironmentFailed as failure:
        raise UserError(f"cannot ask the package index for {package}: {failure}") from None


def check_release(package: str, version: str) -> None:
    """Refuses a release that cannot be installed here.

    Raises:
        UserError: It cannot; the message names the newest one that can.
    """
    newest = newest_release(package)
    try:
        _newest(package, f"=={version}", [])
    except EnvironmentFailed:
        raise UserError(
            f"{package} has no release {version} that can be installed here; the newest is {newest}"
        ) from None


def _both(*bounds: str) -> str:
    return ",".join(filter(None, bounds))


def _newest(package: str, bounds: str, options: list[str]) -> str:
    if not _NAME.fullmatch(package):
        raise UserError(f"{shown(package)} is no name of a package, such as orbax-checkpoint")
    listed = run_uv(
        *("pip", "compile", "-", "--no-deps", "--no-header", "--no-annotate", *options),
        *("--no-emit-find-links", "--no-emit-index-url", "--python", sys.executable),
        folder=Path.cwd(),
        text=f"{package}{bounds}\n",
    )
    return listed.split("==")[1].strip()
