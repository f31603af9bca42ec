"""A run on fake workers, as people see it: quiet, and given up when all points lack the same."""

import json
import re

import pytest

from orbax_bench_core import load_run, pages, read_verdicts, run_benchmarks
from tests.support.fake_cli import fake_workers
from tests.support.scripted import NAME

pytestmark = pytest.mark.slow


@pytest.fixture
def run(orbax_bench, tmp_path):
    """Runs points that fake workers follow; `options` is the script."""

    def start(options, *more, repeats=2, command="run"):
        suite = {
            "suite_name": "everyday",
            "num_repeats": repeats,
            "execution": {"warmups": 0, "retries": 1},
            "benchmarks": [{"generator": NAME, "options": options}],
        }
        (tmp_path / "suite.yaml").write_text(json.dumps(suite))
        return orbax_bench(
            command,
            tmp_path / "suite.yaml",
            "-o",
            tmp_path / "out",
            "--no-lock",
            *(["--no-limits"] if command == "run" else []),
            *more,
        )

    with fake_workers():
        yield start


def test_a_log_has_the_time_of_day_and_quiet_leaves_all_of_it_out(run, tmp_path):
    done = run({"save_s": [0.02, 0.03]}, "--verbose")
    stamped = re.findall(r"^\d\d:\d\d:\d\d [1-4]/4.* ✓ Scripted", done.out, re.MULTILINE)
    assert (done.code, len(stamped)) == (0, 4)
    quiet = run({"save_s": [0.02, 0.03]}, "--quiet", repeats=3)
    assert (quiet.code, quiet.err) == (0, "")
    assert "everyday: 2 points" not in quiet.out
    assert "✓ Scripted" not in quiet.out
    assert f"\nPage: {tmp_path / 'out'}/report.html\n" in quiet.out


def test_a_baseline_that_cannot_be_written_keeps_back_no_answer(run, tmp_path):
    (tmp_path / "file").touch()
    done = run({"save_s": [0.02, 0.03]}, "--baseline-capture-path", tmp_path / "file" / "registry")
    assert done.code == 1
    assert "not captured: the run: cannot write the baseline: [Errno 20]" in done.out
    assert "? UNDECIDED: save_s=0.02 took" in done.out
    assert f"\nPage: {tmp_path / 'out'}/report.html\n" in done.out


def test_what_all_points_lack_is_said_once_and_ends_the_run(run, tmp_path):
    done = run({"act": "need", "save_s": [0.02, 0.03, 0.04, 0.05]}, repeats=5)
    assert done.code == 1
    assert done.out.count("stopped: the first 3 of 4 points failed for the same reason") == 1
    assert "; 0 of 20 repeats are done and kept, and 3 failed." in " ".join(done.out.split())
    assert "Put that right, then run the same command again to measure the rest." in done.out
    assert len(list((tmp_path / "out" / "records").glob("*/repeat_*/host_0.json"))) == 3


def test_a_comparison_is_given_up_once_four_pairs_cannot_but_lack_the_same(run):
    done = run({"act": "need", "save_s": [0.02, 0.03, 0.04, 0.05]}, "--aa", command="ab")
    assert done.code == 1
    assert "stopped: the first 3 of 4 arms failed for the same reason" in done.out


def test_a_slow_down_from_the_eleventh_operation_on_is_a_regression(run, tmp_path):
    late = " ".join(map(str, range(10, 100)))
    slower = ("--candidate", f"slow_at={late}", "--candidate", "slow_by=1.5")
    done = run({}, "--override", "execution.retries=0", *slower, command="ab")
    assert done.code == 3
    (point,) = read_verdicts(load_run(str(tmp_path / "out"))).points
    by = {operation.verdict.operations for operation in point.operations}
    assert by == {point.failures.attempts} == {point.attempts["candidate"].count}
    assert min(by) > 10
    (save,) = (each.verdict for each in point.operations if each.operation == "save")
    assert save.word == "REGRESSION"
    assert 1.1 < save.ratio <= 1.51
    assert "saves take" in " ".join(done.out.split())


def test_the_guides_command_compares_with_orbaxs_own_baseline_and_shows_every_metric(
    run, run_main, tmp_path
):
    alone = run({}, "--metrics", "all")
    every = alone.out.partition("\nEvery metric\n")[2]
    assert re.search(r"save of .*\n(.*\n)*?0_basics/time_s +[\d.]+ +[\d.]+ +[\d.]+ +s *\n", every)
    stored = {"schema_version": 1, "metrics": {"save::0_basics/time_s": {"mean": 0.001}}}
    (tmp_path / "c0ffee.json").write_text(json.dumps(stored))
    given = {
        "config_file": tmp_path / "suite.yaml",
        "output_directory": tmp_path / "out",
        "baseline_path": tmp_path / "c0ffee.json",
        "metrics": "all",
    }
    flags = [f"--{flag}={value}" for flag, value in given.items()]
    done = run_main(lambda: run_benchmarks.main([*flags, "--no_lock", "--no_limits", "--details"]))
    assert (done.code, done.err) == (0, "")
    assert re.search(r"\nsave 0_basics/time_s +1 ms, 0 +[\d.]+ m?s", done.out)
    assert "one side" in done.out  # which has also what only this run measured
    assert "no test can be made" in done.out
    verdicts = (tmp_path / "out" / "verdicts.md").read_text()
    assert "no test can be made" in verdicts


def test_ab_compare_and_history_show_one_ratio_with_one_interval(run, orbax_bench, tmp_path):
    arms = ("-c", "save_s=0.0206", "--override", "gate.margin=0.5")
    done = run({"slow_at": "1 5"}, *arms, command="ab")
    assert done.code == 0, done.out
    report = json.loads((tmp_path / "out" / "verdicts.json").read_text())
    (point,) = report["points"]
    assert len({each["verdict"]["operations"] for each in point["operations"]}) == 1
    again = (("compare",), ("history", "--details"))
    told = [done.out, *(orbax_bench(*words, tmp_path / "out").out for words in again)]
    for found in point["operations"]:
        verdict = found["verdict"]
        changed = pages.change(*(verdict[end] for end in ("ratio", "low", "high")))
        assert all(changed in said for said in told[:2]), (changed, told)
        interval = f"[{verdict['low']:.3f}–{verdict['high']:.3f}]"
        lines = [line for line in told[2].splitlines() if interval in line]
        assert lines, (interval, told[2])
        assert all(f"{verdict['ratio']:.3f}x" in line for line in lines)


@pytest.mark.parametrize("inside", ["n1", "some/way/down", "../link/n1"])
def test_no_run_is_begun_in_the_directory_of_another(
    orbax_bench, make_run, make_record, write_suite, tmp_path, inside
):
    outer = make_run([make_record()], folder="nightly")
    (tmp_path / "link").symlink_to(outer.root)
    done = orbax_bench("run", write_suite(), "-o", outer.root / inside)
    assert done.code == 2
    assert f"lies in {outer.root}, the run directory of " in done.err
    assert "choose an output directory outside it" in done.err
    assert sorted(path.name for path in outer.root.iterdir()) == ["records", "run.json"]


def test_a_run_json_of_somebody_else_is_no_run(orbax_bench, write_suite, tmp_path):
    (tmp_path / "run.json").write_text('{"scripts": {}}')
    done = orbax_bench("run", write_suite(extra="arms: {}"), "-o", tmp_path / "out")
    assert "lies in" not in done.err
