"""Every command line of ours that is started elsewhere, against the parser that meets it there.

A DAG, a manifest or a launcher starts it in a pod or on a host, minutes later; here nothing runs.
"""

import importlib
import re
import sys
import types
import typing
from pathlib import Path
from unittest import mock

import pytest
import typer
import yaml

from orbax_bench_core.cli.run import Measures
from orbax_bench_core.cli.step_commands import app as steps
from orbax_bench_core.launchers import PLACES, Launch, parse_slice, place_settings
from tests.support.command_lines import command_lines, parse
from tests.support.processes import ROOT

STEPS = typer.main.get_command(steps).commands
FILES = (
    *("examples/argo/sweep.yaml", "examples/ci/kubernetes-cronjob.yaml"),
    *("examples/ci/github-actions.yaml", "images/warm_up.sh"),
)
SETTINGS = {
    "pathways": ["pathways_dir=gs://b/p"],
    "vertex": ["project=p-1", "location=us-central1"],
    "xpk": ["cluster=c"],
    "tpu-vm": ["zone=z", "tpu_name=vm"],
}
WITHOUT_SLICES = ("processes", "ray")


class Task:
    """A task of Airflow: keeps its words, and returns what a step of that name does."""

    kept: list[list[str]] = []

    def __init__(self, *, arguments, task_id="", **_):
        self.task_id, self.dag = task_id, mock.MagicMock()
        self.kept.append(arguments)
        self.output = ["p1 p2", "p3"] if arguments[0] == "plan-sweep" else "PASS"

    @classmethod
    def partial(cls, **_):
        return types.SimpleNamespace(
            expand=lambda arguments: [cls(arguments=words) for words in arguments][-1]
        )

    def __rshift__(self, other):
        return other

    __rrshift__ = __rshift__

    def as_teardown(self):
        return self


@pytest.fixture
def groups(monkeypatch):
    """The task groups, and what stands for Airflow: its names, and operators that are `Task`."""
    sdk = mock.MagicMock(task=lambda **_: lambda function: function, BaseOperator=object)
    pods = mock.MagicMock(KubernetesPodOperator=object)
    operators = "airflow.providers.cncf.kubernetes.operators.pod"
    known = {"airflow.sdk": sdk, "airflow.sdk.exceptions": mock.MagicMock(), operators: pods}
    conf = mock.MagicMock(getint=lambda *_, fallback: fallback)
    known["airflow.configuration"] = mock.MagicMock(conf=conf)
    for name, module in known.items():
        monkeypatch.setitem(sys.modules, name, module)
    groups = importlib.import_module("orbax_bench_airflow")
    for place in (groups.Local, groups.Kubernetes):
        monkeypatch.setattr(place, "operator", lambda self: (Task, {}))
    monkeypatch.setattr(Task, "kept", [])
    yield groups
    for name in [name for name in sys.modules if name.startswith("orbax_bench_airflow")]:
        del sys.modules[name]


@pytest.mark.parametrize("name", ["Local", "Kubernetes"])
def test_airflow(groups, name):
    place = groups.Local() if name == "Local" else groups.Kubernetes(image="bench@sha256:0")
    groups.sweep("gs://b/suite.yaml", "gs://b/run", place=place)
    groups.regression("gs://b/suite.yaml", "gs://b/run", place=place)
    groups.regression(
        *("gs://b/suite.yaml", "gs://b/run"),
        place=place,
        arms="{candidate: {}}",
        baseline="gs://b/registry/id",
        registry="gs://b/registry",
        allow_inconclusive=True,
    )
    started = {parse(["step", *words]).rpartition(" ")[2] for words in Task.kept}
    assert started >= {
        "plan-sweep",
        "run-sweep-point",
        "enforce-verdict",
        "publish-baseline",
        "finish",
    }


def test_airflow_plans_no_more_tasks_than_it_maps(groups, monkeypatch):
    settings = {("core", "max_map_length"): 7}
    conf = types.SimpleNamespace(getint=lambda *key, fallback: settings.get(key, fallback))
    monkeypatch.setattr(sys.modules["orbax_bench_airflow.groups"], "conf", conf)
    groups.sweep("gs://b/suite.yaml", "gs://b/run", place=groups.Local())
    [plan] = [words for words in Task.kept if words[0] == "plan-sweep"]
    assert plan[plan.index("--most-steps") + 1] == "7"


@pytest.mark.parametrize("path", FILES)
def test_file(path):
    text = (ROOT / path).read_text()
    found = list(command_lines(yaml.safe_load(text) if path.endswith(".yaml") else text))
    assert len(found) >= text.count("orbax-bench, step,")
    assert found
    for words in found:
        parse(words)


def test_lines_of_cron_in_the_docs():
    pages = [*(ROOT / "docs").glob("*.md"), *(ROOT / "docs" / "tutorials").glob("*.md")]
    lines = re.findall(
        r"^\d+ \d+ \S+ \* \*.*orbax-bench.*$", "\n".join(map(Path.read_text, pages)), re.M
    )
    started = [parse(words) for line in lines for words in command_lines(line.partition("#")[0])]
    assert {each.rpartition(" ")[2] for each in started} == {"watch", "night", "ab", "prune"}


@pytest.mark.parametrize("place", PLACES)
def test_hosts_of_a_launcher(place):
    slices = place not in WITHOUT_SLICES
    in_image = slices and place != "tpu-vm"
    words = ("step", "run-sweep-point", "p1", "-o", "gs://b/run", "--expect", "tpu:v5e:32")
    launch = Launch(
        name="ob-run",
        command=("orbax-bench", *words),
        output_directory="gs://b/run",
        hosts=8,
        image=f"bench@sha256:{'a1' * 32}" if in_image else None,
        tpu=parse_slice("v5e:4x8") if slices else None,
    )
    launcher = PLACES[place].launcher(launch, place_settings(place, SETTINGS.get(place, [])))
    shown = launcher.shown()
    manifest = (
        list(yaml.safe_load_all(shown)) if place in ("jobset", "pathways", "vertex") else shown
    )
    assert set(map(tuple, command_lines(manifest))) == {words}


@pytest.mark.parametrize("command", typing.get_args(Measures))
def test_launch_starts(command, orbax_bench, write_suite, tmp_path):
    words = ("launch", write_suite(), "-o", tmp_path / "run", "--on", "processes", "--dry-run")
    more = "-- --package jax --good 0.9.0 --bad 0.9.1" if command == "bisect" else ""
    done = orbax_bench(*words, "--command", command, *more.split())
    assert done.code == 0, done.err
    [line] = command_lines(done.out)
    assert parse(line) == f"orbax-bench {command}"


@pytest.mark.parametrize(
    ("command", "given"),
    [
        ("bisect", "--override num_repeats=1"),
        ("calibrate", "--override num_repeats=1"),
        ("run", "-- --all"),
    ],
)
def test_launch_refuses_what_every_host_would_refuse(
    command, given, orbax_bench, write_suite, tmp_path
):
    words = (
        "launch",
        write_suite(),
        "-o",
        tmp_path / "run",
        "--on",
        "processes",
        "--command",
        command,
    )
    done = orbax_bench(*words, *given.split())
    assert (done.code, done.out) == (2, "")
    assert f"Usage: orbax-bench {command} " in done.err
    assert "No such option: --" in done.err
    assert not (tmp_path / "run").exists()


@pytest.mark.parametrize("step", STEPS)
def test_an_engine_gets_the_result_and_the_outputs_of_every_step_in_the_same_way(step):
    taken = {option for parameter in STEPS[step].params for option in parameter.opts}
    assert {"--result", "--outputs"} <= taken
