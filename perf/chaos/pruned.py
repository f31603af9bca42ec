"""Pruning: old runs of which some must stay, kills of the command that removes the others."""

import datetime
import hashlib
import json
import os
import random
import shutil
import signal
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Final

from perf.chaos import checks
from perf.chaos.place import NotHeld, Place, Undisturbed

_FILES: Final = ("lineage.json", "verdicts.json")
_OWN: Final = ("notes.txt", "records/mine.txt", "photos/a.jpg", "logs/train.log")
_KILLS: Final = 4
_SIGNALS: Final = (signal.SIGKILL, signal.SIGKILL, signal.SIGTERM, signal.SIGINT)


class _Nights:
    """Old copies of a run below a place, each with something drawn that keeps it or does not."""

    def __init__(self, place: Place, draw: random.Random) -> None:
        self.place, self.draw = place, draw
        self.nightly = place.results / "nightly"
        self.elsewhere = place.results / "far" / "away" / "elsewhere"  # where no run is looked for
        self.going: set[Path] = set()
        self.alive: list[subprocess.Popen[bytes]] = []
        self._made = 0

    def copy(self, to: Path, *, days: float = 300) -> Path:
        """Copies the run as another one, which began so many days ago."""
        source, self._made = self.place.results / "out", self._made + 1
        began = datetime.datetime.now(datetime.UTC) - datetime.timedelta(days=days + self._made)
        before = json.loads((source / "run.json").read_text())["run_id"]
        run_id = f"{self._made:012x}"
        shutil.copytree(source, to, ignore=shutil.ignore_patterns(".*.tmp", "happened_*"))
        for file in (to / "run.json", *to.glob("records/*/*/*.json")):
            file.write_text(file.read_text().replace(before, run_id))
        info = json.loads((to / "run.json").read_text()) | {"created_at": began.isoformat()}
        (to / "run.json").write_text(json.dumps(info))
        return to

    def goes(self, run: Path) -> Path:
        """Notes that all files that a run has now are to go."""
        self.going |= {path for path in run.rglob("*") if path.is_file()}
        return run

    def plain(self, run: Path) -> None:
        """Nothing keeps it."""
        self.goes(self.copy(run))

    def own(self, run: Path) -> None:
        """It goes, but not what people have put there."""
        self.goes(self.copy(run))
        for name in self.draw.sample(_OWN, 2):
            (run / name).parent.mkdir(exist_ok=True)
            (run / name).write_text("mine")

    def links(self, run: Path) -> None:
        """It goes, but not what its links lead to."""
        self.goes(self.copy(run))
        (run / "soak").symlink_to(self.elsewhere)
        (run / "best.json.link").symlink_to(self.elsewhere / "kept" / "run.json")

    def linked(self, run: Path) -> None:
        """It is a link to a run elsewhere."""
        run.symlink_to(self.elsewhere / "kept")

    def nested(self, run: Path) -> None:
        """It holds another run, young or old, at some depth."""
        self.copy(run)
        inside = self.draw.choice(["n1", "some/way/down", "logs/n1"])
        self.copy(run / inside, days=self.draw.choice([0.0, 200.0]))

    def running(self, run: Path) -> None:
        """It is measured into, or a run below it is."""
        self.copy(run)
        root = self.draw.choice([run, run / "n1"])
        process = subprocess.Popen(
            [sys.executable, "-c", _HOLDS, str(root)], stdout=subprocess.PIPE
        )
        self.alive.append(process)
        assert process.stdout is not None
        process.stdout.readline()

    def torn_lease(self, run: Path) -> None:
        """Nobody can read who measures into it."""
        self.copy(run)
        (run / "leases").mkdir(exist_ok=True)
        (run / "leases" / "run.99.json").write_text(self.draw.choice(["", "{", '{"owner": 1}']))

    def torn(self, run: Path) -> None:
        """It cannot be read."""
        self.copy(run)
        (run / "run.json").write_text("{")

    def baseline(self, run: Path) -> None:
        """A young run was compared with it, whose lineage says so, or not any more."""
        from orbax_bench_core.analysis.verdicts import compare_stored
        from orbax_bench_core.publishing import publish_verdicts
        from orbax_bench_core.records import RunDirectory

        self.copy(run)
        young = self.copy(run.with_name(f"young-{run.name}"), days=0)
        publish_verdicts(RunDirectory(str(young)), compare_stored(str(run), str(young)))
        lineage = young / "lineage.json"
        what = self.draw.choice(["whole", "torn", "newer", "missing", "moved"])
        if what == "torn":
            lineage.write_text(lineage.read_text()[: self.draw.randrange(1, 200)])
        elif what == "newer":
            lineage.write_text(json.dumps(json.loads(lineage.read_text()) | {"schema_version": 9}))
        elif what == "missing":
            lineage.unlink()
        elif what == "moved":
            run.rename(run.with_name(f"moved-{run.name}"))


