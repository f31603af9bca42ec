"""Files of users without a name, and modes of what a command makes."""

import os
import shutil
import stat
import subprocess
import sys

import pytest

from orbax_bench_core.cli.main import run_command_line

NOBODYS = 54321
"""A user id that no `/etc/passwd` has."""
UNSHARE = ("unshare", "--user", f"--map-user={NOBODYS}", f"--map-group={NOBODYS}")
SUITE = """\
suite_name: tiny
num_repeats: 1
execution: {warmups: 0}
checkpoint_config: {spec: {w: {dtype: float32, shape: [8]}}}
benchmarks: [{generator: save_restore, options: {}}]
"""


def done(*words, user=0):
    """Runs a command as an executor does that sets no umask, on a machine that names no home."""
    command = [sys.executable, "-m", "orbax_bench_core.cli", *map(str, words)]
    become = UNSHARE if user else ()
    environment = {k: v for k, v in os.environ.items() if k not in ("HOME", "USER", "LOGNAME")}
    return subprocess.run(
        [*become, *command],
        env=environment,
        umask=0,
        capture_output=True,
        text=True,
        check=False,
        cwd=os.fspath(words[-1]),
    )


@pytest.mark.slow
@pytest.mark.skipif(
    os.geteuid() or not shutil.which("unshare"), reason="only root can make files of another user"
)
def test_no_command_needs_the_name_of_a_user_and_what_it_makes_only_its_owner_can_write(tmp_path):
    suite, out = tmp_path / "suite.yaml", tmp_path / "out"
    suite.write_text(SUITE)
    out.mkdir()
    outcome = done("run", suite, "--no-limits", "-o", out, user=NOBODYS)
    assert outcome.returncode == 0, outcome.stderr
    made = [path for path in out.rglob("*") if not path.is_symlink()]
    for path in (out, *made):
        os.chown(path, NOBODYS, NOBODYS)
    for command in (["run", suite, "--no-limits", "-o"], ["report"], ["lineage"], ["history"]):
        outcome = done(*command, out)
        assert outcome.returncode == 0, outcome.stderr
    made = [path for path in out.rglob("*") if not path.is_symlink()]
    writable = [str(path) for path in made if path.stat().st_mode & 0o022]
    assert writable == []


@pytest.mark.parametrize(
    ("given", "kept"), [(0, 0o022), (0o002, 0o022), (0o027, 0o027), (0o077, 0o077)]
)
def test_a_command_takes_no_right_that_its_caller_keeps_back(tmp_path, monkeypatch, given, kept):
    monkeypatch.setattr(sys, "argv", ["orbax-bench"])
    file = tmp_path / "made"
    before = os.umask(given)
    try:
        run_command_line(file.touch)
        assert os.umask(given) == given
    finally:
        os.umask(before)
    assert stat.S_IMODE(file.stat().st_mode) == 0o666 & ~kept
