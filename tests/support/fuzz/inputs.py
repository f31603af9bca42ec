"""Inputs of every door, drawn from valid ones."""

import functools
import json
from typing import Any, Final

import yaml
from hypothesis import strategies as st

from tests.support.component_inputs import INPUTS as COMPONENTS
from tests.support.component_inputs import placed
from tests.support.fuzz.doors import INPUTS, Given, Place
from tests.support.fuzz.mutations import NASTY, as_json, torn, written

_LONGEST_SUITE: Final = 12_000
_STEPS: Final = ("plan_sweep", "plan_save", "enforce_verdict", "rules", "overrides")
_QUIET: Final = (
    "expand",
    "list",
    "compare",
    "report",
    "best",
    "history",
    "site",
    "lineage",
    "plan",
    "inspect",
    "sharding",
    "goodput",
    "diagnose",
    "migrate",
    "baseline list",
    "baseline show",
    "step plan-save",
    "step enforce-verdict",
    "step best",
    "step study-async",
    "step compare-baseline",
    "pipeline list",
)
"""Commands that measure nothing and reach nothing."""
_WORDS: Final = [
    str(one)[:1_500].replace("\ud800", "\udcff")  # what a byte that is no text becomes
    for one in NASTY
    if isinstance(one, str | float) or (isinstance(one, int) and one < 10**300)
    if str(one)[:1] not in {"/", "~"}
]
"""Words of a command line, without places outside the folder of the trial."""


_FOLDERS: Final = ("examples", "v3", "plain", "paired", "study", "registry", "captured", "sharding")
"""Folders of a place whose files are what inputs are made of."""


def given(place: Place) -> st.SearchStrategy[Given]:
    """Returns a strategy of inputs: suites most often, then what is read from storage."""
    for path in place.files(*_FOLDERS):
        _text(path)  # a command may be told to write its page over any file
    return st.one_of(
        _suites(place),
        _suites(place),
        _files(place, "run", "v3/plain", "v3/paired", "plain/records", "paired/records", "study"),
        _files(place, "run", "plain", "paired", only=("run.json",)),
        _files(place, "registry", "registry", "captured"),
        _files(place, "sharding", "sharding"),
        _commands(place),
        _arguments(),
        _steps(),
        _components(),
    )


@functools.cache
def _text(path: Any) -> str:
    return str(path.read_text())


@functools.cache
def _content(path: Any) -> tuple[str, Any]:
    text = _text(path)
    data = yaml.safe_load(text) if path.suffix == ".yaml" else _json(text)
    return text, data


def _json(text: str) -> Any:
    try:
        return json.loads(text)
    except ValueError:  # a file of lines
        return [json.loads(line) for line in text.splitlines()]


@st.composite
def _suites(draw: st.DrawFn, place: Place) -> Given:
    files = [path for path in place.files("examples", "v3") if _is_suite(path)]
    path = draw(st.sampled_from(files))
    content = draw(written(*_content(path)))
    return Given("suite", f"{path.parent.relative_to(place.folder)}/given.yaml", content)


@functools.cache
def _is_suite(path: Any) -> bool:
    if path.suffix != ".yaml" or path.stat().st_size > _LONGEST_SUITE:
        return False
    return "\nsuite_name:" in f"\n{_text(path)}"


@st.composite
def _files(
    draw: st.DrawFn, place: Place, door: str, *folders: str, only: tuple[str, ...] = ()
) -> Given:
    files = [path for path in place.files(*folders) if not only or path.name in only]
    if door == "run":
        files = [path for path in files if path.name == "run.json" or "records" in path.parts]
    path = draw(st.sampled_from(files))
    content = draw(written(*_content(path)))
    return Given(door, str(path.relative_to(place.folder)), content)


_READ_BY: Final = {
    "plain": ("report", "compare", "best", "lineage", "history", "recovery", "site", "aggregate"),
    "paired": ("compare", "compare-json", "report", "lineage"),
    "study": ("study-async",),
    "registry": ("baseline-list", "baseline-show", "compare-v3"),
    "captured": ("captured-list", "captured-show", "compare-stored"),
    "v3": ("compare", "report", "lineage"),
    "examples": ("expand", "expand-json", "plan", "migrate"),
}