_HOLDS: Final = """
import sys, time
from orbax_bench_core.files import place
from orbax_bench_core.leases import held
with held(place(sys.argv[1]), "run", command="a measurement", say=print):
    print("held", flush=True)
    time.sleep(600)
"""
_KINDS: Final[dict[str, Callable[[_Nights, Path], None]]] = {
    "plain": _Nights.plain,
    "own": _Nights.own,
    "links": _Nights.links,
    "linked": _Nights.linked,
    "nested": _Nights.nested,
    "running": _Nights.running,
    "torn_lease": _Nights.torn_lease,
    "torn": _Nights.torn,
    "baseline": _Nights.baseline,
}


def nights(place: Place, _: Undisturbed, draw: random.Random) -> str:
    """Kills a prune of drawn nights again and again: all that must stay stays, the rest goes."""
    made = _Nights(place, draw)
    made.copy(made.elsewhere / "kept")
    kinds = ["plain", *draw.choices(list(_KINDS), k=draw.randint(3, 6))]
    try:
        for number, kind in enumerate(kinds):
            _KINDS[kind](made, made.nightly / f"{number}-{kind}")
        kept = _snapshot(place.results, made.going)
        killed = 0
        for _kill in range(draw.randint(1, _KILLS)):
            fault = {"kind": "write", "at": draw.randint(1, max(1, len(made.going)))}
            fault |= {"signal": int(draw.choice(_SIGNALS)), "group": False}
            killed += place.begin(fault)[0].code(checks.PATIENCE_S) not in (0, 1)
            _check(place, kept, made.going)
        checks.check_end(place.begin()[0], {1 if "torn" in kinds else 0})
        _check(place, kept, made.going)
        if left := sorted(map(str, filter(os.path.lexists, made.going))):
            raise NotHeld(f"{len(left)} files did not go, such as {left[0]}")
    except NotHeld as found:
        raise NotHeld(f"{', '.join(kinds)}: {found}") from None
    finally:
        for process in made.alive:
            process.kill()
            process.communicate()
    for folder in (made.nightly, place.results / "far"):
        shutil.rmtree(folder)
    counts = {kind: kinds.count(kind) for kind in dict.fromkeys(kinds)}
    return " ".join([f"killed={killed}", *(f"{kind}={n}" for kind, n in counts.items())])


def _snapshot(folder: Path, going: set[Path]) -> dict[Path, str]:
    """Returns what must stay as it is: files by their digest, links by where they lead."""
    found = {}
    for path in folder.rglob("*"):
        if path.is_symlink():
            found[path] = str(path.readlink())
        elif path.is_file() and path not in going and not _beats(path):
            found[path] = hashlib.sha256(path.read_bytes()).hexdigest()
    return found


def _beats(path: Path) -> bool:
    """Returns whether whoever holds a lease writes a file again and again."""
    return path.parent.name == "leases" and "99" not in path.name


def _check(place: Place, kept: dict[Path, str], going: set[Path]) -> None:
    """Checks that all that must stay is there, and as it was."""
    now = _snapshot(place.results, going)
    lost = [path for path, digest in kept.items() if now.get(path) != digest]
    if lost:
        names = ", ".join(str(path.relative_to(place.results)) for path in lost[:6])
        raise NotHeld(f"{len(lost)} files that must stay are lost: {names}")
