"""Storage: the disk of a run is full, read-only, renamed or gone for a while."""

import contextlib
import os
import random
import shutil
import subprocess
import time
from collections.abc import Callable, Iterator
from typing import Final

from perf.chaos import checks
from perf.chaos.place import Place, Undisturbed

_SIZE: Final = "24m"


def full(place: Place, undisturbed: Undisturbed, draw: random.Random) -> str:
    """Fills the disk at a moment, up to some bytes."""
    with _disk(place) as remains:
        ballast = place.results / "ballast"

        def strike() -> None:
            room = draw.choice([0, 0, 4096, 65536])
            with contextlib.suppress(OSError), ballast.open("wb", buffering=0) as file:
                while file.write(bytes(65536)):
                    pass
            with contextlib.suppress(OSError):
                os.truncate(ballast, max(0, ballast.stat().st_size - room))

        _strike(place, undisturbed, draw, strike)
        ballast.unlink(missing_ok=True)
        remains()
    return "full=1"


def read_only(place: Place, undisturbed: Undisturbed, draw: random.Random) -> str:
    """Makes the disk read-only at a moment."""
    with _disk(place) as remains:
        _strike(place, undisturbed, draw, lambda: _mount("remount,ro", place))
        _mount("remount,rw", place)
        remains()
    return "read_only=1"


def renamed(place: Place, undisturbed: Undisturbed, draw: random.Random) -> str:
    """Renames the run directory at a moment, and gives it its name back in the end."""
    out, away = place.results / "out", place.results / "away"

    def strike() -> None:
        with contextlib.suppress(FileNotFoundError):
            out.rename(away)

    _strike(place, undisturbed, draw, strike)
    if away.exists():
        shutil.rmtree(out, ignore_errors=True)
        away.rename(out)
    return "renamed=1"


def gone(place: Place, undisturbed: Undisturbed, draw: random.Random) -> str:
    """Deletes the run directory at a moment."""
    out = place.results / "out"
    _strike(place, undisturbed, draw, lambda: shutil.rmtree(out, ignore_errors=True))
    shutil.rmtree(out, ignore_errors=True)
    return "gone=1"


def _strike(
    place: Place, undisturbed: Undisturbed, draw: random.Random, strike: Callable[[], None]
) -> None:
    """Starts the command, strikes at a moment, and looks at how it ends."""
    command = place.begin()[0]
    command.code(draw.uniform(0.2, 1.0) * undisturbed.seconds)
    strike()
    checks.check_end(command, {place.scenario.code} | checks.REFUSALS)
    checks.check_gone(place)


@contextlib.contextmanager
def _disk(place: Place) -> Iterator[Callable[[], None]]:
    """Mounts a small disk where results go; yields what copies them to the folder beneath."""
    kept = place.folder / "kept"
    shutil.copytree(place.results, kept)
    subprocess.run(
        ["mount", "-t", "tmpfs", "-o", f"size={_SIZE}", "chaos", place.results], check=True
    )
    try:
        shutil.copytree(kept, place.results, dirs_exist_ok=True)

        def remains() -> None:
            shutil.rmtree(kept)
            shutil.copytree(place.results, kept)

        yield remains
    finally:
        place.end()
        subprocess.run(["umount", "--lazy", place.results], check=True)
    shutil.rmtree(place.results)
    kept.rename(place.results)


def _mount(options: str, place: Place) -> None:
    # A file that is open for writing keeps a disk from being read-only.
    for _ in range(200):
        done = subprocess.run(
            ["mount", "-o", options, place.results], capture_output=True, check=False
        )
        if done.returncode == 0:
            return
        time.sleep(0.01)
    raise checks.NotHeld(f"cannot {options} {place.results}: {done.stderr!r}")
