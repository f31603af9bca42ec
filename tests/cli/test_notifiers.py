"""Webhook, JUnit XML and the summary page of a CI job, from the command line."""

import os
import xml.etree.ElementTree as ET

import pytest

from tests.support.paired_runs import make_paired_run  # noqa: F401 - fixture
from tests.support.processes import FAKE_CLI, start_cli
from tests.support.webhook import webhook  # noqa: F401 - fixture

SECRET = "S3CR3T"
SUITE = """
suite_name: nightly
num_repeats: 1
execution: {{warmups: 0}}
gate: {{looks: [10, 20]}}
benchmarks: [{{generator: tests.support.scripted.Scripted, options: {{{options}}}}}]
"""


@pytest.fixture(autouse=True)
def no_outlets(monkeypatch):
    for name in ("ORBAX_BENCH_NOTIFY", "ORBAX_BENCH_NOTIFY_STATE", "GITHUB_STEP_SUMMARY"):
        monkeypatch.delenv(name, raising=False)


@pytest.fixture
def nights(make_paired_run, orbax_bench, tmp_path):
    """Compares a run of a night, whose candidate takes `ratio` times as long."""

    def compare(day, ratio, *flags):
        run = make_paired_run(day, ratio, blocks=10, folder=tmp_path / "runs" / str(day))
        return orbax_bench("compare", run.root, *flags)

    return compare


def test_a_change_of_state_is_posted_and_said(nights, webhook):
    said = [nights(day, ratio, "--notify", webhook.url) for day, ratio in enumerate([1, 1.3, 1.3])]
    assert [outcome.code for outcome in said] == [0, 3, 3]
    assert webhook.states == ["PASS", "REGRESSION"]
    _, message = webhook.posted[1]
    assert "saves take 3" in "\n".join(message["lines"])
    assert message["run_directory"].endswith("runs/1")
    assert "/…: REGRESSION" in said[1].err
    assert not [outcome for outcome in said if SECRET in outcome.out + outcome.err]


def test_the_address_comes_from_the_environment_or_a_file(nights, webhook, monkeypatch, tmp_path):
    (tmp_path / "address").write_text(f"slack+{webhook.url}\n")
    nights(1, 1, "--notify", f"@{tmp_path / 'address'}")
    monkeypatch.setenv("ORBAX_BENCH_NOTIFY", webhook.url)
    monkeypatch.setenv("ORBAX_BENCH_NOTIFY_STATE", str(tmp_path / "states"))
    nights(2, 1)
    assert [set(message) == {"text"} for _, message in webhook.posted] == [True, False]
    assert len(list((tmp_path / "states").iterdir())) == 1


def test_a_webhook_that_is_not_there_costs_a_warning_alone(nights):
    outcome = nights(1, 1.3, "--notify", f"http://127.0.0.1:1/{SECRET}")
    assert outcome.code == 3
    assert "warning: http://127.0.0.1:1/… was not notified: Connection refused" in outcome.err


def test_what_is_no_address_is_refused_before_anything_else(orbax_bench, tmp_path):
    outcome = orbax_bench("ab", tmp_path / "none.yaml", "-o", tmp_path, "--notify", SECRET)
    assert outcome.code == 2
    assert "no http or https URL" in outcome.err
    assert SECRET not in outcome.err
    missing = orbax_bench("ab", tmp_path / "none.yaml", "-o", tmp_path, "--notify", "@/none")
    assert missing.err.startswith("error: --notify @/none: cannot read it: ")


def test_an_exploration_is_no_news(nights, webhook):
    assert nights(1, 1.3, "--notify", webhook.url, "--rule", "margin=0.9").code == 4
    assert webhook.posted == []


def test_a_suite_that_is_wrong_is_a_failure_until_it_passes(orbax_bench, webhook, tmp_path):
    suite = tmp_path / "suite.yaml"
    suite.write_text("suite_name: nightly\nnonsense: 1\n")
    for command in ("ab", "run", "run"):
        outcome = orbax_bench(command, suite, "-o", tmp_path / "runs/1", "--notify", webhook.url)
        assert outcome.code == 2
    [(_, message)] = webhook.posted
    assert (message["suite"], message["state"]) == ("nightly", "FAILED")
    assert "nonsense: unknown key" in "".join(message["lines"])


