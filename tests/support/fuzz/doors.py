"""Doors that take what others wrote, and what each must do with anything."""

from __future__ import annotations

import contextlib
import dataclasses
import functools
import importlib
import json
import os
import shutil
import signal
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, Final

import yaml

from orbax_bench_core.config import LoadedSuite
from orbax_bench_core.errors import UserError, printable
from tests.golden import made
from tests.golden.support import Outcome, called, orbax_bench

ROOT: Final = Path(__file__).parents[3]
MOST_S: Final = 5.0
"""CPU seconds that one input may take; of the clock a busy machine has more."""
MOST_CHARACTERS: Final = 2_100
"""Characters of a message."""


@dataclasses.dataclass(frozen=True)
class Given:
    """One input.

    Attributes:
        door: Name of the door, of `DOORS`.
        where: The file that it stands in, or the command that it is given to.
        content: Its bytes.
    """

    door: str
    where: str
    content: bytes

    def dump(self) -> str:
        """Returns it as a file of the corpus."""
        text = self.content.decode(errors="surrogateescape")
        return json.dumps({"door": self.door, "where": self.where, "content": text}, indent=1)

    @staticmethod
    def load(text: str) -> Given:
        """Returns what `dump` wrote."""
        found = json.loads(text)
        content = found.pop("content").encode(errors="surrogateescape")
        return Given(**found, content=content)


class Broken(AssertionError):
    """An input did what none may."""


class TooSlow(BaseException):
    """An input takes too long; nothing that catches errors catches it."""


class Place:
    """A folder with valid files of every kind.

    Attributes:
        folder: The folder.
    """

    def __init__(self, folder: Path) -> None:
        """Writes them into `folder`."""
        import jax

        jax.devices()  # once, so that it counts for no input
        self.folder = folder
        folder.mkdir()
        data = ROOT / "tests" / "data"
        shutil.copytree(data / "run_directories" / "v3", folder / "v3")
        made.plain_run(folder / "plain")
        made.paired_run(folder / "paired")
        made.study_run(folder / "study")
        for command in (
            ("compare", folder / "paired"),
            ("report", folder / "plain"),
            ("baseline", "capture", folder / "captured", folder / "paired", "--promote", "--force"),
            (
                "baseline",
                "capture",
                folder / "registry",
                folder / "v3/plain",
                "--promote",
                "--label",
                "golden",
            ),
        ):
            assert orbax_bench(*command).code in (0, 1, 3), command
        shutil.copytree(ROOT / "examples", folder / "examples")
        (folder / "sharding").mkdir()
        (folder / "sharding" / "sharding.json").write_text(json.dumps(SHARDING))
        (folder / "inputs").mkdir()
        for name, text in INPUTS.items():
            (folder / "inputs" / name).write_text(text)

    @functools.cache  # noqa: B019 - one place per trial
    def files(self, *places: str) -> list[Path]:
        """Returns the files below some places that are data, sorted."""
        found = (
            path
            for place in places
            for pattern in ("*.json", "*.yaml", "*.jsonl")
            for path in (self.folder / place).rglob(pattern)
        )
        return sorted(path for path in found if "airflow" not in path.parts)

    @contextlib.contextmanager
    def holding(self, given: Given) -> Iterator[Path]:
        """Has an input stand at its place; what stood there comes back."""
        path = self.folder / given.where
        before = path.read_bytes() if path.exists() else None
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(given.content)
        try:
            yield path
        finally:
            if before is None:
                path.unlink(missing_ok=True)
            else:
                path.write_bytes(before)


