"""What formats and corrects code: the hooks of git do what `make fix` does."""

import re
import subprocess
import sys
from pathlib import Path

import yaml

ROOT = Path(__file__).parents[2]
HOOKS = [
    hook
    for repository in yaml.safe_load((ROOT / ".pre-commit-config.yaml").read_text())["repos"]
    for hook in repository["hooks"]
    if repository["repo"] == "local"  # any other would be fetched
]


def test_hooks_are_the_commands_of_make_fix():
    made = re.search(r"^fix: setup\n((?:\t.*\n)+)", (ROOT / "Makefile").read_text(), re.M)[1]
    ours = [line.strip().removeprefix("$(BIN)/").removesuffix(" .") for line in made.splitlines()]
    hooks = [hook["entry"].removeprefix(".venv/bin/") for hook in HOOKS]
    assert [entry.removesuffix(" --force-exclude") for entry in hooks] == ours


def test_hooks_leave_a_file_that_lint_takes(tmp_path):
    file = tmp_path / "mine.py"
    file.write_text('import json\nimport os\n\nprint( json.dumps({"a":1}))\n')
    for hook in HOOKS:
        words = [sys.executable, *hook["entry"].split()[1:], "--config", ROOT / "pyproject.toml"]
        subprocess.run([*words, file], check=False, capture_output=True)
    assert file.read_text() == 'import json\n\nprint(json.dumps({"a": 1}))\n'
