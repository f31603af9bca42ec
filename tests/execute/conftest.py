"""Running suites as a user does: through the command line, in a process of its own."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

HERE = Path(__file__).parent


class SuiteRun:
    """One output directory and the command that fills it."""

    def __init__(self, folder: Path, suite: str) -> None:
        self.suite_file = folder / "suite.yaml"
        self.suite_file.write_text(suite)
        self.directory = folder / "out"

    def command(self, *flags: str) -> list[str]:
        command = [sys.executable, "-m", "orbax_bench_core.cli", "run", str(self.suite_file)]
        return [
            *command,
            "--output-directory",
            str(self.directory),
            "--no-lock",
            "--no-limits",
            *flags,
        ]

    @property
    def environment(self) -> dict[str, str]:
        unset = ("XLA_FLAGS", "JAX_ENABLE_X64")
        inherited = {name: value for name, value in os.environ.items() if name not in unset}
        return {**inherited, "PYTHONPATH": str(HERE), "COLUMNS": "200"}

    def start(self, *flags: str) -> subprocess.Popen[str]:
        return subprocess.Popen(
            self.command(*flags),
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            env=self.environment,
        )

    def run(self, *flags: str) -> tuple[int, str]:
        process = self.start(*flags)
        output, _ = process.communicate(timeout=120)
        return process.returncode, output

    def records(self) -> dict[str, dict]:
        """Every record of a measured repeat, by `<act or point id>/repeat_<r>`."""
        found = {}
        for path in sorted(self.directory.glob("records/*/repeat_*/host_0.json")):
            record = json.loads(path.read_text())
            act = record["point"]["options"].get("act", record["point_id"])
            found[f"{act}/{path.parent.name}"] = record
        return found

    def host_records(self, repeat: int, act: str | None = None) -> dict[int, dict]:
        """Records of one repeat by host; of the point with this `act` where there are several."""
        paths = self.directory.glob(f"records/*/repeat_{repeat}/host_*.json")
        records = [json.loads(path.read_text()) for path in paths]
        return {
            record["host"]: record
            for record in records
            if act is None or record["point"]["options"]["act"] == act
        }

    def statuses(self) -> list[str]:
        """Status of every measured repeat, sorted."""
        paths = self.directory.glob("records/*/repeat_*/host_0.json")
        return sorted(json.loads(path.read_text())["status"] for path in paths)

    def record_bytes(self) -> dict[str, bytes]:
        root = self.directory / "records"
        return {str(p.relative_to(root)): p.read_bytes() for p in root.rglob("host_*.json")}


@pytest.fixture
def suite_run(tmp_path):
    return lambda suite: SuiteRun(tmp_path, suite)