SHARDING: Final = {
    name: {
        "shape": [8, 4],
        "dtype": "float32",
        "sharding": {"mesh": {"shape": [4, 2], "axes": ["x", "y"]}, "spec": spec},
    }
    for name, spec in {"a": ["x", None], "b.c": [["x", "y"]], "d": [None, "y"]}.items()
}
INPUTS: Final = {
    "spec.yaml": "w: {dtype: bfloat16, shape: [64, 64], sharding: [x]}\nstep: int\n",
    "log.jsonl": "".join(
        json.dumps({"job_name": "j", key: 1.0 * time, "step_count": step}) + "\n"
        for time, (key, step) in enumerate(
            [("job_start_time", 0), *(("step_start_time", step) for step in range(5))]
        )
    ),
    "lacking.json": '["point a: repeat 1 is missing", "point b"]',
    "plan_sweep.json": json.dumps(
        {
            "suite": made.PLAIN,
            "arms": "{candidate: {options: {use_ocdbt: false}}}",
            "processes": 1,
            "points_per_step": 2,
        }
    ),
    "plan_save.json": json.dumps(
        {
            "source": "llama-8b",
            "mesh": "data=4,fsdp=8",
            "devices_per_host": 4,
            "onto": "fsdp=16",
            "options": "{use_ocdbt: false, chunk_byte_size: 1048576}",
        }
    ),
    "enforce_verdict.json": json.dumps({"verdict": "PASS", "lacking": [], "verdicts": None}),
    "point.json": json.dumps({"benchmark": "save_restore", "options": {}, "checkpoint": {}}),
    "rules.json": json.dumps(["margin=0.3", "metrics.save.margin=0.2", "looks=[4, 10]"]),
    "overrides.json": json.dumps(["num_repeats=2", "benchmarks[*].options.use_ocdbt=[true]"]),
}


def attempt(given: Given, place: Place) -> bool:
    """Hands an input to its door.

    Returns:
        Whether it was accepted; otherwise it was refused by a message.

    Raises:
        Broken: It leaves by a traceback, takes too long, says too much or is wrongly accepted.
    """

    def late(*_: object) -> None:
        raise TooSlow

    before = [(number, signal.signal(number, late)) for number in (signal.SIGPROF, signal.SIGALRM)]
    here = Path.cwd()
    try:
        signal.setitimer(signal.ITIMER_PROF, MOST_S)
        signal.setitimer(signal.ITIMER_REAL, 12 * MOST_S)
        os.chdir(place.folder)
        accepted = DOORS[given.door](given, place)
    except UserError as error:
        _check_message(str(error))
        return False
    except TooSlow:
        raise Broken(f"{given.door} {given.where}: more than {MOST_S:g} s") from None
    except Broken:
        raise
    except Exception as error:
        raise Broken(
            f"{given.door} {given.where}: {type(error).__name__}: {error}"[:600]
        ) from error
    finally:
        signal.setitimer(signal.ITIMER_PROF, 0)
        signal.setitimer(signal.ITIMER_REAL, 0)
        os.chdir(here)
        for number, handler in before:
            signal.signal(number, handler)
    return accepted


def _check_message(text: str) -> None:
    if not text.strip():
        raise Broken("a message says nothing")
    if len(text) > MOST_CHARACTERS:
        raise Broken(f"a message of {len(text)} characters: {text[:200]}")
    if any((ord(one) < 32 and one not in "\n\t") or 0x7F <= ord(one) < 0xA0 for one in text):
        raise Broken(f"a message with control characters: {text[:200]!r}")


def _suite(given: Given, place: Place) -> bool:
    """A suite that is accepted has stable ids, and nothing against it in the published schema."""
    from orbax_bench_core.config import load_suite, parse_suite
    from orbax_bench_core.sweep import Expansion, entry_from_json, expand_here

    with place.holding(given) as path:
        try:
            loaded = load_suite(str(path))
        except UserError as error:
            if str(path) not in str(error) and "--override" not in str(error):
                raise Broken(f"a message names no place: {error}") from None
            raise
    if not _only_builtins(loaded):
        return True
    found = expand_here(loaded)
    if wrong := _against_schema(given.content):
        raise Broken(f"accepted, and the schema rejects {wrong}")
    ids = [entry.id for entry in found.points]
    if [entry_from_json(entry.model_dump_json()).id for entry in found.points] != ids:
        raise Broken("ids of points are others after dump and load")
    again = Expansion.model_validate_json(found.model_dump_json())
    if [entry.id for entry in again.points] != ids:
        raise Broken("ids of an expansion are others after dump and load")
    if parse_suite(loaded.text, str(path)).suite.identity != loaded.suite.identity:
        raise Broken("the identity of a suite is another when it is read again")
    if len(set(ids)) != len(ids):
        raise Broken("two points share an id")
    return True


