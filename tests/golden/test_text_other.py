"""Commands about the built-ins, a suite's points and pipelines."""

import pytest

from tests.golden.text_support import (  # noqa: F401
    shell,
    tmp_path,
    transcript,
)


@pytest.mark.slow
def test_built_ins(shell, golden):
    golden("text/other/list.txt", shell.views("list"))


def test_pipelines(shell, golden):
    golden("text/other/pipeline_list.txt", str(shell("pipeline", "list")))