def test_a_launch_refuses_an_address_in_the_words_of_every_host(orbax_bench, write_suite, tmp_path):
    words = (
        "launch",
        write_suite(),
        "--on",
        "processes",
        "-o",
        tmp_path / "out",
        "--dry-run",
        "--",
    )
    for flags in (("--notify", f"https://h/{SECRET}"), (f"--notify=https://h/{SECRET}",)):
        outcome = orbax_bench(*words, *flags)
        assert outcome.code == 2
        assert "set ORBAX_BENCH_NOTIFY" in outcome.err
        assert SECRET not in outcome.err


def test_verdicts_are_junit_and_a_page_where_asked(nights, monkeypatch, tmp_path):
    page, junit = tmp_path / "page", tmp_path / "out" / "junit.xml"
    monkeypatch.setenv("GITHUB_STEP_SUMMARY", str(page))
    nights(1, 1.3, "--junit", junit)
    assert ET.parse(junit).getroot().attrib["failures"] == "1"
    assert page.read_text().count("REGRESSION") > 1


def test_a_page_or_file_that_cannot_be_written_is_a_warning(nights, monkeypatch, tmp_path):
    monkeypatch.setenv("GITHUB_STEP_SUMMARY", str(tmp_path / "none" / "page"))
    (tmp_path / "file").touch()
    outcome = nights(1, 1.3, "--junit", tmp_path / "file" / "junit.xml")
    assert outcome.code == 3
    assert outcome.err.count("warning: ") == 2


@pytest.mark.parametrize(
    ("flags", "variable"),
    [
        (("--junit", "http://h/junit.xml"), None),
        (("--notify", "@http://h/address"), None),
        ((), "ORBAX_BENCH_NOTIFY_STATE"),
        ((), "ORBAX_BENCH_SITE"),
    ],
)
def test_a_place_of_a_scheme_that_nobody_reads_is_refused(nights, monkeypatch, flags, variable):
    if variable:
        monkeypatch.setenv(variable, "s3://bucket/states")
    outcome = nights(1, 1.3, *flags)
    assert (outcome.code, outcome.out) == (2, "")
    assert outcome.err.startswith(f"error: {variable or flags[0]}")


def run_fake(command, suite, directory, url, **variables):
    process = start_cli(
        *(command, suite, "-o", directory, "--no-lock", *(["--no-limits"] * (command == "run"))),
        *("--notify", url),
        cli=FAKE_CLI,
        environment={**os.environ, **variables},
    )
    out, _ = process.communicate(timeout=120)
    return process.returncode, out


@pytest.mark.slow
def test_the_address_is_in_no_record_log_or_worker(webhook, tmp_path):
    suite, run = tmp_path / "suite.yaml", tmp_path / "runs" / "1"
    suite.write_text(
        SUITE.format(options="save_s: 0.02") + "arms: {candidate: {options: {save_s: 0.03}}}\n"
    )
    page = tmp_path / "page"
    code, out = run_fake("ab", suite, run, webhook.url, GITHUB_STEP_SUMMARY=str(page))
    assert code == 3, out
    assert webhook.states == ["REGRESSION"]
    assert ET.parse(run / "junit.xml").getroot().attrib["failures"] == "1"
    assert "REGRESSION" in page.read_text()
    files = [path for path in tmp_path.rglob("*") if path.is_file()]
    assert [path for path in files if SECRET.encode() in path.read_bytes()] == []
    assert SECRET not in out


@pytest.mark.slow
def test_the_step_that_judges_tells_as_well(orbax_bench, make_paired_run, webhook, monkeypatch):
    monkeypatch.setenv("ORBAX_BENCH_NOTIFY", webhook.url)
    run = make_paired_run(1, 1.3, blocks=10)
    judged = orbax_bench("step", "compare-baseline", "-o", run.root)
    assert (judged.code, judged.out) == (0, '"REGRESSION"\n')
    orbax_bench("step", "compare-baseline", "-o", run.root.parent / "none")
    assert [message["suite"] for _, message in webhook.posted] == [
        "a suite",
        "a suite that cannot be read",
    ]