@st.composite
def _commands(draw: st.DrawFn, place: Place) -> Given:
    folder = draw(st.sampled_from(("examples", "inputs", *_READ_BY)))
    files = place.files(folder)
    if folder == "examples":
        files = [path for path in files if _is_suite(path)]
    path = draw(st.sampled_from(files))
    by_name = {
        "spec.yaml": ("plan",),
        "log.jsonl": ("log",),
        "lacking.json": ("lacking",),
        "verdicts.json": ("enforce",),
    }
    readers = by_name.get(path.name, _READ_BY.get(folder, ("plan",)))
    content = draw(written(*_content(path)))
    return Given(
        "command", f"{draw(st.sampled_from(readers))} {path.relative_to(place.folder)}", content
    )


@st.composite
def _steps(draw: st.DrawFn) -> Given:
    """Draws inputs of the kinds that an engine checks: text stays text, a number a number."""
    name = draw(st.sampled_from(_STEPS))
    inputs = json.loads(INPUTS[f"{name}.json"])
    for key in draw(
        st.lists(
            st.sampled_from(sorted(inputs) if isinstance(inputs, dict) else range(len(inputs))),
            min_size=1,
            max_size=2,
        )
    ):
        inputs[key] = draw(_like(inputs[key]))
    return Given("step", name, as_json(inputs))


_MEASURING: Final = frozenset({"generate_checkpoint", "recovery", "soak"})
"""Components that measure, or write a checkpoint, unless they refuse what they are given."""
_TEXTS: Final = frozenset({"arms", "goal", "launcher", "mesh", "options", "point", "suite", "tpu"})
"""Inputs of components that name no place."""


@st.composite
def _components(draw: st.DrawFn) -> Given:
    name = draw(st.sampled_from(sorted(COMPONENTS.keys() - _MEASURING)))
    inputs = {key: placed(value, ".") for key, value in COMPONENTS[name].items()}
    for key in draw(st.lists(st.sampled_from(sorted(inputs)), min_size=1, max_size=2)):
        value = inputs[key]
        if isinstance(value, float):
            inputs[key] = draw(st.floats(width=32))
        elif isinstance(value, str) and key not in _TEXTS:
            inputs[key] = draw(st.sampled_from((*_GOOD, *_WORDS)))  # no place outside the folder
        elif isinstance(value, list):
            inputs[key] = draw(st.lists(st.sampled_from((*_GOOD, *_WORDS)), max_size=4))
        else:
            inputs[key] = draw(_like(value))
    return Given("component", name, as_json(inputs))


def _like(value: Any) -> st.SearchStrategy[Any]:
    words = [word for word in NASTY if isinstance(word, str)]
    if isinstance(value, bool):
        return st.booleans()
    if isinstance(value, int):
        return st.sampled_from((-1, 0, 1, 3, 10**6, 2**40, 10**30))
    if isinstance(value, list):
        return st.lists(st.sampled_from(words), max_size=4)
    if value is None:
        return st.sampled_from(words)
    return st.one_of(torn(value), torn(value), st.sampled_from(words))


@functools.cache
def _options() -> dict[str, tuple[list[str], int]]:
    """Returns the flags and the number of arguments of every quiet command."""
    import typer

    from orbax_bench_core.cli.main import app

    found = {}
    root: Any = typer.main.get_command(app)
    for name in _QUIET:
        command = root
        for word in name.split():
            command = command.get_command(None, word)
        flags = [flag for one in command.params for flag in one.opts if flag.startswith("-")]
        arguments = [one for one in command.params if one.param_type_name == "argument"]
        found[name] = (flags, len(arguments))
    return found


_GOOD: Final = (
    "examples/tour.yaml",
    "plain",
    "paired",
    "registry",
    "v3/plain",
    "inputs/spec.yaml",
    "save_restore",
    "x=4",
    "margin=0.3",
    "num_repeats=2",
    "1",
)


@st.composite
def _arguments(draw: st.DrawFn) -> Given:
    name = draw(st.sampled_from(_QUIET))
    flags, most = _options()[name]
    value = st.one_of(st.sampled_from(_GOOD), st.sampled_from(_GOOD), st.sampled_from(_WORDS))
    words = name.split() + [draw(value) for _ in range(draw(st.integers(0, most + 1)))]
    for flag in draw(st.lists(st.sampled_from([*flags, "--unknown"]), max_size=3)):
        words += [flag, draw(value)] if draw(st.booleans()) else [flag]
    return Given("arguments", "", json.dumps(words).encode())
