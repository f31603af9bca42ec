"""Git repositories of a user, with a benchmark in them."""

import subprocess

import pytest


@pytest.fixture
def git(tmp_path, monkeypatch):
    """Runs git in an empty repository `repository`; returns what it says."""
    for name in ("AUTHOR", "COMMITTER"):
        monkeypatch.setenv(f"GIT_{name}_NAME", "n")
        monkeypatch.setenv(f"GIT_{name}_EMAIL", "n@example.org")
    folder = tmp_path / "repository"
    folder.mkdir()

    def run(*arguments):
        command = ["git", "-C", str(folder), "-c", "init.defaultBranch=trunk", *arguments]
        return subprocess.run(command, check=True, capture_output=True, text=True).stdout.strip()

    run("init", "-q")
    return run


@pytest.fixture
def repository(git, tmp_path):
    """A repository with a benchmark and a suite, both committed."""
    folder = tmp_path / "repository"
    (folder / "benches").mkdir()
    (folder / "benches" / "mine.py").write_text("value = 1\n")
    (folder / "suite.yaml").write_text("a: 1\n")
    (folder / ".gitignore").write_text("environment/\n")
    git("add", ".")
    git("commit", "-qm", "first")
    return folder
