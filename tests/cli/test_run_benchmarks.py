"""The flags of the published guide."""

import sys
from typing import Annotated

import pytest
import typer

from orbax_bench_core import run_benchmarks
from orbax_bench_core.cli.arguments import OutputDirectory, SuiteFile

Keeps = Annotated[
    bool,
    typer.Option("--keep-data/--remove-repeated-dir", "--keep_data/--remove_repeated_dir"),
]


@pytest.fixture
def taken(monkeypatch):
    """What `orbax-bench run` is called with for a command line of the guide."""

    def find(*given, process=("run_benchmarks.py",)):
        seen = {}

        def run(
            suite: SuiteFile,
            output_directory: OutputDirectory = "none",
            keep_data: Keeps = False,
        ) -> None:
            seen.update(locals())

        monkeypatch.setattr(sys, "argv", [*process])
        monkeypatch.setattr("orbax_bench_core.cli.run.run", run)
        with pytest.raises(SystemExit) as ended:
            run_benchmarks.main(given or None)
        assert not ended.value.code
        return seen["suite"], seen["output_directory"], seen["keep_data"]

    return find


@pytest.mark.parametrize(
    ("given", "expected"),
    [
        (["--config_file=s.yaml"], ("s.yaml", "none", False)),
        (["--config_file", "s.yaml"], ("s.yaml", "none", False)),
        (["-config_file=s.yaml"], ("s.yaml", "none", False)),
        (["--config_file=a=b.yaml"], ("a=b.yaml", "none", False)),
        (["--config_file="], ("", "none", False)),
        (["--output_directory=out", "--config_file=s.yaml"], ("s.yaml", "out", False)),
        (["--config_file=s", "-output_directory", "out"], ("s", "out", False)),
        (["--output_directory", "config_file", "--config_file=s"], ("s", "config_file", False)),
        (["-o", "out", "--config_file=s"], ("s", "out", False)),
        (["-remove_repeated_dir", "--config_file=s"], ("s", "none", False)),
        (["--remove_repeated_dir=False", "--config_file=s"], ("s", "none", True)),
        (["--noremove_repeated_dir", "--config_file=s"], ("s", "none", True)),
        (["-keep_data", "--config_file=s"], ("s", "none", True)),
        (["--keep-data=false", "--config_file=s"], ("s", "none", False)),
        (["--keep_data", "--remove_repeated_dir", "--config_file=s"], ("s", "none", False)),
        (
            ["--noremove_repeated_dir", "--remove_repeated_dir", "--config_file=s"],
            ("s", "none", False),
        ),
    ],
)
def test_flags_of_the_guide_become_arguments_of_run(taken, given, expected):
    assert taken(*given) == expected


@pytest.mark.parametrize(
    "flags",
    [
        ["--local_directory", "/tmp/scratch"],
        ["--enable_hlo_dump"],
        ["--remove_repeated_dir"],
        ["--baseline_capture_path=/tmp/baselines"],
        ["-remove_repeated_dir"],
    ],
    ids=" ".join,
)
def test_every_flag_of_the_guide_is_known(monkeypatch, run_main, tmp_path, flags):
    """What is wrong here is the suite only, which is read after the flags are."""
    monkeypatch.setattr(sys, "argv", [])
    suite = tmp_path / "none.yaml"
    arguments = [f"--config_file={suite}", f"--output_directory={tmp_path}/out", *flags]
    outcome = run_main(lambda: run_benchmarks.main(arguments))
    assert outcome.code == 2
    assert outcome.err.startswith(f"error: {suite}: no such file; ")


@pytest.mark.parametrize("own", ["", 'baseline_path: ""\n'], ids=["flag", "suite"])
def test_an_empty_baseline_path_is_an_error(run_main, write_suite, tmp_path, own):
    suite = write_suite(extra=own)
    flags = [] if own else ["--baseline_path="]
    arguments = [f"--config_file={suite}", f"--output_directory={tmp_path}/out", *flags]
    outcome = run_main(lambda: run_benchmarks.main(arguments))
    assert outcome.code == 2
    assert outcome.err.startswith("error: baseline_path is empty: give a path")
    assert not (tmp_path / "out").exists()


def test_an_unknown_flag_is_refused(monkeypatch, run_main):
    monkeypatch.setattr(sys, "argv", [])
    outcome = run_main(lambda: run_benchmarks.main(["--config_file=s.yaml", "--no_such_flag"]))
    assert outcome.code == 2
    assert "--no_such_flag" in outcome.err
