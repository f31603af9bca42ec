"""An environment that holds the package as users get it."""

import os
import subprocess

_PATHS = ("XLA_FLAGS", "JAX_ENABLE_X64", "JAX_PLATFORMS", "PYTHONPATH", "VIRTUAL_ENV")


class Installed:
    """An environment with our wheel, and with the packages that it names; none of the tests'.

    Attributes:
        bin: Where its commands are.
        wheel: The wheel.
        took_s: How long the installation took, the building of the wheel left out.
    """

    def __init__(self, folder, wheel, took_s):
        self.bin, self.wheel, self.took_s = folder / "bin", wheel, took_s

    def run(self, command, folder, **variables):
        """Runs a shell command where only this environment is; returns what `subprocess` does."""
        plain = {name: text for name, text in os.environ.items() if name not in _PATHS}
        path = f"{self.bin}:{os.environ['PATH']}"
        return subprocess.run(
            ["bash", "-c", command],
            cwd=folder,
            env={**plain, "PATH": path, "COLUMNS": "160", **variables},
            capture_output=True,
            text=True,
            timeout=550,
            check=False,
        )
