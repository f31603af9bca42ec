"""The flags of the published guide."""

import sys

import pytest

from orbax_bench_core import run_benchmarks


@pytest.mark.parametrize(
    ("given", "taken"),
    [
        (["--config_file=s.yaml"], ["s.yaml"]),
        (["--config_file", "s.yaml"], ["s.yaml"]),
        (["-config_file=s.yaml"], ["s.yaml"]),
        (["-config_file", "s.yaml"], ["s.yaml"]),
        (["--config-file=s.yaml"], ["s.yaml"]),
        (["--config_file=a=b.yaml"], ["a=b.yaml"]),
        (["--config_file="], [""]),
        (["--config_file"], [""]),
        (["--output_directory=out", "--config_file=s.yaml"], ["--output_directory=out", "s.yaml"]),
        (["-output_directory=out"], ["--output_directory=out"]),
        (["-output_directory", "out"], ["--output_directory", "out"]),
        (["--output_directory", "config_file"], ["--output_directory", "config_file"]),
        (["-o", "out"], ["-o", "out"]),
        (["-remove_repeated_dir"], ["--remove_repeated_dir"]),
    ],
)
def test_flags_of_the_guide_become_arguments_of_run(monkeypatch, given, taken):
    seen = []
    monkeypatch.setattr(sys, "argv", ["run_benchmarks.py"])
    monkeypatch.setattr("orbax_bench_core.cli.main.main", lambda: seen.extend(sys.argv))
    run_benchmarks.main(given)
    assert seen == ["orbax-bench", "run", *taken]


def test_without_arguments_those_of_the_process_are_taken(monkeypatch):
    seen = []
    monkeypatch.setattr(sys, "argv", ["run_benchmarks.py", "--config_file=s.yaml"])
    monkeypatch.setattr("orbax_bench_core.cli.main.main", lambda: seen.extend(sys.argv))
    run_benchmarks.main()
    assert seen == ["orbax-bench", "run", "s.yaml"]


@pytest.mark.parametrize(
    "flags",
    [
        ["--local_directory=/tmp/scratch"],
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
    assert outcome.err.startswith(f"error: {suite}: cannot read the suite: ")


def test_an_unknown_flag_is_refused(monkeypatch, run_main):
    monkeypatch.setattr(sys, "argv", [])
    outcome = run_main(lambda: run_benchmarks.main(["--config_file=s.yaml", "--no_such_flag"]))
    assert outcome.code == 2
    assert "--no_such_flag" in outcome.err


def test_the_output_directory_is_required(monkeypatch, run_main):
    monkeypatch.setattr(sys, "argv", [])
    outcome = run_main(lambda: run_benchmarks.main(["--config_file=s.yaml"]))
    assert outcome.code == 2
    assert "--output-directory" in outcome.err
