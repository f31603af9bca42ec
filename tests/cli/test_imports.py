"""What is imported when; what commands import in all, `tests/golden/test_text_public.py` has."""

import os
import subprocess
import sys

import pytest

pytestmark = pytest.mark.slow


def test_help_reads_no_suite():
    code = (
        "import sys; sys.argv = ['orbax-bench', '--help']\n"
        "from orbax_bench_core.cli.main import main\n"
        "try: main()\n"
        "except SystemExit: print(*{'pydantic', 'yaml', 'rich.console'} & sys.modules.keys())"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.splitlines()[-1].split() == []


ALONE = ("--no-limits", "--no-lock")
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
    words = ("run", str(suite), "-o", str(tmp_path / "out"), *ALONE)
    done = subprocess.run(
        [sys.executable, "-c", FIRST_WORKER, *words],
        capture_output=True,
        text=True,
        check=True,
        env=environment,
    )
    rooms = set(done.stdout.splitlines()[-1].split())
    assert rooms >= {"config", "sweep", "execute", "records"}
    assert not rooms & RESULTS


WHOLE_RUN = """
import sys
from orbax_bench_core.cli.main import main
try: main()
except SystemExit as ended: assert not ended.code
print(*(name for name in sys.modules if name.startswith("orbax_bench_core.")))
"""
NOT_OF_A_RUN = {"async_study", "history", "noise", "recovery", "releases", "soak", "verdicts"}


def test_a_run_imports_only_the_answers_that_it_has(tmp_path):
    (tmp_path / "suite.yaml").write_text(
        "suite_name: s\ncheckpoint_config: {spec: {w: {dtype: int8, shape: [8]}}}\n"
        "num_repeats: 1\nexecution: {warmups: 0}\n"
        "benchmarks: [{generator: save_restore, options: {use_ocdbt: [true, false]}}]\n"
    )
    words = ("run", str(tmp_path / "suite.yaml"), "-o", str(tmp_path / "out"), *ALONE)
    done = subprocess.run(
        [sys.executable, "-c", WHOLE_RUN, *words],
        capture_output=True,
        text=True,
        check=True,
        env={**os.environ, "XDG_CACHE_HOME": str(tmp_path)},
    )
    modules = set(done.stdout.splitlines()[-1].split())
    rooms = {f"orbax_bench_core.analysis.{name}" for name in NOT_OF_A_RUN}
    rooms |= {"orbax_bench_core.baselines", "orbax_bench_core.exports.site"}
    assert "orbax_bench_core.analysis.best" in modules
    assert not modules & rooms
