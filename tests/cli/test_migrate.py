"""`orbax-bench migrate`: the diff, what is left, and the files."""

import pytest

NAME = "orbax.checkpoint._src.testing.benchmarks"
MODULE = f"from {NAME}.core import core  # mine\n"
SUITE = (
    f"suite_name: s\nbenchmarks: [{{generator: {NAME}.v1.benchmark.Benchmark, options: {{}}}}]\n"
)


@pytest.fixture
def files(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "bench.py").write_text(MODULE)
    (tmp_path / "suite.yaml").write_text(SUITE)
    return tmp_path


def test_the_change_is_printed_and_nothing_is_written(files, orbax_bench):
    done = orbax_bench("migrate", "bench.py", "suite.yaml")
    assert done.code == 0
    assert done.out.startswith("--- bench.py\n+++ bench.py\n@@ -1 +1 @@\n")
    assert "+from orbax_bench_core import authoring as core  # mine\n" in done.out
    assert "+benchmarks: [{generator: save_restore, options: {}}]\n" in done.out
    assert done.err == "Nothing is written yet: --write does it.\n"
    assert (files / "bench.py").read_text() == MODULE


def test_files_are_written_when_asked(files, orbax_bench):
    done = orbax_bench("migrate", "bench.py", "suite.yaml", "--write")
    assert (done.code, done.out) == (0, "bench.py: changed\nsuite.yaml: changed\n")
    assert (files / "bench.py").read_text().startswith("from orbax_bench_core import authoring")
    again = orbax_bench("migrate", "bench.py", "--write")
    assert (again.code, again.out) == (0, "bench.py: nothing to change\n")


def test_what_is_left_is_said_and_is_exit_code_1(files, orbax_bench):
    (files / "bench.py").write_text(MODULE + "core.Benchmark()\n")
    done = orbax_bench("migrate", "bench.py", "--write")
    assert done.code == 1
    assert done.err.startswith("left: bench.py:2: orbax_bench_core.authoring has no `Benchmark`")


def test_a_parameter_that_is_measured_with_the_old_way_is_exit_code_1(files, orbax_bench):
    (files / "bench.py").write_text(MODULE + "def f(metrics):\n  with metrics.time('a'): pass\n")
    done = orbax_bench("migrate", "bench.py")
    assert done.code == 1
    assert done.err.startswith("left: bench.py:3: `Metrics` has no `time` here: a block is ")


def test_a_file_that_cannot_be_read_changes_nothing(files, orbax_bench):
    (files / "odd.py").write_bytes(b"\xff\xfe")
    for odd in ("odd.py", "nowhere.py", "."):
        done = orbax_bench("migrate", "bench.py", odd, "--write")
        assert (done.code, len(done.err.splitlines())) == (2, 1)
    assert (files / "bench.py").read_text() == MODULE


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ("none.py", "none.py: there is no such file; give Python files and suites"),
        (".", ".: a folder; give the files in it, such as ./*.py"),
    ],
)
def test_what_is_no_file_is_said_so(files, orbax_bench, given, message):
    done = orbax_bench("migrate", given)
    assert (done.code, done.err) == (2, f"error: {message}\n")
