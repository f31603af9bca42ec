"""Calling the command line in this process, as its script does."""

import sys

import pytest

from orbax_bench_core.cli.main import main
from tests.golden.support import Outcome


@pytest.fixture
def run_main(monkeypatch, capsys):
    """Calls a function that ends by `sys.exit`, and returns the outcome."""
    monkeypatch.setenv("COLUMNS", "300")

    def call(function=main):
        with pytest.raises(SystemExit) as ended:
            function()
        code = ended.value.code
        return Outcome(0 if code is None else code, *capsys.readouterr())

    return call


@pytest.fixture
def orbax_bench(monkeypatch, run_main):
    """Runs `orbax-bench` with arguments."""

    def command(*arguments):
        monkeypatch.setattr(sys, "argv", ["orbax-bench", *map(str, arguments)])
        return run_main()

    return command


@pytest.fixture
def write_suite(tmp_path):
    """Writes a suite file of the built-in benchmark, with options and further lines."""

    def write(options="{}", extra=""):
        file = tmp_path / "suite.yaml"
        file.write_text(
            "suite_name: s\nbenchmarks:\n"
            f"- {{generator: save_restore, options: {options}}}\n{extra}"
        )
        return file

    return write
