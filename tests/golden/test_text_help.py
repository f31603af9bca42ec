"""Help of some commands, as it is shown at 100 columns: docs/reference/commands.md has all."""

import pytest

from tests.golden.text_support import shell, tmp_path  # noqa: F401


@pytest.mark.parametrize("command", ["", "run", "baseline capture", "pipeline run"])
def test_help_of_a_command(shell, golden, command):
    words = command.split()
    name = "_".join(("orbax-bench", *words))
    golden(f"text/help/{name}.txt", str(shell(*words, "--help")))


def test_commands_that_need_a_sub_command_show_their_help(shell, golden):
    said = [shell(*command) for command in ((), ("baseline",), ("pipeline",))]
    golden("text/help/without_a_sub_command.txt", "\n".join(map(str, said)))
