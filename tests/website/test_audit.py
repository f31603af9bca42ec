"""The audit of dependencies in CI: what the service has no word on is not called audited."""

import json
import os
import subprocess
from pathlib import Path

import pytest
import yaml

WORKFLOW = Path(__file__).parents[2] / ".github" / "workflows" / "ci.yml"
SOUND = {"name": "a", "version": "1", "vulns": []}
WEAK = {"name": "b", "version": "1", "vulns": [{"id": "PLANTED-1"}]}
UNKNOWN = {"name": "c", "skip_reason": "Dependency not found"}


@pytest.fixture
def audit(tmp_path):
    """Runs the step with a service that answers `listed`; None for no answer."""
    steps = yaml.safe_load(WORKFLOW.read_text())["jobs"]["audit"]["steps"]
    (script,) = [step["run"] for step in steps if step.get("name") == "Audit"]
    python = tmp_path / "bin" / "python"
    python.parent.mkdir()
    python.write_text(
        '#!/bin/sh\ncase "$*" in\n*pip\\ install*) exit 0;;\n'
        "*pip_audit*) test -f answer && cp answer audit.json; exit $(cat code);;\n"
        f'esac\nexec {os.environ.get("PYTHON", "python3")} "$@"\n'
    )
    python.chmod(0o755)

    def audit(listed, code):
        (tmp_path / "code").write_text(str(code))
        if listed is not None:
            (tmp_path / "answer").write_text(json.dumps({"dependencies": listed, "fixes": []}))
        done = subprocess.run(
            ["bash", "-e", "-c", script],
            cwd=tmp_path,
            env={**os.environ, "PATH": f"{python.parent}:{os.environ['PATH']}"},
            capture_output=True,
            text=True,
            check=False,
        )
        return done.returncode, done.stdout

    return audit


@pytest.mark.slow
@pytest.mark.parametrize(
    ("listed", "code", "ends", "said"),
    [
        ([SOUND], 0, 0, "1 of 1 audited"),
        ([SOUND, WEAK], 1, 1, "PLANTED-1"),
        ([UNKNOWN, SOUND], 0, 0, "::warning::not audited, for the service has none of them: c"),
        (None, 1, 0, "::warning::the service of known vulnerabilities gave no answer"),
    ],
)
def test_what_the_service_says_decides(audit, listed, code, ends, said):
    status, out = audit(listed, code)
    assert status == ends
    assert said in out
    assert ("::warning" in out) == (listed is None or UNKNOWN in listed)
