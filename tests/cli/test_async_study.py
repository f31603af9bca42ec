"""`orbax-bench async-study`."""

import json

import pytest

from tests.support.async_runs import make_pair, make_saves, make_sizes  # noqa: F401
from tests.support.processes import run_cli
from tests.support.shown import next_command

SUITE = """
suite_name: small
num_repeats: 2
checkpoint_configs:
- spec: {params: {dtype: bfloat16, shape: [64, 64]}}
- spec: {params: {dtype: bfloat16, shape: [128, 64]}}
- spec: {params: {dtype: bfloat16, shape: [256, 64]}}
benchmarks:
- {generator: save_restore, options: {async_enabled: [false, true]}}
"""


def test_json_is_what_the_file_has(orbax_bench, make_sizes):
    run = make_sizes()
    printed = json.loads(orbax_bench("async-study", run.root, "--json").out)
    assert printed == json.loads((run.root / "async_study.json").read_text())


@pytest.mark.parametrize(
    ("factor", "save"), [(1, "20.1s"), (100, "2010s"), (1e-5, "0.000201s"), (1e-7, "0.0001s")]
)
def test_the_command_that_it_ends_with_runs(orbax_bench, make_sizes, factor, save):
    found = orbax_bench("async-study", make_sizes(factors=[factor] * 6).root)
    words = next_command(found.out)
    assert words[1:3] == ["--save-sync", save]
    assert orbax_bench(*words).code == 0


@pytest.mark.parametrize(
    ("words", "problem"),
    [
        (("--override", "num_repeats=3"), "give --output-directory"),
        (
            ("-o", "out", "--override", "benchmarks.*.options.async_enabled=true"),
            "saves no checkpoint in both ways",
        ),
        (("-o", "out", "--override", "execution.order=sequential"), "they have to take turns"),
    ],
)
def test_a_suite_that_makes_no_study_is_refused_before_it_is_measured(
    orbax_bench, tmp_path, monkeypatch, words, problem
):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "suite.yaml").write_text(SUITE)
    done = orbax_bench("async-study", "suite.yaml", *words)
    assert (done.code, done.out) == (2, "")
    assert problem in done.err
    assert not (tmp_path / "out").exists()


@pytest.mark.nightly
def test_a_suite_is_measured_and_studied_by_one_command(tmp_path):
    suite, folder = tmp_path / "suite.yaml", tmp_path / "run"
    managed = "- {generator: checkpoint_manager, options: {async_enabled: [false, true]}}"
    suite.write_text(SUITE.replace("[256, 64]}", "[256, 64], host: true}") + managed)
    done = run_cli("async-study", suite, "-o", folder, "--no-lock", "--json")
    assert done.returncode == 0, done.stdout + done.stderr
    every = json.loads(done.stdout)["series"]  # nothing else is printed
    assert {series["name"] for series in every} == {"save_restore", "checkpoint_manager"}
    for series in every:
        parameters = [size["num_parameters"] for size in series["sizes"]]
        assert parameters == [64 * 64, 128 * 64, 256 * 64]
    for size in (size for series in every for size in series["sizes"]):
        assert size["background"]["blocked"]["n"] == size["blocking"]["blocked"]["n"] == 2
        assert size["background"]["blocked"]["median"] < size["background"]["total"]["median"]
    assert "12 points x 2 repeats" in done.stderr
    assert not list(folder.rglob("*.orbax-checkpoint*"))
