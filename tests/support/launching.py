"""`orbax-bench launch`, as a person calls it, and what its hosts leave."""

import json
import os
import shlex
import subprocess
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Final

from tests.support.processes import interrupts, plain_environment, run_cli

SUITE: Final = """
suite_name: tiny
num_repeats: {repeats}
execution: {{warmups: 0, timeout_s: 60}}
checkpoint_config: {{spec: {{a: {{dtype: float32, shape: [{devices}, 2], sharding: [x, null]}}}}}}
mesh_config: {{mesh_axes: [x], ici_parallelism: {{x: {devices}}}}}
benchmarks: [{{generator: save_restore, options: {{}}}}]
"""
QUICK: Final = ("--", "--no-limits", "--no-lock", "--host-wait", "5")
"""Flags after which a run takes seconds."""
LAUNCH: Final = (sys.executable, "-m", "orbax_bench_core.cli", "launch")


def write_suite(folder: Path, *, repeats: int = 1, devices: int = 4) -> Path:
    """Writes a suite whose one point all hosts run together; its path has a space."""
    file = folder / "tiny suite.yaml"
    file.write_text(SUITE.format(repeats=repeats, devices=devices))
    return file


def as_written(text: str, suite: Path, out: Path) -> str:
    """Returns a page's shell block for this suite and folder, and for the code of this checkout."""
    ours = shlex.join([sys.executable, "-m", "orbax_bench_core.cli"])
    quick = f"{shlex.quote(str(out))} {shlex.join(QUICK[1:])}"
    text = text.replace("suite.yaml", shlex.quote(str(suite))).replace("/shared/run", quick)
    return text.replace("orbax-bench ", f"{ours} ")


def launch(
    *words: object, inside: Sequence[str] = (), environment: Mapping[str, str] = os.environ
) -> subprocess.CompletedProcess[str]:
    """Calls it, and waits for its end."""
    return run_cli("launch", *words, inside=inside, environment=environment)


def launched(
    *words: object,
    log: Path,
    inside: Sequence[str] = (),
    environment: Mapping[str, str] = os.environ,
) -> subprocess.Popen[bytes]:
    """Calls it, and goes on meanwhile; what it prints goes to a file."""
    with log.open("ab") as output, interrupts():
        return subprocess.Popen(
            [*inside, *LAUNCH, *map(str, words)],
            env=plain_environment(environment),
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=subprocess.STDOUT,
        )


def records(run: Path) -> list[dict[str, Any]]:
    """Returns the records that a run has so far."""
    return [json.loads(file.read_text()) for file in sorted(run.glob("records/*/*/host_*.json"))]
