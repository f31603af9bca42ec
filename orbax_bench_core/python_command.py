"""Command lines of Python: what a process of ours imports never comes from the current folder."""

import sys
from typing import Final

SAFE_PATH: Final = "-P"
"""Flag by which Python 3.11 and later put no folder of their own before `PYTHONPATH`."""


def python_command(*words: str, executable: str = "") -> list[str]:
    """Returns a command line of a Python, such as `-m MODULE`; of this one by default.

    Without the flag, `-m` and `-c` import from the current directory first: a `yaml.py` that lies
    there would be executed in place of the library. `PYTHONPATH` counts as usual.
    """
    return [executable or sys.executable, SAFE_PATH, *words]


def leave_current_directory() -> None:
    """Imports nothing more from the current directory, where Python was started without the flag.

    For modules that people start themselves by `python -m`; the directory is the first place then.
    """
    if not sys.flags.safe_path:
        del sys.path[0]
