"""Light commands: without a worker, neither JAX nor Kubeflow nor Orbax is imported."""

import json
import os
import pkgutil
import subprocess
import sys

import pytest

from orbax_bench_core import records

pytestmark = pytest.mark.slow

HEAVY = {"jax", "jaxlib", "kfp", "orbax", "tensorstore"}
MODULES = {
    "cli": ["orbax_bench_core.cli.main"],
    "orchestrator": ["orbax_bench_core.execute.schedule"],
    "sweep": ["orbax_bench_core.sweep.expansion"],
    "plan": ["orbax_bench_core.plan"],
    "report": ["orbax_bench_core.steps.reporting", "orbax_bench_core.steps.reporting"],
    "results": [
        found.name for found in pkgutil.iter_modules(records.__path__, f"{records.__name__}.")
    ],
}
COMMANDS = {"--help": ["--help"], "run": ["run", "--help"], "list": ["list"]}
CONTROL = "import jax"
# One process for all: a start of Python takes longer than what is looked at.
IMPORTING = """
import json, sys
loaded, before = {}, set()
for name, arguments, code in json.load(sys.stdin):
    sys.argv = ["orbax-bench", *arguments]
    try:
        exec(code)
    except SystemExit:
        pass
    loaded[name] = sorted({module.partition(".")[0] for module in sys.modules} - before)
    before |= set(loaded[name])
print(json.dumps(loaded))
"""


@pytest.fixture(scope="module")
def heavy_modules():
    """The heavy modules that were imported first by each of these, one after the other."""
    main = "from orbax_bench_core.cli.main import main; main()"
    steps = [(name, [], f"import {', '.join(modules)}") for name, modules in MODULES.items()]
    steps += [(f"orbax-bench {name}", given, main) for name, given in COMMANDS.items()]
    steps.append((CONTROL, [], CONTROL))
    process = subprocess.run(
        [sys.executable, "-c", IMPORTING],
        input=json.dumps(steps),
        capture_output=True,
        text=True,
        check=True,
    )
    found = json.loads(process.stdout.splitlines()[-1])
    return {name: HEAVY & set(modules) for name, modules in found.items()}


@pytest.mark.parametrize("name", MODULES)
def test_a_module_imports_nothing_heavy(heavy_modules, name):
    assert heavy_modules[name] == set()


@pytest.mark.parametrize("name", COMMANDS)
def test_a_command_that_measures_nothing_imports_nothing_heavy(heavy_modules, name):
    assert heavy_modules[f"orbax-bench {name}"] == set()


def test_the_check_sees_what_is_imported(heavy_modules):
    assert heavy_modules[CONTROL] >= {"jax", "jaxlib"}


def test_help_reads_no_suite():
    code = (
        "import sys; sys.argv = ['orbax-bench', '--help']\n"
        "from orbax_bench_core.cli.main import main\n"
        "try: main()\n"
        "except SystemExit: print(*{'pydantic', 'yaml', 'rich.console'} & sys.modules.keys())"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.splitlines()[-1].split() == []


RESULTS = {"analysis", "baselines", "gate", "launchers", "limits", "lineage"}
FIRST_WORKER = """
import os, subprocess, sys

begin = subprocess.Popen.__init__

def start(self, command, **given):
    if "orbax_bench_core.worker" not in command:
        return begin(self, command, **given)
    rooms = {name.split(".")[1] for name in sys.modules if name.startswith("orbax_bench_core.")}
    print(*rooms, flush=True)
    os._exit(0)

subprocess.Popen.__init__ = start
from orbax_bench_core.cli.main import main
main()
"""


def test_a_worker_starts_before_what_shows_results_is_imported(tmp_path):
    suite = tmp_path / "suite.yaml"
    suite.write_text(
        "suite_name: s\ncheckpoint_config: {spec: {w: {dtype: int8, shape: [8]}}}\n"
        "benchmarks: [{generator: save_restore, options: {}}]\n"
    )
    environment = {**os.environ, "XDG_CACHE_HOME": str(tmp_path)}
    done = subprocess.run(
        [sys.executable, "-c", FIRST_WORKER, "run", str(suite), "-o", str(tmp_path / "out")],
        capture_output=True,
        text=True,
        check=True,
        env=environment,
    )
    rooms = set(done.stdout.splitlines()[-1].split())
    assert rooms >= {"config", "sweep", "execute", "records"}
    assert not rooms & RESULTS
