"""Disks that are small, for tests of what happens when they are full."""

import contextlib
import subprocess

import pytest


@contextlib.contextmanager
def small_disk(folder, size):
    """Mounts a file system in memory, with room for a size such as `16m`, as a new folder."""
    folder.mkdir()
    mount = ["mount", "-t", "tmpfs", "-o", f"size={size}", "tmpfs", str(folder)]
    done = subprocess.run(mount, capture_output=True, text=True, check=False)
    if done.returncode != 0:
        pytest.skip(f"needs the right to mount a disk: {done.stderr.strip()}")
    try:
        yield folder
    finally:
        subprocess.run(["umount", "--lazy", str(folder)], check=True)


def fill(folder):
    """Leaves no room on the disk of a folder; the file that takes it is returned."""
    ballast = folder / "ballast"
    with contextlib.suppress(OSError), ballast.open("wb", buffering=0) as file:
        while file.write(bytes(2**16)):
            pass
    with contextlib.suppress(OSError), ballast.open("ab", buffering=0) as file:
        while file.write(b"."):
            pass
    return ballast
