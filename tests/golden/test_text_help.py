"""Help of every command, as it is shown at 100 columns."""

import re

from tests.golden.text_support import shell, tmp_path  # noqa: F401


def commands_of(text):
    """Returns the sub-commands that a help lists, below a heading or in a box."""
    _, _, listed = text.partition("Commands")
    return re.findall(r"^(?:  |│ )([a-z][a-z-]*)(?: |$)", listed, re.MULTILINE)


def test_help_of_every_command(shell, golden):
    waiting, seen = [()], []
    while waiting:
        command = waiting.pop(0)
        outcome = shell(*command, "--help")
        assert outcome.code == 0
        seen.append(command)
        golden(f"text/help/{'_'.join(('orbax-bench', *command))}.txt", str(outcome))
        waiting += [(*command, name) for name in commands_of(outcome.out)]
    assert len(seen) > 25, "a sub-command was not found in the help of its command"


def test_help_of_the_guides_program(shell, golden):
    outcome = shell("--help", program="run_benchmarks")
    golden("text/help/run_benchmarks.txt", str(outcome))


def test_commands_that_need_a_sub_command_show_their_help(shell, golden):
    said = [shell(*command) for command in ((), ("baseline",), ("pipeline",))]
    golden("text/help/without_a_sub_command.txt", "\n".join(map(str, said)))
