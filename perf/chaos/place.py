"""Place of a trial: the folder, the environment and the commands of one scenario."""

import fcntl
import json
import os
import shutil
import socket
import sys
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final

from perf.chaos.processes import Command, end_all, start
from perf.chaos.results import results
from perf.chaos.scenarios import SCENARIOS, SLOW_RELEASES, Scenario

ROOT: Final = Path(__file__).parents[2]
MODULE: Final = "orbax_bench_core.cli"
HURRY: Final = 10.0
"""Ratio by which leases beat faster than they do for users: 60 s of patience are 6."""

_INSIDE: Final = Path(__file__).parent / "inside"
_UNSET: Final = ("XLA_FLAGS", "JAX_ENABLE_X64", "ORBAX_BENCH_TOKEN", "PYTHONDONTWRITEBYTECODE")
_PATIENCE_S: Final = 240.0


class NotHeld(AssertionError):
    """Something else was seen than should be."""


class Place:
    """The folder of a trial.

    Attributes:
        folder: The folder; all that processes write lies below it.
        scenario: What is run in it.
        results: Folder of what the commands leave.
        temporary: Folder for what is temporary, which must be empty in the end.
    """

    def __init__(self, folder: Path, scenario: Scenario, wheels: Path) -> None:
        """Makes the folder; wheels have the same path in every trial, for it is in ids."""
        self.folder = folder.resolve()
        self.scenario = scenario
        self.results = self.folder / "place"
        self.temporary = self.folder / "tmp"
        self._wheels = wheels.resolve()
        for made in (self.results, self.temporary, self._wheels):
            made.mkdir(parents=True, exist_ok=True)
        (self.folder / "suite.yaml").write_text(scenario.suite)
        for version in scenario.wheels:
            (self._wheels / f"planted-{version}-py3-none-any.whl").touch()

    def begin(
        self,
        fault: Mapping[str, Any] | None = None,
        *,
        variables: Mapping[str, str] | None = None,
        everywhere: bool = False,
    ) -> list[Command]:
        """Starts the command, once on each host.

        Args:
            fault: What happens inside the process of the command on the first of the hosts.
            variables: Environment variables of this time.
            everywhere: Whether the fault is in every process.
        """
        told: dict[str, Any] = {"under": f"{self.folder}/place", "hurry": HURRY}
        told |= {"module": MODULE, "everywhere": everywhere}
        if not self.scenario.real:
            told |= {"worker": "perf.chaos.fake_worker", "slow": SLOW_RELEASES}
            told |= {"lock": str(self.folder / "lock")}
        environment = {
            **{name: text for name, text in os.environ.items() if name not in _UNSET},
            "PYTHONPATH": os.pathsep.join([str(_INSIDE), str(ROOT)]),
            "TMPDIR": str(self.temporary),
            "COLUMNS": "200",
            **(variables or {}),
        }
        if self.scenario.hosts > 1:
            environment["JAX_COORDINATOR_ADDRESS"] = _free_address()
            environment["JAX_NUM_PROCESSES"] = str(self.scenario.hosts)
        words = [str(self._wheels) if word == "wheels" else word for word in self.scenario.words]
        begun = []
        for rank in range(self.scenario.hosts):
            number = len(list(self.folder.glob("said_*.txt")))
            output = self.folder / f"said_{number}_host_{rank}.txt"
            own = told | {"heard": f"{output}.heard"}
            if fault is not None and not rank:
                own["fault"] = dict(fault)
            environment |= {"CHAOS": json.dumps(own)}
            if self.scenario.hosts > 1:
                environment["JAX_PROCESS_ID"] = str(rank)
            command = [sys.executable, "-m", MODULE, *words]
            begun.append(start(command, mark=self.folder, environment=environment, output=output))
        return begun

    def finish(self) -> None:
        """Runs the command again, to its end.

        Raises:
            NotHeld: It ends in another way than undisturbed.
        """
        commands = self.begin()
        for command in commands:
            code = command.code(_PATIENCE_S)
            if code != self.scenario.code:
                raise NotHeld(f"run again: {ended_with(command, code)}")

    def found(self) -> dict[str, Any]:
        """Returns what the commands have left."""
        return results(self.results, seconds=not self.scenario.real)

    def end(self) -> None:
        """Kills whatever runs here."""
        end_all(self.folder)

    def remove(self) -> None:
        """Deletes the folder."""
        shutil.rmtree(self.folder, ignore_errors=True)


class Undisturbed:
    """Leavings of a scenario that nothing disturbs, kept for all trials.

    Attributes:
        found: Its results.
        seconds: How long it takes.
        events: How often it touches files below its folder.
        place: Folder of what it has left.
    """

    def __init__(self, state: Path, scenario: Scenario) -> None:
        """Runs the scenario once, unless that was done since the code has changed."""
        self._state = state
        self._folder = state / "undisturbed" / f"{scenario.name}_{_version()}"
        self._known = self._folder / "known.json"
        self._folder.parent.mkdir(parents=True, exist_ok=True)
        with self._folder.with_suffix(".lock").open("w") as lock:
            fcntl.flock(lock, fcntl.LOCK_EX)  # two runners may share the trials
            if not self._known.exists():
                self._make(scenario)
        known = json.loads(self._known.read_text())
        self.found: dict[str, Any] = known["found"]
        self.seconds: float = known["seconds"]
        self.events: int = known["events"]
        self.place = self._folder / "place"

    def _make(self, scenario: Scenario) -> None:
        shutil.rmtree(self._folder, ignore_errors=True)
        place = prepared(self._folder, scenario, self._state)
        count = place.folder / "events"
        began = time.monotonic()
        commands = place.begin({"count": str(count)})
        codes = [command.code(_PATIENCE_S) for command in commands]
        took = time.monotonic() - began
        if codes != [scenario.code] * scenario.hosts:
            said = "\n".join(command.said for command in commands)
            raise NotHeld(f"undisturbed it ends with {codes}:\n{said}")
        known = {"found": place.found(), "seconds": took, "events": int(count.read_text())}
        self._known.write_text(json.dumps(known))


def prepared(folder: Path, scenario: Scenario, state: Path) -> Place:
    """Returns a place for a scenario, with what it reads."""
    place = Place(folder, scenario, state / "wheels")
    if scenario.before:
        before = Undisturbed(state, SCENARIOS[scenario.before])
        shutil.copytree(before.place, place.results, dirs_exist_ok=True)
    return place


def _version() -> str:
    """Returns what changes whenever our code does."""
    folders = [ROOT / name for name in ("orbax_bench_core", "pipelines", "components")]
    folders += [ROOT / "tests" / "support", Path(__file__).parent]
    newest = max(path.stat().st_mtime_ns for folder in folders for path in folder.rglob("*.py"))
    return f"{newest:x}"


def _free_address() -> str:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return f"127.0.0.1:{probe.getsockname()[1]}"


def ended_with(command: Command, code: int | None) -> str:
    """Returns the exit code and the last lines of a command in words."""
    return f"exit code {code}: {' | '.join(command.said.strip().splitlines()[-4:])}"
