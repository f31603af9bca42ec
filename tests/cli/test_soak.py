"""`orbax-bench soak`, with workers that report what they keep of each save."""

import json

import pytest

from tests.contents.test_contents import check_list
from tests.support.fake_cli import fake_bench
from tests.support.shown import next_command
from tests.support.webhook import webhook  # noqa: F401 - fixture

SUITE = """
suite_name: soaked
execution: {warmups: 0, retries: 1}
checkpoint_config: {spec: {w: {dtype: float32, shape: [8]}}}
benchmarks:
- {generator: tests.support.scripted.Scripted, options: %s}
"""


@pytest.fixture
def soak(tmp_path):
    """Soaks a scripted suite, and returns how the command ended."""

    def command(options, *flags):
        suite = tmp_path / "suite.yaml"
        suite.write_text(SUITE % options)
        words = ("soak", suite, "-o", tmp_path / "run", "--no-lock", *flags)
        return fake_bench(*words)

    return command


@pytest.mark.slow
def test_a_leak_is_found_and_judged_anew(soak, tmp_path, orbax_bench, webhook, monkeypatch):
    assert orbax_bench("site", tmp_path).code == 0
    monkeypatch.setenv("ORBAX_BENCH_NOTIFY", webhook.url)
    done = soak("{keeps_mib: 1.0}", "--saves", "200", "--quiet")
    assert done.code == 3, done.err
    assert "✓ Scripted" not in done.out + done.err
    assert "✗ LEAK: the process keeps 1 MiB (1 to 1) per save" in done.out
    assert orbax_bench(*next_command(done.out)).code == 0
    assert orbax_bench("soak", tmp_path / "run", "--details").out.count("process memory") > 1
    assert "keeps 1 MiB (1 to 1) per save" in (tmp_path / "run" / "report.md").read_text()
    assert 'href="soak.html"' in (tmp_path / "run" / "report.html").read_text()
    assert webhook.states == ["REGRESSION"]
    assert "✗ LEAK" in (tmp_path / "index.html").read_text()
    again = orbax_bench("soak", tmp_path / "run", "--limit", "2", "--json")
    assert again.code == 0
    assert "below the limit of 2 MiB" in (tmp_path / "run" / "report.md").read_text()
    assert json.loads(again.out)["word"] == "PASS"
    assert "✓ PASS" in (tmp_path / "index.html").read_text()
    info = json.loads((tmp_path / "run" / "run.json").read_text())
    assert (info["num_repeats"], info["status"]) == (200, "complete")
    check_list(tmp_path / "run")


@pytest.mark.nightly
def test_a_process_that_dies_begins_a_new_life_and_the_longest_is_judged(soak):
    options = "{act: die, act_at: '5', first_attempts: true}"
    done = soak(options, "--saves", "200", "--json")
    assert done.code == 0, done.err
    (series,) = json.loads(done.out)["series"]
    assert series["lives"] == [5, 200]


@pytest.mark.parametrize(
    ("flags", "extra", "problem"),
    [
        (("--saves", "200"), "", "give --output-directory"),
        (("-o", "out"), "", "give --saves N or --hours T"),
        (("--saves", "50", "-o", "out"), "", "--saves 50 gives no verdict"),
        (("--saves", "200", "--hours", "1", "-o", "out"), "", "one of them"),
        (("--hours", "-1", "-o", "out"), "", "above 0"),
        ((), "", "is not a run directory"),
        (("--notify", "https://example.com"), "", "--notify reports on a suite that is measured"),
        (("--saves", "200", "-o", "out"), "execution: {host_memory: default}", "0.3 MiB a save"),
        (("--saves", "200", "-o", "out"), "arms: {}", "watches one process"),
    ],
)
def test_mistakes_are_told_before_anything_is_measured(
    orbax_bench, write_suite, flags, extra, problem
):
    done = orbax_bench("soak", write_suite(extra=extra), *flags)
    assert (done.code, done.out) == (2, "")
    assert problem in done.err