def _only_builtins(loaded: LoadedSuite) -> bool:
    """Returns whether no class but ours would be imported."""
    from orbax_bench_core.sweep import BUILTINS

    arms = (loaded.suite.arm("baseline"), loaded.suite.arm("candidate"))
    named = [entry.generator for entry in loaded.suite.benchmarks]
    named += [arm.generator for arm in arms if arm.generator]
    return all(name in BUILTINS or "." not in name for name in named)


@functools.cache
def _validator() -> Any:
    import jsonschema

    from orbax_bench_core.suite_files import suite_schema

    return jsonschema.Draft202012Validator(suite_schema())


def _against_schema(content: bytes) -> str:
    """Returns the first place that the schema rejects; empty for none, and for what JSON lacks."""
    data = yaml.load(content.decode(), Loader=yaml.CSafeLoader)
    try:
        data = json.loads(json.dumps(data))
    except TypeError:
        return ""
    if "overrides" in data:  # they change the rest, which the schema does not know
        return ""
    return next((error.json_path for error in _validator().iter_errors(data)), "")


def _run(given: Given, place: Place) -> bool:
    """A run directory is read in full, and what is read is written as it was."""
    from orbax_bench_core.records import Record, Run, RunDirectory
    from orbax_bench_core.sweep import Pair

    with place.holding(given):
        run = Run(
            RunDirectory(str(place.folder / given.where.split("/records/")[0].split("/run.")[0]))
        )
        for record in run.records():
            text = record.model_dump_json()
            if Record.model_validate_json(text).model_dump_json() != text:
                raise Broken("a record is another after dump and load")
        run.table()
        run.operation_times()
        for entry in run.info.expansion.points:
            if isinstance(entry, Pair):
                run.paired(entry)
        return not run.strays()


def _command(given: Given, place: Place) -> bool:
    """A command that reads a file: its name stands first in `where`."""
    name, _, where = given.where.partition(" ")
    kept = Given(given.door, where, given.content)
    with place.holding(kept) as path:
        words = [word.format(file=path, run=_run_of(path)) for word in READERS[name]]
        return _check_outcome(words)


def _run_of(path: Path) -> Path:
    return next((one for one in path.parents if (one / "run.json").exists()), path.parent)


READERS: Final = {
    "expand": ("expand", "{file}"),
    "expand-json": ("expand", "{file}", "--json"),
    "compare": ("compare", "{run}"),
    "compare-stored": ("compare", "captured", "paired"),
    "compare-v3": ("compare", "registry", "v3/plain"),
    "compare-json": ("compare", "{run}", "--rule", "margin=0.3"),
    "report": ("report", "{run}"),
    "best": ("best", "{run}"),
    "lineage": ("lineage", "{run}"),
    "history": ("history", "{run}"),
    "recovery": ("recovery", "{run}"),
    "site": ("site", "{run}", "-o", "page"),
    "aggregate": ("step", "aggregate", "--output-directory", "{run}"),
    "study-async": ("step", "study-async", "--output-directory", "study"),
    "enforce": ("step", "enforce-verdict", "REGRESSION", "--verdicts", "{file}"),
    "lacking": ("step", "enforce-verdict", "--lacking", "{file}"),
    "baseline-list": ("baseline", "list", "registry"),
    "baseline-show": ("baseline", "show", "registry"),
    "captured-show": ("baseline", "show", "captured"),
    "captured-list": ("baseline", "list", "captured"),
    "plan": ("plan", "{file}", "--mesh", "x=4"),
    "migrate": ("migrate", "{file}"),
    "log": ("goodput", "--from-log", "{file}"),
}


