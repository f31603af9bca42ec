"""Standard streams, on which no text of others moves the cursor."""

import contextlib
import io
import json
import os
import pty
import sys

import pytest
from rich.live import Live

from orbax_bench_core.cli.main import run_command_line
from orbax_bench_core.cli.terminal import new_console, printable_streams
from orbax_bench_core.errors import CONTROL

PLANTED = "a\x1b[2J\x9b2J\u202eb\x07"
SHOWN = "a\\u001b[2J\\u009b2J\\u202eb\\u0007"


def test_what_is_printed_is_written_out(capsys):
    def command():
        print(PLANTED)
        print(PLANTED, file=sys.stderr)

    run_command_line(command)
    assert capsys.readouterr() == (f"{SHOWN}\n", f"{SHOWN}\n")


@pytest.mark.parametrize("order", ["::error::no", "  ::stop-commands::x", "##[group]x"])
def test_no_text_gives_github_actions_an_order(capsys, order):
    def command():
        print(f"a\n{order}")
        new_console().print(f"{order} a::b", markup=False)

    run_command_line(command)
    said = order.replace("::", "\\u003a:", 1).replace("##", "\\u0023#")
    assert capsys.readouterr().out == f"a\n{said}\n{said} a::b\n"


def test_credentials_are_left_out_of_what_is_printed(capsys):
    said = {"place": "https://u:planted@h/x?X-Goog-Signature=planted&y=1"}
    run_command_line(lambda: print(json.dumps(said)))
    assert json.loads(capsys.readouterr().out) == {
        "place": "https://***@h/x?X-Goog-Signature=***&y=1"
    }


def test_what_is_drawn_anew_moves_the_cursor():
    terminal = io.StringIO()
    terminal.isatty = lambda: True
    with (
        contextlib.redirect_stdout(terminal),
        printable_streams(),
        Live("0/6", console=new_console(force_terminal=True), auto_refresh=False) as live,
    ):
        print(PLANTED)
        live.update("1/6", refresh=True)
    drawn = terminal.getvalue()
    assert "\x1b[2K" in drawn
    assert "\\u001b" not in drawn
    assert not [each for each in ("\x1b[2J", "\x9b", "\u202e", "\x07") if each in drawn]


def test_on_a_terminal_a_console_draws_and_nothing_else_does():
    terminal = io.StringIO()
    terminal.isatty = lambda: True
    with contextlib.redirect_stdout(terminal), printable_streams():
        console = new_console(file=sys.stdout, force_terminal=True, color_system="standard")
        console.print(f"[red]{PLANTED}[/]", highlight=False)
        print(PLANTED)
    drawn, printed = terminal.getvalue().splitlines()
    assert drawn.startswith("\x1b[31ma\\u001b[2J\\u009b2J")
    assert printed == SHOWN


def test_the_streams_come_back(capsys):
    before = sys.stdout
    with contextlib.suppress(KeyError), printable_streams():
        raise KeyError
    assert sys.stdout is before


@pytest.mark.slow
def test_a_name_that_is_no_text_can_be_printed():
    reader, writer = pty.openpty()
    with os.fdopen(writer, "w", encoding="ascii") as stream, contextlib.redirect_stdout(stream):
        run_command_line(lambda: print("a\udcffé"))
    assert os.read(reader, 100) == b"a\\udcff\\xe9\r\n"
    os.close(reader)


def test_every_character_that_a_terminal_obeys_is_written_out(capsys):
    obeyed = [char for char in map(chr, range(0x11000)) if CONTROL.match(char) and char != "\r"]
    run_command_line(lambda: print("".join(obeyed)))
    assert capsys.readouterr().out == "".join(f"\\u{ord(char):04x}" for char in obeyed) + "\n"
