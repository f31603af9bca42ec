from __future__ import annotations

import sys

import pytest

from perf.process import ProbeFailed, run


def test_the_output_is_kept_when_wanted() -> None:
    assert run([sys.executable, "-c", "print('here')"], keep_output=True).output == "here\n"


def test_the_output_is_discarded_otherwise() -> None:
    assert run([sys.executable, "-c", "print('here')"]).output == ""


def test_the_environment_is_added_to() -> None:
    code = "import os; print(os.environ['ADDED'], 'PATH' in os.environ)"
    found = run([sys.executable, "-c", code], environment={"ADDED": "1"}, keep_output=True)
    assert found.output == "1 True\n"


def test_a_failing_child_says_why() -> None:
    with pytest.raises(ProbeFailed, match="exit code 3: the reason"):
        run(
            [sys.executable, "-c", "import sys; print('the reason', file=sys.stderr); sys.exit(3)"],
            keep_output=True,
        )


def test_a_killed_child_has_failed() -> None:
    with pytest.raises(ProbeFailed, match="exit code -9: what it printed was discarded"):
        run([sys.executable, "-c", "import os; os.kill(os.getpid(), 9)"])


def test_a_missing_program_is_named() -> None:
    with pytest.raises(ProbeFailed, match="cannot start no-such-program"):
        run(["no-such-program"])
