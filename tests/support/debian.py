"""Programs of Debian's archive that nightly tests install where they are missing."""

import functools
import os
import shutil
import subprocess
from typing import Final

_INSTALL_S: Final = 600.0


@functools.cache
def why_not_installed(program: str, *packages: str) -> str:
    """Returns why a program cannot be had here; empty once it is there.

    Args:
        program: What must be on the path.
        packages: What Debian calls the packages that bring it.
    """
    if shutil.which(program):
        return ""
    if os.geteuid() != 0 or shutil.which("apt-get") is None:
        return f"{program} is missing; as root on Debian, it would be installed"
    quiet = {**os.environ, "DEBIAN_FRONTEND": "noninteractive"}
    subprocess.run(["apt-get", "update"], env=quiet, capture_output=True, check=False)
    done = subprocess.run(
        # A hundred packages may have to wait for another test that installs some.
        [
            *("apt-get", "-o", "DPkg::Lock::Timeout=300", "install"),
            *("--yes", "--no-install-recommends", *packages),
        ],
        env=quiet,
        capture_output=True,
        text=True,
        check=False,
        timeout=_INSTALL_S,
    )
    if done.returncode:
        return f"apt-get cannot install {' '.join(packages)}: {done.stderr.strip()[-200:]}"
    return ""
