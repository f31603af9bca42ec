"""Time that a run takes for limits of machine and storage that an earlier run has measured."""

from __future__ import annotations

import json
import shutil
import sys
import tempfile
from pathlib import Path
from typing import Any, Final

from perf.pairing import Figure, alternate
from perf.probe import Setting
from perf.process import ROOT, ProbeFailed, our_command, run

TARGET_S: Final = 0.4

_TRIES: Final = 4
_SUITE: Final[dict[str, Any]] = {
    "suite_name": "limits",
    "checkpoint_config": {"spec": {"w": {"dtype": "float32", "shape": [4096, 4096]}}},
    "benchmarks": [{"generator": "save_restore", "options": {}}],
}
"""64 MiB, which is the most that limits are measured with."""

# The orchestrator knows by then what it runs on: every record of its own says it.
_PROGRAM: Final = """
import json, sys, time
from orbax_bench_core.execute import LocalHost
from orbax_bench_core.limits import ensure_limits, read
from orbax_bench_core.provenance import host_provenance
from orbax_bench_core.records import RunDirectory
host_provenance()
run = RunDirectory(sys.argv[1])
said = []
began = time.perf_counter()
ensure_limits(run, said.append, LocalHost())
taken = time.perf_counter() - began
print(json.dumps([taken, read(run).confirmed is not None, said]))
"""


def figures(setting: Setting) -> list[Figure]:
    """Runs a suite once, and then asks for its limits as later runs would."""
    with tempfile.TemporaryDirectory() as folder:
        root = Path(folder)
        environment = {
            "JAX_PLATFORMS": "cpu",
            "ORBAX_BENCH_LIMITS": str(root / "kept"),
            "PYTHONPATH": str(ROOT),
        }
        (root / "suite.yaml").write_text(json.dumps(_SUITE))
        run(
            our_command(
                *("run", str(root / "suite.yaml"), "--output-directory", str(root / "run")),
                "--no-lock",
            ),
            environment=environment,
        )
        shutil.rmtree(root / "run" / "save_restore", ignore_errors=True)
        found = alternate(
            setting.rounds,
            lambda: _taken(root / "run", environment),
            None,
            say=lambda line: setting.say(f"limits: {line}"),
        )
    seconds, _ = found.values(float)
    return [
        Figure(
            name="limits of a known machine and storage",
            unit="s",
            ours=seconds,
            target=TARGET_S,
            limits="value",
        )
    ]


def _taken(directory: Path, environment: dict[str, str]) -> float:
    """Returns the seconds that known limits took.

    Raises:
        ProbeFailed: The short check never agreed with the one before, as on a machine whose load
            comes and goes.
    """
    said: list[str] = []
    for _ in range(_TRIES):
        (directory / "limits.json").unlink(missing_ok=True)
        command = [sys.executable, "-c", _PROGRAM, str(directory)]
        done = run(command, environment=environment, keep_output=True)
        taken, confirmed, said = json.loads(done.output.splitlines()[-1])
        if confirmed:
            return float(taken)
    raise ProbeFailed(f"limits were measured anew {_TRIES} times: {said}")
