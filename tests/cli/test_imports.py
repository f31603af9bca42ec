"""What does not run a worker is light: it imports neither JAX nor Kubeflow nor Orbax."""

import pkgutil
import subprocess
import sys

import pytest

from orbax_bench_core import records

HEAVY = {"jax", "jaxlib", "kfp", "orbax", "tensorstore"}
LOADED = """
import sys
sys.argv = ["orbax-bench", *sys.argv[1:]]
try:
    exec(sys.stdin.read())
except SystemExit:
    pass
print(*sorted({name.partition(".")[0] for name in sys.modules}))
"""


def heavy_modules_after(code, *arguments):
    process = subprocess.run(
        [sys.executable, "-c", LOADED, *arguments],
        input=code,
        capture_output=True,
        text=True,
        check=True,
    )
    return HEAVY & set(process.stdout.splitlines()[-1].split())


@pytest.mark.parametrize(
    "modules",
    [
        pytest.param(["orbax_bench_core.cli.main"], id="cli"),
        pytest.param(["orbax_bench_core.execute.runner"], id="orchestrator"),
        pytest.param(["orbax_bench_core.sweep.isolate"], id="sweep"),
        pytest.param(["orbax_bench_core.steps.reporting"], id="report"),
        pytest.param(
            [
                found.name
                for found in pkgutil.iter_modules(records.__path__, f"{records.__name__}.")
            ],
            id="results",
        ),
    ],
)
def test_a_module_imports_nothing_heavy(modules):
    assert heavy_modules_after(f"import {', '.join(modules)}") == set()


@pytest.mark.parametrize(
    "arguments", [["--help"], ["run", "--help"], ["list"]], ids=lambda arguments: arguments[0]
)
def test_a_command_that_measures_nothing_imports_nothing_heavy(arguments):
    code = "from orbax_bench_core.cli.main import main; main()"
    assert heavy_modules_after(code, *arguments) == set()


def test_the_check_sees_what_is_imported():
    assert heavy_modules_after("import jax") >= {"jax", "jaxlib"}