def _check_outcome(words: list[str]) -> bool:
    outcome = _called(words)
    if outcome.code not in range(8):
        raise Broken(f"{words}: exit code {outcome.code}")
    if "Traceback" in outcome.err:
        raise Broken(f"{words}: {outcome.err[-300:]}")
    if outcome.code == 2:
        _check_message(outcome.err)
    if "\x1b[2J" in outcome.out + outcome.err:
        raise Broken(f"{words}: a terminal escape is printed")
    return outcome.code != 2


@functools.cache
def _orbax_bench() -> Any:
    import typer

    from orbax_bench_core.cli.main import app

    return typer.main.get_command(app)  # which takes longer than most commands


def _called(words: list[str]) -> Outcome:
    """Returns how a command ends, as its script calls it."""
    from orbax_bench_core.cli.main import run_command_line

    return called(lambda: run_command_line(_orbax_bench()), *words)


def _registry(given: Given, place: Place) -> bool:
    """A registry is read in full; what is promoted lies inside."""
    from orbax_bench_core.baselines import Registry, load_baseline

    with place.holding(given):
        folder = str(place.folder / given.where.split("/")[0])
        registry = Registry(folder)
        registry.captures()
        registry.promotions()
        load_baseline(folder)
        return True


def _sharding(given: Given, place: Place) -> bool:
    import jax

    from orbax_bench_core.state import StateError, read_sharding_file, sharding_targets

    with place.holding(given) as path:
        shapes = {"a": (8, 4), "b.c": (8, 4), "d": (8, 4)}
        try:
            sharding_targets(read_sharding_file(str(path)), shapes, jax.devices()[:8])
        except StateError as error:
            _check_message(str(error))
            return False
        return True


def _arguments(given: Given, place: Place) -> bool:
    words = [str(word) for word in json.loads(given.content)]
    if "\x00" in "".join(words):  # no command line can have it
        return False
    return _check_outcome(words)


def _step(given: Given, place: Place) -> bool:
    """A step of a pipeline, whose inputs are text and numbers that an engine hands in."""
    from orbax_bench_core import engine
    from orbax_bench_core.config import GateConfig, changed_gate, load_suite
    from orbax_bench_core.engine import NotPassed
    from orbax_bench_core.sweep import expand_here

    inputs: Any = json.loads(given.content)
    try:
        if given.where == "rules":
            changed_gate(GateConfig(), inputs)
        elif given.where == "overrides":
            expand_here(load_suite(str(place.folder / "examples" / "tour.yaml"), inputs))
        elif given.where == "plan_sweep":
            out = place.folder / "planned"
            shutil.rmtree(out, ignore_errors=True)
            engine.plan_sweep(output_directory=str(out), **inputs)
        else:
            getattr(engine, given.where)(**inputs)
    except NotPassed as refused:
        _check_message(printable(str(refused)))
        return False
    return True


def _component(given: Given, place: Place) -> bool:
    """A component of a pipeline, whose inputs an engine has checked for their kind alone."""
    from orbax_bench_components import testing
    from orbax_bench_core.engine import NotPassed, PointFailed

    module = importlib.import_module(f"orbax_bench_components.{given.where}")
    made = place.folder / "outputs"
    shutil.rmtree(made, ignore_errors=True)
    try:
        testing.call(getattr(module, given.where), made, **json.loads(given.content))
    except (NotPassed, PointFailed) as refused:
        _check_message(printable(str(refused)))
        return False
    return True


DOORS: Final[dict[str, Callable[[Given, Place], bool]]] = {
    "suite": _suite,
    "run": _run,
    "command": _command,
    "registry": _registry,
    "sharding": _sharding,
    "arguments": _arguments,
    "step": _step,
    "component": _component,
}
"""What takes an input, by name."""
